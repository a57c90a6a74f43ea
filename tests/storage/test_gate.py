"""What comes from outside has a limit: archives, tables, SQLite files, publications, buckets, hubs and uploads.

Answers of models' servers are in tests/llms/test_client.py, those of web hosts in tests/models/test_downloads.py.
"""

from __future__ import annotations

import base64
import io
import json
import random
import re
import resource
import socket
import sqlite3
import tarfile
import threading
import time
import traceback
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eyespot import rooms
from eyespot.formats.imports import camtrap_dp
from eyespot.gallery import hdf5
from eyespot.gallery.disk import FETCHED
from eyespot.gallery.remote.fetching import fetch
from eyespot.gallery.remote.stores import store_at
from eyespot.gallery.taxonomy.name_index import NameIndex, add_names
from eyespot.judges import ask
from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import Judgements
from eyespot.models import repository, web
from eyespot.models.downloads import download
from eyespot.photos.labels import label_rows
from eyespot.photos.tars import scan_tar
from eyespot.pipelines.recipe import read_recipe
from eyespot.storage.sqlite import DamagedLedger
from eyespot.storage.text_files import LONGEST_LINE
from eyespot.types import EyespotError, Pair, Query
from tests.command import run_eyespot
from tests.examples import examples
from tests.worlds import make_gallery
from tests.worlds.misbehaving import MARK, Repeater, planted, spelled
from tests.worlds.servers import Double, Quiet, Response, Seen, listening

MOST_MEMORY, MOST_SECONDS = 200e6, 60  # above the base, of one file; seconds of processor time
LONG = b"a" * (LONGEST_LINE * 4)
HANGS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r"


@contextmanager
def bounded() -> Iterator[None]:
    """A block that takes neither much memory nor long."""
    tracemalloc.start()
    begun = time.process_time()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY and time.process_time() - begun < MOST_SECONDS
    finally:
        tracemalloc.stop()


def zipped(place: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_", "."), data)
    return place


PACKAGE = json.dumps(
    {"resources": [{"name": name, "path": f"{name}.csv"} for name in ("deployments", "media", "observations")]}
).encode()
MEDIA = b"mediaID,deploymentID,filePath,fileName\n"
HEADS = {"deployments_csv": b"deploymentID\n", "observations_csv": b"observationID,mediaID\n", "media_csv": MEDIA}


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"datapackage_json": b"[" + LONG}, "is not JSON"),
        ({**HEADS, "datapackage_json": PACKAGE, "media_csv": MEDIA + LONG}, "line of more than"),
        ({**HEADS, "datapackage_json": PACKAGE, "media_csv": LONG}, "line of more than"),
        ({**HEADS, "datapackage_json": PACKAGE, "observations_csv": LONG}, "line of more than"),
    ],
    ids=["JSON", "a line", "a head line", "a head line of another table"],
)
def test_a_package_unpacks_to_no_more_than_a_line(files: dict[str, bytes], sentence: str, tmp_path: Path) -> None:
    package = zipped(tmp_path / "package.zip", **files)
    with bounded(), pytest.raises(EyespotError, match=sentence):
        list(camtrap_dp.read(package))


@pytest.mark.parametrize("head", [LONG, b"a" * (1 << 20) + b"b,name\n"], ids=["endless", "a long field"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_head_line_of_names_is_refused(head: bytes, packed: bool, tmp_path: Path) -> None:
    place = tmp_path / ("names.zip" if packed else "names.csv")
    zipped(place, names_csv=head) if packed else place.write_bytes(head)
    with bounded(), pytest.raises(EyespotError, match=r"holds no names that can be read; names\.csv:1"):
        add_names(tmp_path / "gallery", place)


def test_names_before_a_long_line_are_read(tmp_path: Path) -> None:
    place = zipped(tmp_path / "names.zip", names_csv=b"english,latin\nheron,Ardea\n" + LONG)
    with bounded():
        summary = add_names(tmp_path / "gallery", place)
    assert (summary.file.names, summary.failed) == (2, 1) and "line of more than" in summary.failures[0].reason


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_a_line_of_labels_is_refused(ending: str, tmp_path: Path) -> None:
    (tmp_path / f"labels.{ending}").write_bytes(LONG)
    with bounded():
        (found,) = label_rows(tmp_path / f"labels.{ending}", "labels")
    assert "line of more than" in str(found)


TABLES = {
    "brackets": "a = " + "[" * 100_000,
    "lists": f"a = {'[' * 3000}{']' * 3000}",
    "a table's path": f"[{'.'.join(['a'] * 50_000)}]",
    "a path": '."b-1" . '.join(["a"] * 20_000) + " = 1",
    "a path within": f"a = {{{'.'.join(['a'] * 20_000)} = 1}}",
    "digits": "seed = " + "9" * 5000,
    "a key twice": 'name = "a"\nname = "b"',
    "no date": "a = 2020-02-31",
    "long": "#" * (1 << 23),
    "zeros": "\0" * 1000,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_settings_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("eyespot.toml").write_text(TABLES[name], "utf-8")
    with bounded(), pytest.raises(EyespotError, match=r"eyespot\.toml( cannot be read as TOML|: has more than)"):
        read_recipe("eyespot.toml")
    assert run_eyespot("metrics").returncode == 2


def test_a_table_that_has_no_end_is_refused() -> None:
    with bounded(), pytest.raises(EyespotError, match="has more than"):
        read_recipe("/dev/zero")


@pytest.mark.parametrize("prompt", ["../secret", "/etc/hostname", "/dev/zero", "link", "file:///etc/hostname", "a\0b"])
def test_a_recipe_gives_a_model_no_file_from_elsewhere(prompt: str, tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    folder.mkdir()
    (tmp_path / "secret").write_text("SECRET")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "a.toml").write_text(f"[[steps]]\nstep = 'x'\nprompt = {json.dumps(prompt)}")
    with bounded(), pytest.raises(EyespotError, match=r"is not a file beside the recipe|there is no file"):
        read_recipe(folder / "a.toml")


# -- archives ---------------------------------------------------------------------------------------------------


def hostile_tar(place: Path) -> Path:
    """Members of other sizes, of other places, and of names that no disk has."""
    with tarfile.open(place, "w") as archive:
        for name in ("../out.jpg", "/etc/out.jpg", "a\x1b[2J.jpg", "b" * 5000 + ".jpg"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"jpg"))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"link-{kind!r}.jpg")
            member.type, member.linkname = kind, "/etc/hostname"
            archive.addfile(member)
    return place


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_tar_that_states_terabytes_is_read_for_what_it_has(kind: bytes, tmp_path: Path) -> None:
    place = hostile_tar(tmp_path / "photos.tar")
    member = tarfile.TarInfo("lying.jpg")
    member.size, member.type = 8 << 40, kind
    data = place.read_bytes().rstrip(b"\0")
    place.write_bytes(data + bytes(-len(data) % 512) + member.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with bounded():
        found = [*scan_tar(str(place))]
    assert not [one for one in found if "link" in one.path], found
    assert "Unreadable" in type(found[-1]).__name__


# -- SQLite -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        f"CREATE VIEW names AS {HANGS};",
        "CREATE TABLE names(folded TEXT); CREATE TRIGGER t AFTER INSERT ON names BEGIN DELETE FROM names; END;",
    ],
    ids=["view", "trigger"],
)
def test_a_file_of_names_runs_no_code_of_others(code: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "names.sqlite")) as table:
        table.executescript(code)
    names = NameIndex.of(tmp_path)
    assert names is not None
    for use in (lambda: names.taxa("heron"), lambda: names.files, lambda: add_names(tmp_path, tmp_path / "none.csv")):
        with bounded(), pytest.raises(EyespotError, match=r"which eyespot did not make.*give the names again"):
            use()


@pytest.mark.parametrize(
    "code",
    [f"CREATE VIEW clicks AS {HANGS};", "CREATE TABLE t(x); CREATE TRIGGER c AFTER INSERT ON t BEGIN SELECT 1; END"],
)
def test_a_ledger_runs_no_code_of_others(code: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as table:
        table.executescript(code)
    with bounded(), pytest.raises(DamagedLedger, match="which eyespot did not make"):
        Clicks(tmp_path / "ledger.sqlite").last("q")


# -- publications -----------------------------------------------------------------------------------------------


CONNECTED: list[socket.socket] = []  # to the bucket of this test
HEAD = b'HTTP/1.1 200 OK\r\nETag: "x"\r\n'


def answer(kind: str, client: socket.socket) -> None:
    """What a bucket sends that is none: nothing, a byte at a time, or without end."""
    with client, suppress(OSError):
        asked = client.recv(1 << 16)
        if kind == "closed":
            return
        if kind != "silent" and asked.startswith(b"HEAD"):
            client.sendall(HEAD + b"Content-Length: 4000\r\n\r\n")
            return
        if kind == "drip":
            client.sendall(HEAD + b"Content-Length: 4000000\r\n\r\n")
        if kind == "endless":
            client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        while True:
            if kind == "silent":
                client.recv(1)
            client.sendall(b"." if kind == "drip" else b"10000\r\n" + bytes(1 << 16) + b"\r\n")
            time.sleep(0.02 if kind == "drip" else 0)


@pytest.fixture
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("s3fs")
    import fsspec

    CONNECTED.clear()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    CONNECTED.append(client)
                    threading.Thread(target=answer, args=(request.param, client), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "PLANTED")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        fsspec.get_filesystem_class("s3").clear_instance_cache()  # clients of another test's server
        yield "s3://bucket/birds"
        fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.mark.parametrize("bucket", ["silent", "drip", "endless"], indirect=True)
def test_a_bucket_has_a_deadline_and_sends_no_more_than_it_should(
    bucket: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("START", 0.3), ("SLOWEST", 1 << 30)):
        monkeypatch.setattr(web, name, value)
    store = store_at(bucket)
    reads: list[Callable[[], Any]] = [lambda: store.range("a", 0, 1000), lambda: store.read("gallery.json")]
    for read in reads:
        with bounded(), suppress(EyespotError):
            assert len(read()) == 1000 and request.node.callspec.params["bucket"] == "endless"


@pytest.mark.parametrize("bucket", ["closed"], indirect=True)
def test_a_whole_copy_answers_at_once_where_its_bucket_does_not(bucket: str, tmp_path: Path) -> None:
    """A bucket that breaks off gets one request, which is two connections, and not five times."""
    notes: list[str] = []
    (tmp_path / FETCHED).write_text(json.dumps({"url": bucket, "published": "digest", "files": {}}))
    assert fetch(bucket, tmp_path, tell=notes.append) == tmp_path
    assert len(notes) == 1 and len(CONNECTED) <= 2


def test_chunks_that_are_not_there_fill_no_disk(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "features.hdf5", "w") as file:
        file.create_dataset("features", (30_000_000, 512), "f4", chunks=(1000, 512), compression="gzip")
    with bounded(), pytest.raises(EyespotError, match="would unfold to 61,440,000,000"):
        hdf5.features(tmp_path / "features.hdf5")


# -- lists of a hub ---------------------------------------------------------------------------------------------

FILE = {"type": "file", "path": "a.onnx", "size": 3, "oid": "b" * 40}
LISTS: dict[str, Any] = {
    "a name above": [FILE | {"path": "../a.onnx"}],
    "a whole path": [FILE | {"path": "/etc/a.onnx"}],
    "another system's path": [FILE | {"path": "..\\a.onnx"}],
    "a name for the terminal": [FILE | {"path": "a\x1b[2J.onnx"}],
    "half a character": [FILE | {"path": "a\ud800.onnx"}],
    "a long name": [FILE | {"path": "a" * 100_000}],
    "one file twice": [FILE, FILE | {"size": 4}],
    "a size in words": [FILE | {"size": "3"}],
    "less than nothing": [FILE | {"size": -1}],
    "no digest": [FILE | {"oid": "b"}],
    "an object": FILE,
    "brackets": b"[" * 200_000,
    "no end": [],
    "a file of this machine": [FILE],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_a_hub_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = LISTS[name]

    class Hub(Quiet):
        def do_GET(self) -> None:
            said = listing if "/tree/" in self.path else {"sha": "a" * 40}
            self.close_connection = True
            self.send_response(200)
            following = {"no end": f"{address}{self.path}0", "a file of this machine": "file:///etc/hostname"}
            if "/tree/" in self.path and name in following:
                self.send_header("Link", f'<{following[name]}>; rel="next"')
            self.end_headers()
            self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

    monkeypatch.setattr(repository, "PAGES", 20)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with listening(Hub) as place:
        address = f"http://{place}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        with bounded(), pytest.raises(EyespotError) as refused:
            repository.listed("org/name")
    assert len(str(refused.value)) < 1000 and str(refused.value).isprintable()


# -- uploads ----------------------------------------------------------------------------------------------------

POST = b"POST /v1/pictures HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", POST, POST + b"--x"], ids=["nothing", "half a head", "no body", "drip"]
)
def test_a_client_that_sends_half_a_request_is_let_go(sent: bytes) -> None:
    uvicorn = pytest.importorskip("uvicorn")
    from eyespot.web.connections import server_config

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while scope["type"] == "http" and (await receive())["type"] != "http.disconnect":
            pass

    server = uvicorn.Server(server_config(app, 0.3))  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        with socket.create_connection(listener.getsockname()) as client:
            client.settimeout(0.05 if sent.endswith(b"x") else 30)
            open_still, end = True, time.monotonic() + 30
            with suppress(ConnectionError):
                client.sendall(sent)
                while open_still and time.monotonic() < end:
                    with suppress(TimeoutError):
                        open_still = bool(client.recv(1000))
                    client.sendall(b".")
            assert time.monotonic() < end
        server.should_exit = True
        thread.join()


# -- credentials ------------------------------------------------------------------------------------------------

PLANTED = (
    b"sk-PLANTEDkey0123",
    b"PLANTEDpass",
    b"PLANTEDquery",
    b"YWRhOlBMQU5URURwYXNz",
)  # the last is ada:PLANTEDpass


@pytest.mark.long
@pytest.mark.parametrize("status", [200, 400])
def test_no_key_that_a_gateway_repeats_stands_in_a_gallery_or_in_what_leaves_it(status: int, tmp_path: Path) -> None:
    """Nor on the terminal or in a traceback: as a token, as user and password, and in the query of an address."""

    def echo(seen: Seen) -> Response:
        scheme, _, value = (seen.headers.get("authorization") or "").partition(" ")
        plain = base64.b64decode(value).decode() if scheme == "Basic" else ""
        words = f"{scheme} {value} {seen.path} of {plain}"
        if status == 200:
            return Response(200, {"choices": [{"message": {"content": f"Yes, {words}"}, "finish_reason": "stop"}]})
        return Response(status, {"error": {"message": words}})

    pytest.importorskip("fsspec")
    gallery, home = make_gallery(tmp_path, 3), tmp_path / "home"
    said = b""
    with Double(then=echo) as server:
        address = server.url.replace("://", "://ada:PLANTEDpass@") + "?token=PLANTEDquery"
        for number, key in enumerate(("", "sk-PLANTEDkey0123")):
            env = {"OPENAI_BASE_URL": address if not key else server.url, "OPENAI_API_KEY": key, "HOME": str(home)}
            for more in ((), ("--debug",), ("--verbose",)):
                line = (*more, "search", f"a disc {number}", "-g", gallery, "--rerank", "openai:m", "--depth", 2)
                done = run_eyespot(*line, "--judge", "attempts=1", **env)
                said += (done.stdout + done.stderr).encode()
        assert len(server.seen) >= 4
        env = {"OPENAI_BASE_URL": "http://ada:PLANTEDpass@127.0.0.1:1x/v1", "OPENAI_API_KEY": "sk-PLANTEDkey0123"}
        line = ("search", "a disc", "-g", gallery, "--rerank", "openai:m", "--judge", "first_rest=0.001")
        dead = run_eyespot(*line, **env)
        said += (dead.stdout + dead.stderr).encode()
    for name in ("verdicts.jsonl", "verdicts.parquet"):
        run_eyespot("export", "judgements", "-g", gallery, "--to", tmp_path / name)
    published = run_eyespot("publish", (tmp_path / "published").as_uri(), "-g", gallery)

    assert (tmp_path / "verdicts.jsonl").exists() and published.returncode == 0
    said += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not [secret for secret in PLANTED if secret in said]


def texts_of(place: Path) -> str:
    """What a file says; a table is unpacked."""
    if place.suffix == ".parquet":
        return str(pq.read_table(place).to_pylist())
    return place.read_bytes().decode("utf-8", "replace")


def repeat(dice: random.Random, hidden: list[str]) -> None:
    """Have the host repeat one of these in every place that somebody reads, or else send without end or slowly."""
    words = f"Yes, {spelled(dice.choice(hidden), dice)}"
    chat = f'"choices": [{{"message": {{"content": "{words}"}}, "finish_reason": "stop"}}]'
    claude = f'"content": [{{"type": "text", "text": "{words}"}}], "stop_reason": "end_turn"'
    about = f'"error": {{"message": "{words}"}}, "model": "{words}", "data": [{{"id": "{words}"}}]'
    Repeater.body = f"{{{about}, {chat}, {claude}}}"[: dice.choice((None, None, None, -9))].encode()
    Repeater.status, Repeater.reason = dice.choice((200, 200, 400, 401, 403, 422)), dice.choice(("OK", *hidden))
    Repeater.kind = dice.choice(("endless", "drip", "slow", "packed", "lying")) if dice.random() < 0.05 else "repeat"


@pytest.mark.long
def test_no_secret_of_a_thousand_answers_stands_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges, encoders and hosts repeat credentials, spelled and placed at random, and none takes much memory."""
    for name in ("PATIENCE", "START"):
        monkeypatch.setattr(web, name, 0.05)
    gallery, texts, verdicts = make_gallery(tmp_path, 3), list[str](), 0
    photo, most = next((tmp_path / "photos").iterdir()), peak_memory() + MOST_MEMORY
    with listening(Repeater) as host, closing(Judgements(gallery / "ledger.sqlite")) as ledger:
        for seed in range(examples(1000)):
            dice = random.Random(seed)
            url, key, hidden = planted(dice, host)
            repeat(dice, hidden)
            options = {"url": url, "key": key, "attempts": 1, "timeout": 2.0, "first_rest": 0.001}
            try:
                match dice.choice(("openai", "anthropic", "served", "read", "download")):
                    case "read":
                        web.read(url, 1 << 20, headers={"Authorization": f"Bearer {key}"})
                    case "download":
                        download(url, tmp_path.parent / "downloads")
                    case "served":
                        rooms.load("encoders", "served:tiny", **options)
                    case vendor:
                        judge = rooms.load("judges", f"{vendor}:tiny", **options)
                        (found,) = ask(judge, [Pair(Query.words(f"case {seed}"), photo.stem, photo)], ledger)
                        verdicts += found.verdict is not None
                        texts.append(str(found))
            except EyespotError:
                texts.append(traceback.format_exc())
    for name in ("verdicts.jsonl", "verdicts.parquet"):
        assert run_eyespot("export", "judgements", "-g", gallery, "--to", tmp_path / name).returncode == 0
    assert run_eyespot("publish", (tmp_path / "published").as_uri(), "-g", gallery).returncode == 0
    texts += [texts_of(place) for place in tmp_path.rglob("*") if place.is_file()]
    mark = re.compile("".join(rf"({one}|\\u{ord(one):04x})" for one in MARK))
    assert verdicts and peak_memory() < most
    assert not [text for text in texts if mark.search(text)]


def peak_memory() -> float:
    """The most bytes that this process has had so far."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
