"""A count and its noun agree: what verbs and pages say of a gallery of one photo holds no "1 photos"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eyespot.types import quantity
from eyespot.web import ServerSettings
from tests.command import run_eyespot
from tests.web.conftest import at_this_machine
from tests.worlds import draw, index_gallery

NOUNS = "photo picture image file quer hit row verdict mark pair group name record vector shard segment list cop label"
NOUNS += " question day word task candidate request call"
WRONG = re.compile(rf"(?<![\d.,])\b1 (?:judged |disputed |flagged )?(?:{'|'.join(NOUNS.split())})(?:s|ies)\b")
VERBS = """index photos --dry-run; index photos; search a --json; search photo --after 2000; search photo --near 1,1,5
duplicates; doctor; compact; map; publish copy; describe --dry-run; tag photo; annotate status; stats queries.csv
annotate list q --nearest 5; annotate audit q --as Ada; names; lists list"""
PAGES = [
    "/",
    "/?q=a",
    "/?q=a&after=2000-01-01",
    "/spread?q=a",
    "/count?q=a",
    "/map",
    "/lists",
    "/annotate",
    "/add",
    "/annotate/label?query=q",
    "/annotate/query?query=q",
    "/annotate/disputes?query=q",
    "/annotate/flagged",
    "/?q=a&verdict=yes",
]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    draw(folder / "photos" / "0.jpg", 0)
    index_gallery(folder / ".eyespot", folder / "photos")
    (folder / "queries.csv").write_text("query_id,query_text\nq,a\n")
    assert run_eyespot("annotate", "add", "queries.csv", cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize(("count", "text"), [(0, "0 queries"), (1, "1 query"), (1200, "1,200 queries")])
def test_a_noun_follows_its_count(count: int, text: str) -> None:
    assert quantity(count, "query") == text and quantity(count, "is", "are").endswith("is" if count == 1 else "are")


@pytest.mark.parametrize("line", re.split("; |\n", VERBS))
def test_a_verb_says_one_photo(one: Path, line: str) -> None:
    done = run_eyespot(*line.split(), cwd=one)

    assert (done.stdout + done.stderr).strip() and not WRONG.findall(done.stdout + done.stderr)


def test_pages_say_one_photo(one: Path) -> None:
    with at_this_machine(ServerSettings(one / ".eyespot")) as browser:
        browser.headers |= {"Accept": "text/html", "Origin": "http://127.0.0.1"}
        browser.post("/name", data={"name": "Ada", "next": "/"})
        found = browser.get("/v1/search", params={"q": "a"}).json()
        photo, run = found["items"][0]["id"], found["run"]
        marks = {"q": "a", "marks": [{"item": photo, "verdict": "yes", "rank": 1}]}
        assert browser.post("/v1/judgements/several", json=marks).status_code == 200
        made = browser.post("/lists", data={"name": "one", "query": "q=a"}).url.path
        pages = [*PAGES, f"/summary/{run}", made, f"/photo/{photo}?q=a"]
        texts = {page: re.sub(r"<[^>]+>", "", browser.get(page).text) for page in pages}

    assert {page: WRONG.findall(text) for page, text in texts.items() if WRONG.search(text)} == {}
    assert "1 photo" in texts["/"] and "1 photo" in texts[made]
