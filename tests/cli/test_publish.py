"""`eyespot publish`, and the other verbs with the address of a published gallery, each over a whole copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.made_once import made_once
from tests.worlds import benchmarks as worlds, make_gallery, second_encoder

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(made_once("three to publish", lambda folder: make_gallery(folder, 3)), tmp_path, dirs_exist_ok=True)
    url = f"file://{tmp_path}/store"
    assert run_json("publish", url, "-g", tmp_path / "gallery")["sent"] == 10
    return url


def test_a_published_gallery_is_searched_by_its_address_and_not_written_there(published: str, tmp_path: Path) -> None:
    here, there = (run_json("search", "green stripes", "-g", place) for place in (tmp_path / "gallery", published))
    for file in (tmp_path / "gallery" / "shards").rglob("*"):
        file.touch()  # what only looks new is not sent
    again = run_json("publish", published, "-g", tmp_path / "gallery")

    assert [hit["id"] for hit in there["items"]] == [hit["id"] for hit in here["items"]]
    assert again == {"url": published, "sent": 0, "bytes": 0, "known": 10}
    refuses("index", tmp_path / "photos", "-g", published)
    refuses("publish", published, "-g", published)


@pytest.mark.usefixtures("published")
def test_a_plain_folder_is_an_address_too(tmp_path: Path) -> None:
    """What could not be read is known at home alone."""
    address = f"file://{tmp_path}/plain"

    assert run_json("publish", "plain", "-g", tmp_path / "gallery", cwd=tmp_path)["url"] == address
    done("search", "green stripes", "-g", address)
    refuses("failures", "-g", address)


OTHER = second_encoder()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A gallery with two spaces and codes, published; what is fetched from there can be compared with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spaces = {"encoders": ("starter", OTHER), "shard_rows": 3, "codes": True}
    made = made_once("two spaces at an address", lambda folder: make_gallery(folder, 6, **spaces))
    shutil.copytree(made / "gallery", tmp_path / "gallery")
    store = f"file://{tmp_path}/store"
    done("publish", store, "-g", tmp_path / "gallery")
    yield store
    originals = {place.relative_to(tmp_path / "gallery"): place for place in (tmp_path / "gallery").glob("shards/*/*")}
    for place in (tmp_path / "cache").glob("eyespot/galleries/*/shards/*/[!.]*"):
        assert place.read_bytes() == originals[place.relative_to(place.parents[2])].read_bytes()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("search stripes -e OTHER", 0),
        ("search stripes -e starter --where width>100", 0),
        ("search stripes -e nowhere", 2),
        ("duplicates", 4),
        ("export npy {folder}/out -e OTHER", 0),
        ("tune", 4),  # six pictures are too few
        ("failures", 2),
        ("doctor", 0),
    ],
)
def test_a_verb_works_on_a_whole_copy(store: str, tmp_path: Path, words: str, code: int) -> None:
    done(*words.format(folder=tmp_path).replace("OTHER", OTHER).split(), "-g", store, code=code)

    (copy,) = (tmp_path / "cache" / "eyespot" / "galleries").iterdir()
    there = {place.relative_to(copy) for place in copy.glob("shards/*/[!.]*")}
    assert there == {place.relative_to(tmp_path / "gallery") for place in (tmp_path / "gallery").glob("shards/*/*")}


@pytest.mark.parametrize("words", ["index --repair", "compact"])
def test_a_verb_that_writes_brings_nothing(store: str, tmp_path: Path, words: str) -> None:
    refuses(*words.split(), "-g", store)

    assert not (tmp_path / "cache" / "eyespot").exists()


def test_an_evaluation_takes_an_address(store: str, tmp_path: Path) -> None:
    items = run_json("search", "stripes", "-g", tmp_path / "gallery")["items"]
    worlds.own_set(tmp_path / "own", [{"id": "q1", "text": "stripes"}], {"q1": [items[0]["id"]]})

    done("eval", "own", "--data", tmp_path / "own", "-g", store, "-e", OTHER)


def test_a_second_search_needs_no_more_files(store: str, tmp_path: Path) -> None:
    first = run_json("search", "stripes", "-g", store)
    for shard in (tmp_path / "store" / "shards").iterdir():
        shutil.rmtree(shard)

    assert run_json("search", "stripes", "-g", store)["items"] == first["items"]
    done("search", "stripes", "-g", store, "-e", OTHER)
