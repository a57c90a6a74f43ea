"""From a model's first word to a probability: yes / (yes + no) over every spelling of the two answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eyespot.judges._prompt import JudgePrompt
from eyespot.types import UsageError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

SPACES = ("", "Ġ", "▁")  # how vocabularies write a leading space: not at all, of bytes, of pieces
SURE = 0.9  # what yes and no should take together of all that the model might say


def spellings(tokenizer: Any, word: str) -> list[int]:
    """The tokens that are this word in any case, with or without a leading space, in ascending order.

    Raises UsageError if the vocabulary holds it in no spelling: its first piece could begin any other word too.
    """
    vocabulary = tokenizer.get_vocab()
    cases = {word, word.lower(), word.upper(), word.capitalize()}
    found = {vocabulary[space + case] for space in SPACES for case in cases if space + case in vocabulary}
    if not found:
        raise UsageError(f"the model has no single token for the answer {word!r}; choose another word in the wording")
    return sorted(found)


def answer_tokens(tokenizer: Any, wording: JudgePrompt) -> tuple[list[int], list[int]]:
    """The tokens of yes and of no: all their spellings, or the one that an exact wording names."""
    if wording.token is None:
        return spellings(tokenizer, wording.yes), spellings(tokenizer, wording.no)
    yes, no = ([int(tokenizer(word).input_ids[wording.token])] for word in (wording.yes, wording.no))
    return yes, no


@dataclass
class FirstWord:
    """What the first word of answers says, and how often it was neither yes nor no."""

    yes: list[int]
    no: list[int]
    answers: int = 0
    unsure: int = 0

    def probabilities(self, logits: torch.Tensor) -> NDArray[np.float64]:
        """yes / (yes + no) with both taken from the softmax over the whole vocabulary; (n, vocabulary) to (n,)."""
        import torch

        logprobs = torch.log_softmax(logits.double(), dim=-1)  # (n, vocabulary)
        yes, no = (torch.logsumexp(logprobs[:, ids], dim=-1) for ids in (self.yes, self.no))  # (n,), (n,)
        self.answers += len(logprobs)
        self.unsure += int((torch.logaddexp(yes, no).exp() < SURE).sum())
        # as a difference of logarithms it stays right where both are too small for a float
        share: NDArray[np.float64] = torch.sigmoid(yes - no).cpu().numpy()
        return share

    @property
    def notes(self) -> list[str]:
        """A sentence if yes and no together ever took less than nine tenths."""
        if not self.unsure:
            return []
        return [
            f"in {self.unsure:,} of {self.answers:,} answers yes and no together had a probability below {SURE:g}: "
            "the model may not understand the question; try another wording"
        ]
