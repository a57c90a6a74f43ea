"""Language models behind endpoints: waits, budgets, counts; and answers of a form, mended here or asked for again."""

from __future__ import annotations

import re
import threading
import time
from base64 import b64encode
from contextlib import suppress
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pydantic
import pytest
from hypothesis import given, strategies as st

from eyespot.llms import BadAnswer, Declined, RateLimiter, Underway, text_message
from eyespot.llms.budget import Budget, BudgetSpent, ItemMeter
from eyespot.llms.errors import Busy, of_status, seconds_to_wait
from eyespot.llms.protocols import cache_of, counted, image_message, usage_of
from eyespot.llms.transport import openai
from eyespot.types import UsageError
from tests.worlds.judging import judge_of
from tests.worlds.servers import Double, Response, Seen, chat, error


def test_the_wait_that_a_server_asks_for_is_kept_by_this_thread_and_by_all_others() -> None:
    own: list[float] = []
    clock = Clock()
    with Double([error(429, Retry_After="7")]) as server:
        endpoint = judge_of(server).language_model
        limiter = RateLimiter(clock=clock, sleep=clock.sleep)
        replace(endpoint, sleep=own.append, rate_limiter=limiter).chat([text_message("user", "?")])

    assert (own, clock.now) == ([7.0], 7.0)


def test_an_address_whose_port_is_not_a_number_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UsageError) as refused:
        openai("http://ada:planted@127.0.0.1:1x/v1", "key", 5.0)

    assert "127.0.0.1:1x" in str(refused.value) and "planted" not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ('[{"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "34s"}]}}]', 34),
        ('{"error": {"message": "Rate limit reached. Please try again in 6m0.5s. Visit us"}}', 360.5),
        ('{"error": {"message": "Please try again in 20ms."}}', 0.02),
        ('{"error": {"message": "slow down", "retry_after": 2.5}}', 2.5),
        ('{"error": {"message": "Try again in a while"}}', None),
    ],
)
def test_a_wait_that_stands_in_the_body_alone_is_kept(body: str, seconds: float | None) -> None:
    busy, named = of_status(429, body, {}), of_status(429, body, {"retry-after": "7"})

    assert isinstance(busy, Busy) and busy.wait == seconds
    assert isinstance(named, Busy) and named.wait == 7


def test_retry_after_is_read_in_all_its_forms_and_a_date_from_that_of_the_answer_on() -> None:
    forms = {"2.5": 2.5, "soon": None, "": None, "nan": None, formatdate(0, usegmt=True): 0}
    forms |= {"Wed, 21 Oct 2015 07:28:34 GMT": 34, "Wed Oct 21 07:28:34 2015": 34, "Wed, 21 Oct 2015 07:27:00 GMT": 0}

    found = {one: seconds_to_wait({"retry-after": one, "date": "Wed, 21 Oct 2015 07:28:00 GMT"}) for one in forms}

    assert found == forms and seconds_to_wait({"retry-after-ms": "250"}) == 0.25
    assert (seconds_to_wait({"retry-after": formatdate(4102444800, usegmt=True)}) or 0) > 1e6  # of the year 2100


@pytest.mark.parametrize(("limits", "most"), [({"money": 0.035}, 3), ({"tokens": 30}, 3), ({"money": 0.0}, 0)])
def test_spent_and_under_way_never_pass_a_limit_together(limits: dict[str, Any], most: int) -> None:
    """Eight at once, each for a cent and ten tokens."""
    budget, left = Budget(**limits), []

    def ask() -> None:
        meter = ItemMeter(budget)
        with suppress(BudgetSpent):
            for _ in range(5):
                meter.take()
                left.append(1)
                time.sleep(0.002)
                meter.pay(9, 1, 0.01)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(left) == budget.spent.calls == most


def test_a_request_that_was_lost_counts_and_holds_nobody_up() -> None:
    meter = ItemMeter(Budget(money=0.03))
    meter.take()
    meter.pay(9, 1, 0.01)
    meter.take()
    meter.lose()
    meter.take()
    meter.pay(9, 1, 0.01)

    with pytest.raises(BudgetSpent):
        meter.take()


@pytest.mark.parametrize(
    ("usage", "tokens_in", "tokens_out", "cached"),
    [
        ({"prompt_tokens": "100", "completion_tokens": 1.0}, 100, 1, 0),
        (
            {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 901},
            100,
            801,
            0,
        ),  # thought in the total alone
        ({"prompt_tokens": 100, "total_tokens": 120}, 100, 20, 0),
        ({"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 64}}, 100, 1, 64),
        ({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 2}, 100, 2, 90),
        (None, 1787, 244, 0),
        ({"prompt_tokens": -1, "completion_tokens": "many"}, 1787, 244, 0),
        ({"prompt_tokens": True, "completion_tokens": 7}, 1787, 7, 0),
        ({"prompt_tokens": 100}, 100, 244, 0),
    ],
    ids=range(9),
)
def test_counts_are_read_or_estimated(usage: object, tokens_in: int, tokens_out: int, cached: int) -> None:
    """A picture counts 765, and four letters of JSON a token."""
    request = {"messages": [image_message([b64encode(b"heron").decode()], "x" * 4000)]}
    data = {"choices": [{"message": {"content": "y" * 960}}], "usage": usage}

    answer = counted(request, data)

    assert usage_of(answer).tokens_out == pytest.approx(tokens_out, rel=0.01)
    assert (usage_of(answer).tokens_in, cache_of(answer)[0]) == (pytest.approx(tokens_in, rel=0.02), cached)
    assert counted(request, {"error": "no", "usage": usage}).get("usage") == usage  # no answer, no estimate


class Clock:
    """A clock that only moves by sleeping on it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(gaps=st.lists(st.floats(0, 20), min_size=1, max_size=40), most=st.integers(1, 6))
def test_no_minute_has_more_requests_than_allowed(gaps: list[float], most: int) -> None:
    clock, left = Clock(), list[float]()
    limiter = RateLimiter(most, clock=clock, sleep=clock.sleep)
    for gap in gaps:
        clock.sleep(gap)
        limiter.acquire()
        left.append(clock.now)

    assert all(sum(at - 59.999 <= then <= at for then in left) <= most for at in left)


def test_results_under_way_are_handed_out_before_what_ends_the_run() -> None:
    """Which is an error of the work, or a reason to stop that is thrown in."""
    both = threading.Barrier(2, timeout=60)

    def work(item: int) -> int:
        if item in (1, 2):
            both.wait()
        if item == 1:
            raise ValueError("one")
        return item

    ended, thrown = Underway(range(9), work, 2), Underway(range(9), lambda item: item, 3)
    results, reason = [], KeyboardInterrupt()
    with pytest.raises(ValueError, match="one"):
        for result in ended:
            results.append(result)
    assert {0, 2} <= set(results) and len(results) < 9

    results = [next(thrown), next(thrown)]
    with pytest.raises(KeyboardInterrupt) as raised:
        results.append(thrown.throw(reason))
        for result in thrown:
            results.append(result)
    assert raised.value is reason and sorted(results) == [0, 1, 2, 3]


class Sighting(pydantic.BaseModel):
    species: str
    count: int


FITS = chat('```json\n{"species": "heron", "count": 2}\n```')
ASKED = [text_message("user", "What is there?")]


def test_an_answer_that_does_not_fit_is_mended_once() -> None:
    wrong = '{"species": "heron", "count": "many"}'
    with Double([chat(wrong)], then=FITS) as server:
        found = judge_of(server).language_model.answer(ASKED, Sighting)

    *_, its_own, request = server.seen[1].body["messages"]
    assert found == Sighting(species="heron", count=2) and "count: " in request["content"]
    assert (its_own["role"], its_own["content"]) == ("assistant", wrong)
    assert server.seen[0].body["response_format"]["json_schema"]["name"] == "Sighting"
    assert "JSON schema" not in str(server.seen[0].body["messages"]) and "JSON schema" in request["content"]
    with Double(then=chat(wrong)) as server, pytest.raises(BadAnswer):
        judge_of(server).language_model.answer(ASKED, Sighting)
    assert len(server.seen) == 2


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I can’t assist with identifying people.",
    "Sorry, I cannot do that.",
    "I am unable to look at this picture.",
    "I cannot assist with that request.",
    "I apologize, but this picture is not something I can describe.",
    "Unfortunately, I can't help with that.",
    "I won't describe this person.",
    "I'm not comfortable with that.",
    "**I must decline.**",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_in_words_is_no_answer_to_mend(text: str) -> None:
    """Nor is one that comes when an answer was to be mended."""
    for before in ([], [chat("herons, many of them")]):
        with Double(list(before), then=chat(text)) as server, pytest.raises(Declined, match=re.escape(text)):
            judge_of(server).language_model.answer(ASKED, Sighting)

        assert len(server.seen) == 1 + len(before)


JSON_FORMS = [
    '{"species": "heron", "count": 2,}',
    '{"species": "heron", // one of many, {it} says\n "count": 2}',
    "{'species': 'heron', 'count': 2}",
    "{“species”: “heron”, “count”: 2}",
    'For {place}: {"species": "heron", "count": 2} where {x} is "it',
    '<think>{"species": "tern", "count": 9}?</think>\n{"species": "heron", "count": 2}',
    '```json\n[{"species": "heron", "count": 2}]\n```',
    'I\'m sorry for the haste: {"species": "heron", "count": 2}',  # an apology, and no refusal
]


@pytest.mark.parametrize("text", JSON_FORMS)
def test_an_object_is_mended_here_before_it_is_asked_for_again(text: str) -> None:
    with Double(then=chat(text)) as server:
        found = judge_of(server).language_model.answer(ASKED, Sighting)

    assert found == Sighting(species="heron", count=2) and len(server.seen) == 1


def test_a_line_break_or_a_brace_in_a_string_stays() -> None:
    with Double(then=chat('{"species": "a {heron}\nand \\"more\\", it\'s", "count": 2}')) as server:
        assert judge_of(server).language_model.answer(ASKED, Sighting).species == 'a {heron}\nand "more", it\'s'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"species": "heron", "count": 2, "count": 3}', "count: the key stands twice"),
        ('{"species": "tern", "count": 1} Correction: {"species": "heron", "count": 2}', "it holds 2 objects"),
        ('{"species": "heron", "inner": {"species": "tern", "count": 2}, "count": ', "the answer"),
    ],
)
def test_an_object_of_two_meanings_or_none_is_asked_for_again(text: str, why: str) -> None:
    with Double([chat(text)], then=FITS) as server:
        found = judge_of(server).language_model.answer(ASKED, Sighting)

    assert found.count == 2 and why in server.seen[1].body["messages"][-1]["content"]


def test_a_server_that_knows_no_forms_is_told_in_words() -> None:
    def plain(seen: Seen) -> Response:
        return error(400, "unknown field response_format") if "response_format" in seen.body else FITS

    with Double(then=plain) as server:
        found = judge_of(server).language_model.answer(ASKED, Sighting)

    assert found.species == "heron" and '"species"' in str(server.seen[-1].body["messages"])
