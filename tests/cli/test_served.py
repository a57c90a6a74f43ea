"""A served encoder from the command line: a gallery, a picture with words, and an RMIR set, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.cli.conftest import done, run_json
from tests.worlds import embedding_server
from tests.worlds.servers import Double, Response, Seen, error

NAME = "served:TIGER-Lab/VLM2Vec-Full"
NEXT = "What comes next?"  # to the server: the colour after this one


@pytest.fixture
def server() -> Iterator[Double]:
    with embedding_server.serving("TIGER-Lab/VLM2Vec-Full", root="TIGER-Lab/VLM2Vec-Full") as server:
        yield server


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, colour in {"red": (230, 20, 20), "green": (20, 230, 20), "blue": (20, 20, 230)}.items():
        for shade in range(4):
            Image.new("RGB", (64, 48), tuple(part - 5 * shade for part in colour)).save(folder / f"{name}{shade}.png")
    return folder


def ran(server: Double, *words: object) -> Any:
    return run_json(*words, EYESPOT_EMBEDDINGS_URL=server.url, OPENAI_BASE_URL="http://127.0.0.1:9/v1")


def test_a_gallery_is_searched_by_a_picture_with_a_question_as_one_input(
    server: Double, photos: Path, tmp_path: Path
) -> None:
    gallery = tmp_path / "gallery"
    report = ran(server, "index", photos, "-g", gallery, "-e", NAME)
    arguments = ("search", NEXT, "--image", photos / "red0.png", "-g", gallery, "-k", 4)
    items = ran(server, *arguments)["items"]
    words = ran(server, "search", "a blue one", "-g", gallery, "-k", 4)["items"]

    assert report["pictures"] == 12
    assert {Path(item["path"]).stem[:-1] for item in items} == {"green"}
    assert {Path(item["path"]).stem[:-1] for item in words} == {"blue"}


def test_a_server_that_fails_in_between_stops_the_run_and_the_same_line_goes_on(
    server: Double, photos: Path, tmp_path: Path
) -> None:
    def after_five(seen: Seen) -> Response:
        failed = len(server.asked(embedding_server.EMBEDDINGS)) > 5
        return error(401, "no more") if failed else embedding_server.embedded(seen)

    line = ("index", photos, "-g", tmp_path / "gallery", "-e", NAME)
    server.then = after_five
    stopped = done(*line, EYESPOT_EMBEDDINGS_URL=server.url, code=1)
    server.then = embedding_server.embedded

    assert "(no more)" in stopped.stderr and ran(server, *line)["pictures"] == 12


def test_it_is_listed_with_what_it_needs() -> None:
    (row,) = [row for row in run_json("encoders", "list") if row["name"] == "served"]

    assert row["spelling"] == "served:MODEL[@REVISION]"
    assert "EYESPOT_EMBEDDINGS_URL" in row["needs"]
