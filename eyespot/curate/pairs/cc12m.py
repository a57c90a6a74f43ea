"""Conceptual 12M as webdataset shards: `KEY.jpg` with its caption in `KEY.txt`, else in `caption` of `KEY.json`.

The shards are indexed as they are (`eyespot index SHARD.tar`); only their captions are written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot.curate.pair_set import CAPTIONS, LEFT_OUT, LeftOut, PairRow, digest
from eyespot.photos.found import Labels, Seen, Unreadable
from eyespot.photos.names import stored_name
from eyespot.photos.sources import Root, scan
from eyespot.storage.text_files import refuse
from eyespot.types import Progress

TEXTS = ("text", "caption")  # of KEY.txt, of KEY.json


@dataclass(frozen=True)
class Cc12m:
    """Shards. `without`: keys of samples that give no pair."""

    files: Sequence[Path]
    without: frozenset[str] = frozenset()

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Captions alone."""
        return {CAPTIONS: ("file_name", "caption")}

    @property
    def settings(self) -> Mapping[str, Any]:
        """Which keys are left out."""
        return {"without": digest(self.without)}

    def begin(self, done: Sequence[Path], tell: Progress) -> None:
        """Nothing has to be known."""

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """Each picture with its caption, in the order of the shard; `UsageError` if the shard is cut short."""
        uncaptioned: dict[str, None] = {}  # pictures in their order
        for found in scan(Root(stored_name(str(file.absolute())), "tar")):
            if isinstance(found, Seen):
                uncaptioned[found.path] = None
            elif isinstance(found, Unreadable):
                if not found.path:
                    refuse(file, "", found.reason)
                yield LeftOut(found.path, found.reason)
            elif isinstance(found, Labels):
                texts = (" ".join(str(found.facts.get(name, "")).split()) for name in TEXTS)
                text = next(filter(None, texts), None)
                if text is None or found.path not in uncaptioned:
                    continue
                del uncaptioned[found.path]
                if found.path.rpartition("/")[2].partition(".")[0] in self.without:
                    yield LeftOut(found.path, LEFT_OUT)
                else:
                    yield PairRow(CAPTIONS, {"file_name": found.path, "caption": text})
        yield from (LeftOut(path, "has no caption") for path in uncaptioned)
