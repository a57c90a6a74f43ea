"""Models on this machine as judges: which one, how it runs, pairs in batches that fit; what fails, fails alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.judges._prompt import PLAIN, FreeJudge, JudgePrompt, examples
from eyespot.models import hub
from eyespot.models.torch_models import half, usable
from eyespot.photos.places import picture_of
from eyespot.rooms import needs
from eyespot.types import Answer, EyespotError, Pair, Query, UsageError, Verdict

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    Reader: TypeAlias = Callable[[Path], Image]

OPTIONS = {"device": str, "dtype": str, "batch": int}  # what a user may say of such a judge
NUMBERS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class LocalSettings:
    """Where and how a local model runs.

    `dtype` is "auto" (float32 on a CPU, 16 bits on an accelerator), "float32", "bfloat16" or "float16"; weights of
    8 or 4 bits are not offered. `batch` is how many pairs are judged at once (None: what the device likes); where
    the memory does not hold them, fewer. `read` decodes a file, upright, in RGB.
    """

    wording: JudgePrompt = PLAIN
    device: str = "auto"
    dtype: str = "auto"
    batch: int | None = None
    read: Reader = picture_of

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise UsageError(f"a batch of {self.batch} judges nothing; give 1 or more")
        if self.dtype not in ("auto", *NUMBERS):
            raise UsageError(f"no dtype {self.dtype!r} (none of 8 or 4 bits); there are: auto, {', '.join(NUMBERS)}")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LocalSettings:
        """Settings from what `load` was given; None is the default.

        A budget is for judges whose requests leave the machine, and is not needed here. Raises UsageError, with what
        there is, for another option and for a device that is not here.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in (*known, "budget"):
                raise UsageError(f"a local judge has no option {name!r}; there are: {', '.join(known)}")
        made = cls(**{name: options[name] for name in known if options.get(name) is not None})
        usable(made.device)
        return made

    @cached_property
    def torch_device(self) -> torch.device:
        """The device; `UsageError` if it is not here."""
        return usable(self.device)

    @property
    def torch_dtype(self) -> torch.dtype:
        """The numbers that the weights are held in."""
        import torch

        if self.dtype != "auto":
            named: torch.dtype = getattr(torch, self.dtype)
            return named
        return torch.float32 if self.torch_device.type == "cpu" else half(self.torch_device)


# -- which model ---------------------------------------------------------------------------------------------

WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
loading = partial(hub.loading, instead="ask the judge that needs no download: encoder:starter")


@dataclass(frozen=True)
class ModelSource:
    """A model, pinned.

    `revision` is the commit of the hub, or a digest of the weights of a folder of one's own, so that a judge's name
    stands for one set of weights for ever, wherever the folder is moved.
    """

    kind: str  # the judge it is for: "transformers"
    model: str  # its name on the hub, or the folder's name
    revision: str
    place: str  # what a library loads it by: the name on the hub, or the folder
    config: Mapping[str, Any]  # its config.json

    @property
    def name(self) -> str:
        """The judge's name: "transformers:llava-hf/llava-1.5-7b-hf@6ceb2ed…"."""
        return f"{self.kind}:{self.model}@{self.revision}"

    @property
    def commit(self) -> str | None:
        """The commit of the hub; None for a folder."""
        return None if Path(self.place).is_dir() else self.revision

    def folder(self) -> Path:
        """The folder with all of its files, fetched if they are not in the hub's cache."""
        return Path(self.place) if self.commit is None else hub.fetch(self.place, self.commit, WEIGHTS, hub.HAND).folder


def source(kind: str, spec: str) -> ModelSource:
    """The model `ORG/NAME[@REVISION]` or `FOLDER`; of the hub only its small config.json is fetched.

    Raises: UsageError if it is neither, EyespotError if it cannot be had.
    """
    with loading(f"{kind}:{spec}"):
        folder = Path(spec).expanduser()
        if folder.is_dir():
            folder = folder.resolve()
            weights = hub.local_checkpoint(folder, WEIGHTS).weights
            config = _config(folder / "config.json")
            return ModelSource(kind, folder.name, hub.digest(weights)[:16], str(folder), config)
        repo, revision = hub.repository_of(spec)
        file = hub.described(repo, revision)
        return ModelSource(kind, repo, file.parent.name, repo, _config(file))


def _config(file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        raise EyespotError(f"{file.parent} holds no config.json; name the folder that save_pretrained wrote")
    found = json.loads(file.read_text("utf-8"))
    if not isinstance(found, dict) or not isinstance(found.get("model_type"), str):
        raise EyespotError(f"{file} names no model_type; name a model of the transformers library")
    return found


# -- judging ---------------------------------------------------------------------------------------------------


Scorer: TypeAlias = "Callable[[Sequence[str], Sequence[Image]], Iterable[float]]"
"""A loaded model: how probable each picture is what its text asks for, (n,), NaN where its numbers broke; its `notes`,
if it has any, say what to know before trusting it."""


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
            size = settings.batch or (4 if settings.torch_device.type == "cpu" else 16)
            yield from PairBatches(self.scorer, self.ask, settings.read, size).answers(pairs)

    @property
    def notes(self) -> list[str]:
        """What the user should know before trusting the answers so far."""
        notes: list[str] = getattr(vars(self).get("scorer"), "notes", [])
        return notes

    @cached_property
    def scorer(self) -> Scorer:
        """The loaded model; also scores pairs of texts and pictures that come from elsewhere."""
        with needs(self.name.partition(":")[0]):
            return self.open()


# -- batches that fit ---------------------------------------------------------------------------------------


_JudgedPair: TypeAlias = "tuple[Pair, str, Image]"  # with its text and its decoded picture


@dataclass
class PairBatches:
    """Pairs to answers through a scorer, `size` at a time."""

    score: Scorer
    ask: Callable[[Query], str]
    read: Reader
    size: int

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One for every pair; `size` shrinks for good when a batch does not fit the memory."""
        done = 0
        while done < len(pairs):
            batch = pairs[done : done + self.size]
            done += len(batch)
            seen = [self._seen(pair) for pair in batch]
            yield from self._scored([one for one in seen if not isinstance(one, Answer)])
            yield from (one for one in seen if isinstance(one, Answer))

    def _seen(self, pair: Pair) -> _JudgedPair | Answer:
        try:
            if not examples(pair.query):
                return pair, self.ask(pair.query), self.read(pair.path)
            reason = "this judge reads words, and the query shows an example picture; ask an encoder"
        except Exception as error:  # decoders raise whatever they like at damaged files
            reason = f"{pair.path.name} cannot be read: {_first_line(error)}"
        return Answer(pair, None, reason)

    def _scored(self, seen: Sequence[_JudgedPair]) -> Iterator[Answer]:
        while seen:
            part = seen[: self.size]
            if (found := self._attempt(part)) is not None:
                yield from found
                seen = seen[len(part) :]

    def _attempt(self, part: Sequence[_JudgedPair]) -> list[Answer] | None:
        """The answers of a batch, or None where a smaller one is to be tried."""
        pairs, texts, pictures = zip(*part, strict=True)
        try:
            with hub.quiet():
                scores = [float(score) for score in self.score(texts, pictures)]
            return [
                Answer(pair, None, "the model's numbers overflowed; use the dtype float32")
                if math.isnan(score)
                else Answer(pair, Verdict(score))
                for pair, score in zip(pairs, scores, strict=True)
            ]
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
                return [Answer(pairs[0], None, f"the model cannot take this pair: {reason}")]
            return [answer for one in part for answer in self._scored([one])]
        import torch

        torch.cuda.empty_cache()  # where there is no card it does nothing
        if len(part) > 1:
            self.size = len(part) // 2
            return None
        return [Answer(pairs[0], None, "the memory does not hold the model and one picture; use a smaller model")]


def out_of_memory(error: BaseException) -> bool:
    """Whether a device, or this machine, had no room left; the CPU's allocator says so only in words."""
    import torch

    message = str(error).lower()
    in_words = any(words in message for words in ("out of memory", "not enough memory", "allocate memory"))
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or in_words


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
