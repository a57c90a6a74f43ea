"""COCO captions, Conceptual 12M and RMIR sets as they are published, read into pairs to train on.

COCO: `captions_train2017.json` and its like, about five sentences a picture. The file is read twice, an element at a
time, since `images` may stand before `annotations`; captions stay in memory.

Conceptual 12M: webdataset shards, `KEY.jpg` with its caption in `KEY.txt`, else in `caption` of `KEY.json`. The shards
are indexed as they are (`eyespot index SHARD.tar`); only their captions are written here.

RMIR: a set's questions with their pictures, and the pictures that answer them. Of one split alone, so that what is
tested was never seen. A question with several answers gives a pair for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot.curate.pair_set import CAPTIONS, LEFT_OUT, PICTURES, LeftOut, PairRow, StatelessSource, digest
from eyespot.photos.found import Labels, Seen, Unreadable
from eyespot.photos.json_lists import lists_of
from eyespot.photos.names import stored_name
from eyespot.photos.places import Root
from eyespot.photos.sources import scan
from eyespot.runs import rmir
from eyespot.storage.ids import id_of
from eyespot.storage.systems import relative_path
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError


@dataclass(frozen=True)
class Coco(StatelessSource):
    """Files of captions, and the folder where their pictures lie. `without`: ids of images that give no pair.

    train2017 is train2014 and val2014 less 5,000 images, so it holds most of the 5,000 images of val2014 that are the
    usual test set: leave those out by their ids.
    """

    files: Sequence[Path]
    images: Path
    out: Path
    without: frozenset[str] = frozenset()

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """A list of pictures, and their captions."""
        return {PICTURES: ("file_name", "image_id"), CAPTIONS: ("file_name", "caption")}

    @property
    def settings(self) -> Mapping[str, Any]:
        """Where the pictures lie, and which are left out."""
        return {"images": str(self.images.absolute()), "without": digest(self.without)}

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """Each image in its order, with its captions in theirs."""
        try:
            texts: dict[str, list[str]] = {}  # by image
            for element in _elements(file, "annotations"):
                fields = element if isinstance(element, dict) else {}
                image_id, text = id_of(fields.get("image_id")), " ".join(str(fields.get("caption") or "").split())
                if image_id and text:
                    texts.setdefault(image_id, []).append(text)
            folder = relative_path(self.images, self.out / file.stem)
            for number, image in enumerate(_elements(file, "images"), 1):
                id, name = (image.get("id"), image.get("file_name")) if isinstance(image, dict) else (None, None)
                captions = texts.pop(id_of(id) or "", [])
                if not isinstance(name, str) or not name or id_of(id) is None:
                    yield LeftOut(f"image {number}", "has no id or no file_name")
                elif str(id) in self.without:
                    yield LeftOut(f"image {id}", LEFT_OUT)
                elif not captions:
                    yield LeftOut(f"image {id}", "has no caption")
                else:
                    yield PairRow(PICTURES, {"file_name": f"{folder}/{name}", "image_id": str(id)})
                    yield from (PairRow(CAPTIONS, {"file_name": name, "caption": one}) for one in captions)
        except (ValueError, OSError) as error:
            refuse(file, "", f"is no COCO JSON ({error})")
        yield from (LeftOut(f"image {id}", "is not listed among the images") for id in texts)


def _elements(file: Path, wanted: str) -> Iterator[Any]:
    for key, elements in lists_of(file):
        if key == wanted and elements is not None:
            yield from elements


TEXTS = ("text", "caption")  # of KEY.txt, of KEY.json


@dataclass(frozen=True)
class Cc12m(StatelessSource):
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


@dataclass(frozen=True)
class Rmir(StatelessSource):
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
