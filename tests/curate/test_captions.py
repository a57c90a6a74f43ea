"""Captions of a gallery: one for each picture that is there, written whole; what cannot be captioned is listed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eyespot.curate.captions import Caption, Uncaptioned, captioned, columns, count, write
from eyespot.curate.templates import Templates
from eyespot.storage.tables import rows_of
from eyespot.types import NothingFound, UsageError
from tests.wording import raises
from tests.worlds import draw_photos, index_gallery

NAMES = ["grey heron", "osprey", None, "barn owl", "grey heron"]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five photos in shards of two; the third has no name."""
    folder = tmp_path_factory.mktemp("labelled")
    photos = draw_photos(folder / "photos", len(NAMES), name="photo{}.jpg")
    rows = [f"photo{at}.jpg,{name or ''}\n" for at, name in enumerate(NAMES)]
    (photos / "metadata.csv").write_text("file_name,common_name\n" + "".join(rows))
    index_gallery(folder / "gallery", photos, shard_rows=2)
    return folder / "gallery"


@dataclass
class Looking:
    """A captioner that looks: it says how large the picture is."""

    name: str = "looking"
    settings: dict[str, Any] = field(default_factory=dict)

    def caption(self, facts: dict[str, Any], picture: Callable[[], Image.Image]) -> str:
        return f"a picture \n of {picture().width} by {picture().height}, {facts['common_name']}"


def plain(seed: int = 0) -> Templates:
    return Templates.over(["common_name"], {}, ["{a common}", "a photo of {a common}"], seed=seed)


def test_each_picture_with_labels_gets_a_sentence_of_its_own(gallery: Path) -> None:
    found = list(captioned(gallery, plain()))

    captions = [one for one in found if isinstance(one, Caption)]
    (without,) = [one for one in found if isinstance(one, Uncaptioned)]
    assert len(found) == len({one.id for one in found}) == 5
    assert sorted(one.caption.removeprefix("a photo of ") for one in captions) == [
        "a barn owl", "a grey heron", "a grey heron", "an osprey",
    ]  # fmt: skip
    assert (Path(without.path).name, without.reason) == ("photo2.jpg", "no label to speak of")


@pytest.mark.parametrize("name", ["captions.parquet", "captions.csv"])
def test_what_is_written_is_read_again_and_counted_the_same(gallery: Path, tmp_path: Path, name: str) -> None:
    written = write(captioned(gallery, plain()), tmp_path / name, plain())
    wanted = [one._asdict() for one in captioned(gallery, plain()) if isinstance(one, Caption)]
    assert [row for _, row in rows_of(tmp_path / name)] == wanted
    assert (written.captions, dict(written.without), written.failures) == (4, {"no label to speak of": 1}, [])
    assert written.different == {row["caption"] for row in wanted} and count(captioned(gallery, plain())) == written


def test_parquet_says_how_it_was_made_and_is_the_same_every_time(gallery: Path, tmp_path: Path) -> None:
    for name in ("one.parquet", "two.parquet"):
        write(captioned(gallery, plain(3)), tmp_path / name, plain(3))
    made = json.loads(pq.read_schema(tmp_path / "one.parquet").metadata[b"eyespot"])
    assert (made["by"], made["seed"], made["columns"]) == ("templates", 3, {"common": "common_name"})
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_a_captioner_may_look_at_the_picture_and_one_that_cannot_be_read_is_listed(
    gallery: Path, tmp_path: Path
) -> None:
    found = [one for one in captioned(gallery, Looking()) if isinstance(one, Caption)]
    lost, broken = (gallery.parent / "photos" / f"photo{at}.jpg" for at in (0, 1))
    backups = lost.read_bytes(), broken.read_bytes()
    lost.unlink()
    broken.write_bytes(b"no picture")

    written = write(captioned(gallery, Looking()), tmp_path / "captions.csv", Looking())
    lost.write_bytes(backups[0])
    broken.write_bytes(backups[1])

    assert len(found) == 5 and min(one.caption for one in found) == "a picture of 120 by 90, None"
    assert written.captions == 3 and "no such file or directory" in written.without
    assert {Path(one.path).name for one in written.failures} == {"photo0.jpg", "photo1.jpg"}


def test_without_a_single_caption_or_a_known_kind_of_file_nothing_is_written(gallery: Path, tmp_path: Path) -> None:
    mute = Templates({"common": "nothing"}, ["{common}"])

    with raises(NothingFound):
        write(captioned(gallery, mute), tmp_path / "captions.csv", mute)
    with raises(UsageError):
        write(captioned(gallery, plain()), tmp_path / "c.txt", plain())
    assert list(tmp_path.iterdir()) == []


def test_the_columns_of_all_shards_are_told_once(gallery: Path) -> None:
    names = columns(gallery)
    assert "common_name" in names and len(names) == len(set(names))
    assert not {"live", "roots", "paths"} & set(names)
