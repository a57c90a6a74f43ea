"""A served encoder from the command line: a gallery, a picture with words, and an RMIR set, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot.runs import read_run
from tests.command import run_eyespot
from tests.lazy_import import requires
from tests.worlds import embedding_server
from tests.worlds.servers import Double, Response, Seen, error

pytestmark = requires("openai")

NAME = "served:TIGER-Lab/VLM2Vec-Full"
COLOURS = {"red": (230, 20, 20), "green": (20, 230, 20), "blue": (20, 20, 230)}
NEXT = "What comes next?"  # to the server: the colour after this one


@pytest.fixture
def server() -> Iterator[Double]:
    with embedding_server.serving("TIGER-Lab/VLM2Vec-Full", root="TIGER-Lab/VLM2Vec-Full") as server:
        yield server


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twelve pictures, four shades of each colour."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, colour in COLOURS.items():
        for shade in range(4):
            Image.new("RGB", (64, 48), tuple(part - 5 * shade for part in colour)).save(folder / f"{name}{shade}.png")
    return folder


def ran(server: Double, *words: object) -> Any:
    done = run_eyespot(*words, EYESPOT_EMBEDDINGS_URL=server.url, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.long
def test_a_gallery_is_searched_by_a_picture_with_a_question_as_one_input(
    server: Double, photos: Path, tmp_path: Path
) -> None:
    gallery = tmp_path / "gallery"
    report = json.loads(ran(server, "index", photos, "-g", gallery, "-e", NAME, "--json").stdout)
    arguments = ("search", NEXT, "--image", photos / "red0.png", "-g", gallery, "-k", 4, "--json")
    items = json.loads(ran(server, *arguments).stdout)["items"]
    words = json.loads(ran(server, "search", "a blue one", "-g", gallery, "-k", 4, "--json").stdout)["items"]

    assert report["pictures"] == 12
    assert {Path(item["path"]).stem[:-1] for item in items} == {"green"}
    assert {Path(item["path"]).stem[:-1] for item in words} == {"blue"}


def lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.long
def test_an_rmir_set_is_scored_with_both_as_one_input(server: Double, photos: Path, tmp_path: Path) -> None:
    data, gallery, out = tmp_path / "set", tmp_path / "gallery", tmp_path / "out"
    data.mkdir()
    after = {"red": "green", "green": "blue", "blue": "red"}
    fields = {"question": NEXT, "kind": "temporal"}
    relevant = [(one, f"{other}{shade}") for one, other in after.items() for shade in range(4)]
    lines(data / "queries.jsonl", [{"id": one, "image": f"{one}0", **fields} for one in after])
    lines(data / "qrels.jsonl", [{"query": one, "image": image} for one, image in relevant])
    lines(data / "pool.jsonl", [{"image": path.stem} for path in sorted(photos.iterdir())])
    ran(server, "index", photos, "-g", gallery, "-e", NAME)

    words = ("eval", "rmir", "--data", data, "-g", gallery, "-e", NAME, "--match", "file_stem", "--out", out, "--json")
    report = json.loads(ran(server, *words).stdout)

    (run,) = [read_run(path) for path in sorted(out.rglob("run*.parquet"))]
    assert report["tasks"][0]["queries"] == 3
    assert {one: {hit.image[:-1] for hit in run[one][:4]} for one in run} == {one: {after[one]} for one in after}


@pytest.mark.long
def test_a_server_that_fails_in_between_stops_the_run_and_the_same_line_goes_on(
    server: Double, photos: Path, tmp_path: Path
) -> None:
    def after_five(seen: Seen) -> Response:
        failed = len(server.asked(embedding_server.EMBEDDINGS)) > 5
        return error(401, "no more") if failed else embedding_server.embedded(seen)

    line = ("index", photos, "-g", tmp_path / "gallery", "-e", NAME, "--json")
    server.then = after_five
    stopped = run_eyespot(*line, EYESPOT_EMBEDDINGS_URL=server.url)
    server.then = embedding_server.embedded

    assert stopped.returncode == 1 and "does not accept the key (no more)" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert json.loads(ran(server, *line).stdout)["pictures"] == 12


def test_it_is_listed_with_what_it_needs() -> None:
    rows = json.loads(run_eyespot("encoders", "list", "--json").stdout)

    (row,) = [row for row in rows if row["name"] == "served"]
    assert row["spelling"] == "served:MODEL[@REVISION]"
    assert "EYESPOT_EMBEDDINGS_URL" in row["needs"] and "[llm]" in row["needs"]
