"""A review queue: what a person must confirm, and what they decided; plain lines of JSON, for a terminal or a page.

`NAME.jsonl` holds the cases and is written whole by the step that doubts. Decisions are appended to
`NAME.decisions.jsonl` and are on the disk when they are given; of several by one person on one case the last counts,
and all stay. A case on which people differ, that has changed, or whose decision was withdrawn is open again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal, get_args

from eyespot.pipelines.outcomes import Drop, Failed, Keep, Outcome, Record, line_of
from eyespot.pipelines.step import digest_of_json
from eyespot.runs.agreement import Ratings, cohen_kappa, krippendorff_alpha
from eyespot.storage.atomic import append_line, make_folder, write_whole
from eyespot.storage.locks import in_turn
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

Choice = Literal["accept", "mend", "drop"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
WITHDRAWN: Literal["withdraw"] = "withdraw"  # written in the place of a choice, it opens the case again
DROPPED, AWAITS = "dropped in review", "awaits review"


@dataclass(frozen=True)
class Case:
    """What a person is to look at: why, where the pictures lie, texts, which they may mend, and the pictures' ids."""

    id: str
    why: str
    pictures: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()  # ids; none: the names of the files stand for them

    @cached_property
    def digest(self) -> str:
        """Thirty-two hex digits of all of it but where the pictures lie: a decision holds for what was seen."""
        shown = self.shown or [Path(picture).name for picture in self.pictures]
        return digest_of_json([self.id, self.why, shown, self.texts])


@dataclass(frozen=True)
class ReviewDecision:
    """What somebody chose for a case, and when; `texts` are those they mended."""

    id: str
    choice: Choice | Literal["withdraw"]
    who: str
    case: str  # the digest of the case that was seen
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    texts: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    settles: bool = False  # given in sight of what others chose, so it decides and tells nothing of agreement

    @cached_property
    def digest(self) -> str:
        """Thirty-two hex digits of all of it, by which somebody says which decision they saw stand."""
        return digest_of_json(asdict(self))


class Overtaken(UsageError):
    """Somebody decided on a case after it was shown; `stands` is what they chose, None if they withdrew it."""

    def __init__(self, stands: ReviewDecision | None) -> None:
        what = f"{stands.who} chose {stands.choice}" if stands else "the decision was withdrawn"
        super().__init__(f"{what} since you opened this case; look again and decide again")
        self.stands = stands


def write_queue(path: Path, cases: Iterable[Case]) -> None:
    """Put a queue in place of an earlier one, whole; decisions stay."""
    text = b"".join(line_of(asdict(case)) for case in cases)
    make_folder(path.parent)
    write_whole(path, lambda file: file.write(text))


class Queue:
    """The cases of a file and the decisions beside it; any number of people decide at once."""

    def __init__(self, path: Path) -> None:
        if path.suffix != ".jsonl" or path.name.endswith(".decisions.jsonl"):
            raise UsageError(f"{path} is not a review queue; name the .jsonl file that holds the cases")
        self.path, self.decided = path, path.with_suffix(".decisions.jsonl")
        self.cases = {case.id: case for case in (_case(path, line, row) for line, row in rows_of(path))}

    def decide(self, case: Case, choice: Choice, who: str, **more: Any) -> ReviewDecision:
        """Keep what somebody chose; it is on the disk when this returns. `more`: mended `texts`, a `note`, `settles`.

        Raises `UsageError` for texts that the case does not have, and for mending that mends none.
        """
        decision = self._decision(case, choice, who, more)
        with self._appending() as file:
            append_line(file, line_of(asdict(decision)))
        return decision

    def decide_seeing(
        self, seen: str | None, case: Case, choice: Choice, who: str, *, blind: bool = False, **more: Any
    ) -> ReviewDecision:
        """The same for one of many people: `seen` is the digest of the decision they saw stand, None for an open case.

        Gives what then stands. What stands already as it is said is not kept a second time, so a click that comes twice
        counts once. Who sees the decision of another, which is not so where it is `blind`, settles the case. Raises
        `Overtaken`, and keeps nothing, if another decision stands by now.
        """
        decision = self._decision(case, choice, who, more)
        with self._appending() as file:
            stands, given = self.standing().get(case.id), self.opinions().get(case.id, [])
            for one in given:  # the same, but for the time
                if replace(one, at=decision.at, settles=False) == decision and (
                    one == stands or (blind and not stands)
                ):
                    return one
            _check_seen(seen, stands)
            decision = replace(decision, settles=not blind and any(one.who != who for one in given))
            append_line(file, line_of(asdict(decision)))
        return decision

    def withdraw_seeing(self, seen: str, case: Case, who: str) -> None:
        """Take back the decision of this digest, which opens the case again; nothing happens if it is open already.

        Raises `Overtaken`, and keeps nothing, if another decision stands by now.
        """
        with self._appending() as file:
            stands = self.standing().get(case.id)
            given = {one.digest for one in self.opinions().get(case.id, ()) if one.who == who}
            if stands is not None or seen in given:
                if seen not in given:
                    _check_seen(seen, stands)
                append_line(file, line_of(asdict(ReviewDecision(case.id, WITHDRAWN, who, case.digest))))

    def _decision(self, case: Case, choice: Choice, who: str, more: Mapping[str, Any]) -> ReviewDecision:
        texts = more.get("texts", {})
        if (choice == "mend") != bool(texts) or not set(texts) <= set(case.texts):
            raise UsageError(f"a case is mended by its texts: {', '.join(case.texts) or 'this one has none'}")
        return ReviewDecision(case.id, choice, who, case.digest, **more)

    @contextmanager
    def _appending(self) -> Iterator[IO[bytes]]:
        """The decisions, for one person at a time, without what a kill left of a line."""
        with in_turn(self.decided), self.decided.open("a+b") as file:
            # Take away what a kill left of a line, or the next one would be lost with it
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            yield file

    def decisions(self) -> list[ReviewDecision]:
        """All that was ever decided, in order."""
        data = self.decided.read_bytes() if self.decided.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]  # a kill may have cut the last line
        return [_decision(self.decided, number, line) for number, line in enumerate(whole.splitlines(), 1)]

    def standing(self) -> dict[str, ReviewDecision]:
        """The decision that counts for each case that is decided, as the case is now; none where people differ."""
        given = {id: self.settled_by(opinions) for id, opinions in self.opinions().items()}
        return {id: one for id in self.cases if (one := given.get(id)) is not None}

    @staticmethod
    def settled_by(opinions: Sequence[ReviewDecision]) -> ReviewDecision | None:
        """The last that settles the case, else the last if all are the same."""
        settled = [one for one in opinions if one.settles]
        same = len({(one.choice, digest_of_json(one.texts)) for one in opinions}) == 1
        return settled[-1] if settled else opinions[-1] if same else None

    def opinions(self) -> dict[str, list[ReviewDecision]]:
        """By case, as it is now, the last decision of each person, in their order.

        Who withdraws takes back their decision, or where they have none all of them.
        """
        found: dict[str, dict[str, ReviewDecision]] = {}
        for one in self.decisions():
            if one.id in self.cases and one.case == self.cases[one.id].digest:
                given = found.setdefault(one.id, {})
                if given.pop(one.who, None) is None and one.choice == WITHDRAWN:
                    given.clear()
                if one.choice != WITHDRAWN:
                    given[one.who] = one
        return {id: list(given.values()) for id, given in found.items() if given}

    def agreement(self) -> dict[str, Any]:
        """How far people agree who decided on the same cases without sight of each other.

        `people`, `cases` (decided by several), `disputed` (of these still open), `kappa` (Cohen's, of two people),
        `alpha` (Krippendorff's), each None where `why` says so.
        """
        blind = {id: [one for one in given if not one.settles] for id, given in self.opinions().items()}
        several = {id: given for id, given in blind.items() if len(given) > 1}
        ratings = Ratings.of((id, one.who, one.choice) for id, given in several.items() for one in given)
        fields: dict[str, Any] = {"people": sorted(ratings.raters), "cases": len(several), "kappa": None, "alpha": None}
        fields |= {"disputed": len(several.keys() - self.standing().keys()), "why": ""}
        if not several:
            return fields | {"why": "no case was decided by two people"}
        if len(ratings.values) < 2:
            return fields | {"why": f"all chose {ratings.values[0]}, so agreement by chance is not known"}
        fields["alpha"] = krippendorff_alpha(ratings).value
        if len(ratings.raters) > 2:
            return fields | {"why": f"kappa is for two people, and there are {len(ratings.raters)}"}
        return fields | {"kappa": cohen_kappa(ratings).value}

    def lapsed(self) -> list[str]:
        """The cases that were decided and have changed since, by their ids; they are open again."""
        last, opinions = {decision.id: decision for decision in self.decisions()}, self.opinions()
        decided = {id for id, decision in last.items() if decision.choice != WITHDRAWN}
        return [id for id in self.cases if id in decided and id not in opinions]

    def open(self, second: str | None = None) -> list[Case]:
        """What is still to be decided, in the order of the queue; with `second` what this person has not decided."""
        if second is None:
            done = set(self.standing())
        else:
            done = {id for id, given in self.opinions().items() if any(one.who == second for one in given)}
        return [case for case in self.cases.values() if case.id not in done]

    def counts(self) -> dict[str, int]:
        """How many cases there are, how many of them are open, and how many stand as each choice."""
        chosen = [one.choice for one in self.standing().values()]
        return {"cases": len(self.cases), "open": len(self.cases) - len(chosen)} | {
            choice: chosen.count(choice) for choice in CHOICES
        }


# -- in a pipeline ----------------------------------------------------------------------------------------------


def reviewed(
    records: Iterable[Record],
    queue: Path,
    doubt: Callable[[Record], Case | None],
    undecided: Callable[[Record], Outcome] = lambda record: Failed(record, AWAITS),
    confirm: Callable[[Record, Mapping[str, str]], Record] = lambda record, texts: {**record, **texts},
) -> Iterator[Outcome]:
    """The work of a step that asks a person: what `doubt` makes a case of is kept, mended or dropped as they decided.

    `confirm` makes a record of one that was accepted and the texts that were mended, if any, which else take the place
    of its fields. `undecided` says what becomes of a record nobody has decided on, which else fails until somebody has.
    The queue is written anew, decisions are read.
    """
    pairs = [(record, doubt(record)) for record in records]
    write_queue(queue, (case for _, case in pairs if case is not None))
    standing = Queue(queue).standing()
    for record, case in pairs:
        if case is None:
            yield Keep(record)
        elif case.id not in standing:
            yield undecided(record)
        elif (decision := standing[case.id]).choice == "drop":
            yield Drop(record, DROPPED, decision.note)
        else:
            yield Keep(confirm(record, decision.texts))


def decisions_digest(queue: Path) -> str:
    """What such a step says among its `inputs`, so that it runs again once more was decided."""
    return digest_of_json([asdict(one) for one in Queue(queue).decisions()] if queue.exists() else [])


# -- on disk ----------------------------------------------------------------------------------------------------


def _case(path: Path, line: int, row: Mapping[str, Any]) -> Case:
    id, why = row.get("id"), row.get("why", "")
    pictures, texts, shown = row.get("pictures", []), row.get("texts", {}), row.get("shown", [])
    kinds = ((id, str), (why, str), (pictures, list), (texts, dict), (shown, list))
    plain = all(isinstance(value, kind) for value, kind in kinds)
    if not plain or not all(isinstance(one, str) for one in (*pictures, *texts.values(), *shown)):
        refuse(path, f"line {line}", "is not a case; expected id, why, pictures (a list) and texts (by name)")
    return Case(str(id), why, tuple(pictures), texts, tuple(shown))


def _decision(path: Path, number: int, line: bytes) -> ReviewDecision:
    try:
        decision = ReviewDecision(**json.loads(line))
    except (ValueError, TypeError):
        refuse(path, f"line {number}", "is not a decision; take the line out")
    if decision.choice not in (*CHOICES, WITHDRAWN):
        refuse(path, f"line {number}", f"chooses {decision.choice!r}; there are: {', '.join(CHOICES)}")
    return decision


def _check_seen(seen: str | None, stands: ReviewDecision | None) -> None:
    if seen != (stands.digest if stands else None):
        raise Overtaken(stands)
