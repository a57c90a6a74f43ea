"""The pages for queues: what is decided lies in the file of the terminal, whoever decides, and audits stay blind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.curate.rmir.audit import LAST, VERDICTS, Sealed, write_panel
from eyespot.pipelines.human_review import Case, Queue, write_queue
from eyespot.types import UsageError
from eyespot.web import Access, ServerSettings, application
from tests.web.conftest import TOKENS, at_this_machine
from tests.worlds import annotation as world

CASES = 6


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.gallery(tmp_path_factory.mktemp("review"), 8, 4)


@pytest.fixture
def folder(gallery: Path, tmp_path: Path) -> Path:
    """A queue of six captions, each with a picture, one beside the queue."""
    pictures = sorted((gallery.parent / "source/pictures").iterdir())
    (tmp_path / "near.jpg").write_bytes(pictures[0].read_bytes())
    cases = [
        Case(
            f"c{at}", "Is this <b>true</b>?", ("near.jpg",) if at == 1 else (str(pictures[at]),), {"text": f"cup {at}"}
        )
        for at in range(CASES)
    ]
    write_queue(tmp_path / "queue.jsonl", cases)
    return tmp_path


@pytest.fixture
def queue(folder: Path) -> Queue:
    return Queue(folder / "queue.jsonl")


@pytest.fixture
def settings(gallery: Path, folder: Path) -> ServerSettings:
    access = tuple(Access.by(token, role.name.lower(), role) for role, token in TOKENS.items())
    paths = (folder / "queue.jsonl", folder / "audit" / VERDICTS, folder / "audit" / LAST)
    made = tuple(path for path in paths if path.exists())
    return ServerSettings(gallery, access=access, hosts=("photos.example",), cache=folder / "cache", reviews=made)


@pytest.fixture
def ada(settings: ServerSettings) -> Iterator[TestClient]:
    with at_this_machine(settings) as client:
        client.post("/name", data={"name": "Ada"})
        yield client


def someone(settings: ServerSettings, who: str) -> TestClient:
    client = at_this_machine(settings)
    client.post("/name", data={"name": who})
    return client


def address(client: TestClient, at: int = 0) -> str:
    """Where the queue of this place among those of the server is."""
    text = client.get("/review").text
    return [part.split('"')[0] for part in text.split('<h2 dir="auto"><a href="')[1:]][at]


def first(client: TestClient, at: int = 0, **wish: int) -> Any:
    return client.get(f"{address(client, at)}/case", params=wish).json()["case"]


def decide(client: TestClient, case: Any, choice: str, at: int = 0, **more: Any) -> Any:
    seen = case["stands"]["seen"] if case["stands"] else None
    body = {"case": case["case"], "choice": choice, "seen": seen, **more}
    return client.post(f"{address(client, at)}/decisions", json=body)


# -- deciding ---------------------------------------------------------------------------------------------------------


def test_a_decision_is_on_the_disk_when_the_answer_comes_and_the_next_case_with_it(
    ada: TestClient, queue: Queue
) -> None:
    answer = decide(ada, first(ada), "drop", note="blurred").json()
    (one,) = queue.decisions()
    assert (one.id, one.choice, one.who, one.note) == ("c0", "drop", "Ada", "blurred")
    assert (answer["next"]["id"], answer["open"]) == ("c1", CASES - 1)


def test_mending_that_mends_nothing_is_refused(ada: TestClient, queue: Queue) -> None:
    assert decide(ada, first(ada), "mend").status_code == 422 and queue.decisions() == []


def test_what_is_taken_back_is_open_again(ada: TestClient, queue: Queue) -> None:
    case = first(ada)
    seen = decide(ada, case, "drop").json()["seen"]
    decide(ada, {**case, "stands": {"seen": seen}}, "withdraw")
    assert len(queue.open()) == CASES and first(ada, place=1)["stands"] is None


def test_who_was_overtaken_is_told_and_overrules_nobody_unseen(
    ada: TestClient, settings: ServerSettings, queue: Queue
) -> None:
    case = first(ada)
    decide(someone(settings, "Bob"), first(ada, place=1), "drop")
    answer = decide(ada, case, "accept")
    assert answer.status_code == 409 and "Bob chose drop" in answer.json()["detail"]
    assert queue.standing()["c0"].who == "Bob"


def test_two_at_once_lose_and_double_nothing_even_at_two_servers(settings: ServerSettings, queue: Queue) -> None:
    def all_of_it(who: str) -> int:
        client, done = someone(settings, who), 0
        case = first(client)
        while case:
            answer = decide(client, case, "accept")
            done += answer.status_code == 200
            case = answer.json()["next"] if answer.status_code == 200 else first(client)
        return done

    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(all_of_it, ("Ada", "Bob")))
    assert (done, len(queue.decisions()), queue.open()) == (CASES, CASES, [])


def test_a_case_that_somebody_looks_at_is_handed_to_others_last(ada: TestClient) -> None:
    shelf = ada.app.state.shelf  # type: ignore[attr-defined]
    (shelved,) = shelf
    assert shelf.next_open(shelved, {}, 0, "Ada").id == "c0"
    assert shelf.next_open(shelved, {}, 0, "Bob").id == "c1"
    assert shelf.next_open(shelved, {}, 0, "Ada").id == "c0"


def test_a_queue_written_anew_is_read_anew(ada: TestClient, queue: Queue) -> None:
    old = first(ada)
    write_queue(queue.path, [Case("new", "Is it there?")])
    assert decide(ada, old, "accept").status_code == 409
    assert first(ada)["id"] == "new"


# -- what comes in and goes out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [1, 2])
def test_pictures_are_shown_from_their_place_or_beside_the_queue(ada: TestClient, place: int) -> None:
    answer = ada.get(first(ada, place=place)["pictures"][0])
    assert (answer.status_code, answer.content[:2]) == (200, b"\xff\xd8")


def test_no_request_names_a_file(ada: TestClient, folder: Path) -> None:
    case = first(ada)["case"]
    tried = [f"{address(ada)}/pictures/{case}/{at}" for at in ("1", "-1", "..%2Fnear.jpg")]
    tried += [f"/review/{folder / 'queue.jsonl'}", "/review/0123456789ab"]
    assert {ada.get(one).status_code for one in tried} <= {404, 422}


def test_a_picture_that_is_gone_is_told_without_its_path(ada: TestClient, queue: Queue) -> None:
    write_queue(queue.path, [Case("gone", "Is it?", ("/no/such/photo.jpg",))])
    answer = ada.get(first(ada)["pictures"][0])
    assert answer.status_code == 404 and "no/such" not in answer.text


def test_who_said_no_name_decides_nothing(settings: ServerSettings) -> None:
    with at_this_machine(settings) as client:
        (shelved,) = client.app.state.shelf  # type: ignore[attr-defined]
        answer = client.get(f"/review/{shelved.key}/case")
    assert answer.status_code == 422 and "say your name" in answer.json()["detail"]


def test_halves_of_characters_in_a_case_cost_nothing(ada: TestClient, queue: Queue) -> None:
    queue.path.write_text(
        json.dumps({"id": "half \ud800", "why": "\udfff?", "pictures": [], "texts": {"text": "\ud800"}})
    )
    assert first(ada)["id"].startswith("half")


def test_what_is_no_queue_is_told_at_the_start(gallery: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        application(ServerSettings(gallery, cache=tmp_path, reviews=(tmp_path / "none.jsonl",)))


def test_a_queue_that_goes_away_is_told_without_its_path(ada: TestClient, queue: Queue) -> None:
    where = address(ada)
    queue.path.unlink()
    answer = ada.get(f"{where}/case")
    assert answer.status_code == 503 and str(queue.path.parent) not in answer.text


# -- blind audits -----------------------------------------------------------------------------------------------------


@pytest.fixture
def audit(folder: Path) -> Path:
    """Two queues of four; the panel says yes to every other one, and knows a word that must not be seen."""
    where = folder / "audit"
    sealed = [
        Sealed(
            f"t{at}",
            "causal",
            f"Why {at}?",
            at % 2 == 0,
            0.9 - 0.2 * at,
            [{"judge": "j", "verdict": "true", "reasoning": "ZEBRA"}],
        )
        for at in range(4)
    ]
    where.mkdir()
    write_panel(where, sealed)
    for name in (VERDICTS, LAST):
        write_queue(where / name, [Case(f"t{at}", f"Why {at}? accept: yes, drop: no") for at in range(4)])
    return where


@pytest.fixture
def blind(audit: Path, settings: ServerSettings) -> Iterator[TestClient]:
    with at_this_machine(settings) as client:
        client.post("/name", data={"name": "Ada"})
        yield client


def answer_all(client: TestClient, answers: str, at: int) -> None:
    for place, one in enumerate(answers, 1):
        decide(client, first(client, at, place=place), "accept" if one == "y" else "drop", at)


def test_an_audit_tells_nothing_of_the_panel_before_all_is_answered(blind: TestClient) -> None:
    answer_all(blind, "yyy", 1)
    where = address(blind, 1)
    seen = [blind.get(one).text for one in ("/review", where, f"{where}/case", f"{where}/case?place=1")]
    refused = blind.get(f"{where}/agreement")
    assert refused.status_code == 409
    assert not any(word in text for text in [*seen, refused.text] for word in ("ZEBRA", "agree on", 'verdict":'))


def test_another_ones_answer_is_not_told_to_whoever_audits(blind: TestClient, settings: ServerSettings) -> None:
    decide(someone(settings, "Bob"), first(blind, 1), "drop", 1)
    assert first(blind, 1, place=1)["stands"]["choice"] is None


@pytest.mark.long
def test_in_the_end_the_agreement_is_what_the_command_tells(blind: TestClient) -> None:
    answer_all(blind, "yyyn", 1)
    text = blind.get(f"{address(blind, 1)}/agreement").text
    assert "75 %" in text and "30 to 95 %" in text  # 3 of 4, by Wilson
    assert text.count("ZEBRA") == 1  # of the one on which they differ


def test_the_last_hits_are_compared_by_what_the_person_said(blind: TestClient) -> None:
    answer_all(blind, "nnyy", 2)
    text = blind.get(f"{address(blind, 2)}/agreement").text
    assert "<strong>0.40</strong> lower" in text  # means of 0.9 and 0.7, and of 0.5 and 0.3


def test_an_audit_is_answered_with_yes_or_no(blind: TestClient) -> None:
    assert decide(blind, first(blind, 1), "mend", 1, texts={"text": "x"}).status_code == 422
