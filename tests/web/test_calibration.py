"""What verdicts say of a whole ranking: how many photos are relevant, how probable each is, and what to judge next."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.web import Judging, Role, ServerSettings
from tests.web.conftest import PHOTOS, TOKENS, at_this_machine, copy_gallery, from_afar


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


@pytest.mark.long
def test_about_thirty_verdicts_tell_how_many_there_are(ada: TestClient) -> None:
    report = judged_to_the_end(ada, "red stripes", relevant=20)

    assert report["verdicts"] == 30
    assert report["relevant"]["among"] == PHOTOS
    assert report["relevant"]["low"] <= 20 <= report["relevant"]["high"] < 40


def test_verdicts_that_are_taken_back_calibrate_nothing(ada: TestClient) -> None:
    judged_to_the_end(ada, "blue stripes", relevant=20)
    place = f"/v1/runs/{search(ada, 'blue stripes')['run']}/calibration"
    items = [item["id"] for item in search(ada, "blue stripes")["items"]]
    codes = [ada.delete("/v1/judgements", params={"q": "blue stripes", "item": id}).status_code for id in items]

    report = ada.get(place).json()

    assert (codes.count(200), codes.count(404)) == (30, PHOTOS - 30)
    assert (report["verdicts"], report["relevant"], len(report["judge_next"])) == (0, None, 16)


def test_the_first_round_is_the_one_of_the_command_line(ada: TestClient, photos: Path) -> None:
    """Sixteen photos, spread by the same plan and the same seed."""
    from eyespot.ledger.judgements import query_digest
    from eyespot.search.calibration import plan
    from eyespot.types import Query

    wanted = ada.get(f"/v1/runs/{search(ada, 'a disc')['run']}/calibration").json()["judge_next"]

    seed = int(query_digest(Query.words("a disc"))[:8], 16)
    assert [one["rank"] for one in wanted] == plan(PHOTOS, 16, seed).ranks.tolist()


def test_hits_have_probabilities_that_fall_and_verdicts_are_certain(ada: TestClient) -> None:
    judged_to_the_end(ada, "green stripes", relevant=20)

    items = search(ada, "green stripes")["items"]

    verdicts = {item["id"]: item["probability"] for item in items if item["probability"] in (0.0, 1.0)}
    assert len(verdicts) >= 30
    assert items[0]["probability"] > 0.9 > 0.1 > items[-1]["probability"]


def test_only_the_likely_ones_are_shown_when_asked(ada: TestClient) -> None:
    """The first 18 of 72 are relevant: half of what is shown is expected to be at about twice as many."""
    judged_to_the_end(ada, "blue stripes", relevant=18)

    shown = {share: search(ada, "blue stripes", likely=share) for share in (0.9, 0.5)}

    whole = [item["id"] for item in search(ada, "blue stripes")["items"]]
    assert 10 <= shown[0.9]["total"] <= 24 < shown[0.5]["total"] <= 45
    assert [item["id"] for item in shown[0.5]["items"]] == whole[: shown[0.5]["total"]]
    mean = sum(item["probability"] for item in shown[0.9]["items"]) / shown[0.9]["total"]
    assert mean >= 0.9


def test_verdicts_on_the_first_hits_speak_of_no_more_than_those(ada: TestClient) -> None:
    for item in search(ada, "a yellow disc")["items"][:20]:
        say(ada, "a yellow disc", item["id"], item["rank"], relevant=5)

    report = ada.get(f"/v1/runs/{search(ada, 'a yellow disc')['run']}/calibration").json()

    assert (report["relevant"]["among"], report["verdicts"]) == (20, 20)
    assert report["relevant"]["low"] == report["relevant"]["high"] == 5


def test_whoever_judges_down_the_ranking_is_told_of_no_more_than_they_judged(ada: TestClient) -> None:
    """The first 40 of 72, as one finds them on the page: nothing is said of the 32 behind them."""
    for item in search(ada, "an orange disc")["items"][:40]:
        say(ada, "an orange disc", item["id"], item["rank"], relevant=10)

    payload = search(ada, "an orange disc")

    assert payload["relevant"]["among"] == 40 and payload["relevant"]["low"] == payload["relevant"]["high"] == 10
    assert ["probability" in item for item in payload["items"]] == [True] * 40 + [False] * 32


def test_a_verdict_on_a_photo_that_another_search_put_elsewhere_does_not_count(ada: TestClient) -> None:
    """The same twenty, said to have been seen one rank further down."""
    for item in search(ada, "a violet disc")["items"][:20]:
        say(ada, "a violet disc", item["id"], item["rank"] + 1, relevant=5)

    report = ada.get(f"/v1/runs/{search(ada, 'a violet disc')['run']}/calibration").json()

    assert (report["relevant"], report["verdicts"]) == (None, 0)


def let_look(client: TestClient, words: str) -> str:
    """A model looks at all it may; gives the run."""
    run: str = search(client, words)["run"]
    client.post(f"/v1/runs/{run}/rerank", json={"judge": "quick"})
    while client.get(f"/v1/runs/{run}/rerank", params={"judge": "quick"}).json()["to_ask"]:
        time.sleep(0.01)
    return run


@pytest.mark.long
def test_a_model_s_word_counts_nothing_and_people_s_verdicts_do(tmp_path: Path) -> None:
    """60 photos, all of which a model has seen, and of which the first 20 are what somebody looks for."""
    gallery = copy_gallery(tmp_path, 60)
    with at_this_machine(ServerSettings(gallery, judging=Judging((("quick", "encoder:starter"),), depth=60))) as client:
        run = let_look(client, "stripes")
        report = client.get(f"/v1/runs/{run}/calibration").json()
        plain, page = search(client, "stripes"), text_of(client, "/?q=stripes")
        likely = client.get("/v1/search", params={"q": "stripes", "likely": 0.9})
        person = judged_to_the_end(client, "stripes", relevant=20)
        after = search(client, "stripes")

    assert (report["by"], report["relevant"], report["verdicts"], report["likely"]) == (None, None, 0, [])
    assert plain["relevant"] is None and not any("probability" in item for item in plain["items"])
    assert "Judge 30 photos" in page and "are what you look for" not in page
    assert likely.status_code == 422 and "judge about 30 photos" in likely.json()["detail"]
    assert person["by"].startswith("person:") and person["verdicts"] == 30
    assert after["relevant"]["low"] <= 20 <= after["relevant"]["high"] < 40


@pytest.mark.long
def test_in_a_model_s_order_its_number_is_told_as_its_own(tmp_path: Path) -> None:
    gallery = copy_gallery(tmp_path, 20)
    with at_this_machine(ServerSettings(gallery, judging=Judging((("quick", "encoder:starter"),), depth=10))) as client:
        let_look(client, "stripes")
        found = search(client, "stripes", rerank="quick")
        page = text_of(client, "/?q=stripes&rerank=quick")

    scores = [item["judge_says"] for item in found["items"] if "judge_says" in item]
    assert len(scores) == 10 and scores == sorted(scores, reverse=True)
    assert found["relevant"] is None and not any("probability" in item for item in found["items"])
    assert f"quick: {scores[0]:.2f}" in page and "percent probable" not in page


def test_looking_writes_nothing_down_of_what_was_searched_for(tmp_path: Path) -> None:
    from eyespot.ledger.judgements import Judgements

    gallery = copy_gallery(tmp_path, 20)
    with at_this_machine(ServerSettings(gallery)) as client:
        for place in ("/?q=a+secret", "/spread?q=a+secret"):
            assert client.get(place, headers={"Accept": "text/html"}).status_code == 200
        client.get(f"/v1/runs/{search(client, 'a secret')['run']}/calibration")
    with Judgements(gallery / "ledger.sqlite") as ledger:
        assert ledger.queries() == {}


# -- the page --------------------------------------------------------------------------------------------------


def text_of(client: TestClient, place: str) -> str:
    """The page's words, without its tags."""
    page = client.get(place, headers={"Accept": "text/html"}).text
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_the_page_offers_a_spread_and_then_counts_in_the_summary_too(ada: TestClient) -> None:
    before = text_of(ada, "/?q=three+stripes")
    bounds = judged_to_the_end(ada, "three stripes", relevant=20)["relevant"]
    after = text_of(ada, "/?q=three+stripes")
    summary = text_of(ada, f"/summary/{search(ada, 'three stripes')['run']}")

    interval = f"{bounds['low']} to {bounds['high']}"
    assert "How many of these are right?" in before
    assert f"of the first 72 photos are what you look for (95 %: {interval}; by 30 verdicts of people)" in after
    assert f"of the first 72 are relevant (95 %: {interval})" in summary


def test_readers_see_the_count_and_cannot_judge(settings: ServerSettings, ada: TestClient, photos: Path) -> None:
    judged_to_the_end(ada, "four stripes", relevant=20)

    with from_afar(replace(settings, gallery=photos, cache=None), TOKENS[Role.READER]) as reader:
        page = text_of(reader, "/?q=four+stripes")
        spread = reader.get("/spread?q=four+stripes").status_code

    assert "verdicts of people" in page and "Judge more" not in page
    assert spread == 403


# -- a model beside a person -----------------------------------------------------------------------------------


def answers_of(gallery: Path, judge: str, words: str, items: list[str], relevant: int) -> None:
    """A model answered on these items before: 0.4 for the first `relevant` ones, 0.1 for the others."""
    from eyespot.ledger.judgements import Judgements
    from eyespot.types import Judgement, Query, Verdict

    with Judgements(gallery / "ledger.sqlite") as ledger:
        query = Query.words(words)
        digest = ledger.enter([query])[query]
        verdicts = [Verdict(0.4 if rank <= relevant else 0.1) for rank in range(1, len(items) + 1)]
        ledger.record(Judgement(digest, id, judge, "p", word) for id, word in zip(items, verdicts, strict=True))


def test_a_model_narrows_the_interval_and_the_page_says_by_how_much(photos: Path, ada: TestClient) -> None:
    alone = judged_to_the_end(ada, "a brown disc", relevant=20)
    items = [item["id"] for item in search(ada, "a brown disc")["items"]]
    answers_of(photos, "openai:tiny", "a brown disc", items, relevant=20)

    report = ada.get(f"/v1/runs/{search(ada, 'a brown disc')['run']}/calibration").json()
    page, spread = text_of(ada, "/?q=a+brown+disc"), text_of(ada, "/spread?q=a+brown+disc")

    covariate, (low, high) = report["covariate"], (alone["relevant"]["low"], alone["relevant"]["high"])
    assert (covariate["code"], covariate["judge"], covariate["answers"]) == ("helped", "openai:tiny", PHOTOS)
    assert covariate["alone"] == {"low": low, "high": high} and search(ada, "a brown disc")["covariate"] == covariate
    narrow = report["relevant"]["high"] - report["relevant"]["low"]
    assert report["relevant"]["low"] <= 20 <= report["relevant"]["high"] and narrow < high - low
    assert covariate["narrowed"] == pytest.approx(1 - narrow / (high - low), abs=1e-3)
    share = f"{covariate['narrowed'] * 100:.0f} %, from {low} to {high}"
    sentence = f"72 answers of openai:tiny narrowed the interval by {share}"
    assert sentence in page and sentence in spread


@pytest.mark.long
def test_a_judge_on_its_own_encoder_s_ranking_narrows_nothing(tmp_path: Path) -> None:
    gallery = copy_gallery(tmp_path, 60)
    with at_this_machine(ServerSettings(gallery, judging=Judging((("quick", "encoder:starter"),), depth=60))) as client:
        alone = judged_to_the_end(client, "stripes", relevant=20)
        run = let_look(client, "stripes")
        report, page = client.get(f"/v1/runs/{run}/calibration").json(), text_of(client, "/?q=stripes")

    assert (report["covariate"]["code"], report["covariate"]["narrowed"]) == ("own_encoder", 0)
    assert report["relevant"] == alone["relevant"] and "narrowed" not in page


def test_a_model_helps_nobody_before_thirty_verdicts(photos: Path, ada: TestClient) -> None:
    items = [item["id"] for item in search(ada, "a grey disc")["items"]]
    answers_of(photos, "openai:tiny", "a grey disc", items, relevant=20)
    place = f"/v1/runs/{search(ada, 'a grey disc')['run']}/calibration"
    for one in ada.get(place).json()["judge_next"]:
        say(ada, "a grey disc", one["item"], one["rank"], relevant=20)

    report = ada.get(place).json()

    assert (report["verdicts"], report["covariate"]["code"]) == (16, "few_verdicts")
