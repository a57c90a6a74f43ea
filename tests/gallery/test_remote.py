"""Galleries published to an address and searched in a copy: complete, checked, and up to date."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")

import eyespot
from eyespot.gallery import disk
from eyespot.gallery.remote import MANIFEST, OURS, address_of, copies, fetch, publish
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, UsageError
from tests.examples import examples
from tests.made_once import made_once
from tests.wording import raises
from tests.worlds import draw, draw_photos, index_gallery


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def make(folder: Path, photos: int = 6) -> Path:
    draw_photos(folder / "photos", photos, name="{}.png")
    return update(folder)


def update(folder: Path) -> Path:
    index_gallery(folder / "gallery", folder / "photos", shard_rows=3)
    return folder / "gallery"


def copied(folder: Path, photos: int = 6) -> Path:
    """The same for tests that index no more."""
    made = made_once(f"published {photos}", lambda place: make(place, photos))
    return Path(shutil.copytree(made / "gallery", folder / "gallery"))


def contents(gallery: Path) -> dict[str, bytes]:
    """What a gallery is: its files by name, without those of shards that were merged."""
    merged = {place.name for place in disk.merged_paths(gallery)}
    files = (path for path in gallery.rglob("*") if path.is_file() and path.parent.name not in merged)
    named = {path.relative_to(gallery).as_posix(): path for path in files}
    return {name: path.read_bytes() for name, path in named.items() if OURS.fullmatch(name)}


def at(folder: Path) -> str:
    return f"file://{folder}/store"


def names(query: str, gallery: Path | str) -> list[str]:
    run = eyespot.open(gallery).search(query, k=50).run
    return [hit.image for hit in run["q"]]


def test_several_read_a_copy_that_is_current_and_one_brings_it_up_to_date(tmp_path: Path) -> None:
    gallery = copied(tmp_path, 3)
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path))
    with locked(copy):
        assert fetch(at(tmp_path)) == copy
        next(copy.glob("shards/*/*.npy")).unlink()
        with pytest.raises(EyespotError):
            fetch(at(tmp_path))
    assert contents(fetch(at(tmp_path))) == contents(gallery)


def test_a_damaged_file_is_refused_and_the_old_copy_stays(tmp_path: Path) -> None:
    gallery = make(tmp_path)
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path))
    before = contents(copy)
    draw(tmp_path / "photos" / "new.png", 99)
    update(tmp_path)
    publish(gallery, at(tmp_path))
    (sent,) = (path for path in (tmp_path / "store" / "shards").rglob("*.npy") if path.parent.name == "00002")
    sent.write_bytes(sent.read_bytes()[:-1] + b"x")

    with pytest.raises(EyespotError, match="is not what was published"):
        fetch(at(tmp_path))
    assert {name: data for name, data in contents(copy).items() if name in before} == before


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("../outside.toml", "../outside.toml"),
        ("shards/0/../../x.npy", "shards/0/../../x.npy"),
        ("shards/00000/a.npy", "../secret/a.npy"),
        ("/etc/passwd", "/etc/passwd"),
        ("ledger.sqlite", "ledger.sqlite"),
        ("shards/00000/.hidden", "shards/00000/.hidden"),
        ("shards/00000/iteMs.parquet", None),
        ("a time beyond all clocks", None),
    ],
)
def test_a_manifest_cannot_lead_out_of_the_gallery(tmp_path: Path, name: str, where: str | None) -> None:
    publish(copied(tmp_path, 1), at(tmp_path))
    manifest = tmp_path / "store" / MANIFEST
    payload = json.loads(manifest.read_text())
    items = "shards/00000/items.parquet"
    if where is not None:
        payload["files"][name] = [where, 1, "00", 0]
    elif name.startswith("a time"):
        payload["files"][items][3] = 10**30
    else:
        payload["files"][name] = payload["files"].pop(items)
    manifest.write_text(json.dumps(payload))

    with pytest.raises(EyespotError, match="is damaged"):
        fetch(at(tmp_path))
    assert not [path for path in copies().rglob("*") if path.is_file()]


NO_FILES = '{"format": 1, "files": {"gallery.toml": 3}, "judgements": 0}'


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *((text, "damaged") for text in ("", "[]", "{}", NO_FILES)),
        ('{"format": 2, "files": {}, "judgements": 0}', "newer"),
    ],
)
def test_what_is_no_manifest_or_a_newer_one_is_told(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / MANIFEST).write_text(text)
    with pytest.raises(EyespotError, match=word):
        fetch(at(tmp_path))


def test_addresses_that_cannot_be_used_cost_a_sentence(tmp_path: Path) -> None:
    with raises(UsageError):
        fetch(at(tmp_path))
    with raises(UsageError):
        fetch("nosuch://place/gallery")
    with raises(UsageError):
        publish(tmp_path / "none", at(tmp_path))
    (tmp_path / "store").write_text("a file")
    with pytest.raises(EyespotError, match="cannot be used"):
        publish(copied(tmp_path, 1), at(tmp_path))


def test_vectors_that_lie_elsewhere_are_not_published(tmp_path: Path) -> None:
    from eyespot.formats.imports import npy
    from eyespot.formats.imports.registered import take_in

    np.save(tmp_path / "vectors.npy", np.eye(3, 512, dtype=np.float32))
    take_in(tmp_path / "gallery", npy.source([tmp_path / "vectors.npy"]), "starter")
    with raises(UsageError):
        publish(tmp_path / "gallery", at(tmp_path))


@given(st.sampled_from(["s3", "gs", "abfs", "memory", "https"]), st.from_regex(r"[a-z]\w*(/\w+){0,3}", fullmatch=True))
def test_an_address_survives_being_a_path(protocol: str, rest: str) -> None:
    url = f"{protocol}://{rest}"
    assert address_of(url) == address_of(Path(url)) == url


def test_folders_are_no_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "birds").mkdir(parents=True)
    assert address_of(tmp_path) is None and address_of(Path("photos")) is None
    assert address_of(Path("s3://birds")) is None  # there is such a folder
    assert address_of(Path(f"file://{tmp_path}/x")) == f"file://{tmp_path}/x"


@pytest.mark.long
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["add", "remove", "publish", "fetch"]), min_size=1, max_size=8))
def test_a_copy_is_what_was_published_last(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    folder = tmp_path_factory.mktemp("steps")
    gallery, copy, seed = make(folder, 3), folder / "copy", 100
    publish(gallery, at(folder))
    published = contents(gallery)
    for step in steps:
        if step == "add":
            draw(folder / "photos" / f"{(seed := seed + 1)}.png", seed)
            update(folder)
        elif step == "remove" and len(photos := sorted((folder / "photos").iterdir())) > 1:
            photos[-1].unlink()
            update(folder)
        elif step == "publish":
            publish(gallery, at(folder))
            published = contents(gallery)
        elif step == "fetch":
            assert contents(fetch(at(folder), copy)) == published
    assert contents(fetch(at(folder), copy)) == published
