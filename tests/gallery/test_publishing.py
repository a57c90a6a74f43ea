"""Publishing that mends what is damaged, is not torn by a second publisher, and sees one state of a gallery."""

from __future__ import annotations

import http.server
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")

import fsspec

from eyespot.gallery import disk
from eyespot.gallery.integrity import faults
from eyespot.gallery.remote import MANIFEST, fetch, publish
from eyespot.gallery.remote.stores import PIECE, Conflict, store_at
from eyespot.gallery.segments import compact
from eyespot.storage.digests import DIGESTS
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, UsageError, no_progress
from tests.gallery.test_remote import cache as cache, contents, copied, names, small, update
from tests.wording import raises
from tests.worlds import draw
from tests.worlds.servers import listening

STORES = ["file", "s3", "memory"]  # a folder, a bucket, and a store without conditional puts


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of moto's S3 server on this machine."""
    pytest.importorskip("s3fs")
    pytest.importorskip("flask_cors")
    server = pytest.importorskip("moto.moto_server.threaded_moto_server").ThreadedMotoServer("127.0.0.1", 0, False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    keys = {"AWS_ACCESS_KEY_ID": "some", "AWS_SECRET_ACCESS_KEY": "thing", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ.update({**keys, "AWS_ENDPOINT_URL": f"http://{host}:{port}"})
    fsspec.get_filesystem_class("s3").clear_instance_cache()  # clients of another test's server
    fsspec.filesystem("s3").makedirs("birds", exist_ok=True)
    yield "s3://birds"
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    os.environ.clear()
    os.environ.update(before)
    server.stop()


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    kind = getattr(request, "param", "file")
    if kind == "s3":
        return f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
    return f"memory://{tmp_path.name}" if kind == "memory" else f"file://{tmp_path}/store"


def fetched(folder: Path, url: str, photos: int = 6) -> Path:
    """A copy of `folder/gallery`, which is published."""
    publish(copied(folder, photos), url)
    return fetch(url, folder / "copy")


def in_store(url: str, end: str) -> tuple[fsspec.AbstractFileSystem, list[str]]:
    """The file system, and the files there whose names end so."""
    fs, root = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return fs, [name for name in sorted(fs.find(root)) if name.endswith(end)]


def change_byte(url: str) -> None:
    fs, (vectors, *_) = in_store(url, ".npy")
    data = bytes(fs.cat_file(vectors))
    fs.pipe_file(vectors, data[:-1] + bytes([data[-1] ^ 1]))


def lose_and_cut(url: str) -> None:
    fs, (vectors, *_) = in_store(url, ".npy")
    fs.rm_file(vectors)
    fs, (table, *_) = in_store(url, ".parquet")
    fs.pipe_file(table, bytes(fs.cat_file(table))[:-9])


def tear_list(url: str) -> None:
    fs, (manifest,) = in_store(url, MANIFEST)
    fs.pipe_file(manifest, bytes(fs.cat_file(manifest)) * 2)


@pytest.mark.parametrize(
    ("url", "damage", "check", "sent"),
    [
        *((kind, change_byte, True, 1) for kind in STORES),
        *((kind, tear_list, True, 0) for kind in STORES),
        *(("file", lose_and_cut, check, 2) for check in (False, True)),
        ("s3", lose_and_cut, False, 2),
    ],
    indirect=["url"],
)
def test_a_store_is_mended(url: str, damage: Callable[[str], None], check: bool, sent: int, tmp_path: Path) -> None:
    gallery = copied(tmp_path)
    publish(gallery, url)
    damage(url)

    with pytest.raises(EyespotError, match=re.escape(f"eyespot publish {url} --check")):
        fetch(url, tmp_path / "copy")
    if damage is tear_list:
        with pytest.raises(EyespotError, match=r"eyespot publish .* --check"):
            publish(gallery, url)
    assert publish(gallery, url, check=check).sent == sent
    assert contents(fetch(url, tmp_path / "copy")) == contents(gallery)


def test_a_bucket_that_is_not_there_is_not_made(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(EyespotError, match="bucket does not exist"):
        publish(copied(tmp_path, 1), "s3://brids/store")
    fs = fsspec.filesystem("s3")
    fs.invalidate_cache()
    assert fs.ls("") == ["birds"]


def test_a_list_takes_the_place_only_of_the_one_that_was_read(bucket: str, tmp_path: Path) -> None:
    store = store_at(f"{bucket}/{tmp_path.name}")
    store.replace(MANIFEST, b"first", None)
    with pytest.raises(Conflict):
        store.replace(MANIFEST, b"second", None)
    found = store.read(MANIFEST)
    assert found is not None and found[0] == b"first"
    store.replace(MANIFEST, b"third", found[1])
    with pytest.raises(Conflict):
        store.replace(MANIFEST, b"fourth", found[1])
    store.fs.rm_file(f"{store.root}/{MANIFEST}")
    with pytest.raises(Conflict):
        store.replace(MANIFEST, b"fifth", found[1])
    assert store.read(MANIFEST) is None


@pytest.mark.parametrize("url", ["s3", "memory"], indirect=True)
def test_who_publishes_second_begins_again(url: str, tmp_path: Path) -> None:
    """Another publication ends while the first sends its files: neither tears the other's, and the later one counts."""
    one, other = copied(tmp_path / "one", 3), copied(tmp_path / "other", 4)
    ended: list[bool] = []

    def meanwhile(*_: object) -> None:
        if not ended:
            ended.append(True)
            publish(other, url)
            assert contents(fetch(url, tmp_path / "copy")) == contents(other)

    done = publish(one, url, progress=meanwhile)

    assert ended and done.sent + done.known == len(contents(one))
    assert contents(fetch(url, tmp_path / "copy")) == contents(one)


def test_a_folder_has_one_publisher_at_a_time(url: str, tmp_path: Path) -> None:
    gallery = copied(tmp_path, 1)
    with locked(tmp_path / "store"), pytest.raises(EyespotError, match="run again"):
        publish(gallery, url)
    publish(gallery, url)


# -- a gallery that is written meanwhile ----------------------------------------------------------------------


def test_what_is_published_is_one_state_of_a_gallery_that_changes_meanwhile(url: str, tmp_path: Path) -> None:
    """After the first file that is sent: a shard is new, a table is written again, and a file is gone."""
    gallery = small(tmp_path)
    (gallery / "shards" / "00001" / "zz.bin").write_bytes(b"soon gone")
    changed: list[bool] = []

    def meanwhile(*_: object) -> None:
        if not changed:
            changed.append(True)
            (gallery / "shards" / "00001" / "zz.bin").unlink()
            (tmp_path / "photos" / "0.png").unlink()
            draw(tmp_path / "photos" / "new.png", 99)
            update(tmp_path)

    publish(gallery, url, progress=meanwhile)

    assert contents(fetch(url, tmp_path / "copy")) == contents(gallery)


def test_a_gallery_that_never_rests_is_not_published(url: str, tmp_path: Path) -> None:
    gallery, before = tmp_path / "gallery", contents(fetched(tmp_path, url, 1))
    number = iter(range(10**6))

    def restless(*_: object) -> None:
        place = gallery / "shards" / "00000" / "zz.bin"
        place.with_suffix(".new").write_text(str(next(number)))
        place.with_suffix(".new").replace(place)

    with pytest.raises(EyespotError, match="changes all the time"):
        publish(gallery, url, progress=restless)
    assert contents(fetch(url, tmp_path / "copy")) == before


@pytest.mark.parametrize("junk", [b"", b"\xff\xfe\n", b"[[], 1]\n", b'{"starter.npy": "00"}'])
def test_a_state_that_cannot_be_read_costs_no_file(url: str, tmp_path: Path, junk: bytes) -> None:
    """What has come is known by its size and time."""
    copy = fetched(tmp_path, url)
    (copy / ".fetched.json").write_bytes(junk)
    before = {path: path.stat().st_ino for path in copy.glob("shards/*/*") if path.name != DIGESTS}

    fetch(url, copy)

    assert {path: path.stat().st_ino for path in before} == before
    assert contents(copy) == contents(tmp_path / "gallery")


def test_a_state_that_names_other_files_removes_none_of_them(url: str, tmp_path: Path) -> None:
    copy = fetched(tmp_path, url, 1)
    for mine in (tmp_path / "mine.npy", copy / "ledger.sqlite"):
        mine.write_bytes(b"mine")
    state = json.loads((copy / ".fetched.json").read_text())
    state["files"] |= {"../mine.npy": "00", "ledger.sqlite": "00"}
    (copy / ".fetched.json").write_text(json.dumps(state | {"published": ""}))

    fetch(url, copy)

    assert (tmp_path / "mine.npy").exists() and (copy / "ledger.sqlite").exists()


def with_large_file(gallery: Path) -> Path:
    (gallery / "shards" / "00000" / "large.bin").write_bytes(os.urandom(5 * PIECE + 7))
    return gallery


@pytest.mark.parametrize("url", STORES, indirect=True)
def test_a_large_file_comes_in_ranges_from_any_store(url: str, tmp_path: Path) -> None:
    gallery = with_large_file(copied(tmp_path, 1))
    publish(gallery, url)
    steps: list[int] = []
    copy = fetch(url, tmp_path / "copy", lambda _what, done, _total: steps.append(done))
    assert contents(copy) == contents(gallery) and steps == sorted(steps) and len(set(steps)) > 5


def test_a_store_without_ranges_sends_large_files_whole(url: str, tmp_path: Path) -> None:
    """A plain web server sends everything, whatever range it is asked for."""
    gallery = with_large_file(copied(tmp_path, 1))
    publish(gallery, url)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with listening(handler) as place:
        copy = fetch(f"http://{place}/store", tmp_path / "copy")
    assert contents(copy) == contents(gallery)


@pytest.mark.parametrize("what", ["/dev/zero", "fifo", "longer", "no list"])
def test_a_file_that_does_not_end_is_read_no_further_than_its_size(what: str, url: str, tmp_path: Path) -> None:
    """A device, a pipe, and a file that has grown since; the list of files itself too."""
    publish(copied(tmp_path, 1), url)
    sent = tmp_path / "store" / MANIFEST if what == "no list" else next((tmp_path / "store").rglob("starter*.npy"))
    if what == "longer":
        sent.write_bytes(sent.read_bytes() + bytes(1 << 20))
        assert contents(fetch(url, tmp_path / "copy")) == contents(tmp_path / "gallery")
        return
    sent.unlink()
    if what == "fifo":
        os.mkfifo(sent)
    else:
        sent.symlink_to("/dev/zero")
    with pytest.raises(EyespotError, match="is not a plain file"):
        fetch(url, tmp_path / "copy")


@pytest.mark.parametrize("cut", [False, True])
def test_a_web_server_that_sends_more_or_breaks_leaves_no_wrong_file(cut: bool, url: str, tmp_path: Path) -> None:
    """And what was sent to it as user, password and query stands in no sentence."""
    publish(copied(tmp_path, 1), url)
    sent = next((tmp_path / "store").rglob("starter*.npy"))
    sent.write_bytes(sent.read_bytes()[: -9 if cut else None] + bytes(0 if cut else 1 << 20))
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with listening(handler) as place, pytest.raises(EyespotError) as refused:
        fetch(f"http://ada:p4ssword@{place}/store?key=s1gnature", tmp_path / "copy")
    assert not {word for word in ("ada", "p4ss", "s1gn") if word in str(refused.value)}
    assert not (tmp_path / "copy" / "gallery.toml").exists() and not list((tmp_path / "copy").rglob("starter*.npy"))


# -- shards and the segment that they become ------------------------------------------------------------------

SHARDS = 4


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Twelve photos in four shards."""
    return copied(tmp_path, 3 * SHARDS)


@pytest.fixture
def compacted(shards: Path, tmp_path: Path) -> Path:
    """The same in one segment."""
    made = Path(shutil.copytree(shards, tmp_path / "compacted"))
    compact(made, grace=0)
    return made


def folders(copy: Path) -> list[str]:
    return sorted(place.name for place in (copy / "shards").iterdir())


@pytest.mark.parametrize("grace", [0, math.inf])
def test_after_compact_a_copy_drops_the_shards(shards: Path, url: str, tmp_path: Path, grace: float) -> None:
    """Also while the merged shards still lie there, as after an index run."""
    publish(shards, url)
    found, copy = names("stripes", url), fetch(url)
    compact(shards, grace=grace)

    done = publish(shards, url)
    assert names("stripes", url) == found

    (segment,) = disk.shard_paths(shards)
    assert done.sent == len(list(segment.iterdir()))
    assert folders(copy) == [segment.name] and contents(copy) == contents(shards)
    assert publish(shards, url).sent == 0
    with raises(UsageError):
        compact(fetch(url, tmp_path / "copy"))


def test_a_fetch_ends_in_the_state_it_began_with(shards: Path, compacted: Path, url: str, tmp_path: Path) -> None:
    publish(shards, url)
    ended: list[bool] = []

    def meanwhile(*_: object) -> None:
        if not ended:
            ended.append(True)
            publish(compacted, url)

    copy = fetch(url, tmp_path / "copy", meanwhile)

    assert ended and len(folders(copy)) == SHARDS
    assert names("stripes", copy) == names("stripes", shards) and faults(fetch(url, copy), no_progress) == []
    assert len(folders(copy)) == 1 and contents(copy) == contents(compacted)
    publish(shards, url)  # from another machine that has an older state of the gallery
    assert names("stripes", fetch(url, copy)) == names("stripes", shards) and len(folders(copy)) == SHARDS


def test_a_segment_that_is_half_fetched_hides_no_rows(shards: Path, url: str, tmp_path: Path) -> None:
    publish(shards, url)
    copy = fetch(url, tmp_path / "copy")
    compact(shards, grace=0)
    publish(shards, url)
    (lost,) = (tmp_path / "store").glob("shards/00000-*/starter-*.npy")
    lost.rename(tmp_path / "lost")

    with pytest.raises(EyespotError):
        fetch(url, copy)
    half, left = names("stripes", copy), disk.shard_paths(copy)
    (tmp_path / "lost").rename(lost)
    fetch(url, copy)

    assert half == names("stripes", copy) == names("stripes", shards) and len(left) == SHARDS
    assert folders(copy) == ["00000-00003"]
