"""One writer at a time, also between processes; a killed one holds nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eyespot.storage.atomic import append_line
from eyespot.storage.locks import in_turn, locked
from eyespot.types import EyespotError
from tests.wording import raises

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
