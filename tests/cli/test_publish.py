"""`eyespot publish`, and the other verbs with the address of a published gallery."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command import run_eyespot
from tests.worlds import draw

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexed")
    for seed in range(3):
        draw(folder / "photos" / f"{seed}.png", seed)
    run_eyespot("index", folder / "photos", "-g", folder / "gallery")
    return folder


@pytest.fixture
def published(indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(indexed, tmp_path, dirs_exist_ok=True)
    url = f"file://{tmp_path}/store"
    done = run_eyespot("publish", url, "-g", tmp_path / "gallery", "--json")
    assert json.loads(done.stdout)["sent"] == 7, done.stderr
    return url


@pytest.mark.long
def test_a_published_gallery_is_searched_by_its_address(published: str, tmp_path: Path) -> None:
    here = run_eyespot("search", "green stripes", "-g", tmp_path / "gallery", "--json")
    there = run_eyespot("search", "green stripes", "-g", published, "--json")

    assert there.returncode == 0, there.stderr
    assert [hit["id"] for hit in json.loads(there.stdout)["items"]] == [
        hit["id"] for hit in json.loads(here.stdout)["items"]
    ]


def test_what_writes_to_a_gallery_is_refused_there(published: str, tmp_path: Path) -> None:
    for line in (("index", tmp_path / "photos"), ("publish", published)):
        refused = run_eyespot(*line, "-g", published)
        assert refused.returncode == 2 and "can be searched, not written" in refused.stderr


@pytest.mark.long
def test_judgements_go_along_once(published: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    place = tmp_path / "gallery"
    search = ("search", "stripes", "-g", place, "--rerank", "encoder:starter", "-k", "3")
    assert run_eyespot(*search).returncode == 0
    run_eyespot("publish", published, "-g", place)
    run_eyespot("publish", published, "-g", place)

    (table,) = (tmp_path / "store" / "ledger").iterdir()
    assert pq.read_table(table)["judge"].to_pylist() == ["encoder:starter"] * 3


@pytest.mark.long
def test_a_kill_before_the_list_was_written_doubles_no_judgement(published: str, tmp_path: Path) -> None:
    """What such a kill leaves is a table of judgements that the list does not know of."""
    import pyarrow.parquet as pq

    place, store = tmp_path / "gallery", tmp_path / "store"
    search = ("search", "stripes", "-g", place, "--rerank", "encoder:starter", "-k")
    before = (store / "gallery.json").read_bytes()
    run_eyespot(*search, "2", "--depth", "2")
    run_eyespot("publish", published, "-g", place)
    (store / "gallery.json").write_bytes(before)
    run_eyespot(*search, "3")
    run_eyespot("publish", published, "-g", place)

    (table,) = (store / "ledger").iterdir()
    assert pq.read_table(table).num_rows == 3


@pytest.mark.long
def test_another_ledger_is_refused_not_left_out(published: str, tmp_path: Path) -> None:
    place = tmp_path / "gallery"
    search = ("search", "stripes", "-g", place, "--rerank", "encoder:starter")
    run_eyespot(*search)
    run_eyespot("publish", published, "-g", place)
    (place / "ledger.sqlite").unlink()
    shutil.rmtree(place / "ledger")  # its copies would bring the old one back
    run_eyespot(*search, "--depth", "1")
    refused = run_eyespot("publish", published, "-g", place)

    assert refused.returncode == 2 and "it is another one" in refused.stderr


def test_what_only_looks_new_is_not_sent_and_not_counted(published: str, tmp_path: Path) -> None:
    for file in (tmp_path / "gallery" / "shards").rglob("*"):
        file.touch()
    done = run_eyespot("publish", published, "-g", tmp_path / "gallery", "--json")

    assert json.loads(done.stdout) == {"url": published, "sent": 0, "bytes": 0, "known": 7}


@pytest.mark.long
def test_a_plain_folder_is_an_address_too(published: str, tmp_path: Path) -> None:
    """`published` is there for what it sets up; what could not be read is known at home alone."""
    done = run_eyespot("publish", "plain", "-g", tmp_path / "gallery", "--json", cwd=tmp_path)
    address = f"file://{tmp_path}/plain"

    assert json.loads(done.stdout)["url"] == address
    assert run_eyespot("search", "green stripes", "-g", address).returncode == 0
    refused = run_eyespot("failures", "-g", address)
    assert refused.returncode == 2 and "where the gallery was indexed" in refused.stderr


@pytest.mark.long
def test_check_sends_again_what_was_damaged_there(published: str, tmp_path: Path) -> None:
    place = next((tmp_path / "store" / "shards").rglob("*.npy"))
    place.write_bytes(place.read_bytes()[:-1] + b"x")
    refused = run_eyespot("search", "green stripes", "-g", published)
    assert refused.returncode == 1 and f"eyespot publish {published} --check" in refused.stderr

    done = run_eyespot("publish", published, "--check", "-g", tmp_path / "gallery", "--json")

    assert json.loads(done.stdout)["sent"] == 1
    assert run_eyespot("search", "green stripes", "-g", published).returncode == 0
