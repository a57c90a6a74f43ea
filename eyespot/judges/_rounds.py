"""Rounds of judging: known verdicts come from the ledger, the judge gives the others, and no answer is lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from typing import Any, NamedTuple

from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.llms.errors import ServerDown
from eyespot.llms.unsupported_fields import left_out
from eyespot.types import Answer, AnswerStream, Judge, Judgement, Pair, Query, Spent, quantity

ENDED = "the run ended before its answer was whole"


class JudgeStats(NamedTuple):
    """How a round of asking went; `spent` is what this round cost, not what the ledger's verdicts once did."""

    known: int = 0  # verdicts that the ledger had
    answers: int = 0  # answers that came now: verdicts, refusals and failures
    refused: int = 0  # of all verdicts, also those the ledger had
    failed: int = 0
    spent: Spent = Spent()
    priced: bool = True  # False: no table has the price of the model

    def __str__(self) -> str:
        parts = [f"{quantity(self.known, 'verdict')} from the ledger, {self.answers:,} asked"]
        parts += [f"{count:,} {what}" for count, what in ((self.refused, "refused"), (self.failed, "failed")) if count]
        if self.spent.calls:
            money = self.spent.dollars if self.priced else "no price is known"
            parts.append(f"{quantity(self.spent.calls, 'call')}, {self.spent.tokens:,} tokens, {money}")
        return ", ".join(parts)

    def and_then(self, more: JudgeStats) -> JudgeStats:
        """Both rounds as one."""
        spent, priced = self.spent.plus(more.spent), self.priced and more.priced
        return JudgeStats(*map(add, self[:4], more[:4]))._replace(spent=spent, priced=priced)


class JudgingRound(Iterator[Judgement]):
    """The judgements as they come; `stats` counts them meanwhile, `digests` tells what `Judgement.query` stands for."""

    # The round itself refers to nobody here, so that it is closed as soon as nobody refers to this object any more.
    def __init__(self, round: _Round, pairs: Sequence[Pair]) -> None:
        self._round = round
        self._coming = round.judgements(pairs)

    @property
    def stats(self) -> JudgeStats:
        """How it went so far."""
        return self._round.stats

    @property
    def digests(self) -> Mapping[Query, str]:
        """The digest of each query; two queries that ask the same have the same one."""
        return self._round.digests

    def __next__(self) -> Judgement:
        return next(self._coming)

    def close(self) -> None:
        """Ask no more; what is under way is still recorded."""
        self._coming.close()


def ask(
    judge: Judge, pairs: Sequence[Pair], ledger: Judgements, ranks: Mapping[tuple[str, str], int] | None = None
) -> JudgingRound:
    """A judgement for every distinct pair: first what is known, in the order given, then answers as they come.

    Each answer is on the disk before it is handed on. `ranks` maps (id of the query, image) to the rank, from 1, at
    which the picture was seen. Whatever stops the asking (the judge's own `BudgetSpent`, Ctrl-C, a caller who has
    enough) is thrown into `judge.judge` at its `yield`: a judge with requests under way yields their answers, which
    are recorded, and raises it again. So nothing that was paid for is lost, and the caller sees what stopped it.
    """
    return JudgingRound(_Round(judge, ledger, ledger.enter(pair.query for pair in pairs), ranks or {}), pairs)


def unknown(judge: Judge, pairs: Sequence[Pair], ledger: Judgements) -> list[Pair]:
    """The distinct pairs that `ask` would put to the judge now, in the order given; nothing is asked or written."""
    round = _Round(judge, ledger, {query: query_digest(query) for query in {pair.query for pair in pairs}}, {})
    known = round.known(pairs)
    return [pair for key, pair in round.distinct(pairs).items() if key not in known]


def known(judge: Judge, ledger: Judgements, query: str, images: Iterable[str]) -> dict[str, Judgement]:
    """What the ledger has of this judge on these images, for the query of this digest.

    A reply without token probabilities is read in another way, and its verdict stands under a prompt of its own
    (`fallbacks`). It is known all the same, for it was paid for; `on_one_scale` says what it is worth in a ranking.
    """
    wanted = set(images)
    found = ledger.known(query, wanted, judge.name, judge.prompt)
    for prompt in prompts_of(judge)[1:]:
        if len(found) < len(wanted):
            found |= ledger.known(query, wanted - set(found), judge.name, prompt)
    return found


def prompts_of(judge: Judge) -> tuple[str, ...]:
    """The prompts under which its verdicts stand: its own, then those of the ways that stand in for it."""
    return judge.prompt, *judge.fallbacks


# -- one round ----------------------------------------------------------------------------------------------

Key = tuple[str, str]  # digest of the query, id of the image


def _images_by_query(keys: Iterable[Key]) -> dict[str, list[str]]:
    images: dict[str, list[str]] = {}
    for digest, image in keys:
        images.setdefault(digest, []).append(image)
    return images


@dataclass
class _Round:
    judge: Judge
    ledger: Judgements
    digests: Mapping[Query, str]
    ranks: Mapping[tuple[str, str], int]
    stats: JudgeStats = field(default_factory=JudgeStats)

    def judgements(self, pairs: Sequence[Pair]) -> Generator[Judgement]:
        known, wanted = self.known(pairs), self.distinct(pairs)
        for key in wanted:
            if key in known:
                self.stats = self.stats.and_then(JudgeStats(known=1, refused=int(known[key].refused)))
                yield known[key]
        if rest := {key: pair for key, pair in wanted.items() if key not in known}:
            yield from self._answered(rest)

    def _answered(self, rest: Mapping[Key, Pair]) -> Generator[Judgement]:
        """What the judge says of pairs that it has not judged, those last on which it failed in earlier runs.

        There are pictures that a server always fails on. Once it is asked about nothing else it fails as one does that
        is down, so a run whose pairs all failed before ends with their failures, and can be finished.
        """
        failed = self._failures(rest)
        unsettled, came = rest.keys() - failed.keys(), set[Key]()
        answers = self.judge.judge([*(rest[key] for key in rest if key not in failed), *(rest[key] for key in failed)])
        try:
            for answer in answers:
                for judgement in self._recorded([answer, *answers.ready()]):
                    key = judgement.query, judgement.image
                    came.add(key)
                    if judgement.failure != ENDED:
                        unsettled.discard(key)
                    yield judgement
        except BaseException as reason:  # Ctrl-C and a caller's close() are reasons too
            self._take_last(answers, reason)
            if unsettled or not isinstance(reason, ServerDown):
                raise
            for key in failed.keys() - came:
                self.stats = self.stats.and_then(JudgeStats(failed=1))
                yield failed[key]

    def _failures(self, pairs: Mapping[Key, Pair]) -> dict[Key, Judgement]:
        """The last failure of each of these pairs in an earlier run, of those that failed by themselves."""
        return {
            (one.query, one.image): one
            for digest, images in _images_by_query(pairs).items()
            for one in self.ledger.failures(digest, images, self.judge.name, self.judge.prompt)
            if one.failure != ENDED
        }

    def distinct(self, pairs: Sequence[Pair]) -> dict[Key, Pair]:
        found: dict[Key, Pair] = {}
        for pair in pairs:
            found.setdefault((self.digests[pair.query], pair.image), pair)
        return found

    def known(self, pairs: Sequence[Pair]) -> dict[Key, Judgement]:
        return {
            (digest, image): one
            for digest, images in _images_by_query(self.distinct(pairs)).items()
            for image, one in known(self.judge, self.ledger, digest, images).items()
        }

    def _take_last(self, answers: AnswerStream, reason: BaseException) -> None:
        """Record what the judge has in flight; one that has ended already has nothing."""
        try:
            self._recorded([answers.throw(reason)])
            for answer in answers:
                self._recorded([answer, *answers.ready()])
        except BaseException as again:
            if again is not reason and not isinstance(again, StopIteration):
                raise again from reason

    def _recorded(self, answers: Sequence[Answer]) -> list[Judgement]:
        """The answers as judgements, in the ledger by one commit."""
        judgements = []
        for answer in answers:
            pair = answer.pair
            key = self.digests[pair.query], pair.image, self.judge.name, answer.prompt or self.judge.prompt
            rank = self.ranks.get((pair.query.id, pair.image))
            outcome = answer.verdict, answer.failure, answer.refused
            judgements.append(Judgement(*key, *outcome, rank, time.time(), answer.spent, answer.exchanges))
        self.ledger.record(judgements)
        model = self.judge.language_model
        priced = model is None or model.free or model.price is not None
        for answer in answers:
            now = JudgeStats(0, 1, int(answer.refused), int(answer.verdict is None), answer.spent, priced)
            self.stats = self.stats.and_then(now)
        return judgements


# -- verdicts of a run: one scale for each ranking, and which models gave them --------------------------------

HALF = 0.5  # of the probability: the answer that a model would put into words
OTHER = "it was answered on another scale than its ranking has"


def scale_of(judgements: Iterable[Judgement], prompts: Sequence[str]) -> str:
    """The prompt of the most verdicts; of equals the first, for `prompts` begin with the finest scale."""
    counts = Counter(one.prompt for one in judgements if one.verdict is not None and not one.refused)
    return max(prompts, key=lambda prompt: counts[prompt])


def on_one_scale(judgements: Mapping[str, Judgement], prompts: Sequence[str]) -> dict[str, Judgement]:
    """The judgements on one ranking, by image, as its scale has them; `prompts` end with that of words.

    On words a probability is the word that it makes the likelier one. On a finer scale a word is not a verdict. A
    refusal is 0 on every scale.
    """
    if len(prompts) < 2:
        return dict(judgements)
    scale, words = scale_of(judgements.values(), prompts), prompts[-1]
    scaled = {}
    for image, judgement in judgements.items():
        verdict = judgement.verdict
        if verdict is None or judgement.refused:
            pass
        elif scale == words:
            share = verdict.probability
            if share is not None and share not in (0, 1):
                reason = f"a probability of {share:.3g}, as a word"
                verdict = replace(verdict, probability=float(share >= HALF), reason=reason)
            judgement = judgement._replace(verdict=verdict)
        elif judgement.prompt != scale:
            judgement = judgement._replace(verdict=None, failure=OTHER)
        scaled[image] = judgement
    return scaled


def served_by(judge: str, judgements: Iterable[Judgement], ledger: Judgements) -> dict[str, Any]:
    """Replies by `served` model and by `fingerprint`, and what was `not_accepted`; without what is not known."""
    models: Counter[str] = Counter()
    fingerprints: Counter[str] = Counter()
    fields: dict[str, None] = {}
    for model, fingerprint, changes, replies in ledger.served(judgements):
        models[model] += replies
        fingerprints[fingerprint] += replies
        fields |= dict.fromkeys(left_out(changes))
    facts = {
        "served": {model: count for model, count in models.items() if model},
        "fingerprints": {name: count for name, count in fingerprints.items() if name},
        "not_accepted": [f"{field}: not accepted by {judge}" for field in fields],
    }
    return {name: fact for name, fact in facts.items() if fact}
