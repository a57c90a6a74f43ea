"""What Windows does differently, tried here: the helpers are told the system, or run where a module is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eyespot.storage import systems


def run_without(code: str, folder: Path) -> str:
    """What a program prints in a process in which Python has neither `resource` and `fcntl` nor positioned writes."""
    missing = "import os, sys\nsys.modules.update(resource=None, fcntl=None)\n"
    missing += (
        "for name in ('pwrite', 'pread', 'posix_fadvise', 'sysconf', 'sched_getaffinity'):\n    delattr(os, name)\n"
    )
    line = [sys.executable, "-c", missing + code]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("is_folder", "system", "flags"),
    [(True, "posix", os.O_RDONLY), (False, "posix", os.O_RDONLY), (False, "nt", os.O_RDWR), (True, "nt", None)],
)
def test_windows_flushes_what_is_open_for_writing_and_no_folders(
    is_folder: bool, system: str, flags: int | None
) -> None:
    assert systems.flush_flags(is_folder, system) == flags


class Busy:
    """A rename that fails for as long as somebody reads the file."""

    def __init__(self, failures: int) -> None:
        self.tries, self.failures = 0, failures

    def __call__(self) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise PermissionError("the file is open in another program")


def test_a_rename_waits_on_windows_until_the_file_is_closed() -> None:
    waited, refused = Busy(3), Busy(1)
    systems.rename(waited, "nt")
    with pytest.raises(PermissionError):
        systems.rename(refused, "posix")
    with pytest.raises(PermissionError):
        systems.rename(Busy(1000), "nt", patience=0.05)

    assert (waited.tries, refused.tries) == (4, 1)


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


@pytest.mark.long
def test_a_gallery_is_made_and_searched_without_what_windows_lacks(tmp_path: Path) -> None:
    code = """
import shutil
from pathlib import Path
from eyespot import sample
from eyespot.cli import main
Path("photos").mkdir()
for path in sorted(sample.photos().glob("*.jpg"))[:3]:
    shutil.copy(path, "photos")
for words in (["index", "photos", "--codes"], ["search", "a gate", "--paths", "-k", "3"], ["doctor"]):
    sys.argv = ["eyespot", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, (words, end.code)
"""
    assert run_without(code, tmp_path).count(".jpg") == 3


def test_limits_that_python_cannot_tell_are_none(tmp_path: Path) -> None:
    code = (
        "from eyespot.storage import systems\nprint(systems.physical_memory(), systems.allow_open_files(10**9, 1, 1))"
    )

    assert run_without(code, tmp_path).split() == ["None", "True"]
    assert (systems.physical_memory() or 0) > 1 << 28 and not systems.allow_open_files(10**9, 1, 1)


def test_paths_are_stored_with_slashes_and_a_place_on_another_drive_is_not_inside() -> None:
    """A backslash elsewhere is a letter. A relative path has as little in common with an absolute one as drives."""
    assert systems.with_slashes("deep\\er/photo.jpg", "nt") == "deep/er/photo.jpg"
    assert systems.with_slashes("odd\\name.jpg", "posix") == "odd\\name.jpg"
    assert systems.is_inside("/photos/deep/a.jpg", "/photos") and systems.is_inside("/photos", "/photos")
    assert not systems.is_inside("/photos2/a.jpg", "/photos") and not systems.is_inside("d/a.jpg", "/photos")


def test_what_only_one_system_has_is_used_behind_the_owner() -> None:
    """A module that Windows lacks, imported at the top of a file, would end every command there."""
    package = Path(systems.__file__).parent.parent
    lacking = re.compile(r"\bimport (resource|fcntl|pwd|grp|termios)\b|\bos\.(pwrite|sysconf|sched_getaffinity)\(")
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if lacking.search(path.read_text(encoding="utf-8"))
    }

    assert users == {"storage/systems.py"}


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
