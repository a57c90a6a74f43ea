"""What verdicts say of a ranking: how many are relevant, by group too, what to judge next, and how searches move."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from fastapi.testclient import TestClient

import eyespot
from eyespot.search.estimates.study import again
from eyespot.web import Access, Judging, Role, ServerSettings, application
from tests.web.conftest import PHOTOS, TOKENS, at_this_machine, copy_gallery, from_afar, patient
from tests.web.server_process import until
from tests.worlds import copy_of_sample_gallery
from tests.worlds.galleries import facts_of


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """72 photos, whose ledger the tests share: each asks its own words."""
    return copy_gallery(tmp_path_factory.mktemp("calibration"))


@pytest.fixture(scope="module")
def ada(photos: Path) -> Iterator[TestClient]:
    with at_this_machine(ServerSettings(photos)) as client:
        yield client


def search(client: TestClient, words: str, **more: Any) -> Any:
    return client.get("/v1/search", params={"q": words, "limit": 100, **more}).json()


def say(client: TestClient, words: str, item: str, rank: int, relevant: int) -> None:
    """Yes to a photo of the first `relevant` ranks, no to others."""
    body = {"q": words, "item": item, "verdict": "yes" if rank <= relevant else "no", "rank": rank}
    assert client.post("/v1/judgements", json=body).status_code == 201


def judged_to_the_end(client: TestClient, words: str, relevant: int) -> Any:
    """What is known once somebody judged all that was offered; the first `relevant` are what they look for."""
    place = f"/v1/runs/{search(client, words)['run']}/calibration"
    while wanted := (report := client.get(place).json())["judge_next"]:
        for one in wanted:
            say(client, words, one["item"], one["rank"], relevant)
    return report


def calibration(client: TestClient, words: str) -> Any:
    return client.get(f"/v1/runs/{search(client, words)['run']}/calibration").json()


def text_of(client: TestClient, place: str) -> str:
    page = client.get(place, headers={"Accept": "text/html"}).text
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


@pytest.fixture(scope="module")
def report(ada: TestClient) -> Any:
    """What is known of `red stripes`, of which the first 18 are right."""
    return judged_to_the_end(ada, "red stripes", relevant=18)


@pytest.mark.long
def test_about_thirty_verdicts_tell_how_many_there_are_on_the_page_too(ada: TestClient, report: Any) -> None:
    assert (report["verdicts"], report["relevant"]["among"]) == (30, PHOTOS)
    low, high = report["relevant"]["low"], report["relevant"]["high"]
    assert low <= 18 <= high < 40

    page = text_of(ada, "/?q=red+stripes")
    summary = text_of(ada, f"/summary/{search(ada, 'red stripes')['run']}")
    assert "Nobody has measured where the right ones end" in text_of(ada, "/?q=never+judged")
    assert f"of the first 72 photos are what you look for (95 %: {low} to {high}; by 30 verdicts of people)" in page
    assert f"of the first 72 are right (95 %: {low} to {high})" in summary


def test_probabilities_fall_and_likely_hits_are_shown_alone(ada: TestClient, report: Any) -> None:
    items = search(ada, "red stripes")["items"]
    assert sum(item["probability"] in (0.0, 1.0) for item in items) >= report["verdicts"]
    assert items[0]["probability"] > 0.9 > 0.1 > items[-1]["probability"]

    shown = {share: search(ada, "red stripes", likely=share) for share in (0.9, 0.5)}
    assert 10 <= shown[0.9]["total"] <= 24 < shown[0.5]["total"] <= 45  # about twice as many, half of them right
    assert [one["id"] for one in shown[0.5]["items"]] == [one["id"] for one in items][: shown[0.5]["total"]]
    assert sum(item["probability"] for item in shown[0.9]["items"]) / shown[0.9]["total"] >= 0.9


def test_readers_see_the_count_and_cannot_judge(settings: ServerSettings, photos: Path, report: Any) -> None:
    with from_afar(replace(settings, gallery=photos, cache=None), TOKENS[Role.READER]) as reader:
        page = text_of(reader, "/?q=red+stripes")
        assert f"{report['verdicts']} verdicts of people" in page and "Judge more" not in page
        assert reader.get("/spread?q=red+stripes").status_code == 403


def test_the_first_round_is_the_one_of_the_command_line(ada: TestClient) -> None:
    """Sixteen photos, spread by the same plan and the same seed."""
    from eyespot.ledger.judgements import query_digest
    from eyespot.search.calibration import plan
    from eyespot.types import Query

    seed = int(query_digest(Query.words("a disc"))[:8], 16)
    wanted = calibration(ada, "a disc")["judge_next"]
    assert [one["rank"] for one in wanted] == plan(PHOTOS, 16, seed).ranks.tolist()


@pytest.mark.parametrize(("count", "relevant"), [(20, 5), (40, 10)])
def test_verdicts_on_the_first_hits_speak_of_no_more_than_those(ada: TestClient, count: int, relevant: int) -> None:
    words = f"the first {count} discs"
    for item in search(ada, words)["items"][:count]:
        say(ada, words, item["id"], item["rank"], relevant)
    report, payload = calibration(ada, words), search(ada, words)

    assert (report["relevant"]["among"], report["verdicts"]) == (count, count)
    assert report["relevant"]["low"] == report["relevant"]["high"] == payload["relevant"]["low"] == relevant
    assert ["probability" in item for item in payload["items"]] == [True] * count + [False] * (PHOTOS - count)
    page = text_of(ada, f"/?q={words}")  # without an interval for what was counted
    assert f"{relevant} of the first {count} photos are what you look for (counted)" in page and "95 %" not in page


def test_looking_writes_nothing_down_of_what_was_searched_for(tmp_path: Path) -> None:
    from eyespot.ledger.judgements import Judgements

    gallery = copy_gallery(tmp_path, 20)
    with at_this_machine(ServerSettings(gallery)) as client:
        for place in ("/?q=a+secret", "/spread?q=a+secret"):
            assert client.get(place, headers={"Accept": "text/html"}).status_code == 200
        calibration(client, "a secret")
    with Judgements(gallery / "ledger.sqlite") as ledger:
        assert ledger.queries() == {}


# -- a model beside a person -----------------------------------------------------------------------------------


def test_a_model_s_word_alone_counts_nothing_and_in_its_order_its_number_is_told_as_its_own(photos: Path) -> None:
    judging = Judging((("quick", "encoder:starter"),), depth=30)
    with at_this_machine(ServerSettings(photos, judging=judging)) as client:
        place = f"/v1/runs/{search(client, 'seen')['run']}/rerank"
        client.post(place, json={"judge": "quick"})
        until(lambda: not client.get(place, params={"judge": "quick"}).json()["to_ask"])
        report, plain = calibration(client, "seen"), search(client, "seen")
        ordered = search(client, "seen", rerank="quick")
        likely = client.get("/v1/search", params={"q": "seen", "likely": 0.9})
        pages = [text_of(client, f"/?q=seen{more}") for more in ("", "&rerank=quick")]

    assert (report["by"], report["relevant"], report["verdicts"], report["likely"]) == (None, None, 0, [])
    assert "are what you look for" not in pages[0] and likely.status_code == 422
    scores = [item["judge_says"] for item in ordered["items"] if "judge_says" in item]
    assert len(scores) == 30 and scores == sorted(scores, reverse=True) and f"quick: {scores[0]:.2f}" in pages[1]
    for found in (plain, ordered):
        assert found["relevant"] is None and not any("probability" in item for item in found["items"])


def test_a_model_narrows_the_interval_and_the_page_says_by_how_much(photos: Path, ada: TestClient) -> None:
    words = "a brown disc"
    items = [item["id"] for item in search(ada, words)["items"]]
    from eyespot.ledger.judgements import Judgements
    from eyespot.types import Judgement, Query, Verdict

    with Judgements(photos / "ledger.sqlite") as ledger:
        query = Query.words(words)
        digest = ledger.enter([query])[query]
        verdicts = [Verdict(0.4 if rank <= 20 else 0.1) for rank in range(1, len(items) + 1)]
        ledger.record(Judgement(digest, id, "openai:tiny", "p", word) for id, word in zip(items, verdicts, strict=True))
    report = judged_to_the_end(ada, words, relevant=20)
    covariate = report["covariate"]
    low, high = covariate["alone"]["low"], covariate["alone"]["high"]
    assert (covariate["code"], covariate["judge"], covariate["answers"]) == ("helped", "openai:tiny", PHOTOS)
    assert search(ada, words)["covariate"] == covariate
    narrow = report["relevant"]["high"] - report["relevant"]["low"]
    assert report["relevant"]["low"] <= 20 <= report["relevant"]["high"] and narrow < high - low
    assert covariate["narrowed"] == pytest.approx(1 - narrow / (high - low), abs=1e-3)
    share = f"by {covariate['narrowed'] * 100:.0f} %, from {low} to {high}"
    assert all(share in text_of(ada, place) for place in ("/?q=a+brown+disc", "/spread?q=a+brown+disc"))


# -- a search that recorded verdicts and clicks move: on the page, in the API, for each person ------------------------


Q = "stripes on green"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[TestClient]:
    """Whoever sits at a machine that serves a gallery of one's own."""
    with at_this_machine(ServerSettings(copy_gallery(tmp_path), cache=tmp_path / "cache", hosts=None)) as client:
        yield client


def ids(page: Any) -> list[str]:
    return [item["id"] for item in page["items"]]


def judge(client: TestClient, item: str, verdict: str, by: str | None = None) -> None:
    body = {"q": Q, "item": item, "verdict": verdict} | ({"by": by} if by else {})
    assert client.post("/v1/judgements", json=body).status_code == 201


def test_a_reader_moves_no_search_by_verdicts(settings: ServerSettings) -> None:
    with from_afar(settings, TOKENS[Role.READER]) as reader:
        answer = reader.get("/v1/search", params={"q": Q, "feedback": "everybody"})
    assert answer.status_code == 422


def test_clicks_are_kept_by_query_and_move_it_later_but_are_no_verdicts(opened: TestClient) -> None:
    first, *_, last = ids(search(opened, Q))
    for item, like in ((last, True), (first, True), (first, None)):
        assert opened.post("/v1/clicks", json={"q": Q, "item": item, "like": like}).status_code == 200
    assert search(opened, Q, feedback="mine")["moved"] == {"yes": 1, "no": 0, "missing": 0, "by": "visitor"}
    assert search(opened, "waves", feedback="mine")["moved"] == {"yes": 0, "no": 0, "missing": 0, "by": "visitor"}
    assert opened.get("/v1/judgements").json()["judgements"] == []
    assert opened.post("/v1/clicks", json={"q": Q, "item": "gone", "like": True}).status_code == 404


def test_the_page_says_what_is_known_of_the_rest_and_leads_to_an_audit_of_it(opened: TestClient) -> None:
    opened.post("/name", data={"name": "ada", "next": "/"})
    for item, verdict in zip(ids(search(opened, Q)), ("yes", "no", "yes"), strict=False):
        judge(opened, item, verdict)
    page = opened.get("/", params={"q": Q}).text
    audit = opened.post("/annotate/queries", data={"text": Q, "audit": "20"})
    stands = opened.get("/annotate/standing", params={"query": Q, "what": "audit"}).json()

    assert "2 yes of 3 looked at. 69 without a verdict." in re.sub("<[^>]+>", "", page)
    assert 'id="let-move"' in page and 'id="draw-audit"' in page
    assert audit.url.params["what"] == "audit" and stands["audit"]["size"] == 20
    assert (stands["labelled"], stands["relevant"]) == (3, 2)  # the same verdicts, in both places
    weighed = opened.get("/", params={"q": "2:stripes + green"}).text  # whose verdicts the annotators' pages have not
    assert 'id="draw-audit"' not in weighed


def test_a_ranking_that_verdicts_moved_is_measured_by_none(opened: TestClient) -> None:
    judged_to_the_end(opened, Q, relevant=20)
    assert search(opened, Q)["relevant"] is not None
    assert search(opened, Q, feedback="mine")["relevant"] is None


def test_why_names_the_verdicts_of_oneself_or_everybody_that_moved_the_ranking(opened: TestClient) -> None:
    first, *_, last = ids(search(opened, Q))
    judge(opened, last, "yes")
    judge(opened, first, "no", "ada")

    mine, everybody, plain = (
        opened.get(f"/v1/why/{last}", params={"q": Q} | given).json()["moved"]
        for given in ({"feedback": "mine"}, {"feedback": "everybody"}, {})
    )
    page = opened.get(f"/why/{last}", params={"q": Q, "feedback": "mine"})

    assert [re.findall(r"[01] (?:yes|no)|2 people", one["sentence"]) for one in (*mine, *everybody)] == [
        ["1 yes", "0 no"],
        ["1 yes", "1 no", "2 people"],
    ]
    assert plain == [] and "1 yes and 0 no" in page.text
    ada = search(opened, Q, feedback="person:ada", like=[last])["moved"]
    assert ada == {"yes": 1, "no": 1, "missing": 0, "by": "ada"}
    assert "ada" in opened.get("/v1/search", params={"q": Q, "feedback": "eve"}).json()["detail"]


def test_every_new_verdict_and_click_counts_at_once(opened: TestClient) -> None:
    first, second, *_, last = ids(search(opened, Q))

    def recorded() -> str:
        moved = search(opened, Q, feedback="mine")["moved"]
        return f"{moved['yes']} yes and {moved['no']} no"

    counts = [recorded()]
    judge(opened, last, "yes")
    counts.append(recorded())
    for like in (False, True, None):
        opened.post("/v1/clicks", json={"q": Q, "item": first, "like": like})
        counts.append(recorded())
    judge(opened, second, "no")
    counts.append(recorded())

    assert counts == [
        "0 yes and 0 no", "1 yes and 0 no", "1 yes and 1 no", "2 yes and 0 no", "1 yes and 0 no", "1 yes and 1 no"
    ]  # fmt: skip


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
