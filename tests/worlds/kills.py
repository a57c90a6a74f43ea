"""A command that is killed without warning just before it changes a name on the disk for the nth time.

What it wrote by then lies under names that nobody reads yet, and its database is where its last transaction left it:
every state between two such changes ends in the same way. `python -m tests.worlds.kills N PART WORDS` runs `eyespot
WORDS` and counts changes of paths that have PART in them.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.command import environment

CHANGES = ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link")


def killed_at(change: int, *words: object, part: str = "") -> bool:
    """Run `eyespot WORDS` up to its nth change of a name with this part; False: it ended before, by itself."""
    line = [sys.executable, "-m", "tests.worlds.kills", str(change), part, *map(str, words)]
    done = subprocess.run(line, cwd=Path(__file__).parents[2], env=environment(), capture_output=True, text=True)
    assert done.returncode in (0, 3, -signal.SIGKILL), done.stderr
    return done.returncode == -signal.SIGKILL


def main(change: int, part: str, words: list[str]) -> None:
    from eyespot.cli import main as eyespot

    left = itertools.count(change - 1, -1)

    def hear(event: str, values: tuple[Any, ...]) -> None:
        if event in CHANGES and part in str(values) and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)
    eyespot(words)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
