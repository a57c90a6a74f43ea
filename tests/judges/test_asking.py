"""Asking: nothing is paid for twice, nothing that was answered is lost, whatever ends the asking."""

from __future__ import annotations

import _thread
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eyespot.judges import JudgeStats, ask
from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.llms.budget import Budget, BudgetSpent, ItemMeter
from eyespot.types import Answer, AnswerStream, Judgement, Pair, Query, SequentialAnswers, Spent, Verdict
from tests.wording import raises
from tests.worlds.judging import PlainJudge

HERON, OWL = Query.words("a heron", "1"), Query.words("an owl", "2")


@dataclass(kw_only=True)
class Scripted(PlainJudge):
    """A judge that has `width` requests under way at a time, answers the last of them first, and counts them all."""

    name: str = "scripted"
    prompt: str = "p"
    width: int = 1
    fails: frozenset[str] = frozenset()
    refuses: frozenset[str] = frozenset()
    sent: list[str] = field(default_factory=list)

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        coming = iter(pairs)
        under_way: list[Answer] = []
        try:
            while len(under_way) < self.width and (pair := next(coming, None)):
                under_way.append(self.send(pair))
            while under_way:
                yield under_way.pop()
                if pair := next(coming, None):
                    under_way.append(self.send(pair))
        except BaseException:
            yield from under_way[::-1]
            raise

    def send(self, pair: Pair) -> Answer:
        ItemMeter(self.budget).take()
        self.sent.append(pair.image)
        spent = Spent(1, 100, 1, 0.25)
        if pair.image in self.fails:
            return Answer(pair, None, "the server hung up", spent=spent)
        if pair.image in self.refuses:
            return Answer(pair, Verdict(0.0), refused=True, spent=spent)
        return Answer(pair, Verdict(0.75), spent=spent)


def pairs(images: str, query: Query = HERON) -> list[Pair]:
    return [Pair(query, image, Path(f"{image}.jpg")) for image in images]


def ledger_images(ledger: Judgements) -> str:
    return "".join(sorted(row.judgement.image for row in ledger.rows()))


def images(judgements: Iterator[Judgement]) -> str:
    return "".join(one.image for one in judgements)


def test_every_pair_is_answered_and_kept_on_the_disk_before_it_is_handed_on(ledger: Judgements) -> None:
    asking = ask(Scripted(), [*pairs("ab"), *pairs("b", OWL)], ledger)

    with Judgements(ledger.path) as other:
        found = [(one.query, one.image, one.verdict, ledger_images(other)) for one in asking]

    heron, owl = query_digest(HERON), query_digest(OWL)
    assert found == [
        (*one, Verdict(0.75), kept) for *one, kept in [(heron, "a", "a"), (heron, "b", "ab"), (owl, "b", "abb")]
    ]
    assert asking.stats == JudgeStats(known=0, answers=3, spent=Spent(3, 300, 3, 0.75))


def test_what_is_known_comes_first_in_the_order_given_and_costs_nothing(ledger: Judgements) -> None:
    """Another judge, or another wording, knows nothing."""
    list(ask(Scripted(), pairs("ca"), ledger))
    judge, others = Scripted(), [Scripted(name="other"), Scripted(prompt="other")]
    asking = ask(judge, pairs("abcd"), ledger)

    assert images(asking) == "acbd"
    assert judge.sent == ["b", "d"]
    assert asking.stats == JudgeStats(known=2, answers=2, spent=Spent(2, 200, 2, 0.5))
    for other in others:
        list(ask(other, pairs("a"), ledger))
        assert other.sent == ["a"]


def test_the_same_words_under_another_id_are_the_same_question(ledger: Judgements) -> None:
    judge = Scripted()
    asking = ask(judge, [*pairs("a"), *pairs("a", Query.words("a heron", "other"))], ledger)

    assert images(asking) == "a" and judge.sent == ["a"]
    assert len(asking.digests) == 2 and len(set(asking.digests.values())) == 1


def test_a_failure_is_told_counted_and_asked_again_and_a_refusal_is_not(ledger: Judgements) -> None:
    first = ask(Scripted(fails=frozenset("a"), refuses=frozenset("b")), pairs("abc"), ledger)
    failures, judge = [one.failure for one in first], Scripted()
    second = ask(judge, pairs("abc"), ledger)
    list(second)

    assert failures == ["the server hung up", "", ""]
    assert (first.stats.failed, first.stats.refused, second.stats.refused) == (1, 1, 1)
    assert judge.sent == ["a"]


def test_the_rank_at_which_a_picture_was_seen_is_kept(ledger: Judgements) -> None:
    list(ask(Scripted(), [*pairs("ab"), *pairs("a", OWL)], ledger, {("1", "b"): 7, ("2", "a"): 1}))

    assert [(row.judgement.image, row.judgement.rank) for row in ledger.rows()] == [("a", None), ("b", 7), ("a", 1)]


@pytest.mark.parametrize("width", [1, 3, 8])
def test_a_spent_budget_keeps_all_answers_and_the_rest_is_asked_later(ledger: Judgements, width: int) -> None:
    judge, later = Scripted(width=width, budget=Budget(calls=4)), Scripted()
    asking = ask(judge, pairs("abcdefgh"), ledger)

    with raises(BudgetSpent):
        list(asking)

    assert judge.sent == [*"abcd"]
    assert ledger_images(ledger) == "abcd"
    assert asking.stats.spent.calls == 4
    list(ask(later, pairs("abcdefgh"), ledger))
    assert later.sent == [*"efgh"]


def test_a_caller_who_has_enough_loses_no_answer_under_way(ledger: Judgements) -> None:
    judge = Scripted(width=3)
    asking = ask(judge, pairs("abcdef"), ledger)
    next(asking)

    asking.close()

    assert ledger_images(ledger) == "abc" == "".join(sorted(judge.sent))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """As at a terminal: a shell lets what it starts in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_loses_no_answer_under_way(ledger: Judgements) -> None:
    judge = Scripted(width=3)

    def interrupted() -> None:
        for one in ask(judge, pairs("abcdef"), ledger):
            if one.image == "d":
                _thread.interrupt_main()  # as Ctrl-C does

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert ledger_images(ledger) == "".join(sorted(judge.sent)) == "abcd"


def test_answers_that_came_together_are_kept_together(ledger: Judgements) -> None:
    """Four are ready at once: the first is handed on only when all four are on the disk."""
    judge, asked = Together(), pairs("abcdef")

    asking = ask(judge, asked, ledger)
    next(asking), next(asking)

    assert len(list(ledger.rows())) == 5  # the first went alone
    assert len(list(asking)) == 4 and len(list(ledger.rows())) == 6


@dataclass
class Together(Scripted):
    """A judge whose first answer comes alone, and then four at once."""

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        return FourAtOnce([self.send(pair) for pair in pairs])


class FourAtOnce(SequentialAnswers):
    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__(answers)
        self.waiting = list(answers)

    def __next__(self) -> Answer:
        if not self.waiting:
            raise StopIteration
        return self.waiting.pop(0)

    def ready(self) -> list[Answer]:
        count = 0 if len(self.waiting) == 5 else 3
        found, self.waiting[:count] = self.waiting[:count], []
        return found
