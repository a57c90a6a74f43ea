"""What Linux and macOS do differently, in one place: open files, locks, memory, processors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from math import ceil
from pathlib import Path
from typing import IO


def write_at(file: IO[bytes], data: memoryview, start: int) -> None:
    """Bytes at their place in a file with a name, whatever other threads write elsewhere in it."""
    while data:
        done = os.pwrite(file.fileno(), data, start)
        data, start = data[done:], start + done


def allow_open_files(more: int, spare: int, least: int) -> bool:
    """Let this process open so many more files, with some to spare; False if the system allows not even the least."""
    import resource

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
    except (OSError, ValueError):
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


def is_inside(place: str, folder: str) -> bool:
    """Whether a real path lies in a real folder, or is it."""
    return os.path.commonpath([place, folder]) == folder
