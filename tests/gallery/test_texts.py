"""Text in pictures: read once, kept by the bytes of a picture through kills and moves, and found by a filter."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms
from eyespot.gallery.disk import read_items, shard_paths
from eyespot.gallery.filters import checked, columns_of, mask
from eyespot.gallery.indexing import Options, Summary, index
from eyespot.gallery.texts import TextSummary, reading_order, text_facts
from eyespot.types import Encoder, EyespotError, TextBox
from tests.lazy_import import requires
from tests.worlds.bar_texts import BarReader, draw_bars

ROOT = Path(__file__).parents[2]


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


def read(gallery: Path, photos: Path, starter: Encoder, reader: BarReader | None, **more: Any) -> Summary:
    options = Options(workers=1, shard_rows=2, text_reader=reader, **more)
    return index(gallery, [str(photos)], [starter], options)


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


def test_words_boxes_and_reader_become_facts_that_a_filter_finds(
    tmp_path: Path, photos: Path, starter: Encoder
) -> None:
    summary = read(tmp_path / "gallery", photos, starter, BarReader())

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


@pytest.mark.long
def test_only_new_pictures_are_read_the_next_time(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    gallery = tmp_path / "gallery"
    read(gallery, photos, starter, BarReader())
    draw_bars(photos / "new.png", "Ticket")
    (photos / "gate.png").rename(photos / "deep" / "moved.png")
    shutil.copy(photos / "invoice.png", photos / "copy.png")
    reader = BarReader()

    summary = read(gallery, photos, starter, reader)

    assert reader.seen == ["Ticket"] and summary.texts == TextSummary(read=1, with_text=4)
    assert words(gallery)["new.png"] == "Ticket" and words(gallery)["deep/moved.png"] == "No parking"


@pytest.mark.long
def test_a_picture_that_changed_is_read_again(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    gallery = tmp_path / "gallery"
    read(gallery, photos, starter, BarReader())
    draw_bars(photos / "gate.png", "Parking is fine")
    without = read(gallery, photos, starter, None)
    before = words(gallery)["gate.png"]

    read(gallery, photos, starter, BarReader())

    assert without.texts is None and before is None
    assert words(gallery)["gate.png"] == "Parking is fine"


def test_one_bad_picture_stops_no_other_and_is_tried_again_when_that_is_asked(
    tmp_path: Path, photos: Path, starter: Encoder
) -> None:
    gallery, torn = tmp_path / "gallery", BarReader()
    draw_bars(photos / "bad.png", "!!!")
    first = read(gallery, photos, starter, BarReader())
    again = read(gallery, photos, starter, torn)
    seen = list(torn.seen)

    class Mended(BarReader):
        def read(self, picture: Any) -> list[TextBox]:
            return [TextBox("at last", 1.0, 0.0, 0.0, 1.0, 1.0)]

    last = read(gallery, photos, starter, Mended(), retry_failed=True)

    assert first.texts is not None and first.failures == [] and first.texts.read == 6
    assert [(failure.path, failure.reason) for failure in first.texts.failures] == [
        ("bad.png", "its text: the bars are torn")
    ]
    assert again.texts is not None and again.texts.read == 0 and len(again.texts.failures) == 1 and seen == []
    assert last.texts == TextSummary(read=1, with_text=4) and words(gallery)["bad.png"] == "at last"


def test_pictures_out_of_reach_wait(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    gallery = tmp_path / "gallery"
    read(gallery, photos, starter, None)
    photos.rename(tmp_path / "away")
    away = read(gallery, photos, starter, BarReader())
    (tmp_path / "away").rename(photos)

    back = read(gallery, photos, starter, BarReader())

    assert away.texts == TextSummary(away=6)
    assert back.texts == TextSummary(read=6, with_text=3)


def test_a_label_of_a_person_stands_before_what_was_read(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    (photos / "metadata.csv").write_text("file_name,text_in_picture\ngate.png,7\n")
    gallery = tmp_path / "gallery"
    read(gallery, photos, starter, BarReader())

    assert words(gallery) == WORDS | {"gate.png": "7"}


def test_a_lost_index_takes_the_text_back_from_the_shards(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    gallery, reader = tmp_path / "gallery", BarReader()
    read(gallery, photos, starter, BarReader())
    (gallery / "index.sqlite").unlink()

    summary = read(gallery, photos, starter, reader, repair=True)

    assert reader.seen == [] and summary.texts == TextSummary(read=0, with_text=3)
    assert words(gallery) == WORDS


KILLED = """
from pathlib import Path
from eyespot import rooms
from eyespot.gallery.indexing import Options, index
from tests.worlds.bar_texts import BarReader

options = Options(workers=1, shard_rows=2, text_reader=BarReader(seconds=0.15))
index(Path({gallery!r}), [{photos!r}], [rooms.load("encoders", "starter")], options)
"""


def kill_while_reading(gallery: Path, photos: Path, pictures: int) -> int:
    """Start a run that reads slowly, and kill it when this number of pictures is read; its exit code."""
    from eyespot.gallery.reading import reading

    code = KILLED.format(gallery=str(gallery), photos=str(photos))
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)
    while child.poll() is None:
        with reading(gallery) as ledger:
            (count,) = ledger.sql.execute("SELECT count(*) FROM picture_texts").fetchone()
        if count >= pictures:
            child.kill()
        time.sleep(0.01)
    child.communicate()
    return child.returncode


@pytest.mark.long
def test_killed_at_any_picture_what_is_read_is_kept(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    read(tmp_path / "calm", photos, starter, BarReader())
    gallery, last = tmp_path / "killed", BarReader()
    read(gallery, photos, starter, None)

    codes = [kill_while_reading(gallery, photos, pictures) for pictures in (1, 2, 4, 5)]
    summary = read(gallery, photos, starter, last)

    assert codes == [-signal.SIGKILL] * 4
    assert len(last.seen) <= 1 and summary.texts is not None and summary.texts.with_text == 3
    assert rows(gallery) == rows(tmp_path / "calm")


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
    lone = text_facts([TextBox("8", 0.99, 0, 0, 1, 1)], "bars 1")
    pair = text_facts([TextBox("8", 0.99, 0, 0, 0.1, 0.1), TextBox("7", 0.99, 0, 0.5, 0.1, 0.1)], "bars 1")

    assert "text_in_picture" not in lone and "text_boxes" in lone
    assert pair["text_in_picture"] == "8 7"


# -- the engine ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("rapidocr") is not None, reason="the extra [ocr] is installed")
def test_without_the_extra_the_line_that_installs_it_is_said() -> None:
    with pytest.raises(EyespotError, match=r"^rapidocr needs the extra \[ocr\]: .*pip install .*\[ocr\]"):
        rooms.load("gallery.ocr", "rapidocr")


@pytest.mark.long
@requires("rapidocr")
def test_rapidocr_reads_a_board_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fetch models that it looks for itself."""
    import socket
    from random import Random

    from eyespot.curate.recos.drawing import boards

    def refuse(*_: object) -> None:
        raise AssertionError("it wants to connect")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    chance = Random(5)
    board = boards.paint("NO PARKING 42", boards.invent("text", chance), chance)
    reader = rooms.load("gallery.ocr", "rapidocr", threads=1)

    facts = text_facts(reader.read(board), reader.name)

    assert facts["text_in_picture"] == "NO PARKING 42"
    assert facts["text_read_by"].startswith("rapidocr ")
    for text, confidence, x, y, width, height in json.loads(facts["text_boxes"]):
        assert text in "NO PARKING 42" and confidence > 0.8
        assert 0 <= x < x + width <= 1 and 0.1 < y < y + height < 0.9
