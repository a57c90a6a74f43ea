"""Published galleries: copies are complete, checked and up to date, through lost addresses and kills."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")

import eyespot
from eyespot.gallery import disk
from eyespot.gallery.integrity import faults
from eyespot.gallery.remote import MANIFEST, OURS, address_of, copies, fetch, publish
from eyespot.gallery.remote.stores import PIECE
from eyespot.gallery.segments import compact
from eyespot.storage.digests import DIGESTS, damaged_at_a_glance
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, UsageError, no_progress
from tests.command import run_eyespot
from tests.examples import examples
from tests.made_once import made_once
from tests.wording import raises
from tests.worlds import draw, draw_photos, index_gallery, make_gallery, second_encoder
from tests.worlds.galleries import flip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def small(folder: Path, photos: int = 6) -> Path:
    draw_photos(folder / "photos", photos, name="{}.png")
    return update(folder)


def update(folder: Path) -> Path:
    index_gallery(folder / "gallery", folder / "photos", shard_rows=3)
    return folder / "gallery"


def copied(folder: Path, photos: int = 6) -> Path:
    """The same for tests that index no more."""
    made = made_once(f"published {photos}", lambda place: small(place, photos))
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
    gallery = small(tmp_path)
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
    gallery, copy, seed = small(folder, 3), folder / "copy", 100
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


BOTH = ("starter", OTHER := second_encoder())


def make(folder: Path) -> None:
    make_gallery(folder, 6, encoders=BOTH, shard_rows=3, codes=True)


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Six photos in two shards, with vectors and codes of two encoders."""
    made = made_once("two spaces", make)
    shutil.copytree(made / "photos", tmp_path / "photos")
    return Path(shutil.copytree(made / "gallery", tmp_path / "gallery"))


def grow(gallery: Path, tmp_path: Path, *encoders: str) -> None:
    """A seventh photo, for some of the encoders."""
    draw(tmp_path / "photos" / "new.png", 99)
    index_gallery(gallery, tmp_path / "photos", encoders=encoders or BOTH, shard_rows=3)


def test_a_copy_finds_in_each_space_what_the_gallery_finds(gallery: Path, tmp_path: Path) -> None:
    publish(str(gallery), at(tmp_path))
    for encoder in (None, OTHER):
        found = eyespot.open(at(tmp_path), encoder).search("stripes", k=9).run
        assert found["q"] == eyespot.open(gallery, encoder).search("stripes", k=9).run["q"]


def test_a_copy_has_the_folder_that_is_named(gallery: Path, tmp_path: Path) -> None:
    """As a text too; its address, which may hold a password, is for the owner alone."""
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path), into=str(tmp_path / "named"))
    assert copy == tmp_path / "named" and contents(copy) == contents(gallery)
    assert (copy / ".fetched.json").stat().st_mode & 0o777 == 0o600


def test_a_whole_copy_answers_while_its_address_is_away_and_says_of_when_it_is(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, at(tmp_path))
    before = run_eyespot("search", "stripes", "-g", at(tmp_path))
    copy = fetch(at(tmp_path))
    (tmp_path / "store").rename(tmp_path / "away")
    after, checked = (run_eyespot(*words, "-g", at(tmp_path)) for words in (["search", "stripes"], ["doctor"]))

    assert (after.returncode, after.stdout) == (0, before.stdout) and "the copy here answers as of 20" in after.stderr
    assert f"copy of {at(tmp_path)} as of 20" in checked.stdout
    (copy / "shards" / "00000" / "items.parquet").unlink()
    assert "no gallery is published" in run_eyespot("search", "stripes", "-g", at(tmp_path)).stderr


@pytest.mark.parametrize("state", ["cut", "of an older eyespot"])
def test_a_copy_that_does_not_know_what_it_has_keeps_it(gallery: Path, tmp_path: Path, state: str) -> None:
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path))
    place = copy / ".fetched.json"
    files = json.dumps(json.loads(place.read_text("utf-8"))["files"])
    place.write_text(files[:-9] if state == "cut" else files, "utf-8")

    (tmp_path / "store").rename(tmp_path / "away")
    assert len(eyespot.open(copy, OTHER).search("stripes", k=9).run["q"]) == 6
    with raises(UsageError):
        fetch(at(tmp_path))
    (tmp_path / "away").rename(tmp_path / "store")
    assert contents(fetch(at(tmp_path))) == contents(gallery)


def test_a_new_copy_is_not_read_again_when_it_is_opened(gallery: Path, tmp_path: Path) -> None:
    """Its files are newer than the digests that were published; each was compared when it came."""
    publish(gallery, at(tmp_path))
    copy = eyespot.open(at(tmp_path)).gallery.path
    shard = disk.shard_paths(copy)[0]
    read = (shard / DIGESTS).stat().st_mtime_ns
    files = [file for file in shard.iterdir() if file.name != DIGESTS]
    assert all(max(file.stat().st_mtime_ns, file.stat().st_ctime_ns) <= read for file in files)

    flip(files[0])
    assert list(damaged_at_a_glance(shard, [files[0].name])) == [files[0].name]


def test_damage_from_before_the_publication_still_shows_in_a_copy(gallery: Path, tmp_path: Path) -> None:
    place = disk.shard_path(gallery, 1) / f"{disk.read_header(gallery).default}.npy"
    flip(place)
    publish(gallery, at(tmp_path))
    with pytest.raises(EyespotError, match=place.name):
        eyespot.open(at(tmp_path)).search("stripes")
    assert [fault.file for fault in faults(fetch(at(tmp_path)), no_progress)] == [place.name]


@pytest.fixture
def large(gallery: Path) -> Path:
    """The same with a file of more than four pieces among the facts."""
    data = np.random.default_rng(0).bytes(4 * PIECE + 12345)
    (gallery / "shards" / "00001" / "large.bin").write_bytes(data)
    return gallery


@pytest.mark.parametrize("size", [5 * PIECE, 1 << 62])
def test_a_file_that_is_shorter_than_its_publication_states_ends(gallery: Path, tmp_path: Path, size: int) -> None:
    publish(gallery, at(tmp_path))
    place = tmp_path / "store" / "gallery.json"
    published = json.loads(place.read_text("utf-8"))
    next(entry for name, entry in published["files"].items() if name.endswith("items.arrow"))[1] = size
    place.write_text(json.dumps(published), "utf-8")
    assert contents(fetch(at(tmp_path), tmp_path / "copy")) == contents(gallery)  # by their digests


@pytest.mark.parametrize("damaged", [False, True])
def test_a_large_file_goes_on_where_a_killed_run_left_it(large: Path, tmp_path: Path, damaged: bool) -> None:
    """In the middle of a piece; if what came was damaged since, the file comes again."""
    publish(large, at(tmp_path))
    copy = fetch(at(tmp_path), tmp_path / "copy")
    (sent,) = (tmp_path / "store").glob("shards/00001/large.*")
    place = copy / "shards" / "00001" / "large.bin"
    part = place.with_name(f".large.bin.{sent.name.split('.')[1]}.part")
    came = place.read_bytes()[: 3 * PIECE + 99]
    part.write_bytes(bytes(len(came)) if damaged else came)
    place.unlink()
    inode, seen = part.stat().st_ino, list[int]()

    fetch(at(tmp_path), copy, lambda _what, done, _total: seen.append(done))

    assert contents(copy) == contents(large) and not part.exists()
    assert damaged or (place.stat().st_ino == inode and seen == sorted(seen))


def test_stopped_at_any_file_a_copy_ends_in_what_is_published(gallery: Path, tmp_path: Path) -> None:
    url, copy = at(tmp_path), tmp_path / "copy"
    other = Path(shutil.copytree(gallery, tmp_path / "other"))
    grow(other, tmp_path, "starter")
    compact(other, grace=0)
    for steps, state in ((3, gallery), (9, other), (15, gallery), (12, other)):
        publish(state, url)
        left = iter(range(steps))

        def stop(*_: object, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            fetch(url, copy, stop)
    assert contents(fetch(url, copy)) == contents(other)
    assert eyespot.open(copy).search("stripes", k=9).run["q"] == eyespot.open(other).search("stripes", k=9).run["q"]


@pytest.mark.parametrize("number", ["1", "64"])
def test_transfers_are_a_setting(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    for wrong in ("0", "65", "many", "-1", "2.5"):
        monkeypatch.setenv("EYESPOT_TRANSFERS", wrong)
        with raises(UsageError):
            publish(large, at(tmp_path))
    monkeypatch.setenv("EYESPOT_TRANSFERS", number)
    publish(large, at(tmp_path))
    assert contents(fetch(at(tmp_path))) == contents(large)
