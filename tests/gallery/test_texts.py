"""Text in pictures: read once, kept by the bytes of a picture through kills and moves, and found by a filter."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms
from eyespot.gallery.disk import shard_paths
from eyespot.gallery.filters import checked, columns_of, mask
from eyespot.gallery.indexing import Summary
from eyespot.gallery.items_table import read_items
from eyespot.gallery.texts import TextSummary, reading_order, text_facts
from eyespot.types import EyespotError, TextBox
from tests.lazy_import import requires
from tests.worlds import index_gallery
from tests.worlds.bar_texts import BarReader, draw_bars


@pytest.fixture
def photos(tmp_path: Path) -> Path:
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


def test_words_boxes_and_reader_become_facts_that_a_filter_finds(tmp_path: Path, photos: Path) -> None:
    summary = read(tmp_path / "gallery", photos, BarReader())

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


def test_only_new_and_changed_pictures_are_read_the_next_time(tmp_path: Path, photos: Path) -> None:
    gallery = tmp_path / "gallery"
    read(gallery, photos, BarReader())
    draw_bars(photos / "new.png", "Ticket")
    draw_bars(photos / "invoice.png", "INVOICE 43")
    (photos / "gate.png").rename(photos / "deep" / "moved.png")
    shutil.copy(photos / "deep" / "shop.png", photos / "copy.png")
    without = read(gallery, photos, None)
    before, reader = words(gallery), BarReader()

    summary = read(gallery, photos, reader)

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


def test_one_bad_picture_stops_no_other_and_is_tried_again_when_that_is_asked(tmp_path: Path, photos: Path) -> None:
    gallery, torn = tmp_path / "gallery", BarReader()
    draw_bars(photos / "bad.png", "!!!")
    first = read(gallery, photos, BarReader())
    again = read(gallery, photos, torn)
    last = read(gallery, photos, Mended(), retry_failed=True)

    assert first.texts is not None and first.failures == [] and first.texts.read == 6
    assert [failure.path for failure in first.texts.failures] == ["bad.png"]
    assert first.texts.failures[0].reason.endswith("the bars are torn")
    assert again.texts is not None and again.texts.read == 0 and len(again.texts.failures) == 1 and torn.seen == []
    assert last.texts == TextSummary(read=1, with_text=4) and words(gallery)["bad.png"] == "at last"


def test_pictures_out_of_reach_wait(tmp_path: Path, photos: Path) -> None:
    gallery = tmp_path / "gallery"
    read(gallery, photos, None)
    photos.rename(tmp_path / "away")
    away = read(gallery, photos, BarReader())
    (tmp_path / "away").rename(photos)

    back = read(gallery, photos, BarReader())

    assert (away.texts, back.texts) == (TextSummary(away=6), TextSummary(read=6, with_text=3))


def test_a_label_of_a_person_stands_before_what_was_read_and_a_lost_index_takes_both_back(
    tmp_path: Path, photos: Path
) -> None:
    (photos / "metadata.csv").write_text("file_name,text_in_picture\ngate.png,7\n")
    gallery, reader = tmp_path / "gallery", BarReader()
    read(gallery, photos, BarReader())
    before = words(gallery)
    (gallery / "index.sqlite").unlink()

    read(gallery, photos, reader, repair=True)

    assert reader.seen == [] and words(gallery) == before == WORDS | {"gate.png": "7"}


# -- facts --------------------------------------------------------------------------------------------------


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


# -- the engine ---------------------------------------------------------------------------------------------


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
