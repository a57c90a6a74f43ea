"""Publishing that mends what is damaged, is not torn by a second publisher, and sees one state of a gallery."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")

import fsspec

from eyespot.gallery.remote import MANIFEST, fetch, publish
from eyespot.gallery.remote.stores import PIECE, Conflict, store_at
from eyespot.storage.locks import locked
from eyespot.types import EyespotError
from tests.gallery.test_remote import contents, make, update
from tests.lazy_import import requires
from tests.worlds import draw


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


@pytest.fixture(params=["file", "s3", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder, a bucket, and a store without conditional puts."""
    if request.param == "file":
        return f"file://{tmp_path}/store"
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return f"{request.getfixturevalue('bucket')}/{tmp_path.name}"


def in_store(url: str, end: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system, and the first file there whose name ends so."""
    fs, root = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return fs, next(name for name in sorted(fs.find(root)) if name.endswith(end))


def test_a_changed_byte_is_mended_by_the_command_that_the_reader_is_given(url: str, tmp_path: Path) -> None:
    gallery = make(tmp_path)
    publish(gallery, url)
    fs, vectors = in_store(url, ".npy")
    data = bytes(fs.cat_file(vectors))
    fs.pipe_file(vectors, data[:-1] + bytes([data[-1] ^ 1]))

    with pytest.raises(
        EyespotError,
        match=re.escape(
            f"is not what was published; where the gallery was indexed, mend it with: eyespot publish {url} --check"
        ),
    ):
        fetch(url, tmp_path / "copy")
    assert publish(gallery, url, check=True).sent == 1
    assert contents(fetch(url, tmp_path / "copy")) == contents(gallery)


@pytest.mark.parametrize("check", [False, True])
def test_a_file_that_is_gone_or_cut_is_sent_again(url: str, tmp_path: Path, check: bool) -> None:
    gallery = make(tmp_path)
    publish(gallery, url)
    fs, vectors = in_store(url, ".npy")
    fs.rm_file(vectors)
    fs, table = in_store(url, ".parquet")
    fs.pipe_file(table, bytes(fs.cat_file(table))[:-9])

    with pytest.raises(EyespotError, match=r"eyespot publish .* --check"):
        fetch(url, tmp_path / "copy")
    assert publish(gallery, url, check=check).sent == 2
    assert contents(fetch(url, tmp_path / "copy")) == contents(gallery)


def test_a_torn_list_is_put_in_place_again_and_nothing_else_is_sent(url: str, tmp_path: Path) -> None:
    gallery = make(tmp_path)
    publish(gallery, url)
    fs, manifest = in_store(url, MANIFEST)
    fs.pipe_file(manifest, bytes(fs.cat_file(manifest)) * 2)

    for use in (lambda: fetch(url, tmp_path / "copy"), lambda: publish(gallery, url)):
        with pytest.raises(EyespotError, match=r"eyespot publish .* --check"):
            use()
    assert publish(gallery, url, check=True).sent == 0
    assert contents(fetch(url, tmp_path / "copy")) == contents(gallery)


def test_a_table_of_judgements_that_is_lost_is_sent_again(url: str, tmp_path: Path) -> None:
    rows = list(range(7))
    seen = 3

    def judged(first: int, file: Path) -> int:
        if part := rows[first:seen]:
            file.write_text(" ".join(map(str, part)))
        return len(part)

    gallery = make(tmp_path, 3)
    publish(gallery, url, judged)
    seen = 7
    publish(gallery, url, judged)
    fs, root = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    first, second = sorted(fs.find(f"{root}/ledger"))
    assert [fs.cat_file(name) for name in (first, second)] == [b"0 1 2", b"3 4 5 6"]

    fs.pipe_file(first, b"0 1 9")
    publish(gallery, url, judged, check=True)

    fs.invalidate_cache()
    assert [fs.cat_file(name) for name in fs.find(f"{root}/ledger")] == [b"0 1 2 3 4 5 6"]


def test_judgements_without_a_list_of_their_tables_are_published_anew(url: str, tmp_path: Path) -> None:
    """As an older eyespot left them."""
    gallery = make(tmp_path, 1)
    publish(gallery, url, lambda first, file: file.write_bytes(b"ab"[first:]))
    fs, manifest = in_store(url, MANIFEST)
    payload = json.loads(fs.cat_file(manifest))
    del payload["ledger"]
    fs.pipe_file(manifest, json.dumps(payload).encode())
    _, table = in_store(url, ".parquet")
    fs.pipe_file(re.sub(r"\.[0-9a-f]{12}\.", ".", table), b"ab")

    publish(gallery, url, lambda first, file: file.write_bytes(b"abc"[first:]))

    fs.invalidate_cache()
    assert [fs.cat_file(name) for name in fs.find(table.rpartition("/")[0])] == [b"abc"]


def test_a_publisher_without_the_ledger_removes_no_judgements(url: str, tmp_path: Path) -> None:
    """One of two tables is lost; who has no judgements cannot mend that, and leaves the other one."""
    gallery = make(tmp_path, 1)
    publish(gallery, url, lambda first, file: file.write_bytes(b"ab"[first:]))
    publish(gallery, url, lambda first, file: file.write_bytes(b"abc"[first:]))
    fs, lost = in_store(url, ".parquet")
    ledger = sorted(fs.find(lost.partition("/shards/")[0].partition("/ledger/")[0] + "/ledger"))
    fs.rm_file(ledger[0])

    publish(gallery, url, lambda *_: 0)

    fs.invalidate_cache()
    assert fs.cat_file(ledger[1]) == b"c"
    publish(gallery, url, lambda first, file: file.write_bytes(b"abc"[first:]))
    fs.invalidate_cache()
    assert [fs.cat_file(name) for name in fs.find(ledger[0].rpartition("/")[0])] == [b"abc"]


@pytest.mark.parametrize("fault", ["name", "time"])
def test_a_list_with_a_wrong_name_or_time_is_damaged(tmp_path: Path, fault: str) -> None:
    gallery, url = make(tmp_path, 1), f"file://{tmp_path}/store"
    publish(gallery, url)
    listed = json.loads((tmp_path / "store" / MANIFEST).read_text())
    name = next(name for name in listed["files"] if name.endswith("items.parquet"))
    file = listed["files"].pop(name)
    if fault == "name":
        listed["files"][name.replace("items", "iteMs")] = file
    else:
        listed["files"][name] = [*file[:3], 10**30]
    (tmp_path / "store" / MANIFEST).write_text(json.dumps(listed))

    with pytest.raises(EyespotError, match=r"damaged .* --check"):
        fetch(url, tmp_path / "copy")


def test_a_bucket_that_is_not_there_is_not_made(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(EyespotError, match="bucket does not exist"):
        publish(make(tmp_path, 1), "s3://brids/store")
    fs = fsspec.filesystem("s3")
    fs.invalidate_cache()
    assert fs.ls("") == ["birds"]


# -- two publishers -------------------------------------------------------------------------------------------


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
    store.remove(MANIFEST)
    with pytest.raises(Conflict):
        store.replace(MANIFEST, b"fifth", found[1])
    assert store.read(MANIFEST) is None


@pytest.mark.parametrize("kind", ["s3", "memory"])
def test_who_publishes_second_begins_again(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Another publication ends while the first sends its files: neither tears the other's, and the later one counts."""
    url = f"{request.getfixturevalue('bucket') if kind == 's3' else 'memory:/'}/{tmp_path.name}-race"
    one, other = make(tmp_path / "one", 3), make(tmp_path / "other", 4)
    ended: list[bool] = []

    def meanwhile(*_: object) -> None:
        if not ended:
            ended.append(True)
            publish(other, url)
            assert contents(fetch(url, tmp_path / "copy")) == contents(other)

    done = publish(one, url, progress=meanwhile)

    assert ended and done.sent + done.known == len(contents(one))
    assert contents(fetch(url, tmp_path / "copy")) == contents(one)


def test_a_folder_has_one_publisher_at_a_time(tmp_path: Path) -> None:
    gallery = make(tmp_path, 1)
    with locked(tmp_path / "store"), pytest.raises(EyespotError, match="wait for it to end and run again"):
        publish(gallery, f"file://{tmp_path}/store")
    publish(gallery, f"file://{tmp_path}/store")


@pytest.mark.long
@requires("s3fs", "moto", "flask_cors")
@pytest.mark.parametrize("kind", ["file", "s3"])
def test_many_publications_at_once_leave_a_gallery_that_can_be_read(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/store" if kind == "file" else f"{request.getfixturevalue('bucket')}/{tmp_path.name}-many"
    galleries = [make(tmp_path / str(number), 2 + number) for number in range(3)]
    wrong: list[str] = []

    def often(gallery: Path) -> None:
        for _ in range(8):
            try:
                publish(gallery, url)
            except EyespotError as error:
                if "run again" not in str(error):
                    wrong.append(str(error))

    publish(galleries[0], url)
    threads = [threading.Thread(target=often, args=(gallery,)) for gallery in galleries]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = contents(fetch(url, tmp_path / "copy"))
        assert found in [contents(gallery) for gallery in galleries]
    assert not wrong


# -- a gallery that is written meanwhile ----------------------------------------------------------------------


def test_what_is_published_is_one_state_of_a_gallery_that_changes_meanwhile(url: str, tmp_path: Path) -> None:
    """After the first file that is sent: a shard is new, a table is written again, and a file is gone."""
    gallery = make(tmp_path)
    (gallery / "shards" / "00001" / "zz.bin").write_bytes(b"soon gone")
    steps: list[int] = []

    def meanwhile(*_: object) -> None:
        steps.append(len(steps))
        if steps[-1] == 0:
            (gallery / "shards" / "00001" / "zz.bin").unlink()
            (tmp_path / "photos" / "0.png").unlink()
            draw(tmp_path / "photos" / "new.png", 99)
            update(tmp_path)

    publish(gallery, url, progress=meanwhile)

    assert contents(fetch(url, tmp_path / "copy")) == contents(gallery)


def test_a_gallery_that_never_rests_is_not_published(tmp_path: Path) -> None:
    gallery = make(tmp_path, 1)
    url = f"file://{tmp_path}/store"
    publish(gallery, url)
    before = contents(fetch(url, tmp_path / "copy"))
    number = iter(range(10**6))

    def restless(*_: object) -> None:
        place = gallery / "shards" / "00000" / "zz.bin"
        place.with_suffix(".new").write_text(str(next(number)))
        place.with_suffix(".new").replace(place)

    with pytest.raises(EyespotError, match="changes all the time"):
        publish(gallery, url, progress=restless)
    assert contents(fetch(url, tmp_path / "copy")) == before


# -- fetching -------------------------------------------------------------------------------------------------


def test_a_log_whose_last_line_was_cut_costs_one_file(tmp_path: Path) -> None:
    gallery = make(tmp_path)
    url = f"file://{tmp_path}/store"
    publish(gallery, url)
    copy = fetch(url, tmp_path / "copy")
    state = json.loads((copy / ".fetched.json").read_text())
    lines = "".join(json.dumps([name, digest]) + "\n" for name, digest in sorted(state.items()))
    (copy / ".fetched.json").unlink()
    (copy / ".fetched.jsonl").write_text(lines[:-5])
    before = {path: path.stat().st_ino for path in copy.glob("shards/*/*")}

    fetch(url, copy)

    changed = [path for path, inode in before.items() if path.stat().st_ino != inode]
    assert len(changed) == 1 and contents(copy) == contents(gallery)
    assert not (copy / ".fetched.jsonl").exists()


@pytest.mark.parametrize("junk", [b"\xff\xfe\n", b"\0" * 40, b'["shards/00000/items.parquet", 5]\n', b"[[], 1]\n"])
def test_a_log_that_ends_in_junk_costs_no_file(tmp_path: Path, junk: bytes) -> None:
    gallery = make(tmp_path)
    url = f"file://{tmp_path}/store"
    publish(gallery, url)
    copy = fetch(url, tmp_path / "copy")
    state = json.loads((copy / ".fetched.json").read_text())
    lines = b"".join(json.dumps([name, digest]).encode() + b"\n" for name, digest in state.items())
    (copy / ".fetched.json").unlink()
    (copy / ".fetched.jsonl").write_bytes(lines + junk)
    before = {path: path.stat().st_ino for path in copy.glob("shards/*/*")}

    fetch(url, copy)

    assert {path: path.stat().st_ino for path in before} == before
    assert contents(copy) == contents(gallery)


def test_a_state_that_names_other_files_removes_none_of_them(tmp_path: Path) -> None:
    gallery = make(tmp_path, 1)
    url = f"file://{tmp_path}/store"
    publish(gallery, url)
    copy = fetch(url, tmp_path / "copy")
    for mine in (tmp_path / "mine.npy", copy / "ledger.sqlite"):
        mine.write_bytes(b"mine")
    state = json.loads((copy / ".fetched.json").read_text())
    (copy / ".fetched.json").write_text(json.dumps({**state, "../mine.npy": "00", "ledger.sqlite": "00"}))

    fetch(url, copy)

    assert (tmp_path / "mine.npy").exists() and (copy / "ledger.sqlite").exists()


def test_a_fetch_that_was_cut_is_not_taken_for_what_was_there_before(tmp_path: Path) -> None:
    """Files of a new state are in place and not in the log yet; then the state before is published again."""
    gallery, url = make(tmp_path), f"file://{tmp_path}/store"
    publish(gallery, url)
    copy = fetch(url, tmp_path / "copy")
    shutil.copytree(gallery, tmp_path / "before")
    (tmp_path / "photos" / "0.png").unlink()
    update(tmp_path)
    (gallery / "shards" / "00000" / "more.bin").write_bytes(b"new")
    publish(gallery, url)

    def cut(*_: object) -> None:
        time.sleep(0.3)  # meanwhile the threads put the other files in place
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(url, copy, cut)
    assert (copy / "shards" / "00000" / "more.bin").exists()
    assert contents(copy)["shards/00000/items.parquet"] == contents(gallery)["shards/00000/items.parquet"]
    publish(tmp_path / "before", url)

    assert contents(fetch(url, copy)) == contents(tmp_path / "before")


def test_a_large_file_comes_in_ranges_from_any_store(url: str, tmp_path: Path) -> None:
    gallery = make(tmp_path, 1)
    (gallery / "shards" / "00000" / "large.bin").write_bytes(os.urandom(5 * PIECE + 7))
    publish(gallery, url)
    steps: list[int] = []
    copy = fetch(url, tmp_path / "copy", lambda _what, done, _total: steps.append(done))
    assert contents(copy) == contents(gallery) and steps == sorted(steps) and len(set(steps)) > 5

    fs, large = in_store(url, ".bin")
    fs.pipe_file(large, bytes(fs.cat_file(large))[:-9])
    (copy / "shards" / "00000" / "large.bin").unlink()
    with pytest.raises(EyespotError, match=r"is not what was published; .* --check"):
        fetch(url, copy)


def test_a_store_without_ranges_sends_large_files_whole(tmp_path: Path) -> None:
    """A plain web server sends everything, whatever range it is asked for."""
    gallery = make(tmp_path, 1)
    (gallery / "shards" / "00000" / "large.bin").write_bytes(os.urandom(5 * PIECE + 7))
    publish(gallery, f"file://{tmp_path}/store")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        copy = fetch(f"http://127.0.0.1:{server.server_address[1]}/store", tmp_path / "copy")
        server.shutdown()
    assert contents(copy) == contents(gallery)
