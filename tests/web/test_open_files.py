"""A gallery of more files than the server may open is refused in a sentence, whose ways out work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command import run_eyespot
from tests.web.server_process import ServerProcess, started
from tests.worlds import draw, index_gallery, make_gallery

pytest.importorskip("resource", reason="ulimit is of Unix")
pytestmark = pytest.mark.long
FEW, LIMIT = 95, 130  # too few for 30 shards; and enough for them, but not for 31 more beside them


def limited(limit: int) -> list[str]:
    """What to put before a line that may open so many files."""
    return ["/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]


def count(server: ServerProcess, words: str = "a disc") -> int:
    return len(server.search(words, grouped="false", limit=500)["items"])


def test_too_many_shards_are_one_sentence_whose_ways_out_work_and_an_open_snapshot_goes_on(tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path, 30, shard_rows=1, codes=True)
    assert len(list((gallery / "shards").iterdir())) == 30
    log = tmp_path / "log"
    with started(gallery, log, before=limited(FEW)) as server:
        told = server.readiness
        assert "30 shards take 60 open files" in told
        assert "30 shards take 60 open files" in server.ask("v1/search?q=disc")[1]
        assert int(re.findall(r"ulimit -n (\d+)", told)[0]) > LIMIT
    with started(gallery, log, before=limited(LIMIT)) as server:
        assert server.readiness == "ready\n" and count(server) == 30
        draw(tmp_path / "photos" / "new.jpg", 99)
        index_gallery(gallery, tmp_path / "photos", shard_rows=1, codes=True)
        found = server.search("stripes", grouped="false", limit=500)
        assert len(found["items"]) == 30
        assert any("31 shards take 62 open files" in str(note) for note in found["notes"])
    assert run_eyespot("compact", "-g", gallery).returncode == 0
    with started(gallery, log, before=limited(FEW)) as server:
        assert server.readiness == "ready\n" and count(server) == 31
