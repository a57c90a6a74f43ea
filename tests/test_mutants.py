"""Mutation testing: what faults are drawn, and what becomes of them in a made-up package, one of which never ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eyespot.extras import EXTRAS
from scripts import changed
from scripts.changed import Change
from scripts.extras import TABLE
from scripts.mutations import mutations
from tests.lazy_import import requires

ROOT = Path(__file__).resolve().parent.parent

KERNELS = """\
import numba

@numba.njit(cache=True)
def last(place, limit, step):
    while place < limit:
        place = _after(place, step)
    return place

@numba.njit(cache=True)
def _after(place, step):
    after = place - step
    return after
"""
RULES = """\
def is_few(count, limit):
    few = count < limit
    return few

def unused(count):
    return count

def of_child(count):
    return count
"""
TESTS = """\
import os, subprocess, sys
from pack.rooms.kernels import last
from pack.rooms.rules import is_few

with open(os.environ["PIDS"], "a") as pids:
    for pid in (os.getpid(), subprocess.Popen(["sleep", "600"]).pid):
        print(pid, file=pids)

def test_few():
    assert is_few(1, 3) is True

def test_last():
    assert last(0, 3, -1) == 3

def test_child():
    line = "from pack.rooms.rules import of_child; print(of_child(7))"
    assert subprocess.run([sys.executable, "-c", line], capture_output=True, text=True).stdout == "7\\n"
"""


def faults(source: str) -> list[tuple[int, str, str]]:
    return [(fault.line, fault.before, fault.after) for fault in mutations(source)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a = b < c == d", [("b < c == d", "b <= c == d"), ("b < c == d", "b < c != d")]),
        ("a = b and not c", [("b and (not c)", "b or not c"), ("not c", "c")]),
        ("a = b if c else d", [("b if c else d", "b if not c else d")]),
        ("a = b * -2", [("b * -2", "b / -2"), ("2", "3"), ("2", "1")]),
        ("a += b", [("a += b", "a -= b"), ("a += b", "pass")]),
        ("a: int = True", [("True", "False")]),
        ("open(a, mode='rb')", [("open(a, mode='rb')", "pass"), ("'rb'", "'rb_'")]),
        ("if a:\n    b()", [("a", "not a"), ("b()", "pass")]),
        ("while a:\n    break", [("a", "not a"), ("break", "continue")]),
        ("def a(b=1):\n    return b", [("1", "2"), ("1", "0"), ("return b", "return None")]),
        ("with a(1):\n    raise b", [("1", "2"), ("1", "0"), ("raise b", "pass")]),
    ],
)
def test_these_faults_are_put_in(source: str, found: list[tuple[str, str]]) -> None:
    assert [(before, after) for _, before, after in faults(source)] == found
    assert all(fault.apply(source) not in ("", source) for fault in mutations(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""Of a file."""',
        "def a():\n    '''Of a function.'''",
        "a = f'{b + 1} of 2'",
        "a = 'a sentence for people'",
        "assert a == 1",
        "log.info('told', 1)",
        "def a(b: Literal[1]) -> Literal['c']: ...",
        "@a(1)\ndef b(): ...",
        "__all__ = ['a']",
        "if TYPE_CHECKING:\n    a = 1",
    ],
)
def test_these_are_left_alone(source: str) -> None:
    assert faults(source) == []


def test_a_fault_stands_where_it_belongs_in_a_file_with_other_letters() -> None:
    source = "name = 'ä', 1 < 2\n\n\ndef a(b):\n    return ('é',\n        b + c)\n"
    (fault,) = [fault for fault in mutations(source) if fault.before == "b + c"]

    assert fault.apply(source) == source.replace("b + c", "(b - c)")
    assert (fault.line, fault.first, fault.last, fault.function) == (6, 5, 6, "a")


@requires("coverage")
@pytest.mark.slow
def test_faults_of_a_made_up_package_are_killed_survive_or_take_too_long(tmp_path: Path) -> None:
    files = {"pack/__init__.py": "", "pack/rooms/__init__.py": "", "tests/rooms/test_all.py": TESTS}
    files |= {"pack/rooms/kernels.py": KERNELS, "pack/rooms/rules.py": RULES}
    for name, text in files.items():
        (tmp_path / "made" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "made" / name).write_text(text)
    line = [sys.executable, ROOT / "scripts" / "mutants.py", "--root", tmp_path / "made", "--package", "pack"]
    line += ["--json", tmp_path / "verdicts.json", "--grace", "60", "--each", "99"]

    pids = tmp_path / "pids"
    done = subprocess.run(line, env=os.environ | {"PIDS": str(pids)}, capture_output=True, text=True)

    assert done.returncode == 1, done.stderr
    verdicts = json.loads((tmp_path / "verdicts.json").read_text())
    outcomes = {f"{Path(one['file']).name}:{one['line']}": one["outcome"] for one in verdicts}
    assert outcomes == {
        "kernels.py:5": "killed",  # while place <= limit
        "kernels.py:7": "killed",  # return None
        "kernels.py:11": "timed out",  # place + step, of which the kernel above is compiled
        "kernels.py:12": "killed",
        "rules.py:2": "survived",  # count <= limit
        "rules.py:3": "killed",
        "rules.py:6": "survived",  # no test runs it
        "rules.py:9": "killed",  # in a process of its own
    }
    assert "survived  pack/rooms/rules.py:2: count < limit → count <= limit (1 tests pass)" in done.stdout
    assert {name: (tmp_path / "made" / name).read_text() for name in files} == files
    for pid in pids.read_text().split():
        state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout
        assert state.strip()[:1] in ("", "Z")  # gone, or only not waited for


# -- what CI leaves out is what a change cannot reach -------------------------------------------------------------


class SameTables(Change):
    """A change of files that leaves pyproject.toml and extras.toml as they are."""

    def before(self, file: str) -> str:
        return (changed.ROOT / file).read_text(encoding="utf-8")


class OtherImports(SameTables):
    def before(self, file: str) -> str:
        return "import os" if file.endswith(".py") else super().before(file)


def long_tests(*files: str) -> set[str]:
    return changed.long_tests(Change("HEAD", frozenset(files)))[0]


@pytest.mark.parametrize(
    ("file", "reached", "spared"),
    [
        ("eyespot/reports/figures/bars.py", "tests/reports/test_report.py", "tests/indexes/test_exact.py"),
        ("eyespot/encoders/starter.py", "tests/gallery/test_segments.py", "tests/indexes/test_exact.py"),
        ("eyespot/web/why.py", "tests/web/test_browser.py", "tests/search/test_kept.py"),
        ("tests/web/test_browser.py", "tests/web/test_browser.py", "tests/web/test_team_browser.py"),
        ("tests/web/conftest.py", "tests/web/test_team_browser.py", "tests/storage/test_flushed.py"),
        ("tests/worlds/power_cuts.py", "tests/storage/test_flushed.py", "tests/web/test_browser.py"),
        ("docs/tune.md", "tests/test_docs.py", "tests/web/test_browser.py"),
    ],
)
def test_a_change_reaches_what_runs_it_and_spares_the_rest(file: str, reached: str, spared: str) -> None:
    """Encoders are loaded by name: no import statement shows who uses them."""
    chosen = long_tests(file)

    assert reached in chosen and spared not in chosen


@pytest.mark.parametrize(
    "file", ["eyespot/storage/atomic.py", "constraints.txt", "tests/command.py", "tests/conftest.py"]
)
def test_what_all_stand_on_reaches_all(file: str) -> None:
    assert long_tests(file) == changed.test_files()


def test_tests_that_the_file_beside_them_marks_as_long_count_too() -> None:
    assert {file for file in long_tests("eyespot/cluster/ray_index.py") if file.startswith("tests/cluster/")} == {
        f"tests/cluster/{path.name}" for path in (ROOT / "tests" / "cluster").glob("test_*.py")
    }


def test_a_change_that_runs_nowhere_reaches_nothing() -> None:
    assert long_tests("CHANGELOG.md") == set()


def test_commits_count_since_the_one_that_is_named_or_else_for_two_days(tmp_path: Path) -> None:
    def git(*words: str, day: int = 9) -> str:
        env = os.environ | {"GIT_COMMITTER_DATE": f"2026-01-{day:02}T12:00:00", "GIT_CONFIG_GLOBAL": os.devnull}
        line = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        return subprocess.run(line, cwd=tmp_path, env=env, check=True, capture_output=True, text=True).stdout.strip()

    assert changed.commit_that_passed(tmp_path) is None
    git("init", "-q")
    for day in (1, 5, 8, 9):
        git("commit", "-q", "--allow-empty", "-m", str(day), day=day)
    commits = git("rev-list", "--reverse", "HEAD").split()
    assert changed.commit_that_passed(tmp_path) == commits[1]
    (tmp_path / ".ci").mkdir()
    for named, expected in ((commits[2], commits[2]), ("0" * 40, commits[1]), ("HEAD", commits[1]), ("", commits[1])):
        (tmp_path / ".ci" / "passed").write_text(f"{named}\n")
        assert changed.commit_that_passed(tmp_path) == expected


def test_without_a_history_everything_is_tried() -> None:
    assert changed.long_tests(Change(None, frozenset()))[0] == changed.test_files()
    assert changed.changed_rows(Change(None, frozenset()), TABLE, EXTRAS).keys() == TABLE.keys()


def test_an_extra_is_tried_if_its_imports_or_places_changed_or_each_time() -> None:
    """What a file does with the same imports, the suite tries."""
    always, file = {"none", "messages", "web", "doors", "release"}, "eyespot/photos/raw.py"
    change = SameTables("HEAD", frozenset({file, "eyespot/curate/recos/checking.py"}))
    new = OtherImports("HEAD", frozenset({file, "eyespot/curate/recos/checking.py"}))

    assert changed.changed_rows(change, TABLE, EXTRAS).keys() == always | {"recos"}
    assert changed.changed_rows(new, TABLE, EXTRAS).keys() == always | {"raw", "recos"}


def test_an_extra_is_tried_if_its_line_or_its_commands_changed() -> None:
    table = {**TABLE, "heif": {"commands": "eyespot index other"}}

    assert "heif" in changed.changed_rows(SameTables("HEAD", frozenset()), table, EXTRAS)


def test_every_place_of_an_extra_is_there() -> None:
    places = [place for row in TABLE.values() for place in row.get("places", ())]

    assert [place for place in places if not (changed.ROOT / place).exists()] == []
