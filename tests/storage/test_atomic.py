"""Whatever is written is on the disk before it gets its name, and the name is too before the writer returns."""

from __future__ import annotations

import ast
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from eyespot.storage import systems
from eyespot.storage.atomic import append_line, new_file, new_folder
from eyespot.storage.digests import file_blake2b, file_sha256, json_sha256, text_digest
from eyespot.storage.locks import in_turn, locked
from eyespot.storage.sqlite import DamagedLedger, check, connect, connect_to_read, table_names, transaction
from eyespot.storage.text_files import toml_text
from eyespot.types import EyespotError
from tests.wording import raises

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [".", "..", "/", "taken"])
def test_a_folder_is_no_file_to_write(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").mkdir()
    with pytest.raises(IsADirectoryError) as refused, new_file(Path(name)):
        pass
    assert (refused.value.filename, os.listdir()) == (name, ["taken"])


def test_a_writer_that_fails_leaves_the_old(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    (tmp_path / "file").write_text("old")

    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "folder") as folder:
        (folder / "new").write_text("new")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), new_file(tmp_path / "file") as file:
        file.write(b"new")
        raise ZeroDivisionError

    assert sorted(str(place.relative_to(tmp_path)) for place in tmp_path.rglob("*")) == ["file", "folder", "folder/old"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_folder_that_a_kill_left_aside_is_put_back(tmp_path: Path) -> None:
    """Where two names cannot be exchanged in one step, the old folder lies aside for a moment."""
    (tmp_path / ".folder.old").mkdir()
    (tmp_path / ".folder.old" / "old").write_text("old")

    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "folder"):
        raise ZeroDivisionError

    assert [place.name for place in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "old").read_text() == "old"


def is_flush(node: ast.AST) -> bool:
    """Whether this is a flush or the rename of a path; a text's `replace` takes two values, a dataclass's keywords."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return False
    return node.func.attr in ("fsync", "rename") or (node.func.attr == "replace" and len(node.args) == 1)


@pytest.mark.long
def test_only_storage_flushes_and_renames() -> None:
    """Elsewhere it would be done in another order, as it once was in seven places."""
    found = {}
    for path in sorted((ROOT / "eyespot").rglob("*.py")):
        name = path.relative_to(ROOT / "eyespot").as_posix()
        count = sum(map(is_flush, ast.walk(ast.parse(path.read_text()))))
        if count and not name.startswith("storage/"):
            found[name] = count
    assert found == {}


# -- digests stand on disk, so they are compared with what other programs print and with what stood there before


ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4, appendix B.1


def test_the_digest_of_a_file_is_that_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")

    assert file_sha256(tmp_path / "abc") == ABC
    assert text_digest("abc") == ABC[:16]


@pytest.mark.parametrize(("program", "digest"), [(["sha256sum"], file_sha256), (["b2sum", "-l", "128"], file_blake2b)])
def test_a_large_file_has_the_digest_that_coreutils_print(tmp_path: Path, program: list[str], digest: object) -> None:
    if not shutil.which(program[0]):
        pytest.skip(f"no {program[0]} here")
    place = tmp_path / "large"
    place.write_bytes(bytes(range(256)) * 5000)

    printed = subprocess.run([*program, str(place)], capture_output=True, text=True, check=True).stdout

    assert digest(place) == printed.split()[0]  # type: ignore[operator]


def test_texts_have_the_digest_that_stands_in_ledgers() -> None:
    assert text_digest("a", "b") != text_digest("ab")
    assert text_digest("caf\udce9.jpg") == "c588637f3b9832f5"
    assert json_sha256([[1.0, "windmill", None]]) == "dd4a9b5da1fd196674e30eb92a92f33338ac644bd6d48ec488cf93b45f0bb7bd"


@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert json_sha256(value) == json_sha256(dict(reversed(value.items())))


# -- what is written as TOML is read back by Python's own reader -------------------------------------------------


texts = st.text(st.characters(codec="utf-8"))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
plain = texts | numbers | st.booleans()
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


@given(st.dictionaries(texts, values))
def test_every_value_is_read_back(table: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(table)) == table


def test_what_is_none_is_left_out() -> None:
    table = {"a": None, "b": {"c": None, "d": 1}, "e": [1, None, {"f": None}]}

    assert tomllib.loads(toml_text(table)) == {"b": {"d": 1}, "e": [1, {}]}


# -- one writer at a time, also between processes; a killed one holds nothing ------------------------------------


HOLD = """
import sys, time
from pathlib import Path
from eyespot.storage.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""
# as versions of eyespot before the library did it
HOLD_BY_FLOCK = """
import fcntl, sys, time
file = open(sys.argv[1] + "/lock", "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("program", [HOLD, HOLD_BY_FLOCK])
def test_a_folder_has_one_writer_until_that_one_is_killed(tmp_path: Path, program: str) -> None:
    line = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with raises(EyespotError), locked(tmp_path):
            pass
        holder.kill()
        holder.wait()
        with locked(tmp_path):
            assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_folder_that_is_not_there_is_made_and_what_stands_in_a_lock_file_stays(tmp_path: Path) -> None:
    with locked(tmp_path / "deep" / "folder"):
        (tmp_path / "deep" / "folder" / "lock").write_text("mine")

    with locked(tmp_path / "deep" / "folder"):
        pass

    assert (tmp_path / "deep" / "folder" / "lock").read_text() == "mine"


def test_lines_are_appended_in_turn(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def append(number: int) -> None:
        with in_turn(log), log.open("a+b") as file:
            file.seek(0)
            append_line(file, f"{len(file.readlines())} {number}\n".encode())

    threads = [threading.Thread(target=append, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = [line.split() for line in log.read_text().splitlines()]
    assert [int(place) for place, _ in lines] == list(range(8))
    assert {int(number) for _, number in lines} == set(range(8))


# -- SQLite files of our own --------------------------------------------------------------------------------------


SCHEMA = "CREATE TABLE IF NOT EXISTS numbers(n INTEGER)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "deep" / "numbers.sqlite"
    with closing(connect(place, SCHEMA)) as sql, transaction(sql):
        sql.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(1000)])
    return place


def count(sql: sqlite3.Connection) -> int:
    return int(sql.execute("SELECT count(*) FROM numbers").fetchone()[0])


def test_commits_last_and_others_may_read_meanwhile(path: Path) -> None:
    with closing(connect(path)) as sql:
        assert sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert sql.execute("PRAGMA synchronous").fetchone() == (2,)
        with transaction(sql):
            sql.execute("INSERT INTO numbers VALUES (1)")
            with closing(connect_to_read(path)) as reader:
                assert count(reader) == 1000
        assert count(sql) == 1001


def test_a_transaction_that_fails_leaves_nothing(path: Path) -> None:
    with closing(connect(path)) as sql:
        with pytest.raises(ZeroDivisionError), transaction(sql):
            sql.execute("DELETE FROM numbers")
            raise ZeroDivisionError
        assert count(sql) == 1000


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def open_it() -> None:
        try:
            connect(tmp_path / "new.sqlite", SCHEMA).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_reader_changes_nothing(path: Path) -> None:
    with closing(connect_to_read(path)) as sql:
        assert (table_names(sql), count(sql)) == ({"numbers"}, 1000)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            sql.execute("DELETE FROM numbers")


@pytest.mark.parametrize("opened", [connect, check])
def test_a_file_that_is_not_sqlites_is_named_with_the_way_out(tmp_path: Path, opened: object) -> None:
    place = tmp_path / "notes.sqlite"
    place.write_bytes(b"these are notes" * 100)

    with raises(DamagedLedger):
        opened(place)  # type: ignore[operator]


def test_a_damaged_page_is_found(path: Path) -> None:
    check(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)

    with pytest.raises(DamagedLedger):
        check(path)


# -- systems --------------------------------------------------------------------


def test_threads_write_at_their_places(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        parts = [memoryview(bytes([number]) * 1000) for number in range(16)]
        threads = [
            threading.Thread(target=systems.write_at, args=(file, part, 1000 * at)) for at, part in enumerate(parts)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert (tmp_path / "file").read_bytes() == b"".join(parts)


def test_the_memory_of_the_machine_is_known_and_open_files_have_a_limit() -> None:
    assert (systems.physical_memory() or 0) > 1 << 28 and not systems.allow_open_files(10**9, 1, 1)


def test_a_place_is_inside_a_folder_and_not_in_one_of_a_longer_name() -> None:
    assert systems.is_inside("/photos/deep/a.jpg", "/photos") and systems.is_inside("/photos", "/photos")
    assert not systems.is_inside("/photos2/a.jpg", "/photos")


GROUPS = {
    "of a container": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "15 10\n"}, ["15 10\n"]),
    "of a group above": (
        {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "1 2", "sys/fs/cgroup/a/b/cpu.max": "max 2"},
        ["max 2", "1 2"],
    ),
    "version 1": ({"proc/self/cgroup": "3:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/cpu.max": "9 9"}, ["9 9"]),
    "none": ({}, []),
}


@pytest.mark.parametrize("case", GROUPS)
def test_limits_of_control_groups_are_read_from_the_innermost_up(tmp_path: Path, case: str) -> None:
    files, expected = GROUPS[case]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert list(systems.group_limits("cpu", "cpu.max", tmp_path)) == expected
    assert 1 <= systems.usable_cores() <= (os.cpu_count() or 1)
    pinned = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from eyespot.storage import systems"
    if hasattr(os, "sched_setaffinity"):  # as `taskset -c 0` does
        line = [sys.executable, "-c", f"{pinned}; print(systems.usable_cores())"]
        assert subprocess.run(line, capture_output=True, text=True).stdout == "1\n"
