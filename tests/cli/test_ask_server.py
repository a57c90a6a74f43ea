"""A search asks a server that runs here: the same bytes, much sooner; and nobody else is ever asked."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eyespot.cli import _ask_server
from eyespot.storage import systems
from tests.cli.conftest import copy_of_sample_gallery
from tests.lazy_import import requires

pytestmark = [requires("fastapi"), pytest.mark.skipif(not systems.LOCKS_OPEN_FILES, reason="needs POSIX locks")]

LINES = [
    ["Brandenburg Gate"],
    ["a", "bridge", "at", "night", "-k", "7"],
    ["Brandenburg Gate", "--json", "-k", "3"],
    ["a bridge", "--by", "look", "--json"],
    ["gate", "--by=words", "--paths"],
    ["gate", "--by", "words", "--print0"],
    ["gate", "--no-teach", "--ungrouped", "-k", "30"],
    ["2:tower + water - people", "--grouped"],
    ["- people", "-k", "4"],
    ["tower", "-", "people", "-k", "4"],
    ["a fish", "--where", "width > 300", "-k", "5"],
    ["a fish", "--label", "category=categorization/fishes"],
    ["--where", "width > 300", "-k", "5"],
    ["ein Hund im Wald", "-e", "starter"],
    ["gate zyzzyva", "--by", "both", "--json"],
    ["zyzzyva", "--by", "words"],
    ["gate", "--by", "smell"],
    ["gate", "-k", "0"],
    ["gate", "-e", "nobody"],
    ["gate", "--where", "nonsense >"],
    ["gate", "--no-server", "-k", "2"],
]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sample_gallery(tmp_path_factory.mktemp("asked") / "gallery")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


def environment(state: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EYESPOT_")}
    return clean | {"XDG_STATE_HOME": str(state), "PYTHONIOENCODING": "utf-8"} | more


@contextmanager
def serving(gallery: Path, state: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", "0", *words]
    process = subprocess.Popen(line, env=environment(state), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r":([0-9]+)/", process.stderr.readline())
        assert found
        port = int(found[1])
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60):
                    break
            except urllib.error.HTTPError as error:
                error.close()
                time.sleep(0.1)
        yield process, port
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def server(gallery: Path, state: Path) -> Iterator[int]:
    with serving(gallery, state) as (_, port):
        yield port


def searched(gallery: Path, state: Path, *words: str, **env: str) -> tuple[int, str, str]:
    line = [sys.executable, "-m", "eyespot.cli", "search", *words, "-g", str(gallery)]
    done = subprocess.run(line, env=environment(state, **env), capture_output=True, timeout=280)
    out = re.sub(rb'"took_ms": [0-9.]+', b'"took_ms": 0', done.stdout)
    return done.returncode, out.decode(errors="surrogateescape"), done.stderr.decode()


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_the_server_says_the_same_bytes(gallery: Path, state: Path, server: int, line: list[str]) -> None:
    served = searched(gallery, state, *line)

    assert served == searched(gallery, state / "nobody", *line)


def test_plain_lines_are_answered_by_the_server(
    gallery: Path, state: Path, server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = found(monkeypatch, state, gallery)

    for line in LINES[:15]:
        plain = _ask_server.plain_line([*line, "-g", str(gallery)])
        assert plain is not None
        response = _ask_server._response(note, ["search", *plain[1], f"--gallery={gallery}"])
        assert response is not None and response["code"] == 0 and response["stdout"], line


def test_a_plain_search_is_answered_by_the_server_and_imports_nothing_large(
    gallery: Path, state: Path, server: int
) -> None:
    code = "import sys; from eyespot.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    line = [sys.executable, "-c", code, "search", "gate", "-g", str(gallery)]
    done = subprocess.run(line, env=environment(state), capture_output=True, text=True, timeout=280)

    assert done.returncode == 0 and "Gate" in done.stdout
    assert not {"numpy", "typer", "pydantic", "pyarrow", "onnxruntime"} & {*done.stderr.split()}
    refused = subprocess.run(
        [*line, "--no-server"], env=environment(state), capture_output=True, text=True, timeout=280
    )
    assert refused.stdout == done.stdout and "numpy" in refused.stderr.split()


def note_of(state: Path) -> Path:
    (note,) = (state / "eyespot" / "servers").iterdir()
    return note


def test_the_note_is_for_its_user_alone_and_names_no_query(gallery: Path, state: Path, server: int) -> None:
    note = note_of(state)

    assert note.stat().st_mode & 0o777 == 0o600 and note.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(note.read_text())[0] == server


def test_nobody_without_the_token_gets_an_answer(gallery: Path, server: int) -> None:
    body = json.dumps({"words": ["search", "gate", f"--gallery={gallery}"]}).encode()
    for headers in ({}, {"Authorization": "Bearer of-nobody-0123456789"}):
        request = urllib.request.Request(
            f"http://127.0.0.1:{server}{_ask_server.PATH}", body, {"Content-Type": "application/json", **headers}
        )
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=60)
        assert error.value.code in (401, 403)
        error.value.close()


def posted(port: int, token: str, *words: str) -> int:
    """The status of the answer to a line."""
    body = json.dumps({"words": list(words)}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{_ask_server.PATH}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_a_line_that_writes_or_reads_files_is_refused_by_the_server_itself(
    gallery: Path, state: Path, server: int, tmp_path: Path
) -> None:
    token, here = json.loads(note_of(state).read_text())[1], f"--gallery={gallery}"
    lines = [["--html", str(tmp_path / "x.html")], [f"--csv={tmp_path / 'x.csv'}"], ["--copy", str(tmp_path / "x")]]
    lines += [["./pool.jpg"], ["--image", str(tmp_path)], ["--rerank", "encoder:starter"]]

    assert posted(server, token, "search", "gate", here) == 200
    assert [posted(server, token, "search", "gate", *line, here) for line in lines] == [403] * len(lines)
    assert posted(server, token, "index", str(tmp_path), here) == posted(server, token) == 403
    assert not list(tmp_path.iterdir())


def test_the_token_of_an_owner_and_one_from_elsewhere_run_no_line(gallery: Path, tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    from eyespot import web
    from eyespot.cli import _answering

    tokens = {"ada": "ada-0123456789-abcdef", "search": "search-0123456789-abcdef"}
    access = tuple(web.Access.by(tokens[name], name, web.Role.OWNER, name == "search") for name in tokens)
    app = web.application(web.ServerSettings(gallery, access=access, hosts=None, cache=tmp_path))
    _answering.install(app)
    found = {}
    for place in ("127.0.0.1", "192.0.2.7"):
        with TestClient(app, client=(place, 50000)) as client:
            for name, token in tokens.items():
                line = {"words": ["search", "gate", f"--gallery={gallery}"]}
                app.state.house.snapshot()
                answer = client.post(_ask_server.PATH, json=line, headers={"Authorization": f"Bearer {token}"})
                found[place, name] = answer.status_code

    assert found.pop(("127.0.0.1", "search")) in (200, 503) and set(found.values()) == {403}, found


def found(monkeypatch: pytest.MonkeyPatch, state: Path, gallery: Path) -> Any:
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return _ask_server._note_of(str(gallery))


def test_only_a_living_server_of_this_gallery_and_version_is_response(
    gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("EYESPOT_")]:
        monkeypatch.delenv(name)
    with _ask_server.noted(str(gallery), 1234, "token") as is_noted:
        assert is_noted and found(monkeypatch, tmp_path, gallery).port == 1234
        note = note_of(tmp_path)
        text = note.read_text()

        other = Path(shutil.copytree(gallery, tmp_path / "other"))
        assert found(monkeypatch, tmp_path, other) is None
        for changed in (text.replace('"0.', '"9.'), "no json", "[]", text.replace("1234", '"x"')):
            note.write_text(changed)
            assert found(monkeypatch, tmp_path, gallery) is None
        note.write_text(text)
        note.chmod(0o644)
        assert found(monkeypatch, tmp_path, gallery) is None
        note.chmod(0o600)
        assert found(monkeypatch, tmp_path, gallery) is not None
        with _ask_server.noted(str(gallery), 99, "second") as second:
            assert not second
        port, token, served, version, machine = json.loads(text)
        assert len(machine) == 3 and machine[0] == os.uname().nodename
        for at in range(3):  # of another boot, host, network
            other_machine = [*machine[:at], "another", *machine[at + 1 :]]
            note.write_text(json.dumps([port, token, served, version, other_machine]))
            assert found(monkeypatch, tmp_path, gallery) is None
        note.write_text(text)
        assert found(monkeypatch, tmp_path, gallery) is not None
        monkeypatch.setattr(_ask_server, "_identity", lambda _: (0, 0))
        assert found(monkeypatch, tmp_path, gallery) is None

    assert not note.exists()


@pytest.mark.long
def test_the_note_of_a_killed_server_is_ignored_and_replaced(gallery: Path, tmp_path: Path) -> None:
    with serving(gallery, tmp_path / "state", "--cache", str(tmp_path / "cache")) as (process, _):
        process.send_signal(signal.SIGKILL)
        process.wait()
        stale = note_of(tmp_path / "state").read_text()
        assert searched(gallery, tmp_path / "state", "gate", "-k", "2")[0] == 0
        with serving(gallery, tmp_path / "state", "--cache", str(tmp_path / "cache")):
            assert note_of(tmp_path / "state").read_text() != stale


@pytest.mark.long
def test_a_suspended_server_is_not_waited_for(gallery: Path, tmp_path: Path) -> None:
    with serving(gallery, tmp_path / "state", "--cache", str(tmp_path / "cache")) as (process, _):
        alone = searched(gallery, tmp_path / "nobody", "gate", "-k", "2")
        process.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        assert searched(gallery, tmp_path / "state", "gate", "-k", "2") == alone
        assert time.monotonic() - started < _ask_server.WAIT / 2


def test_ctrl_c_while_a_server_is_at_work_ends_silently(
    gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("EYESPOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    line = [sys.executable, "-m", "eyespot.cli", "search", "gate", "-g", str(gallery)]
    with socket.create_server(("127.0.0.1", 0)) as slow:
        slow.settimeout(60)
        with _ask_server.noted(str(gallery), slow.getsockname()[1], "token-0123456789") as noted:
            assert noted
            process = subprocess.Popen(line, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            with slow.accept()[0] as connection:
                connection.settimeout(60)
                assert connection.recv(4096).startswith(b"GET /healthz")
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
                assert connection.recv(4096).startswith(b"POST")
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.parametrize(
    "words",
    [
        ["gate", "--html", "x.html"],
        ["./pool.jpg"],
        ["heron.png"],
        ["gate", "--image", "x"],
        ["gate", "--rerank", "encoder:starter"],
        ["--help"],
        ["gate", "--no-server"],
        ["gate", "--", "x"],
        ["gate", "-k5"],
        ["gate", "--where"],
        ["gate", "-g", "s3://bucket/birds"],
        ["gate", "-g", "~/birds"],
    ],
    ids=" ".join,
)
def test_other_lines_are_not_for_a_server(words: list[str]) -> None:
    assert _ask_server.plain_line(words if "-g" in words else [*words, "-g", "gallery"]) is None


def test_plain_lines_keep_their_words() -> None:
    line = ["- people", "heron", "-k", "5", "--near", "-33.4,-70.6,5", "--json", "-g", "here"]
    assert _ask_server.plain_line(line) == ("here", line[:-2])
