"""Judging that is killed (SIGKILL, no warning) at random moments pays for no answer twice that had been kept."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.types import Query
from tests.worlds.servers import Double, Response, Seen, chat

PICTURES, QUERIES, WORKERS = 10, 50, 8
PAIRS = PICTURES * QUERIES
PROGRAM = """
import sys
from pathlib import Path
from eyespot import rooms
from eyespot.judges._rounds import ask
from eyespot.ledger.judgements import Judgements
from eyespot.types import Pair, Query

url, ledger, photos, workers, queries = sys.argv[1:]
judge = rooms.load("judges", "openai:tiny", url=url, workers=int(workers), first_rest=0.01)
pairs = [Pair(Query.words(f"thing {number}"), photo.stem, photo)
         for photo in sorted(Path(photos).iterdir()) for number in range(int(queries))]
with Judgements(Path(ledger)) as judgements:
    for judgement in ask(judge, pairs, judgements):
        assert judgement.verdict is not None, judgement.failure
"""


def answer(seen: Seen) -> Response:
    """A probability that tells which query it belongs to."""
    found = re.search(r"thing (\d+)", str(seen.body["messages"]))
    assert found is not None
    share = (1 + int(found[1])) / 100
    return chat("x", {"Yes": share, "No": 1 - share})


def start(server: Double, ledger: Path, photos: Path) -> subprocess.Popen[bytes]:
    arguments = [server.url, str(ledger), str(photos), str(WORKERS), str(QUERIES)]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stderr=subprocess.PIPE)


def kill_after(requests: int, server: Double, process: subprocess.Popen[bytes]) -> bool:
    """Kill the process once it has made so many requests; whether it was still at work."""
    before = len(server.seen)
    while len(server.seen) < before + requests and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.communicate()
    return process.returncode == -9


def left_alone(server: Double, ledger: Path, photos: Path) -> None:
    process = start(server, ledger, photos)
    _, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints.decode()


@pytest.mark.long
@pytest.mark.parametrize(
    "kills", [4, pytest.param(30, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])], ids=["few", "many"]
)
def test_no_verdict_is_lost_doubled_or_paid_for_again(tmp_path: Path, kills: int) -> None:
    (tmp_path / "photos").mkdir()
    for number in range(PICTURES):
        Image.new("RGB", (16, 16), (20 * number, 0, 0)).save(tmp_path / "photos" / f"{number}.png")
    moment, hits, ledger = random.Random(kills), 0, tmp_path / "ledger.sqlite"

    with Double(then=answer) as server:
        for _ in range(kills):
            process = start(server, ledger, tmp_path / "photos")
            hits += kill_after(moment.randint(1, PAIRS // kills - WORKERS), server, process)
        left_alone(server, ledger, tmp_path / "photos")
        paid = len(server.answered)
        left_alone(server, ledger, tmp_path / "photos")

    with Judgements(ledger) as judgements:
        rows = list(judgements.rows())
    assert hits == kills
    assert len({one.pair for one in server.answered}) == PAIRS <= paid <= PAIRS + kills * WORKERS
    assert len(server.answered) == paid  # the run of a finished set asks nothing
    assert len(rows) == len({(judgement.query, judgement.image) for judgement, _ in rows}) == PAIRS
    right = {query_digest(Query.words(f"thing {number}")): (1 + number) / 100 for number in range(QUERIES)}
    for judgement, _ in rows:
        assert judgement.verdict is not None
        assert judgement.verdict.probability == pytest.approx(right[judgement.query])
