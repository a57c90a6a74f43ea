"""A search asks a server that runs here: the same bytes, much sooner; and nobody else is ever asked."""

from __future__ import annotations

import inspect
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from eyespot.cli import _answering, _ask_server
from eyespot.cli._hits_out import HitsOut
from eyespot.cli._searching import PlainLine, plain_settings
from eyespot.settings.search import FilterSettings, SearchSettings
from tests.cli.conftest import serving
from tests.command import environment, run_eyespot
from tests.lazy_import import requires
from tests.worlds import copy_of_sample_gallery

pytestmark = requires("fastapi")

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
    ["- people", "--json", "-k", "4"],
    ["ein Hund im Wald", "-e", "starter"],
    ["gate zyzzyva", "--by", "both", "--json"],
    ["zyzzyva", "--by", "words"],
    ["gate", "--by", "smell"],
    ["gate", "--near", "-33,-70,5"],
    ["gate", "--near", "--json"],
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


@pytest.fixture(scope="module")
def server(gallery: Path, state: Path) -> Iterator[int]:
    with serving(gallery, XDG_STATE_HOME=str(state)) as (_, address):
        wait_until_ready(address)
        yield int(urlsplit(address).port or 0)


def wait_until_ready(address: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}readyz", timeout=60).close()
            return
        except urllib.error.HTTPError as error:
            error.close()
            time.sleep(0.1)
    raise AssertionError("the server is not ready")


def searched(gallery: Path, state: Path, *words: str) -> tuple[int, str, str]:
    ran = run_eyespot("search", *words, "-g", gallery, XDG_STATE_HOME=str(state))
    return ran.returncode, re.sub('"took_ms": [0-9.]+', '"took_ms": 0', ran.stdout), ran.stderr


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_the_server_says_the_same_bytes(gallery: Path, state: Path, server: int, line: list[str]) -> None:
    served = searched(gallery, state, *line)

    assert served == searched(gallery, state / "nobody", *line)


def test_the_server_answers_plain(gallery: Path, state: Path, server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setattr(_ask_server, "ALIVE", 60)  # a busy machine is no error
    found = _ask_server.server_of(str(gallery))
    assert found is not None

    for line in LINES[:16]:
        plain = _ask_server.plain_line([*line, "-g", str(gallery)])
        assert plain is not None
        reply = _ask_server.reply_of(*found, ["search", *plain[1], f"--gallery={gallery}"])
        assert reply is not None and reply[1], line


def test_a_search_the_server_answers_imports_next_to_nothing(gallery: Path, state: Path, server: int) -> None:
    code = "import sys; python = {*sys.modules}; from eyespot.cli import _ask_server, main\n"
    code += "_ask_server.ALIVE = 60\n"  # on a busy machine, too
    code += "try: main()\nfinally: print(*{*sys.modules} - python, file=sys.stderr)"
    line = [sys.executable, "-c", code, "search", "gate", "-g", str(gallery)]
    env = environment(XDG_STATE_HOME=str(state), PYTHONIOENCODING="utf-8")
    served, alone = (
        subprocess.run([*line, *more], env=env, capture_output=True, timeout=280) for more in ([], ["--no-server"])
    )

    assert served.returncode == 0 and b"Gate" in served.stdout and served.stdout == alone.stdout
    own = {"eyespot", "eyespot.cli", "eyespot.cli._ask_server", "eyespot.storage", "eyespot.storage.flock"}
    assert {*served.stderr.decode().splitlines()[-1].split()} - own <= {"__future__", "gc", "fcntl", "_socket"}
    assert b"numpy" in alone.stderr.split()
    assert not {b"typer", b"pydantic", b"numpy.ma"} & {*alone.stderr.split()}


def test_a_plain_line_has_what_its_options_would_have() -> None:
    for usual in (SearchSettings(), HitsOut()):
        properties = {name for name, one in inspect.getmembers(type(usual), lambda one: isinstance(one, property))}
        names = {*type(usual).model_fields, *(name for name in properties if not name.startswith(("_", "model_")))}
        assert {name: getattr(PlainLine(), name) for name in names} == {name: getattr(usual, name) for name in names}
    words = ["heron", "--by", "words", "--label", "a=b", "--label", "c=d", "-k", "3", "--ungrouped", "--no-teach", "by"]
    read = plain_settings(words)
    assert read is not None and read[1] == ["heron", "by"]
    given = SearchSettings(by="words", label=("a=b", "c=d"), k=3, grouped=False, teach=False)
    assert {name: getattr(read[0], name) for name in SearchSettings.model_fields} == given.model_dump()
    assert read[0].filters and read[0].way == given.way and FilterSettings(where="").filters


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_lone_search_says_the_same_with_validators(gallery: Path, state: Path, line: list[str]) -> None:
    plain = searched(gallery, state, *line, "--no-server")

    assert plain == searched(gallery, state, "--server", *line)


@pytest.mark.parametrize(
    "line", ["-k 0", "-k 10000000000", "-k x", "--by colour", "--json --paths", "-heron", "--after -1"]
)
def test_other_lines_go_through_validators(line: str) -> None:
    assert plain_settings(line.split()) is None


def note_of(state: Path) -> Path:
    (note,) = (state / "eyespot" / "servers").iterdir()
    return note


def test_the_note_is_for_its_user_alone_and_names_no_query(gallery: Path, state: Path, server: int) -> None:
    note = note_of(state)

    assert note.stat().st_mode & 0o777 == 0o600 and note.parent.stat().st_mode & 0o777 == 0o700
    assert note.read_text().splitlines()[0] == str(server)


def posted(port: int, token: str, *words: str) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = "\0".join(words).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{_ask_server.PATH}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_the_server_refuses_lines_without_token(gallery: Path, state: Path, server: int, tmp_path: Path) -> None:
    token, here = note_of(state).read_text().splitlines()[1], f"--gallery={gallery}"
    lines = [["--html", str(tmp_path / "x.html")], [f"--csv={tmp_path / 'x.csv'}"], ["--copy", str(tmp_path / "x")]]
    lines += [["./pool.jpg"], ["--image", str(tmp_path)], ["--rerank", "encoder:starter"]]

    assert posted(server, token, "search", "gate", here) == 200
    assert {posted(server, other, "search", "gate", here) for other in ("", "of-nobody-0123456789")} <= {401, 403}
    assert [posted(server, token, "search", "gate", *line, here) for line in lines] == [403] * len(lines)
    assert posted(server, token, "index", str(tmp_path), here) == posted(server, token) == 403
    assert not list(tmp_path.iterdir())


def test_the_token_of_an_owner_and_one_from_elsewhere_run_no_line(gallery: Path, tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    from eyespot import web

    tokens = {"ada": "ada-0123456789-abcdef", "search": "search-0123456789-abcdef"}
    access = tuple(web.Access.by(tokens[name], name, web.Role.OWNER, name == "search") for name in tokens)
    app = web.application(web.ServerSettings(gallery, access=access, hosts=None, cache=tmp_path))
    _answering.install(app)
    found = {}
    for place in ("127.0.0.1", "192.0.2.7"):
        with TestClient(app, client=(place, 50000)) as client:
            for name, token in tokens.items():
                line = f"search\0gate\0--gallery={gallery}"
                app.state.eyespot.snapshots.current()
                answer = client.post(_ask_server.PATH, content=line, headers={"Authorization": f"Bearer {token}"})
                found[place, name] = answer.status_code

    assert found.pop(("127.0.0.1", "search")) in (200, 503) and set(found.values()) == {403}, found


def test_only_a_fitting_living_server_answers(gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    here = Path(shutil.copytree(gallery, tmp_path / "here"))
    other = shutil.copytree(gallery, tmp_path / "other")

    with _answering.noted(str(here), 1234, "token") as is_noted, _answering.noted(str(here), 99, "second") as again:
        assert is_noted and not again and _ask_server.server_of(str(here)) == (1234, "token")
        assert _ask_server.server_of(str(other)) is None
        note = note_of(tmp_path)
        text = note.read_text()
        lines = text.split("\n")  # port and token; device and number of the folder, version, copy; host, boot, network
        assert len(lines) == 9 and lines[6] == os.uname().nodename
        others = ["\n".join([*lines[:at], "another", *lines[at + 1 :]]) for at in (0, *range(2, 9))]
        for changed in (*others, "", "1234\ntoken", f"{text}\n"):
            note.write_text(changed)
            assert _ask_server.server_of(str(here)) is None
        note.write_text(text)
        note.chmod(0o644)
        assert _ask_server.server_of(str(here)) is None
        note.chmod(0o600)
        assert _ask_server.server_of(str(here)) == (1234, "token")
        here.rename(tmp_path / "away")
        other.rename(here)
        assert _ask_server.server_of(str(here)) is None  # another folder in its place

    assert not note.exists()


@pytest.mark.long
def test_the_note_of_a_killed_server_is_ignored_and_replaced(gallery: Path, tmp_path: Path) -> None:
    state, cache = tmp_path / "state", ("--cache", tmp_path / "cache")
    with serving(gallery, *cache, XDG_STATE_HOME=str(state)) as (process, address):
        wait_until_ready(address)
        process.send_signal(signal.SIGKILL)
        process.wait()
        stale = note_of(state).read_text()
        assert searched(gallery, state, "gate", "-k", "2")[0] == 0
        with serving(gallery, *cache, XDG_STATE_HOME=str(state)) as (_, address):
            wait_until_ready(address)
            assert note_of(state).read_text() != stale


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for notes, which this process writes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_a_suspended_server_is_not_waited_for(gallery: Path, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system takes connections for it, and nobody answers."""
    monkeypatch.setattr(_ask_server, "ALIVE", 0.1)
    monkeypatch.setattr(_ask_server, "WAIT", 3600)  # who waits so long ends by pytest's own time-out
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        _answering.noted(str(gallery), silent.getsockname()[1], "token-0123456789") as noted,
    ):
        assert noted
        asked = searched(gallery, alone, "gate", "-k", "2")

    assert asked == searched(gallery, alone / "nobody", "gate", "-k", "2")


CONTINUE, OK = b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"
ANSWERS = [
    (CONTINUE, OK + b"4 5\nnotehits\n", (b"note", b"hits\n")),
    (CONTINUE, OK + b"0 5\nhits", None),  # the server was killed meanwhile
    (CONTINUE, OK, None),
    (CONTINUE, b"HTTP/1.1 409 Conflict\r\n\r\n0 0\n", None),
    (CONTINUE, b"", None),
    (b"HTTP/1.1 403 Forbidden\r\n\r\n0 0\n", b"", None),
]


@pytest.mark.parametrize(("sign", "answer", "read"), ANSWERS)
def test_only_a_whole_answer_is_printed(sign: bytes, answer: bytes, read: object) -> None:
    with socket.create_server(("127.0.0.1", 0)) as fake, ThreadPoolExecutor(1) as other:
        reply = other.submit(_ask_server.reply_of, fake.getsockname()[1], "token", ["search", "a b", "\udcff"])
        with fake.accept()[0] as connection:
            connection.settimeout(60)
            assert connection.recv(4096).startswith(b"POST ")
            connection.sendall(sign)
            if sign == CONTINUE:
                assert connection.recv(4096) == b"search\0a b\0\xff"
            connection.sendall(answer)

        assert reply.result() == read


def test_ctrl_c_while_a_server_is_at_work_ends_silently(gallery: Path, alone: Path) -> None:
    line = [sys.executable, "-m", "eyespot.cli", "search", "gate", "-g", str(gallery)]
    with socket.create_server(("127.0.0.1", 0)) as slow:
        slow.settimeout(60)
        with _answering.noted(str(gallery), slow.getsockname()[1], "token-0123456789") as noted:
            assert noted
            process = subprocess.Popen(line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            with slow.accept()[0] as connection:
                connection.settimeout(60)
                assert connection.recv(4096).endswith(b"Expect: 100-continue\r\n\r\n")
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                assert connection.recv(4096).startswith(b"search\0gate\0")
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (130, b"", b"")


OTHER_LINES = [
    "gate --html x.html",
    "./pool.jpg",
    "heron.png",
    "gate --image x",
    "gate --rerank encoder:starter",
    "--help",
    "gate --no-server",
    "gate -- x",
    "gate -k5",
    "gate -g gallery --where",
    "gate -g s3://bucket/birds",
    "gate -g ~/birds",
]


def test_other_lines_are_not_for_a_server_and_plain_ones_keep_their_words() -> None:
    plain = ["- people", "heron", "-k", "5", "--near", "-33.4,-70.6,5", "--json", "-g", "here"]
    others = [words.split() for words in OTHER_LINES]

    assert _ask_server.plain_line(plain) == ("here", plain[:-2])
    assert [w for w in others if _ask_server.plain_line(w if "-g" in w else [*w, "-g", "gallery"]) is not None] == []
