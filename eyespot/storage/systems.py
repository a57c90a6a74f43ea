"""What operating systems do differently, in one place: flushing, renaming over open files, limits, memory, paths.

Windows flushes files that are open for writing only, keeps the names in folders by itself, refuses to rename onto a
file that somebody has open, and has neither `resource` nor positioned writes. `system` is Python's `os.name`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from math import ceil
from pathlib import Path
from typing import IO

WINDOWS = "nt"
_PATIENCE = 2.0  # seconds for a reader, an indexer or a virus scanner to close a file


def flush_flags(is_folder: bool, system: str = os.name) -> int | None:
    """How a file or folder is opened to be flushed; None where there is nothing to flush."""
    if system != WINDOWS:
        return os.O_RDONLY
    return None if is_folder else os.O_RDWR


def rename(action: Callable[[], object], system: str = os.name, patience: float = _PATIENCE) -> None:
    """Run a rename, on Windows again while somebody has the file or folder open; PermissionError in the end."""
    deadline = time.monotonic() + patience
    while True:
        try:
            action()
            return
        except PermissionError:
            if system != WINDOWS or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def write_at(file: IO[bytes], data: memoryview, start: int) -> None:
    """Bytes at their place in a file with a name, whatever other threads write elsewhere in it."""
    if hasattr(os, "pwrite"):
        while data:
            done = os.pwrite(file.fileno(), data, start)
            data, start = data[done:], start + done
    else:
        with open(file.name, "r+b") as place:  # a position of its own in the file
            place.seek(start)
            place.write(data)


def allow_open_files(more: int, spare: int, least: int) -> bool:
    """Let this process open so many more files, with some to spare; False if the system allows not even the least."""
    try:
        import resource
    except ImportError:  # Windows: a mapped file does not count as open there
        return True
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    more += next((len(os.listdir(place)) for place in ("/proc/self/fd", "/dev/fd") if os.path.isdir(place)), 0)
    wanted = more + spare if most == resource.RLIM_INFINITY else min(more + spare, most)
    if now == resource.RLIM_INFINITY or more + spare <= now:
        return True
    with suppress(OSError, ValueError):  # macOS names no limit and has one
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), most))
    return more + least <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def physical_memory() -> int | None:
    """The bytes of memory that the machine has; None where Python cannot tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


@cache  # read in a dozen files: a search asks three times
def usable_cores() -> int:
    """The processors that this process may use, or the fewer whose time its control groups give it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota.split() for quota in group_limits("cpu", "cpu.max")]
    periods = zip(group_limits("cpu", "cpu.cfs_quota_us"), group_limits("cpu", "cpu.cfs_period_us"), strict=False)
    shares = [int(time) / int(period) for time, period in (*quotas, *periods) if time.strip().isdecimal()]  # or max, -1
    return max(1, min(cores, *map(ceil, shares), cores))


def group_limits(controller: str, name: str, system: Path = Path("/")) -> Iterator[str]:
    """What a file of the control groups of this process says, the innermost first (cgroups(7), versions 1 and 2).

    system: where `proc` and `sys` lie.
    """
    groups = ""
    with suppress(OSError):  # not Linux
        groups = (system / "proc/self/cgroup").read_text(encoding="utf-8")
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            mount = system / "sys/fs/cgroup" / (controller if controllers else "")
            parts = Path(path).parts[1:]  # of a container's group, its host may show more of them than there are here
            for depth in range(len(parts), -1, -1):
                with suppress(OSError):
                    yield mount.joinpath(*parts[:depth], name).read_text(encoding="ascii")


def with_slashes(path: str, system: str = os.name) -> str:
    """A path as galleries and tables store it: its parts separated by slashes; elsewhere a backslash is a letter."""
    return path.replace("\\", "/") if system == WINDOWS else path


def is_inside(place: str, folder: str) -> bool:
    """Whether a real path lies in a real folder, or is it; never where the two are on different drives."""
    try:
        return os.path.commonpath([place, folder]) == folder
    except ValueError:
        return False


def relative_path(place: Path, start: Path) -> str:
    """A path from a folder, with slashes; the whole path from another drive."""
    try:
        return with_slashes(os.path.relpath(place.absolute(), start.absolute()))
    except ValueError:
        return place.absolute().as_posix()
