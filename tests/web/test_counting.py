"""Count by group on the page: photos judged blind, and an answer with the planted truth that Python gives as well."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from fastapi.testclient import TestClient

import eyespot
from eyespot.search.estimates.study import again
from eyespot.web import Access, Role, ServerSettings, application
from tests.web.conftest import at_this_machine, patient
from tests.worlds import copy_of_sample_gallery
from tests.worlds.galleries import facts_of

ADDRESS = "/count?q=a+windmill&group=category&looks=60"
RENEWABLE, WINDMILLS = "categorization/renewable", 14
PAGE = {"Accept": "text/html"}


def ids_on(page: str) -> list[str]:
    return re.findall(r'<li class="tile" data-id="([^"]+)"', page)


def judge_all(client: TestClient, sample: Path, most: int = 1000) -> int:
    """Judge what the page offers, by the names of files that it does not show; how many."""
    paths = {str(one["id"]): str(one["path"]) for one in facts_of(sample)}
    judged = 0
    while judged < most and (ids := ids_on(client.get(ADDRESS, headers=PAGE).text)):
        marks = [{"item": id, "verdict": "yes" if "windmill" in paths[id] else "no"} for id in ids[: most - judged]]
        assert client.post("/v1/judgements/several", json={"q": "a windmill", "marks": marks}).status_code == 200
        judged += len(marks)
    return judged


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return copy_of_sample_gallery(tmp_path / "gallery")


def test_photos_are_judged_blind_and_the_answer_is_that_of_python(sample: Path, tmp_path: Path) -> None:
    with at_this_machine(ServerSettings(sample)) as client:
        assert '<option value="category">' in client.get("/count?q=a+windmill", headers=PAGE).text
        first = client.get(ADDRESS, headers=PAGE).text
        assert len(ids_on(first)) == 24 and "0 of 60 photos judged" in first and "The answer" not in first
        shown = first.split("<ol")[1].split("</ol>")[0].replace("a+windmill", "")
        assert not re.search("windmill|categor|renew|rank|score|taken", shown)
        large = client.get(f"/count/photo/{ids_on(first)[0]}?q=a+windmill", headers=PAGE).text
        assert "windmill" not in large.replace("a+windmill", "") and "category" not in large

        assert judge_all(client, sample, 30) == 30
        assert "30 of 60 photos judged" in (page := client.get(ADDRESS, headers=PAGE).text) and "%" not in page
        assert judge_all(client, sample) == 30  # after a pause, or a server that was killed, it goes on

        done = client.get(ADDRESS, headers=PAGE).text
        judge = client.get("/v1/judgements").json()["judgements"][0]["by"]
        archive = zipfile.ZipFile(io.BytesIO(client.get(ADDRESS.replace("/count", "/count/answer.zip")).content))
    found = eyespot.open(sample).estimate("a windmill", by="category", looks=60, judge=judge)
    assert not found.waiting and found.groups[RENEWABLE].relevant.low <= WINDMILLS
    rows = list(csv.DictReader(io.StringIO(archive.read("answer.csv").decode())))
    assert [(one["group"], int(one["yes"])) for one in rows] == [(one["group"], one["yes"]) for one in found.table]
    assert float(rows[0]["share_low"]) == found.table[0]["share_low"]
    for one in found.groups.values():
        interval = f"{100 * one.share.low:.1f} to {100 * one.share.high:.1f} %"
        shown = {"": "too few judged", "whole": "all judged"}.get(one.basis, interval)
        assert shown in done.split(f">{one.label}</th>")[1].split("</tr>")[0]
    archive.extractall(tmp_path / "answer")
    assert again(tmp_path / "answer" / "answer.html").table == found.table
    assert archive.read("methods.txt").decode() == found.methods
    yes = done.split(f'<th scope="row" dir="auto">{RENEWABLE}')[1].split("</tr>")[0]
    assert yes.count("<img") == found.groups[RENEWABLE].yes > 0


def test_two_people_count_the_same_at_once_and_each_has_an_answer_with_their_agreement(sample: Path) -> None:
    names = ("ada", "bo")
    access = tuple(Access.by(f"{name}-token-0123456789", name, Role.ANNOTATOR) for name in names)
    paths = {str(one["id"]): str(one["path"]) for one in facts_of(sample)}
    app = application(patient(ServerSettings(sample, access=access)))

    def says(name: str, id: str) -> str:
        """Both know windmills; bo takes some other photos for windmills as well."""
        return "yes" if "windmill" in paths[id] or (name == "bo" and crc32(id.encode()) % 7 == 0) else "no"

    def judge(name: str, client: TestClient) -> None:
        while ids := ids_on(client.get(ADDRESS, headers=PAGE).text):
            for id in ids[:7]:  # one by one, as the keys send them
                mark = {"item": id, "verdict": says(name, id)}
                sent = client.post("/v1/judgements/several", json={"q": "a windmill", "marks": [mark]})
                assert sent.json() == {"changed": 1}

    how: dict[str, Any] = {"base_url": "http://127.0.0.1", "client": ("10.0.0.7", 4000)}
    headers = [{"Authorization": f"Bearer {name}-token-0123456789"} for name in names]
    with TestClient(app, **how), ThreadPoolExecutor() as threads:
        people = [TestClient(app, headers=one, **how) for one in headers]
        list(threads.map(judge, names, people))
        pages = [one.get(ADDRESS, headers=PAGE).text for one in people]
    for name, page in zip(names, pages, strict=True):
        found = eyespot.open(sample).estimate("a windmill", by="category", looks=60, judge=f"person:{name}")
        ids = [found.frame.ids[at] for at in found.plan.units]
        same = sum(says("ada", id) == says("bo", id) for id in ids)
        other = names[name == "ada"]
        assert not found.waiting and found.verdicts.tolist() == [says(name, id) == "yes" for id in ids] and same < 60
        assert f"person:{other} judged 60 of these photos too, and agreed in {same}." in found.methods
        assert found.methods in unescape(page)
        for one in found.groups.values():
            row = page.split(f">{one.label}</th>")[1].split("</tr>")[0]
            assert f"<td>{one.yes} of {one.judged} / {one.units:,}</td>" in row


def test_what_cannot_be_counted_is_refused_in_a_sentence(client: TestClient) -> None:
    for more in ("&like=x", "&list=1", "&group=nothing&looks=60", "&looks=7"):
        refused = client.get(f"/count?q=a+windmill{more}")
        assert refused.status_code == 422 and refused.json()["detail"]
