"""A model that looks and writes captions: asked once for each picture, and what fails fails alone."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot.curate.captions import sentence_of
from tests.command import run_eyespot
from tests.worlds import draw, index_gallery
from tests.worlds.servers import Double, chat, error

NAMES = ("dam1", "cup", "chair")


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photos with names, one a species."""
    place = tmp_path_factory.mktemp("seen")
    for at, name in enumerate(NAMES):
        draw(place / f"{name}.jpg", at)
    rows = [f"{name}.jpg,{name},Species {name}" for name in NAMES]
    (place / "metadata.csv").write_text("\n".join(["file_name,common_name,species", *rows, ""]))
    index_gallery(place / "g", place)
    return place / "g"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    with Double(then=chat('"A cup on a table."\n')) as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        yield double


def written(gallery: Path, ledger: Path, out: Path, *more: object) -> tuple[int, list[dict[str, str]]]:
    """The exit code and the rows of the file."""
    line = ["build", "captions", "-g", gallery, "--by", "openai:tiny", "--ledger", ledger, "--out", out, *more]
    code = run_eyespot(*line).returncode
    return code, list(csv.DictReader(out.read_text("utf-8").splitlines())) if out.exists() else []


def test_each_picture_is_shown_with_its_name_and_asked_for_once(gallery: Path, server: Double, tmp_path: Path) -> None:
    first = written(gallery, tmp_path / "l.sqlite", tmp_path / "a.csv")
    again = written(gallery, tmp_path / "l.sqlite", tmp_path / "b.csv")

    assert first == again and first[0] == 0 and len(server.seen) == 3
    assert {row["caption"] for row in first[1]} == {"A cup on a table."} and len(first[1]) == 3
    bodies = json.dumps([seen.body for seen in server.seen])
    assert all(f"Species {name}" in bodies for name in NAMES) and bodies.count("data:image/jpeg;base64,") == 3


def test_a_budget_stops_it_and_the_next_run_goes_on(gallery: Path, server: Double, tmp_path: Path) -> None:
    stopped = written(gallery, tmp_path / "l.sqlite", tmp_path / "a.csv", "--budget-calls", 2)
    whole = written(gallery, tmp_path / "l.sqlite", tmp_path / "a.csv")
    assert stopped == (3, []) and (whole[0], len(whole[1])) == (0, 3) and len(server.seen) == 3


def test_one_without_an_answer_is_listed_and_the_rest_is_written(gallery: Path, server: Double, tmp_path: Path) -> None:
    server.then = lambda seen: chat("A chair.") if "chair" in json.dumps(seen.body) else error(400, "odd")
    code, rows = written(gallery, tmp_path / "l.sqlite", tmp_path / "a.csv")
    assert code == 3 and [row["caption"] for row in rows] == ["A chair."]


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [("A heron.", "A heron."), ('\n  "A heron."  \nIt stands.', "A heron."), ("", ""), ("“Two owls”", "Two owls")],
)
def test_of_a_reply_the_first_line_counts(reply: str, sentence: str) -> None:
    assert sentence_of(reply) == sentence
