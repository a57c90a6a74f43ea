"""The commands of a recipe: each once, in order, killed at any moment, and refused while another run is at work."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eyespot.reproduce.recipes import TableCommand
from eyespot.reproduce.running import WorkState, run_commands
from eyespot.types import EyespotError
from tests.wording import raises


def command(id: str, code: str, makes: str = "") -> TableCommand:
    return TableCommand(id, f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}", makes, "")


def note(text: str) -> str:
    return f"open('order.txt', 'a').write('{text} ')"


def ran(commands: list[TableCommand], work: Path) -> list[str]:
    lines: list[str] = []
    run_commands(commands, work, lines.append)
    return lines


def order(work: Path) -> list[str]:
    return (work / "order.txt").read_text().split()


def test_a_finished_line_is_not_run_again_and_a_changed_one_is(tmp_path: Path) -> None:
    commands = [command("one", note("one")), command("two", note("two") + "; raise SystemExit(3)")]  # some failures

    ran(commands, tmp_path)
    lines = ran(commands, tmp_path)

    assert order(tmp_path) == ["one", "two"] and all("finished" in line for line in lines)
    assert WorkState(tmp_path).lines[commands[1].line]["exit_code"] == 3
    ran([command("one", note("new"))], tmp_path)
    assert order(tmp_path)[-1] == "new"


def test_a_line_that_fails_stops_and_the_next_run_goes_on_there(tmp_path: Path) -> None:
    fails = command("two", note("two") + "; import os, sys; sys.exit(0 if os.path.exists('mended') else 5)")
    commands = [command("one", note("one")), fails, command("three", note("three"))]

    with raises(EyespotError):
        ran(commands, tmp_path)
    (tmp_path / "mended").touch()
    ran(commands, tmp_path)

    assert order(tmp_path) == ["one", "two", "two", "three"]


def test_a_line_of_a_row_that_fails_ends_that_row_alone(tmp_path: Path) -> None:
    """What a line of two rows made is lacking to both; a row that does not need it goes on."""
    fails = command("two", note("two") + "; raise SystemExit(5)")._replace(systems=("a", "b"))
    rest = [command(name, note(name))._replace(systems=(name,)) for name in ("a", "b", "c")]

    failed = run_commands([command("one", note("one")), fails, *rest], tmp_path, lambda _: None)

    assert order(tmp_path) == ["one", "two", "c"]
    assert failed.keys() == {"a", "b"} and "step 2 (two) ended with 5" in failed["a"]


def test_what_a_line_made_must_still_be_there(tmp_path: Path) -> None:
    makes = command("made", note("made") + "; open('made.txt', 'w').write('x')", "made.txt")
    ran([makes], tmp_path)
    (tmp_path / "made.txt").unlink()

    ran([makes], tmp_path)

    assert order(tmp_path) == ["made", "made"]


def test_a_download_that_was_killed_is_not_one_put_there_by_hand(tmp_path: Path) -> None:
    """The folder of a repository is there from its first byte on; only the end of the line says that it is whole."""
    line = "eyespot download hub:datasets/owner/set --out data/set"
    get = TableCommand("get", line, "data/set", "")
    (tmp_path / "data" / "set").mkdir(parents=True)
    assert not WorkState(tmp_path).is_finished(get)  # nobody puts an empty folder there
    (tmp_path / "data" / "set" / "queries.csv").write_text("id")
    by_hand, begun = WorkState(tmp_path), WorkState(tmp_path)

    begun.begin(get)

    assert by_hand.is_finished(get) and not WorkState(tmp_path).is_finished(get)
    begun.finish(get, 0, 1.0)
    assert WorkState(tmp_path).is_finished(get)


def test_patterns_mean_the_files_that_are_there(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / "lists" / name).mkdir(parents=True)
        (tmp_path / "lists" / name / "x.txt").touch()
    shown = command("list", "import sys; open('words.txt', 'w').write(' '.join(sys.argv[1:]))")

    ran([shown._replace(line=f"{shown.line} lists/*/x.txt none/*")], tmp_path)

    assert (tmp_path / "words.txt").read_text() == "lists/a/x.txt lists/b/x.txt none/*"


@pytest.mark.long
def test_killed_at_any_moment_the_next_run_goes_on(tmp_path: Path) -> None:
    """The step that was at work ends by itself, and until then a second run stays away."""
    slow = note("slow") + "; import os, time; [time.sleep(0.01) for _ in iter(lambda: os.path.exists('enough'), True)]"
    lines = [command("quick", note("quick")), command("slow", slow), command("last", note("last"))]
    fields = json.dumps([list(line) for line in lines])
    code = "import json, sys; from pathlib import Path; from eyespot.reproduce.recipes import TableCommand as C; "
    code += "from eyespot.reproduce.running import run_commands; "
    code += "run_commands([C(*one) for one in json.loads(sys.argv[1])], Path(sys.argv[2]), print)"
    running = subprocess.Popen([sys.executable, "-c", code, fields, str(tmp_path)], stdout=subprocess.DEVNULL)
    while not (tmp_path / "order.txt").exists() or "slow" not in order(tmp_path):
        assert running.poll() is None
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()

    with pytest.raises(EyespotError, match="at work"):
        ran(lines, tmp_path)
    (tmp_path / "enough").touch()
    while True:
        try:
            ran(lines, tmp_path)
            break
        except EyespotError:
            time.sleep(0.05)

    assert order(tmp_path) == ["quick", "slow", "slow", "last"]
