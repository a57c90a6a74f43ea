"""The pages for queues: what is decided lies in the file of the terminal, whoever decides, and audits stay blind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from eyespot.curate.rmir.audit import LAST, VERDICTS, Sealed, write_panel
from eyespot.pipelines.human_review import Case, Queue, write_queue
from eyespot.types import UsageError
from eyespot.web import Judging, ServerSettings, application
from tests.web.conftest import ACCESS, at_this_machine, copy_gallery
from tests.wording import raises
from tests.worlds import annotation as world

CASES = 6


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.gallery(tmp_path_factory.mktemp("review"), 8, 4)


@pytest.fixture
def folder(gallery: Path, tmp_path: Path) -> Path:
    """A queue of six captions, each with a picture, one beside the queue."""
    pictures = [str(place) for place in sorted((gallery.parent / "source/pictures").iterdir())]
    pictures[1] = Path(shutil.copy(pictures[0], tmp_path / "near.jpg")).name
    why = "Is this <b>true</b>?"
    cases = [Case(f"c{at}", why, (pictures[at],), {"text": f"cup {at}"}) for at in range(CASES)]
    write_queue(tmp_path / "queue.jsonl", cases)
    return tmp_path


@pytest.fixture
def queue(folder: Path) -> Queue:
    return Queue(folder / "queue.jsonl")


@pytest.fixture
def settings(gallery: Path, folder: Path) -> ServerSettings:
    paths = (folder / "queue.jsonl", folder / "audit" / VERDICTS, folder / "audit" / LAST)
    made = tuple(path for path in paths if path.exists())
    return ServerSettings(gallery, access=ACCESS, hosts=("photos.example",), cache=folder / "cache", reviews=made)


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


def test_a_decision_is_on_the_disk_when_the_next_case_comes(ada: TestClient, queue: Queue) -> None:
    answer = decide(ada, first(ada), "drop", note="blurred").json()
    (one,) = queue.decisions()
    assert (one.id, one.choice, one.who, one.note) == ("c0", "drop", "Ada", "blurred")
    assert (answer["next"]["id"], answer["open"]) == ("c1", CASES - 1)


def test_what_is_taken_back_is_open_again(ada: TestClient, queue: Queue) -> None:
    """And the same click again is kept once; mending that mends nothing not at all."""
    case = first(ada)
    assert decide(ada, case, "mend").status_code == 422
    seen = [decide(ada, case, "drop").json()["seen"] for _ in range(2)][1]
    decide(ada, {**case, "stands": {"seen": seen}}, "withdraw")
    assert [one.choice for one in queue.decisions()] == ["drop", "withdraw"]
    assert len(queue.open()) == CASES and first(ada, place=1)["stands"] is None


def test_who_was_overtaken_overrules_what_they_saw(ada: TestClient, settings: ServerSettings, queue: Queue) -> None:
    case = first(ada)
    decide(someone(settings, "Bob"), first(ada, place=1), "drop")
    answer = decide(ada, case, "accept")
    assert answer.status_code == 409 and "Bob chose drop" in answer.json()["detail"]
    assert queue.standing()["c0"].who == "Bob"
    decide(ada, first(ada, place=1), "mend", texts={"text": "a red cup"})
    assert [(one.who, one.texts) for one in queue.decisions()] == [("Bob", {}), ("Ada", {"text": "a red cup"})]


def test_two_at_once_lose_and_double_nothing_even_at_two_servers(settings: ServerSettings, queue: Queue) -> None:
    # Two applications made at once would share the filter of warnings, which no thread has for itself
    servers = {who: someone(settings, who) for who in ("Ada", "Bob")}

    def all_of_it(who: str) -> int:
        client, done = servers[who], 0
        case = first(client)
        while case:
            answer = decide(client, case, "accept")
            done += answer.status_code == 200
            case = answer.json()["next"] if answer.status_code == 200 else first(client)
        return done

    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(all_of_it, servers))
    assert (done, len(queue.decisions()), queue.open()) == (CASES, CASES, [])


def test_a_case_that_somebody_looks_at_is_handed_to_others_last(ada: TestClient) -> None:
    shelf = ada.app.state.shelf  # type: ignore[attr-defined]
    (served,) = shelf
    assert shelf.next_open(served, {}, 0, "Ada").id == "c0"
    assert shelf.next_open(served, {}, 0, "Bob").id == "c1"
    assert shelf.next_open(served, {}, 0, "Ada").id == "c0"


def test_a_queue_written_anew_is_read_anew(ada: TestClient, queue: Queue) -> None:
    old = first(ada)
    write_queue(queue.path, [Case("new", "Is it there?")])
    assert decide(ada, old, "accept").status_code == 409
    assert first(ada)["id"] == "new"


# -- what comes in and goes out ---------------------------------------------------------------------------------------


def test_pictures_are_shown_and_no_request_names_another_file(ada: TestClient, folder: Path) -> None:
    """From their place, or beside the queue."""
    shown = [ada.get(first(ada, place=place)["pictures"][0]) for place in (1, 2)]
    assert [(answer.status_code, answer.content[:2]) for answer in shown] == [(200, b"\xff\xd8")] * 2
    case = first(ada)["case"]
    tried = [f"{address(ada)}/pictures/{case}/{at}" for at in ("1", "-1", "..%2Fnear.jpg")]
    tried += [f"/review/{folder / 'queue.jsonl'}", "/review/0123456789ab"]
    assert {ada.get(one).status_code for one in tried} <= {404, 422}


def test_who_said_no_name_decides_nothing(settings: ServerSettings) -> None:
    with at_this_machine(settings) as client:
        (served,) = client.app.state.shelf  # type: ignore[attr-defined]
        answer = client.get(f"/review/{served.key}/case")
    assert answer.status_code == 422 and "say your name" in answer.json()["detail"]


def test_half_characters_and_what_is_gone_are_told_without_a_path(ada: TestClient, queue: Queue) -> None:
    where = address(ada)
    half = {"id": "half \ud800", "why": "\udfff?", "pictures": ["/no/such/photo.jpg"], "texts": {"text": "\ud800"}}
    queue.path.write_text(json.dumps(half))
    case = first(ada)
    picture = ada.get(case["pictures"][0])
    queue.path.unlink()
    answer = ada.get(f"{where}/case")

    assert case["id"].startswith("half")
    assert picture.status_code == 404 and "no/such" not in picture.text
    assert answer.status_code == 503 and str(queue.path.parent) not in answer.text


def test_what_is_no_queue_is_told_at_the_start(gallery: Path, tmp_path: Path) -> None:
    with raises(UsageError):
        application(ServerSettings(gallery, cache=tmp_path, reviews=(tmp_path / "none.jsonl",)))


@pytest.fixture
def audit(folder: Path) -> Path:
    """Two queues of four; the panel says yes to every other one, and knows a word that must not be seen."""
    where = folder / "audit"
    vote = {"judge": "j", "verdict": "true", "reasoning": "ZEBRA"}
    sealed = [Sealed(f"t{at}", "causal", f"Why {at}?", at % 2 == 0, 0.9 - 0.2 * at, [vote]) for at in range(4)]
    where.mkdir()
    write_panel(where, sealed)
    for name in (VERDICTS, LAST):
        write_queue(where / name, [Case(f"t{at}", f"Why {at}? accept: yes, drop: no") for at in range(4)])
    return where


@pytest.fixture
def blind(audit: Path, settings: ServerSettings) -> TestClient:
    return someone(settings, "Ada")


def answer_all(client: TestClient, answers: str, at: int) -> None:
    for place, one in enumerate(answers, 1):
        decide(client, first(client, at, place=place), "accept" if one == "y" else "drop", at)


def test_an_audit_tells_nothing_of_others_before_its_end(blind: TestClient, settings: ServerSettings) -> None:
    decide(someone(settings, "Bob"), first(blind, 1), "drop", 1)
    assert first(blind, 1, place=1)["stands"]["choice"] is None
    assert decide(blind, first(blind, 1), "mend", 1, texts={"text": "x"}).status_code == 422  # yes or no
    answer_all(blind, "yyy", 1)
    where = address(blind, 1)
    seen = [blind.get(one).text for one in ("/review", where, f"{where}/case", f"{where}/case?place=1")]
    refused = blind.get(f"{where}/agreement")

    assert refused.status_code == 409
    assert not any(word in text for text in [*seen, refused.text] for word in ("ZEBRA", "agree on", 'verdict":'))


@pytest.mark.parametrize(
    ("answers", "at", "shown", "zebras"),
    [
        ("yyyn", 1, ["34 to 100 %", "50 %"], 1),  # 2 of 2 accepted, 1 of 2 refused, by Wilson; they differ on one
        ("nnyy", 2, ["<strong>0.40</strong> lower"], 2),  # means of 0.9 and 0.7, and of 0.5 and 0.3
    ],
)
def test_it_tells_the_agreement(blind: TestClient, answers: str, at: int, shown: list[str], zebras: int) -> None:
    answer_all(blind, answers, at)
    text = blind.get(f"{address(blind, at)}/agreement").text
    assert [one for one in shown if one not in text] == [] and text.count("ZEBRA") == zebras


# -- a gallery whose ledger cannot be written is searched all the same --------------------------------------------


PHOTOS = 6
PLACES = (
    "/?q=a+fish",
    "/hits?q=a+fish&cursor={run}.1",
    "/spread?q=a+fish",
    "/count?q=a+fish",
    "/?q=a+fish&rerank=quick",
    "/annotate",
    "/annotate/label?query=a+heron",
    "/annotate/set.zip",
)
CALLS = ("/v1/runs/{run}", "/v1/runs/{run}/calibration", "/v1/judgements", "/v1/runs/{run}/rerank?judge=quick")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery with one verdict, on the first hit for a fish, and a mark; its ledger cannot be written any more."""
    gallery = copy_gallery(tmp_path_factory.mktemp("unwritable"), PHOTOS)
    with at_this_machine(ServerSettings(gallery)) as client:
        best = client.get("/v1/search", params={"q": "a fish"}).json()["items"][0]["id"]
        response = client.post("/v1/judgements", json={"q": "a fish", "item": best, "verdict": "yes", "rank": 1})
        assert response.status_code == 201
        client.post("/name", data={"name": "Ada"})
        client.post("/annotate/queries", data={"text": "a heron"})
        first = client.get("/annotate/photos", params={"query": "a heron"}).json()["photos"][0]["image"]
        assert client.post("/annotate/marks?query=a+heron", json={"marks": {first: "y"}}).json()["changed"] == 1
    # As on a disk that is mounted for reading alone: SQLite gets no log to write to beside the ledger
    log = gallery / "ledger.sqlite-wal"
    log.unlink(missing_ok=True)
    log.mkdir()
    return gallery


@pytest.fixture(scope="module")
def client(judged: Path) -> Iterator[TestClient]:
    with at_this_machine(ServerSettings(judged, judging=Judging((("quick", "encoder:starter"),)))) as opened:
        yield opened


@pytest.mark.parametrize("place", [*PLACES, *CALLS])
def test_who_only_looks_is_served(client: TestClient, place: str) -> None:
    run = client.get("/v1/search", params={"q": "a fish"}).json()["run"]
    assert client.get(place.format(run=run), headers={"Accept": "text/html"}).status_code == 200


def test_verdicts_and_marks_that_it_has_are_seen_and_new_ones_refused(client: TestClient, judged: Path) -> None:
    run = client.get("/v1/search", params={"q": "a fish"}).json()["run"]
    items = client.get(f"/v1/runs/{run}").json()["items"]
    other = client.get("/v1/search", params={"q": "a hat"}).json()["run"]
    client.post("/name", data={"name": "Ada"})  # the verdicts are those of whoever has no name
    listed = client.get("/annotate/photos", params={"query": "a heron"}).json()["photos"]
    refused = [
        client.post("/v1/judgements", json={"q": "a hat", "item": items[1]["id"], "verdict": "no"}),
        client.post(f"/v1/runs/{other}/rerank", json={"judge": "quick"}),
        client.post("/annotate/marks?query=a+heron", json={"marks": {listed[1]["image"]: "n"}}),
    ]
    again = client.get("/annotate/photos", params={"query": "a heron"}).json()["photos"]

    assert [item["verdict"] for item in items] == ["yes", *[None] * (PHOTOS - 1)]
    assert [one["mark"] for one in again] == ["y", *[None] * (PHOTOS - 1)]
    for answer in refused:
        assert (answer.status_code, str(judged / "ledger.sqlite") in answer.json()["detail"]) == (500, True)


def test_what_is_no_ledger_is_told(tmp_path: Path) -> None:
    gallery = copy_gallery(tmp_path, PHOTOS)
    (gallery / "ledger.sqlite").write_bytes(b"no ledger at all" * 100)
    with at_this_machine(ServerSettings(gallery)) as client:
        answer = client.get("/v1/judgements")
    assert (answer.status_code, str(gallery / "ledger.sqlite") in answer.json()["detail"]) == (500, True)
