"""Judges re-rank: the cost is told first, what is in the ledger is never paid again, and nobody waits for them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.ledger.judgements import Judgements
from eyespot.types import Query, UsageError
from eyespot.web import Judging, Role, ServerSettings, application
from eyespot.web._judges import Jobs
from eyespot.web._state import AppState
from tests.web.conftest import TOKENS, at_this_machine, copy_gallery, from_afar, make_gallery
from tests.wording import raises
from tests.worlds.servers import YES, Double, Response, Seen, chat, error

PHOTOS = 12
QUICK = Judging((("quick", "encoder:starter"),), depth=10)
PRICES = '["tiny"]\ninput = 10.0\noutput = 0.0\n'


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve photos, whose ledger the tests share: each asks its own words."""
    return copy_gallery(tmp_path_factory.mktemp("rerank"), PHOTOS)


@pytest.fixture(scope="module")
def quick(photos: Path) -> Iterator[TestClient]:
    """A server that allows an offline judge."""
    with at_this_machine(ServerSettings(photos, judging=QUICK)) as client:
        yield client


@contextmanager
def paying(photos: Path, double: Double, monkeypatch: pytest.MonkeyPatch, **judging: Any) -> Iterator[ServerSettings]:
    """A server's settings with a judge behind a double, at ten dollars for a million tokens."""
    prices = photos.parent / "prices.toml"
    prices.write_text(PRICES)
    with double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        yield ServerSettings(photos, judging=Judging((("dear", "openai:tiny"),), 10, prices=prices, **judging))


def search(client: TestClient, words: str, **more: Any) -> Any:
    answer = client.get("/v1/search", params={"q": words, "limit": 100, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def looked(client: TestClient, words: str, judge: str, most: int | None = None) -> Any:
    """What is told of a judge once it has looked."""
    place = f"/v1/runs/{search(client, words)['run']}/rerank"
    begun = client.post(place, json={"judge": judge, "most": most})
    assert begun.status_code == 202, begun.text
    return ended(client, place, judge)


def ended(client: TestClient, place: str, judge: str) -> Any:
    while (status := client.get(place, params={"judge": judge}).json())["state"] == "running":
        time.sleep(0.01)
    return status


def held_back() -> tuple[Double, threading.Event]:
    """A judge that says yes, but nothing before it may."""
    answering = threading.Event()

    def slow(_: Seen) -> Response:
        answering.wait(60)
        return YES

    return Double(then=slow), answering


def test_what_a_judge_prefers_is_first_and_equals_stay_in_order(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says yes to the photo alone that it is asked about last; a verdict on it is one on the rank of the search."""
    shown: list[str] = []

    def only_one(seen: Seen) -> Response:
        shown.append(seen.pair)
        return YES if len(shown) == 10 else chat("No", {"Yes": 0.25, "No": 0.75})

    with paying(photos, Double(then=only_one), monkeypatch) as settings, at_this_machine(settings) as client:
        before = search(client, "a blue disc")["items"]
        looked(client, "a blue disc", "dear")
        after = search(client, "a blue disc", rerank="dear")["items"]
        page = client.get("/?q=a+blue+disc&rerank=dear", headers={"Accept": "text/html"}).text

    best = after[0]
    assert (best["judge_says"], best["first_rank"]) == (0.75, [one["id"] for one in before].index(best["id"]) + 1)
    large = re.findall(r'href="/photo/(\w+)\?[^"]*&amp;rank=(\d+)"', page)
    assert best["first_rank"] > 1 and large[0] == (best["id"], str(best["first_rank"]))
    others = [hit["first_rank"] for hit in after[1:10]]
    assert others == sorted(others)
    assert [hit["id"] for hit in after[10:]] == [hit["id"] for hit in before[10:]]


def test_the_cost_is_told_before_and_nothing_is_paid_twice(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten questions of 845 tokens at ten dollars a million: 8.45 cents."""
    double = Double(then=YES)
    with paying(photos, double, monkeypatch) as settings, at_this_machine(settings) as client:
        place = f"/v1/runs/{search(client, 'a fish')['run']}/rerank"
        for page in ("/?q=a+fish&rerank=dear", "/judges?q=a+fish", "/looking?q=a+fish&rerank=dear"):
            assert client.get(page, headers={"Accept": "text/html"}).status_code == 200
        before = client.get(place, params={"judge": "dear"}).json()
        assert double.seen == []
        looked(client, "a fish", "dear")
        again = looked(client, "a fish", "dear")

    assert (before["paid"], before["to_ask"], before["cost"]["calls"]) == (True, 10, 10)
    assert before["cost"]["money"] == pytest.approx(0.0845)
    assert (again["judged"], again["to_ask"], again["cost"]["money"]) == (10, 0, 0.0)
    assert len(double.seen) == 10


def test_verdicts_that_come_later_are_seen_also_where_the_order_stays(quick: TestClient) -> None:
    """The judge is the search's own encoder; the page was open before it had looked."""
    before = search(quick, "a tall hat", rerank="quick")["items"]
    looked(quick, "a tall hat", "quick")
    after = search(quick, "a tall hat", rerank="quick")["items"]
    assert [one["id"] for one in after] == [one["id"] for one in before]
    assert (before[0]["judge_says"], after[0]["judge_says"] is not None) == (None, True)


def test_a_look_that_would_cost_more_than_was_told_is_not_begun(quick: TestClient) -> None:
    run = search(quick, "a pond")["run"]
    answer = quick.post(f"/v1/runs/{run}/rerank", json={"judge": "quick", "most": 9})
    assert (answer.status_code, "10 photos" in answer.json()["detail"]) == (409, True)
    answer = quick.post("/look?q=a+green+disc&rerank=quick", data={"most": "10"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=a+green+disc&rerank=quick")


def test_the_budget_is_that_of_all_searches_together(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = Double(then=YES)
    with paying(photos, double, monkeypatch, calls=13) as settings, at_this_machine(settings) as client:
        first = looked(client, "a red hat", "dear")
        second = looked(client, "a green hat", "dear")
        page = client.get("/judges?q=a+green+hat", headers={"Accept": "text/html"}).text

    assert (first["judged"], second["judged"], len(double.seen)) == (10, 3, 13)
    assert (first["codes"], second["codes"]) == ([], ["budget_spent"])
    assert "13 of 13 calls" in page


def test_what_fails_is_told_and_can_be_asked_again(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = Double(script=[error(400, "image too small")], then=YES)
    with paying(photos, double, monkeypatch) as settings, at_this_machine(settings) as client:
        first = looked(client, "a boat", "dear")
        again = looked(client, "a boat", "dear")
    assert (first["judged"], first["to_ask"], again["judged"]) == (9, 1, 10)
    assert "image too small" in first["notes"][0] and first["codes"] == ["no_verdict"]


@pytest.mark.parametrize("by", ["page", "program"])
def test_who_stops_a_judge_can_let_it_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """Thirty photos are looked at in two rounds; after the stop the second one is not sent. Meanwhile others search."""
    double, answering = held_back()
    with paying(copy_gallery(tmp_path, 30), double, monkeypatch) as settings:
        settings = replace(settings, judging=replace(settings.judging, depth=30))
        with at_this_machine(settings) as client:
            place = f"/v1/runs/{search(client, 'a goat')['run']}/rerank"
            client.post(place, json={"judge": "dear"})
            page = client.get("/?q=a+goat&rerank=dear", headers={"Accept": "text/html"}).text
            assert len(search(client, "a red disc")["items"]) == 30
            if by == "page":
                client.post("/stop?q=a+goat&rerank=dear")
            else:
                client.delete(place, params={"judge": "dear"})
            answering.set()
            stopped = ended(client, place, "dear")
            went_on = looked(client, "a goat", "dear")

    assert 'action="/stop?q=a+goat&amp;rerank=dear"' in page and "0 of 30 photos" in page
    assert (stopped["state"], stopped["judged"]) == ("stopped", 24)
    assert (went_on["state"], went_on["judged"]) == ("done", 30), went_on


def test_a_round_that_waits_for_its_turn_asks_nothing_after_the_end(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double, answering = held_back()
    with paying(photos, double, monkeypatch) as settings, at_this_machine(settings) as client:
        places = [f"/v1/runs/{search(client, f'a dog {number}')['run']}/rerank" for number in range(3)]
        for place in places:
            client.post(place, json={"judge": "dear"})
        state: AppState = client.app.state.eyespot  # type: ignore[attr-defined]
        state.jobs.close(seconds=0.0)
        answering.set()
        ends = [ended(client, place, "dear") for place in places]
    assert sorted(end["judged"] for end in ends) == [0, 0, 10] and {end["state"] for end in ends} == {"stopped"}


def test_a_photo_that_was_replaced_is_shown_to_no_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery = make_gallery(tmp_path, 3)
    double = Double(then=YES)
    with paying(gallery, double, monkeypatch) as settings, at_this_machine(settings) as client:
        (tmp_path / "photos" / "001.jpg").write_bytes((tmp_path / "photos" / "000.jpg").read_bytes())
        status = looked(client, "stripes", "dear")
    assert (status["judged"], status["to_ask"], len(double.seen)) == (2, 1, 2)
    assert status["codes"] == ["no_picture"]


def test_a_round_that_outlives_the_server_ends_without_a_traceback(tmp_path: Path) -> None:
    jobs, ledger, closed = Jobs(), Judgements(tmp_path / "ledger.sqlite"), threading.Event()
    threads = set(threading.enumerate())

    def work() -> Iterator[str]:
        closed.wait(60)
        ledger.enter([Query.words("a fox")])
        yield ""

    jobs.start(("result", "slow"), work)
    jobs.close(seconds=0.0)
    ledger.close()
    closed.set()
    for thread in set(threading.enumerate()) - threads:
        thread.join()  # an exception in it fails this test

    job = jobs.get(("result", "slow"))
    assert job is not None and (job.state, job.notes) == ("stopped", [])


# -- who may, and what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "statuses"), [(Role.READER, [403, 202]), (Role.ANNOTATOR, [202, 202])])
def test_what_costs_money_takes_an_annotator(
    settings: ServerSettings, photos: Path, monkeypatch: pytest.MonkeyPatch, role: Role, statuses: list[int]
) -> None:
    with paying(photos, Double(then=YES), monkeypatch) as paid:
        both = replace(paid.judging, judges=(*paid.judging.judges, *QUICK.judges))
        with from_afar(replace(settings, gallery=photos, cache=None, judging=both), TOKENS[role]) as client:
            place = f"/v1/runs/{search(client, f'a {role.name} swims')['run']}/rerank"
            got = [client.post(place, json={"judge": name}).status_code for name in ("dear", "quick")]

    assert got == statuses


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"q": "a", "rerank": "openai:gpt-5"}, "quick"),
    ({"q": "a", "rerank": "quick", "likely": "0.5"}, "rerank or likely"),
    ({"q": "a", "likely": "0.5"}, "judge about 30"),
    ({"q": "a", "likely": "1.5"}, "likely"),
    ({"q": "a", "likely": "nan"}, "likely"),
    ({"like": "{some}", "rerank": "quick"}, "words"),
]


@pytest.mark.parametrize(("params", "sentence"), REFUSED)
def test_bad_requests_cost_one_sentence(quick: TestClient, params: dict[str, str], sentence: str) -> None:
    some = quick.get("/v1/items").json()["items"][0]["id"]
    answer = quick.get("/v1/search", params={name: value.format(some=some) for name, value in params.items()})
    assert (answer.status_code, sentence in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("spec", "money"),
    [("person:ada", None), ("nobody:x", None), ("/etc/passwd", None), ("encoder:nosuch", None), ("openai:free", 1.0)],
)
def test_non_judges_are_refused(photos: Path, monkeypatch: pytest.MonkeyPatch, spec: str, money: float | None) -> None:
    """A limit in money takes judges whose price is known."""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    prices = photos.parent / "prices.toml"
    prices.write_text(PRICES)
    application(ServerSettings(photos, judging=Judging((("dear", "openai:tiny"),), prices=prices, money=1.0)))

    with raises(UsageError):
        application(ServerSettings(photos, judging=Judging((("mine", spec),), prices=prices, money=money)))


def test_a_run_for_other_tools_has_the_judges_order(quick: TestClient, tmp_path: Path) -> None:
    from eyespot.runs.trec import read_run

    looked(quick, "two stripes", "quick")
    found = search(quick, "two stripes", rerank="quick")
    (tmp_path / "run.txt").write_text(quick.get(f"/v1/runs/{found['run']}", params={"format": "trec"}).text)
    (ranking,) = read_run(tmp_path / "run.txt").values()
    assert [hit.image for hit in ranking] == [item["id"] for item in found["items"]]
