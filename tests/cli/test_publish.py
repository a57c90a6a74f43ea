"""`eyespot publish`, and the other verbs with the address of a published gallery: what each brings from there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot.gallery import disk
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.made_once import made_once
from tests.worlds import benchmarks as worlds, make_gallery, second_encoder

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")


def make(folder: Path) -> None:
    make_gallery(folder, 3)


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(made_once("three to publish", make), tmp_path, dirs_exist_ok=True)
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
BOTH = {"starter", OTHER}


def make_two_spaces(folder: Path) -> None:
    make_gallery(folder, 6, encoders=("starter", OTHER), shard_rows=3, codes=True)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A gallery with two spaces and codes, published; what is fetched from there can be compared with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = made_once("two spaces at an address", make_two_spaces)
    shutil.copytree(made / "gallery", tmp_path / "gallery")
    store = f"file://{tmp_path}/store"
    done("publish", store, "-g", tmp_path / "gallery")
    yield store
    originals = {place.relative_to(tmp_path / "gallery"): place for place in (tmp_path / "gallery").glob("shards/*/*")}
    for place in (tmp_path / "cache").glob("eyespot/galleries/*/shards/*/[!.]*"):
        assert place.read_bytes() == originals[place.relative_to(place.parents[2])].read_bytes()


def spaces_there(tmp_path: Path) -> set[str]:
    """The encoders whose vectors and codes have come, each of both shards; the facts have come in any case."""
    (copy,) = (tmp_path / "cache" / "eyespot" / "galleries").iterdir()
    assert len(list(copy.glob("shards/*/items.parquet"))) == 2
    stems = {stem: space.encoder for stem, space in disk.read_header(copy).spaces.items()}
    there = {encoder: len(list(copy.glob(f"shards/*/{stem}.*"))) for stem, encoder in stems.items()}
    assert set(there.values()) <= {0, 14}  # vectors, note and five files of codes of two shards
    return {encoder for encoder, files in there.items() if files}


@pytest.mark.parametrize(
    ("words", "code", "spaces"),
    [
        ("search stripes", 0, {"starter"}),
        ("search stripes -e OTHER", 0, {OTHER}),
        ("search stripes -e starter --where width>100", 0, {"starter"}),
        ("search stripes -e nowhere", 2, set()),
        ("duplicates", 4, {"starter"}),
        ("export npy {folder}/out", 0, {"starter"}),
        ("export npy {folder}/out -e OTHER", 0, {OTHER}),
        ("tune", 4, {"starter"}),  # six pictures are too few
        ("tune -e OTHER", 4, {OTHER}),
        ("failures", 2, set()),
        ("doctor", 0, BOTH),
    ],
)
def test_a_verb_brings_its_space(store: str, tmp_path: Path, words: str, code: int, spaces: set[str]) -> None:
    done(*words.format(folder=tmp_path).replace("OTHER", OTHER).split(), "-g", store, code=code)

    assert spaces_there(tmp_path) == spaces


@pytest.mark.parametrize("words", ["index --repair", "compact"])
def test_a_verb_that_writes_brings_nothing(store: str, tmp_path: Path, words: str) -> None:
    refuses(*words.split(), "-g", store)

    assert not (tmp_path / "cache" / "eyespot").exists()


def test_an_evaluation_brings_the_space_of_its_encoder(store: str, tmp_path: Path) -> None:
    items = run_json("search", "stripes", "-g", tmp_path / "gallery")["items"]
    worlds.own_set(tmp_path / "own", [{"id": "q1", "text": "stripes"}], {"q1": [items[0]["id"]]})

    done("eval", "own", "--data", tmp_path / "own", "-g", store, "-e", OTHER)

    assert spaces_there(tmp_path) == {OTHER}


def test_a_server_brings_the_space_of_its_encoder(store: str, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    from eyespot.cli.settings import gallery_here
    from eyespot.web import ServerSettings, application

    settings = ServerSettings(gallery_here(Path(store)), "starter", hosts=None, cache=tmp_path / "pages")
    with testclient.TestClient(application(settings), base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
        assert len(client.get("/v1/search", params={"q": "stripes"}).json()["items"]) == 6
    assert spaces_there(tmp_path) == {"starter"}


def test_a_second_search_needs_no_more_files(store: str, tmp_path: Path) -> None:
    first = run_json("search", "stripes", "-g", store)
    for shard in (tmp_path / "store" / "shards").iterdir():
        shutil.rmtree(shard)

    assert run_json("search", "stripes", "-g", store)["items"] == first["items"]
    refused = done("search", "stripes", "-g", store, "-e", OTHER, code=1)
    assert f"eyespot publish {store} --check" in refused.stderr
