"""A gallery of more files than the server may open is refused in a sentence, whose ways out work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command import run_eyespot
from tests.web.server_process import ServerProcess, started, until
from tests.worlds import draw, index_gallery, make_gallery

pytest.importorskip("resource", reason="ulimit is of Unix")
pytestmark = pytest.mark.long
FEW = 130


def limited(limit: int) -> list[str]:
    """What to put before a line that may open so many files."""
    return ["/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]


def readiness(server: ServerProcess) -> str:
    """What it says of itself once it has tried to open the gallery."""
    until(lambda: "come again in a moment" not in server.ask("readyz")[1])
    return server.ask("readyz")[1]


def count(server: ServerProcess, words: str = "a disc") -> int:
    return len(server.search(words, ungrouped="true", limit=500)["items"])


def test_too_many_shards_are_one_sentence_whose_ways_out_work_and_an_open_snapshot_goes_on(tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path, 50, shard_rows=1, codes=True)
    assert len(list((gallery / "shards").iterdir())) == 50
    log = tmp_path / "log"
    with started(gallery, log, before=limited(FEW)) as server:
        told = readiness(server)
        assert "50 shards take 100 open files" in told
        assert "50 shards take 100 open files" in server.ask("v1/search?q=disc")[1]
    enough = int(re.findall(r"ulimit -n (\d+)", told)[0])
    with started(gallery, log, before=limited(enough)) as server:
        assert readiness(server) == "ready\n" and count(server) == 50
        draw(tmp_path / "photos" / "new.jpg", 99)  # there is no room for 51 more shards beside those that are open
        index_gallery(gallery, tmp_path / "photos", shard_rows=1, codes=True)
        found = server.search("stripes", ungrouped="true", limit=500)
        assert len(found["items"]) == 50
        assert any("51 shards take 102 open files" in str(note) for note in found["notes"])
    assert run_eyespot("compact", "-g", gallery).returncode == 0
    with started(gallery, log, before=limited(FEW)) as server:
        assert readiness(server) == "ready\n" and count(server) == 51
