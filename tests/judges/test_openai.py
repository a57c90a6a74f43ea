"""The judge behind OpenAI's protocol, against servers that answer well, badly, late or not at all."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot import rooms
from eyespot.judges import PLAIN, JudgePrompt, ask
from eyespot.ledger.judgements import Judgements
from eyespot.llms.budget import Budget, BudgetSpent
from eyespot.llms.errors import Unknown
from eyespot.llms.prices import read_prices
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult
from eyespot.types import EyespotError, Query, Term, UsageError
from tests.wording import raises
from tests.worlds.judging import CHAT, draw_colours, judge_of, only_answer, pairs_of, pictures_sent
from tests.worlds.servers import HANG, YES, Double, Response, Seen, chat, error, message


@pytest.mark.parametrize(
    ("top", "score"),
    [
        ({"Yes": 0.75, "No": 0.25}, 0.75),
        ({"Yes": 0.25, " Yes": 0.125, "yes": 0.0625, "YES": 0.0625, "No": 0.5}, 0.5),
        ({"▁yes": 0.3, "Ġno": 0.6, "Maybe": 0.1}, 1 / 3),
        ({"Maybe": 0.5, "No": 0.125}, 0.0),
        ({"Maybe": 0.5, "Yes": 0.125}, 1.0),
        ({"Yesterday": 0.5, "Nothing": 0.2, "Yes.": 0.15, "**No": 0.05}, 0.75),
        ({"I": 0.6, "Yes": 0.3, "No": 0.1}, 0.75),  # before a likely answer "I" begins no refusal
    ],
)
def test_the_score_is_the_share_of_yes(top: dict[str, float], score: float, pictures: list[Path]) -> None:
    with Double(then=chat(next(iter(top)), top)) as server:
        answer = only_answer(judge_of(server), pictures[:1])

    assert answer.verdict is not None and answer.verdict.probability == pytest.approx(score, abs=1e-12)
    assert not answer.refused


def test_a_wording_brings_its_own_two_answers(pictures: list[Path]) -> None:
    german = JudgePrompt("german", "", "Zeigt das Bild {query}? Ja oder Nein.", "Ja", "Nein")
    with Double(then=chat("x", {"Ja": 0.2, "Nein": 0.8, "Yes": 0.1})) as server:
        answer = only_answer(judge_of(server, wording=german), pictures[:1])

    assert answer.verdict is not None and answer.verdict.probability == pytest.approx(0.2)


def test_a_key_is_sent_and_a_local_server_needs_none(pictures: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Double() as server:
        answers = [only_answer(judge_of(server, key=key), pictures[:1]) for key in ("secret", None)]

    assert server.seen[0].headers["authorization"] == "Bearer secret"
    assert "secret" not in str(server.seen[1].headers) and all(answer.verdict for answer in answers)


# -- what servers do not know ------------------------------------------------------------------------------------


def test_fewer_alternatives_are_asked_for_where_twenty_are_too_many(pictures: list[Path]) -> None:
    def five_at_most(seen: Seen) -> Response:
        return error(400, "top_logprobs must be at most 5") if seen.body["top_logprobs"] > 5 else YES

    with Double(then=five_at_most) as server:
        answers = list(judge_of(server).judge(pairs_of(pictures)))

    assert [seen.body["top_logprobs"] for seen in server.seen] == [20, *[5] * 8]  # learned once
    assert sorted(answer.spent.calls for answer in answers) == [*[1] * 7, 2]


@pytest.mark.parametrize(("text", "score"), [("Yes", 1.0), (" no.", 0.0), ("**YES**, it does", 1.0)])
@pytest.mark.parametrize("refused", [True, False])
def test_without_probabilities_the_words_count(text: str, score: float, refused: bool, pictures: list[Path]) -> None:
    def wordy(seen: Seen) -> Response:
        return error(400, "logprobs are not supported") if refused and "logprobs" in seen.body else chat(text)

    with Double(then=wordy) as server:
        model = judge_of(server)
        answers = list(model.judge(pairs_of(pictures[:3])))

    assert [answer.verdict.probability for answer in answers if answer.verdict] == [score] * 3
    assert {answer.prompt for answer in answers} == {judge_of(server, answer="words").prompt} != {model.prompt}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (None, "openai:tiny"),
        ("https://api.openai.com/v1", "openai:tiny"),
        ("http://127.0.0.1:8000", "openai:tiny@localhost"),
        ("http://[::1]:9/v1", "openai:tiny@localhost"),
        ("https://models.example.org/v1", "openai:tiny@models.example.org"),
    ],
)
def test_a_judge_is_named_by_its_host(url: str | None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    assert rooms.load("judges", "openai:tiny", url=url, key="k").name == name


@pytest.mark.parametrize(
    "declines",
    [
        chat("", refusal="I cannot look at people"),
        chat("", finish="content_filter"),
        error(400, "This violates our content_policy"),
        error(403, "your input was flagged"),
        chat("I'm sorry, but I can't help with that"),
        chat("I'm sorry, but I can't help with that", {"I": 0.99, "Yes": 0.001}),
        chat("I", {"I": 0.97, "Sorry": 0.02, "The": 0.01}),
        chat("Sorry", {"Sorry": 0.9, "Yes": 0.05}),
    ],
)
def test_a_refusal_is_a_verdict_of_no_and_counted_as_refused(declines: Response, pictures: list[Path]) -> None:
    with Double(then=declines) as server:
        answer = only_answer(judge_of(server), pictures[:1])

    assert answer.refused and answer.verdict is not None and answer.verdict.probability == 0
    assert len(server.asked(CHAT)) == 1


def test_neither_yes_nor_no_among_the_first_tokens_is_no_score(ledger: Judgements, pictures: list[Path]) -> None:
    """The text decides, with room for more than one token; where it says neither the picture fails."""
    top = {"The": 0.8, "It": 0.2}
    with Double([chat("The", top)], then=chat("Yes, it does", top)) as server:
        (one,) = ask(judge_of(server), pairs_of(pictures[:1]), ledger)
        assert [seen.body["max_tokens"] for seen in server.seen] == [1, 16]
    with Double(then=chat("The", top)) as server:
        (other,) = ask(judge_of(server), pairs_of(pictures[1:2]), ledger)
        words = judge_of(server, answer="words")

    assert one.verdict is not None and one.verdict.probability == 1 and one.prompt == words.prompt
    assert other.verdict is None and "'The'" in other.failure


@pytest.mark.parametrize(("then", "probability"), [("Perhaps", None), ("Yes", 1.0)])
def test_neither_yes_nor_no_is_asked_twice_more(then: str, probability: float | None, pictures: list[Path]) -> None:
    with Double([chat("Perhaps"), chat("")], then=chat(then)) as server:
        answer = only_answer(judge_of(server, answer="words"), pictures[:1])

    assert (answer.verdict and answer.verdict.probability) == probability
    assert "Perhaps" in answer.failure or answer.verdict
    assert answer.spent.calls == len(server.seen) == 3


TROUBLES = [
    error(500),
    error(503),
    error(429, Retry_After="0"),
    Response(data=b'{"choices": [{"mess'),
    Response(data=b"[]"),
    Response(data={"choices": []}),
    Response(data={"error": {"message": "overloaded"}}),
    YES._replace(cut=True),
    HANG,
]
ANTHROPIC_TROUBLES = [error(529), error(429, retry_after="0"), message("7")._replace(cut=True), HANG]


@pytest.mark.parametrize(
    ("vendor", "trouble"), [*(("openai", one) for one in TROUBLES), *(("anthropic", one) for one in ANTHROPIC_TROUBLES)]
)
def test_a_passing_trouble_costs_no_answer(vendor: str, trouble: Response, pictures: list[Path]) -> None:
    troubles, then = [trouble] * (1 if trouble.hang else 2), YES if vendor == "openai" else message("7")
    with Double(list(troubles), then=then) as server:
        answer = only_answer(judge_of(server, vendor, timeout=1.0 if trouble.hang else 60.0), pictures[:1])

    assert answer.verdict is not None and answer.verdict.probability == (0.75 if vendor == "openai" else 0.7)
    assert answer.spent.calls == len(server.seen) > len(troubles)
    assert trouble.hang or len(server.seen) == len(troubles) + 1  # an answer later than a second is asked for again


@pytest.mark.parametrize(
    "response",
    [
        error(403, "Incorrect API key provided"),
        error(404, "No endpoints found that can handle the requested parameters."),
        error(307, "", Location="http://127.0.0.1:9/v1"),
        error(404, "no such model"),
        error(429, Retry_After="86400"),
    ],
    ids=["key", "provider", "moved", "model", "wait"],
)
def test_what_would_fail_with_every_pair_ends_the_run_in_one_sentence(response: Response, pictures: list[Path]) -> None:
    kind = Unknown if response == error(404, "no such model") else EyespotError
    with Double(then=response) as server, raises(kind):
        list(judge_of(server).judge(pairs_of(pictures)))

    assert len(server.seen) == 1


def test_a_server_that_is_not_there_is_told_with_its_address(pictures: list[Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers, and nobody else can take it
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        nobody = rooms.load("judges", "openai:tiny", url=url, attempts=2, first_rest=0.001)
        with pytest.raises(EyespotError, match=f"^{url}/v1"):
            list(nobody.judge(pairs_of(pictures)))


@pytest.mark.parametrize("then", [YES, error(500), chat("Perhaps"), chat("x", {"x": 0.5})])
@pytest.mark.parametrize("calls", [1, 5])
def test_no_more_requests_leave_than_the_budget_has(then: Response, calls: int, pictures: list[Path]) -> None:
    budget, answers = Budget(calls=calls), []
    # As many attempts as the largest budget: where one worker alone sends, the budget still ends before the server
    with Double(then=then) as server, pytest.raises(BudgetSpent):
        answers.extend(judge_of(server, budget=budget, attempts=5).judge(pairs_of(pictures)))

    assert len(server.seen) == budget.spent.calls == calls


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize(("way", "then"), [("words", chat("Perhaps")), ("probabilities", chat("x"))])
def test_cut_pairs_count(way: str, then: Response, workers: int, ledger: Judgements, pictures: list[Path]) -> None:
    budget = Budget(calls=7)
    with Double(then=then) as server:
        asking = ask(judge_of(server, answer=way, workers=workers, budget=budget), pairs_of(pictures), ledger)
        with pytest.raises(BudgetSpent):
            list(asking)
        recorded = [row.judgement.spent for row in ledger.rows()]

    counted = asking.stats.spent
    assert len(server.seen) == counted.calls == sum(spent.calls for spent in recorded) == budget.spent.calls == 7
    assert counted.tokens_in == sum(spent.tokens_in for spent in recorded) == 100 * len(server.asked(CHAT))


def test_what_a_pair_cost_before_a_fatal_error_is_recorded(ledger: Judgements, pictures: list[Path]) -> None:
    with Double([chat("Perhaps"), error(401, "key revoked")]) as server, pytest.raises(EyespotError):
        list(ask(judge_of(server, answer="words"), pairs_of(pictures[:1]), ledger))
    (row,) = ledger.rows()

    assert row.judgement.verdict is None and row.judgement.failure
    assert row.judgement.spent[:2] == (2, 100) and len(server.seen) == 2


def test_what_a_pair_cost_before_an_interrupt_is_recorded(ledger: Judgements, pictures: list[Path]) -> None:
    """The third pair has an unusable answer and rests for the next one when the caller has enough."""
    resting = threading.Event()

    def then(seen: Seen) -> Response:
        third = pictures_sent(seen)[0].getpixel((5, 5))[0] > 30
        if not third:
            return YES
        if sum(one.pair == seen.pair for one in server.seen) == 1:
            return chat("Perhaps")
        resting.set()
        return error(429, Retry_After="100")

    with Double(then=then) as server:
        asking = ask(judge_of(server, answer="words", workers=2), pairs_of(pictures[:3]), ledger)
        next(asking), next(asking)
        assert resting.wait(60)
        asking.close()
        rows = [row.judgement for row in ledger.rows()]

    assert [(row.verdict is None, row.spent.calls) for row in rows] == [(False, 1), (False, 1), (True, 2)]


@pytest.mark.parametrize(
    ("vendor", "then", "spent"), [("openai", YES, (1, 100, 1, 0.105)), ("anthropic", message("7"), (1, 100, 2, 0.11))]
)
def test_money_and_tokens_are_counted_by_the_price(
    vendor: str, then: Response, spent: tuple[float, ...], tmp_path: Path, pictures: list[Path]
) -> None:
    (tmp_path / "prices.toml").write_text("[tiny]\ninput = 1000\noutput = 5000\n")
    budget = Budget()
    with Double(then=then) as server:
        model = judge_of(server, vendor, key="k", budget=budget, prices=read_prices(tmp_path / "prices.toml"))
        answer = only_answer(model, pictures[:1])

    assert answer.spent == budget.spent == pytest.approx(spent)
    assert not any("price" in note for note in model.notes)


@pytest.mark.parametrize(("money", "sent"), [(0.003, 1), (0.0001, 0)])
def test_money_binds_without_counts(tmp_path: Path, pictures: list[Path], money: float, sent: int) -> None:
    """And from the first request on, which is weighed by an estimate."""
    (tmp_path / "prices.toml").write_text("[tiny]\ninput = 2.5\noutput = 10\ncached = 1\n")
    silent = Response(data={**YES.data, "usage": None})
    budget = Budget(money=money)
    with Double(then=silent) as server:
        model = judge_of(server, budget=budget, prices=read_prices(tmp_path / "prices.toml"), workers=1)
        with pytest.raises(BudgetSpent):
            list(model.judge(pairs_of(pictures)))

    assert len(server.seen) == sent and 0.002 * sent <= budget.spent.money <= 0.003 * sent
    assert len([note for note in model.notes if "does not count all tokens" in note]) == sent


def test_a_missing_price_is_stated(ledger: Judgements, pictures: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyespot.llms.settings.HERE", ())
    with Double() as server:
        paid = judge_of(server)
        asking = ask(paid, pairs_of(pictures[:2]), ledger)
        list(asking)

    assert str(asking.stats).endswith("2 calls, 202 tokens, no price is known")
    result = JudgeResult({}, asking.stats)
    assert JudgeRerank(paid, ledger, 2).header(result)["verdicts"]["money"] is None  # not 0: it did cost something
    assert len([note for note in paid.notes if note.startswith("no price is known for tiny")]) == 1


@pytest.mark.parametrize("refused", ["", "reasoning_effort", "chat_template_kwargs"])
def test_a_model_that_is_seen_to_think_is_asked_not_to(refused: str, pictures: list[Path]) -> None:
    """Once, in the fields that its server takes; the token limit stays as it was."""

    def answer(seen: Seen) -> Response:
        if refused in seen.body:
            return error(400, f"{refused}: Input should be 'low', 'medium' or 'high'")
        quiet = {"reasoning_effort", "chat_template_kwargs"} & seen.body.keys()
        return YES if quiet else chat("", {"The": 0.9}, "length", reasoning="The")

    with Double(then=answer) as server:
        answers = list(judge_of(server, workers=1).judge(pairs_of(pictures[:3])))

    assert [one.verdict.probability for one in answers if one.verdict] == [pytest.approx(0.75)] * 3
    assert len(server.asked(CHAT)) == 4 + bool(refused) and {one.body["max_tokens"] for one in server.asked(CHAT)} == {
        1
    }


def test_a_picture_leaves_upright_small_and_without_what_its_file_tells(tmp_path: Path) -> None:
    photo = Image.new("RGB", (900, 600))
    exif = photo.getexif()
    exif[0x0112], exif[0x010F] = 6, "a camera with an owner"
    photo.save(tmp_path / "photo.jpg", exif=exif, comment=b"secret")
    with Double() as server:
        only_answer(judge_of(server, side=300), [tmp_path / "photo.jpg"])

    (picture,) = pictures_sent(server.seen[0])
    assert picture.size == (200, 300)
    assert not picture.getexif() and "comment" not in picture.info


def test_a_querys_own_picture_is_shown_before_the_one_to_judge(pictures: list[Path]) -> None:
    composed = Query("q", (Term(1.0, image=pictures[7]), Term(1.0, text="at night")))
    with Double() as server:
        list(judge_of(server).judge(pairs_of(pictures[:1], composed)))

    reds = [picture.getpixel((5, 5))[0] for picture in pictures_sent(server.seen[0])]
    assert reds[0] > 130 and reds[1] < 20


def test_a_picture_that_cannot_be_read_fails_alone_and_asks_nothing(tmp_path: Path) -> None:
    pictures = draw_colours(tmp_path / "photos", 4)
    pictures[1].write_bytes(pictures[1].read_bytes()[:60])
    pictures[2].unlink()
    with Double() as server:
        answers = {answer.pair.image: answer for answer in judge_of(server).judge(pairs_of(pictures))}

    assert "01.png" in answers["01"].failure and "02.png" in answers["02"].failure
    assert answers["00"].verdict and answers["03"].verdict and len(server.seen) == 2


def test_another_way_of_asking_is_another_judge() -> None:
    with Double() as server:
        ways: list[dict[str, Any]] = [{}, {"side": 300}, {"answer": "words"}, {"answer": "grades"}]
        prompts = [judge_of(server, **way).prompt for way in ways]

    assert prompts[0] == PLAIN.digest and len(set(prompts)) == len(ways)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("openai", {"key": "k"}),
        ("openai:tiny", {}),
        ("anthropic:tiny", {}),
        ("openai:tiny", {"key": "k", "colour": "red"}),
        ("openai:tiny", {"key": "k", "answer": "songs"}),
        ("openai:tiny", {"key": "k", "workers": 0}),
        ("openai:tiny", {"key": "k", "extra": {"seed": 1, "messages": 1}}),
        ("openai:tiny", {"key": "k", "extra": {"max_tokens": 1}}),
        ("encoder:siglip", {}),
    ],
    ids=range(9),
)
def test_what_makes_no_judge_is_refused(spec: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in ("OPENAI", "ANTHROPIC"):
        monkeypatch.delenv(f"{vendor}_API_KEY", raising=False)
        monkeypatch.delenv(f"{vendor}_BASE_URL", raising=False)

    with raises(UsageError):
        rooms.load("judges", spec, **options)
