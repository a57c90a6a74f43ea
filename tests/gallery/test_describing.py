"""Local features on disk: what goes in comes out, a shard that is done is done, and what failed is told."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.describing import Describing, describe
from eyespot.gallery.disk import shard_paths
from eyespot.gallery.filters import checked, columns_of, mask
from eyespot.gallery.indexing import Summary
from eyespot.gallery.items_table import read_items
from eyespot.gallery.local import Described, DescribedShard, LocalNote, local_sets, new_local, read_local_note
from eyespot.gallery.texts import TextSummary, reading_order, text_facts
from eyespot.photos.places import Root
from eyespot.types import EyespotError, LocalFeatures, NothingFound, TextBox, UsageError
from tests.lazy_import import requires
from tests.wording import check_wording, raises
from tests.worlds import draw, index_gallery, make_gallery
from tests.worlds.bar_texts import BarReader, draw_bars
from tests.worlds.galleries import contents, facts_of, flip, opened


@dataclass
class Corners:
    """An extractor of the four corners' colours, brightest first, that counts the pictures it sees."""

    name: str = "corners"
    settings: dict[str, Any] = field(default_factory=lambda: {"corners": 4})
    min_side: int | None = None
    seen: int = 0

    def describe(self, picture: Image.Image, count: int) -> LocalFeatures:
        self.seen += 1
        width, height = picture.size
        places = [(x, y) for x in (0, width - 1) for y in (0, height - 1)]
        colours = np.array([picture.getpixel(place) for place in places], np.uint8)
        order = np.argsort(-colours.sum(axis=1, dtype=int), kind="stable")[:count]
        return LocalFeatures(colours[order], np.array(places, np.float32)[order])


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine photos and their gallery, in shards of four."""
    return make_gallery(tmp_path_factory.mktemp("indexed"), 9, shard_rows=4).parent


@pytest.fixture
def photos(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed / "photos", tmp_path / "photos"))


@pytest.fixture
def gallery(indexed: Path, photos: Path, tmp_path: Path) -> Path:
    """A copy whose root is the copy of the photos."""
    copied = Path(shutil.copytree(indexed / "gallery", tmp_path / "gallery"))
    header = disk.read_header(copied)
    header.roots = {number: Root(str(photos), "folder") for number in header.roots}
    disk.write_header(copied, header)
    return copied


def described(gallery: Path, extractor: str | None = None) -> Described:
    return Described.of(opened(gallery), extractor)


def flipped(gallery: Path, pattern: str) -> dict[str, bytes]:
    for place in gallery.rglob(pattern):
        flip(place, -1)
    return local_files(gallery)


def local_files(gallery: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(gallery).items() if "/local/" in name}


def test_what_stands_in_the_gallery_is_what_the_extractor_gave(gallery: Path) -> None:
    describe(gallery, Corners(), Describing(count=3))
    facts, found = facts_of(gallery), described(gallery)
    for fact, features in zip(facts, found.features([fact["id"] for fact in facts]), strict=True):
        wanted = Corners().describe(Image.open(fact["path"]).convert("RGB"), 3)
        assert features is not None
        np.testing.assert_array_equal(features.descriptors, wanted.descriptors)
        np.testing.assert_array_equal(features.keypoints, wanted.keypoints)


def test_a_new_picture_alone_is_described(gallery: Path, photos: Path) -> None:
    describe(gallery, Corners())
    draw(photos / "new.jpg", 50)
    index_gallery(gallery, photos)
    summary = describe(gallery, extractor := Corners())
    assert (extractor.seen, summary.described, summary.pictures, summary.failures) == (1, 1, 10, [])


def test_only_what_is_asked_for_is_described_and_the_rest_another_time(gallery: Path) -> None:
    ids = [fact["id"] for fact in facts_of(gallery)]

    first = describe(gallery, Corners(), Describing(only=set(ids[2:5])))
    there = [features is not None for features in described(gallery).features(ids)]
    rest = describe(gallery, Corners())

    assert (first.pictures, first.described, rest.described) == (3, 3, len(ids) - 3)
    assert there == [at in (2, 3, 4) for at in range(len(ids))]


def test_what_cannot_be_read_is_told_and_tried_again_only_when_asked(gallery: Path, photos: Path) -> None:
    lost = photos / "1.jpg"
    backup = lost.read_bytes()
    lost.unlink()
    (photos / "2.jpg").write_bytes(backup)

    first, again = describe(gallery, Corners()), describe(gallery, Corners())
    lost.write_bytes(backup)
    mended = describe(gallery, Corners(), Describing(retry_failed=True))

    assert [Path(failure.path).name for failure in first.failures] == ["1.jpg", "2.jpg"]
    for failure in first.failures:
        check_wording(failure.reason)
    assert (first.described, again.described, again.failures) == (7, 0, first.failures)
    assert (mended.described, [Path(failure.path).name for failure in mended.failures]) == (1, ["2.jpg"])


def test_mending_a_shard_leaves_it_as_if_nothing_had_failed(gallery: Path, photos: Path, tmp_path: Path) -> None:
    away = (photos / "4.jpg").rename(tmp_path / "away.jpg")
    describe(gallery, Corners())
    away.rename(photos / "4.jpg")
    describe(gallery, Corners(), Describing(retry_failed=True))
    mended = local_files(gallery)
    for name in mended:
        (gallery / name).unlink()

    describe(gallery, Corners())

    assert mended == local_files(gallery) and len(mended) == 15


def test_an_interrupted_shard_is_not_there_and_the_finished_ones_are(gallery: Path) -> None:
    @dataclass
    class Tired(Corners):
        def describe(self, picture: Image.Image, count: int) -> LocalFeatures:
            if self.seen == 6:
                raise KeyboardInterrupt
            return super().describe(picture, count)

    with pytest.raises(KeyboardInterrupt):
        describe(gallery, Tired())
    stem = LocalNote.of(Corners(), 100).stem
    done = [shard.name for shard in disk.shard_paths(gallery) if read_local_note(shard, stem)]

    summary = describe(gallery, Corners())

    assert done == ["00000"]
    assert summary.described == 5
    assert not list(gallery.rglob("local/.*"))


def test_of_sets_of_several_extractors_one_is_chosen_and_of_one_that_with_more_features(gallery: Path) -> None:
    for count in (2, 3):
        describe(gallery, Corners(), Describing(count=count))
    assert described(gallery).note.count == 3

    describe(gallery, Corners("edges:fine"), Describing(count=2))
    with raises(UsageError):
        described(gallery)
    assert described(gallery, "edges").note.count == 2
    assert len(local_sets(disk.shard_paths(gallery))) == 3


def test_a_shard_of_pictures_without_features(tmp_path: Path) -> None:
    note = LocalNote("none", {}, 5)
    with new_local(tmp_path, note) as writer:
        writer.add(LocalFeatures(np.zeros((0, 7), np.uint8), np.zeros((0, 2), np.float32)))
        writer.add("too dark")

    shard = DescribedShard(tmp_path, note.stem)
    features = shard.features(0)

    assert features is not None and features.descriptors.shape == (0, 7)
    assert (shard.features(1), shard.note and shard.note.missing) == (None, {1: "too dark"})


def test_a_damaged_set_and_a_gallery_without_pictures_are_told(gallery: Path, tmp_path: Path) -> None:
    describe(gallery, Corners())
    for place in gallery.rglob("descriptors.npy"):
        place.write_bytes(place.read_bytes()[:100])
    with pytest.raises(EyespotError, match=r"eyespot index --repair -g"):
        described(gallery).features([facts_of(gallery)[0]["id"]])

    disk.write_header(tmp_path, disk.Header())
    with raises(NothingFound):
        describe(tmp_path, Corners())


@requires("cv2")
def test_a_damaged_set_is_removed_and_made_again_by_its_verb(photos: Path, tmp_path: Path) -> None:
    gallery, sift = tmp_path / "own", rooms.load("descriptors", "sift")
    index_gallery(gallery, photos, shard_rows=4)
    describe(gallery, sift)
    before = local_files(gallery)
    flipped(gallery, "shards/00000/local/*/descriptors.npy")

    repair = index_gallery(gallery, repair=True)
    left = local_files(gallery)
    again = describe(gallery, sift)

    assert repair.damaged == [] and any("make it again with: eyespot describe -g" in note for note in repair.notes)
    assert {*left} == {name for name in before if "00000" not in name} and again.described == 4
    assert local_files(gallery) == before


@pytest.fixture
def texts_photos(tmp_path: Path) -> Path:
    """Six pictures: two with words, one with two rows, one with a lone sign, two with none."""
    folder = tmp_path / "photos"
    draw_bars(folder / "invoice.png", "INVOICE 42")
    draw_bars(folder / "deep" / "shop.png", "Fresh fish", "open daily")
    draw_bars(folder / "spot.png", "X")
    draw_bars(folder / "gate.png", "No parking")
    draw_bars(folder / "sky.png", seed=1)
    draw_bars(folder / "sea.png", seed=2)
    return folder


def read(gallery: Path, photos: Path, reader: BarReader | None, **more: Any) -> Summary:
    summary: Summary = index_gallery(gallery, photos, workers=1, shard_rows=2, text_reader=reader, **more)
    return summary


def rows(gallery: Path) -> dict[str, dict[str, Any]]:
    """The facts of each row that has a picture, by its first path."""
    every = [row for shard in shard_paths(gallery) for row in read_items(shard).to_pylist()]
    return {row["paths"][0]: row for row in every if row["paths"]}


def words(gallery: Path) -> dict[str, str | None]:
    return {path: row["text_in_picture"] for path, row in rows(gallery).items()}


WORDS = {
    "invoice.png": "INVOICE 42",
    "deep/shop.png": "Fresh fish open daily",
    "gate.png": "No parking",
    **dict.fromkeys(("spot.png", "sky.png", "sea.png")),
}


def test_words_boxes_and_reader_become_facts_that_a_filter_finds(tmp_path: Path, texts_photos: Path) -> None:
    summary = read(tmp_path / "gallery", texts_photos, BarReader())

    found = rows(tmp_path / "gallery")
    tables = [shard / "items.parquet" for shard in shard_paths(tmp_path / "gallery")]
    hits = mask(tables, checked("text_in_picture ILIKE '%invoice%'", list(columns_of(tables))))
    assert summary.texts == TextSummary(read=6, with_text=3)
    assert words(tmp_path / "gallery") == WORDS
    assert [path for path, hit in zip(found, hits.tolist(), strict=True) if hit] == ["invoice.png"]
    assert json.loads(found["deep/shop.png"]["text_boxes"]) == [
        ["Fresh fish", 0.9, 0.0, 0.0, 0.625, 0.2667],
        ["open daily", 0.9, 0.0, 0.3333, 0.625, 0.2667],
    ]
    assert json.loads(found["spot.png"]["text_boxes"])[0][:2] == ["X", 0.9]
    assert found["sky.png"]["text_boxes"] is None
    assert {row["text_read_by"] for row in found.values()} == {"bars 1"}


def test_only_new_and_changed_pictures_are_read_the_next_time(tmp_path: Path, texts_photos: Path) -> None:
    gallery = tmp_path / "gallery"
    read(gallery, texts_photos, BarReader())
    draw_bars(texts_photos / "new.png", "Ticket")
    draw_bars(texts_photos / "invoice.png", "INVOICE 43")
    (texts_photos / "gate.png").rename(texts_photos / "deep" / "moved.png")
    shutil.copy(texts_photos / "deep" / "shop.png", texts_photos / "copy.png")
    without = read(gallery, texts_photos, None)
    before, reader = words(gallery), BarReader()

    summary = read(gallery, texts_photos, reader)

    assert without.texts is None and before["new.png"] is before["invoice.png"] is None
    assert sorted(reader.seen) == ["INVOICE 43", "Ticket"] and summary.texts == TextSummary(read=2, with_text=4)
    now = words(gallery)
    assert [now[name] for name in ("new.png", "invoice.png", "deep/moved.png")] == [
        "Ticket",
        "INVOICE 43",
        "No parking",
    ]


class Mended(BarReader):
    def read(self, picture: Any) -> list[TextBox]:
        return [TextBox("at last", 1.0, 0.0, 0.0, 1.0, 1.0)]


def test_one_bad_picture_stops_no_other_and_is_tried_again(tmp_path: Path, texts_photos: Path) -> None:
    gallery, torn = tmp_path / "gallery", BarReader()
    draw_bars(texts_photos / "bad.png", "!!!")
    first = read(gallery, texts_photos, BarReader())
    again = read(gallery, texts_photos, torn)
    last = read(gallery, texts_photos, Mended(), retry_failed=True)

    assert first.texts is not None and first.failures == [] and first.texts.read == 6
    assert [failure.path for failure in first.texts.failures] == ["bad.png"]
    assert first.texts.failures[0].reason.endswith("the bars are torn")
    assert again.texts is not None and again.texts.read == 0 and len(again.texts.failures) == 1 and torn.seen == []
    assert last.texts == TextSummary(read=1, with_text=4) and words(gallery)["bad.png"] == "at last"


def test_pictures_out_of_reach_wait(tmp_path: Path, texts_photos: Path) -> None:
    gallery = tmp_path / "gallery"
    read(gallery, texts_photos, None)
    texts_photos.rename(tmp_path / "away")
    away = read(gallery, texts_photos, BarReader())
    (tmp_path / "away").rename(texts_photos)

    back = read(gallery, texts_photos, BarReader())

    assert (away.texts, back.texts) == (TextSummary(away=6), TextSummary(read=6, with_text=3))


def test_a_label_of_a_person_stands_before_what_was_read(tmp_path: Path, texts_photos: Path) -> None:
    (texts_photos / "metadata.csv").write_text("file_name,text_in_picture\ngate.png,7\n")
    gallery, reader = tmp_path / "gallery", BarReader()
    read(gallery, texts_photos, BarReader())
    before = words(gallery)
    (gallery / "index.sqlite").unlink()

    read(gallery, texts_photos, reader, repair=True)

    assert reader.seen == [] and words(gallery) == before == WORDS | {"gate.png": "7"}


def test_reading_order_is_by_rows_and_then_from_left_to_right() -> None:
    """The third word stands a little higher than the first of its row."""
    places = {"two": (0.5, 0.10), "one": (0.1, 0.11), "four": (0.6, 0.48), "three": (0.1, 0.52), "five": (0.3, 0.8)}
    boxes = [TextBox(text, 1.0, x, y, 0.2, 0.1) for text, (x, y) in places.items()]

    assert [box.text for box in reading_order(boxes)] == ["one", "two", "three", "four", "five"]


def test_what_no_table_holds_is_left_out_of_a_text() -> None:
    odd = [TextBox("half \ud83d a\0sign", 0.9, 0, 0, 0.1, 0.1), TextBox("\ud83d", 0.9, 0, 0.5, 0.1, 0.1)]
    facts = text_facts(odd, "bars 1")

    assert facts["text_in_picture"] == "half a sign" and len(json.loads(facts["text_boxes"])) == 1


def test_a_picture_whose_only_text_is_one_sign_has_no_words() -> None:
    lone, pair = (
        text_facts([TextBox(sign, 0.99, 0, at / 2, 0.1, 0.1) for at, sign in enumerate(signs)], "bars 1")
        for signs in ("8", "87")
    )

    assert "text_in_picture" not in lone and "text_boxes" in lone
    assert pair["text_in_picture"] == "8 7"


@pytest.mark.skipif(find_spec("rapidocr") is not None, reason="the extra [ocr] is installed")
def test_without_the_extra_the_line_that_installs_it_is_said() -> None:
    with pytest.raises(EyespotError, match=r"pip install .*\[ocr\]"):
        rooms.load("photos.ocr", "rapidocr")


@pytest.mark.long
@requires("rapidocr")
def test_rapidocr_reads_a_board_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fetch models that it looks for itself."""
    import socket
    from random import Random

    from eyespot.curate.recos.drawing import draw_board, sample_board

    def refuse(*_: object) -> None:
        raise AssertionError("it wants to connect")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    chance = Random(5)
    board = draw_board("NO PARKING 42", sample_board("text", chance), chance)
    reader = rooms.load("photos.ocr", "rapidocr", threads=1)

    facts = text_facts(reader.read(board), reader.name)

    assert facts["text_in_picture"] == "NO PARKING 42"
    assert facts["text_read_by"].startswith("rapidocr ")
    for text, confidence, x, y, width, height in json.loads(facts["text_boxes"]):
        assert text in "NO PARKING 42" and confidence > 0.8
        assert 0 <= x < x + width <= 1 and 0.1 < y < y + height < 0.9
