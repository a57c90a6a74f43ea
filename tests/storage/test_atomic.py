"""Whatever is written is on the disk before it gets its name, and the name is too before the writer returns."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eyespot.storage.atomic import new_file, new_folder
from tests.worlds.recorded import WRITERS

ROOT = Path(__file__).resolve().parents[2]
ONCE = ("whole_folder",)  # it refuses a name that is taken


@pytest.mark.parametrize(
    ("name", "times"), [(name, times) for name in WRITERS for times in (1, 2) if times == 1 or name not in ONCE]
)
def test_files_are_flushed_before_the_rename_and_the_folder_after(tmp_path: Path, name: str, times: int) -> None:
    report = recorded(name, tmp_path / "made", times)
    made, inodes, events = report["made"], report["inodes"], report["events"]

    named = events.index(["rename", inodes[made], made])
    before = {inode for what, inode, *_ in events[:named] if what == "fsync"}
    assert not {place for place, inode in inodes.items() if place.startswith(made)} - {
        place for place, inode in inodes.items() if inode in before
    }
    assert ["fsync", inodes[str(Path(made).parent)]] in events[named:]


def recorded(name: str, place: Path, times: int) -> dict[str, Any]:
    line = [sys.executable, "-m", "tests.worlds.recorded", name, str(place), str(times)]
    report: dict[str, Any] = json.loads(subprocess.run(line, cwd=ROOT, capture_output=True, check=True).stdout)
    return report


def test_a_folder_made_on_the_way_is_flushed_into_its_own(tmp_path: Path) -> None:
    events = recorded("shard", tmp_path / "deep" / "gallery", 1)["events"]

    flushed = {inode for what, inode, *_ in events if what == "fsync"}
    assert {place.stat().st_ino for place in (tmp_path, tmp_path / "deep", tmp_path / "deep/gallery")} <= flushed


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
