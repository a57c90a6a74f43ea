"""An RMIR set's questions with their pictures, and the pictures that answer them: pairs to train a retriever on.

Of one split alone, so that what is tested was never seen. A question with several answers gives a pair for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot.curate.pair_set import CAPTIONS, LEFT_OUT, LeftOut, PairRow, digest
from eyespot.runs import rmir
from eyespot.types import Progress, UsageError


@dataclass(frozen=True)
class Rmir:
    """The folder of a set, and which split of it. `without`: ids of queries that give no pair."""

    folder: Path
    split: str = "train"
    without: frozenset[str] = frozenset()

    @property
    def files(self) -> Sequence[Path]:
        """The judgements, which make the one part; `UsageError` if the folder holds no set."""
        if not rmir.is_layout(self.folder):
            raise UsageError(f"{self.folder} holds no RMIR set; name the folder with its queries, qrels and pool")
        return [rmir.place(self.folder, "qrels")]

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The picture that answers, the question, and the picture that it is asked with."""
        return {CAPTIONS: ("file_name", "caption", "asked_with")}

    @property
    def settings(self) -> Mapping[str, Any]:
        """Which set, which split, and what is left out."""
        return {"set": str(self.folder.absolute()), "split": self.split, "without": digest(self.without)}

    def begin(self, done: Sequence[Path], tell: Progress) -> None:
        """Nothing has to be known."""

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """Queries in the order of the set, the answers of each in theirs; `UsageError` for a split it does not have."""
        judged = rmir.read(self.folder)
        splits = {str(facts.get("split")) for facts in judged.queries.values()}
        if self.split not in splits:
            raise UsageError(f"{self.folder} has no split {self.split!r}; there are: {', '.join(sorted(splits))}")
        for query, facts in judged.queries.items():
            if facts.get("split") == self.split:
                grades = judged.qrels.grades[query]
                answers = [image for image, grade in grades.items() if grade > 0]
                if query in self.without:
                    yield LeftOut(f"query {query}", LEFT_OUT)
                elif not answers:
                    yield LeftOut(f"query {query}", "has no picture that answers it")
                for pairs_image in answers if query not in self.without else ():
                    yield PairRow(
                        CAPTIONS, {"file_name": pairs_image, "caption": facts["text"], "asked_with": facts["image"]}
                    )
