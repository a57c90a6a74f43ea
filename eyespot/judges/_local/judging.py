"""A local model as a judge: pairs in batches that fit the memory, and whatever fails, fails alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from eyespot.judges._free import FreeJudge
from eyespot.judges._local.settings import LocalSettings
from eyespot.judges._prompt import examples
from eyespot.models import hub
from eyespot.rooms import needs
from eyespot.types import Answer, EyespotError, Pair, Query, Verdict

if TYPE_CHECKING:
    from PIL.Image import Image

    from eyespot.judges._local.settings import Reader


class Scorer(Protocol):
    """A model that is loaded."""

    def __call__(self, texts: Sequence[str], pictures: Sequence[Image]) -> Iterable[float]:
        """How probable it is that each picture is what its text asks for, (n,); NaN where the model's numbers broke."""
        ...

    @property
    def notes(self) -> list[str]:
        """What the user should know before trusting it, so far."""
        ...


@dataclass
class LocalJudge(FreeJudge):
    """A model on this machine, as an `eyespot.types.Judge`; its weights are loaded when the first pair is judged."""

    name: str
    prompt: str
    ask: Callable[[Query], str]
    open: Callable[[], Scorer]
    settings: LocalSettings

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One answer for every pair, batch by batch; in a batch, pictures that cannot be read come last."""
        if pairs:
            settings = self.settings
            yield from PairBatches(self.scorer, self.ask, settings.read, settings.pairs_at_once).answers(pairs)

    @property
    def notes(self) -> list[str]:
        """What the user should know before trusting the answers so far."""
        return self.scorer.notes if "scorer" in vars(self) else []

    @cached_property
    def scorer(self) -> Scorer:
        """The loaded model; also scores pairs of texts and pictures that come from elsewhere."""
        with needs(self.name.partition(":")[0]):
            return self.open()


# -- batches that fit ---------------------------------------------------------------------------------------


class _JudgedPair(NamedTuple):
    pair: Pair
    text: str
    picture: Image


@dataclass
class PairBatches:
    """Pairs to answers through a scorer, `size` at a time."""

    score: Callable[[Sequence[str], Sequence[Image]], Iterable[float]]
    ask: Callable[[Query], str]
    read: Reader
    size: int
    _failed: list[Answer] = field(default_factory=list)

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One for every pair; `size` shrinks for good when a batch does not fit the memory."""
        done = 0
        while done < len(pairs):
            batch = pairs[done : done + self.size]
            done += len(batch)
            yield from self._scored([seen for pair in batch if (seen := self._seen(pair)) is not None])
            failed, self._failed = self._failed, []
            yield from failed

    def _seen(self, pair: Pair) -> _JudgedPair | None:
        try:
            if not examples(pair.query):
                return _JudgedPair(pair, self.ask(pair.query), self.read(pair.path))
            reason = "this judge reads words, and the query shows an example picture; ask an encoder"
        except Exception as error:  # decoders raise whatever they like at damaged files
            reason = f"{pair.path.name} cannot be read: {_first_line(error)}"
        self._failed.append(Answer(pair, None, reason))
        return None

    def _scored(self, seen: Sequence[_JudgedPair]) -> Iterator[Answer]:
        while seen:
            part = seen[: self.size]
            found = self._attempt(part)
            if found is not None:
                yield from found
                seen = seen[len(part) :]

    def _attempt(self, part: Sequence[_JudgedPair]) -> list[Answer] | None:
        """The answers of a batch, or None where a smaller one is to be tried."""
        try:
            with hub.quiet():
                scores = self.score([one.text for one in part], [one.picture for one in part])
            return [_answer(one.pair, float(score)) for one, score in zip(part, scores, strict=True)]
        except EyespotError:
            raise
        except Exception as error:  # libraries meet odd pictures with errors of every kind
            reason = "" if out_of_memory(error) else _first_line(error)
            if "CUDA error" in reason:
                raise EyespotError(f"the accelerator failed ({reason}); run the same line again") from error
        # only here is the error forgotten, and with it the half of the work that it held in memory
        if reason:
            # The one that the model cannot take must not cost the others
            if len(part) == 1:
                return [Answer(part[0].pair, None, f"the model cannot take this pair: {reason}")]
            return [answer for one in part for answer in self._scored([one])]
        free_memory()
        if len(part) > 1:
            self.size = len(part) // 2
            return None
        return [Answer(part[0].pair, None, "the memory does not hold the model and one picture; use a smaller model")]


def _answer(pair: Pair, probability: float) -> Answer:
    if math.isnan(probability):
        return Answer(pair, None, "the model's numbers overflowed; use the dtype float32")
    return Answer(pair, Verdict(probability))


def out_of_memory(error: BaseException) -> bool:
    """Whether a device, or this machine, had no room left; the CPU's allocator says so only in words."""
    import torch

    message = str(error).lower()
    in_words = any(words in message for words in ("out of memory", "not enough memory", "allocate memory"))
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or in_words


def free_memory() -> None:
    """Give back what an accelerator keeps for later."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
