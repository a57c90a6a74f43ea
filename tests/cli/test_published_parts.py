"""Which files each verb brings from an address: facts, and the vectors of the space that it reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.indexing import Options, index
from tests.command import run_eyespot
from tests.made_once import made_once
from tests.worlds import draw

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")

CROPS = "crops:5:starter"
BOTH = {"starter", CROPS}


def make(folder: Path) -> None:
    for seed in range(6):
        draw(folder / "photos" / f"{seed}.png", seed)
    encoders = [rooms.load("encoders", name) for name in ("starter", CROPS)]
    index(folder / "gallery", [str(folder / "photos")], encoders, Options(shard_rows=3, codes=True))


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A gallery with two spaces and codes, published; what is fetched from there can be compared with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = made_once("two spaces at an address", make)
    shutil.copytree(made / "gallery", tmp_path / "gallery")
    store = f"file://{tmp_path}/store"
    assert run_eyespot("publish", store, "-g", tmp_path / "gallery").returncode == 0
    (tmp_path / "own").mkdir()
    yield store
    originals = {place.relative_to(tmp_path / "gallery"): place for place in (tmp_path / "gallery").glob("shards/*/*")}
    for place in (tmp_path / "cache").glob("eyespot/galleries/*/shards/*/*"):
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
    ("line", "code", "spaces"),
    [
        (("search", "stripes"), 0, {"starter"}),
        (("search", "stripes", "-e", CROPS), 0, {CROPS}),
        (("search", "stripes", "-e", "starter", "--where", "width > 100"), 0, {"starter"}),
        (("search", "stripes", "-e", "nowhere"), 2, set()),
        (("duplicates",), 4, {"starter"}),
        (("export", "npy", "{folder}/out"), 0, {"starter"}),
        (("export", "npy", "{folder}/out", "-e", CROPS), 0, {CROPS}),
        (("tune",), 4, {"starter"}),  # six pictures are too few
        (("tune", "-e", CROPS), 4, {CROPS}),
        (("failures",), 2, set()),
        (("index", "--repair"), 2, None),
        (("compact",), 2, None),
        (("doctor",), 0, BOTH),
    ],
)
def test_a_verb_brings_the_space_that_it_reads(
    url: str, tmp_path: Path, line: tuple[str, ...], code: int, spaces: set[str] | None
) -> None:
    done = run_eyespot(*(word.format(folder=tmp_path) for word in line), "-g", url)

    assert done.returncode == code, done.stdout + done.stderr
    if spaces is None:  # a verb that writes to the gallery
        assert "can be searched, not written" in done.stderr and not (tmp_path / "cache" / "eyespot").exists()
    else:
        assert spaces_there(tmp_path) == spaces


@pytest.mark.long
def test_an_evaluation_brings_the_space_of_its_encoder(url: str, tmp_path: Path) -> None:
    (tmp_path / "own" / "queries.tsv").write_text("id\ttext\nq1\tstripes\n")
    items = json.loads(run_eyespot("search", "stripes", "-g", tmp_path / "gallery", "--json").stdout)["items"]
    (tmp_path / "own" / "qrels.txt").write_text(f"q1 0 {items[0]['id']} 1\n")

    done = run_eyespot("eval", "own", "--data", tmp_path / "own", "-g", url, "-e", CROPS, "--json")

    assert done.returncode == 0, done.stderr
    assert spaces_there(tmp_path) == {CROPS}


def test_a_server_brings_the_space_of_its_encoder(url: str, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    from eyespot.cli.settings import gallery_here
    from eyespot.web import ServerSettings, application

    settings = ServerSettings(gallery_here(Path(url)), "starter", hosts=None, cache=tmp_path / "pages")
    with testclient.TestClient(application(settings), base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
        assert len(client.get("/v1/search", params={"q": "stripes"}).json()["items"]) == 6
    assert spaces_there(tmp_path) == {"starter"}


@pytest.mark.long
def test_a_second_search_needs_no_more_files(url: str, tmp_path: Path) -> None:
    first = run_eyespot("search", "stripes", "-g", url, "--json")
    for shard in (tmp_path / "store" / "shards").iterdir():
        shutil.rmtree(shard)
    second = run_eyespot("search", "stripes", "-g", url, "--json")

    assert json.loads(first.stdout)["items"] == json.loads(second.stdout)["items"]
    refused = run_eyespot("search", "stripes", "-g", url, "-e", CROPS)
    assert refused.returncode == 1 and f"eyespot publish {url} --check" in refused.stderr
