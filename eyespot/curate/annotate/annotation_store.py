"""All annotations in one ledger: which queries are labelled, over which photos, and what each annotator said.

Judgements lie where all judgements lie (`eyespot.ledger.judgements`), under `person:NAME`, and stay for good; beside
them the store keeps the queries, their lists of candidates, and the audits. All of it survives a kill at any moment:
once a method has returned, its work is on the disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from eyespot.curate.annotate.audit_bounds import Band, DepthDesign
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.curate.annotate.team_store import LAPSE, AnnotationTables, TeamStore, judge_of
from eyespot.judges import person
from eyespot.ledger.judgements import PERSON, WITHDRAWN, Judgements, query_digest
from eyespot.types import Judgement, UsageError

MARKS = {mark: person.VERDICTS[mark] for mark in "ynd"}  # yes, no, doubt: as at the terminal
ADJUDICATION = "adjudication"  # how the one who settles disputes is asked
JOIN = "INSERT OR IGNORE INTO audit_people(audit, person) VALUES (?, ?)"
GOES_ON, ENDED = 1, 2  # how a list grows: as the beginning of a search, which had come to its end when last asked


class Candidate(NamedTuple):
    """A photo of a query's list: its id, and where it lies as far as a table may tell."""

    image: str
    path: str = ""


UNUSED = 0.0  # a random number that decided at the edge of an interval; galleries have its column


class AuditSample(NamedTuple):
    """An audit as it was drawn: from how many photos, which ones in which order.

    `seen` are the photos that were labelled before, and so no part of the rest. Without a design all of the rest had
    the same chance, as in audits of earlier versions.
    """

    rest: int
    photos: list[Candidate]
    seen: list[str]
    design: DepthDesign | None = None


class AnnotationStore(AnnotationTables):
    """All annotations of one ledger; any number of threads and processes may work at it at once."""

    def __init__(self, path: Path) -> None:
        self.judgements = Judgements(path)
        super().__init__(path)
        self.team, self._marking = TeamStore(self), Lock()

    def close(self) -> None:
        """Let go of the file."""
        super().close()
        self.judgements.close()

    def name(self) -> str:
        """Sixteen hex digits that no other store has, whatever else is served at the same address."""
        self.change("INSERT OR IGNORE INTO desk VALUES (1, lower(hex(randomblob(8))))", [()])
        return str(self.first("SELECT name FROM desk"))

    # -- queries and their lists ----------------------------------------------------------------------------

    def take_in(self, queries: Iterable[AnnotationQuery]) -> list[AnnotationQuery]:
        """Add queries, or replace what is known of them; gives those that fail the intake, which are left out.

        Raises `UsageError`, and takes none, if an id stands for other words already, two ids for the same words, or one
        has no words.
        """
        wanted = list(queries)
        for one in wanted:
            if not one.text.strip() or not one.id.strip():
                raise UsageError(f"a query has an id and words, not {one.id!r} and {one.text!r}; give it both")
            if "\0" in one.id + one.text:
                raise UsageError(f"the query {one.text!r} holds a NUL, which no text has; leave it out")
        taken = [one for one in wanted if not one.failing]
        digests = self.judgements.enter([one.query for one in taken])
        with self.transaction() as sql:
            for one in taken:
                digest = digests[one.query]
                same = self.select("SELECT id, text FROM annotated WHERE (id = ? OR query = ?)", one.id, digest)
                other = next((row for row in same if row != (one.id, one.text)), None)
                if other is not None:
                    there = f"there is the query {other[0]!r} with the words {other[1]!r}"
                    raise UsageError(f"{there}; give {one.id!r}, {one.text!r}, an id and words of its own")
                sql.execute(
                    "INSERT INTO annotated(id, query, text, facts) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT(id) DO UPDATE SET facts = excluded.facts",
                    (one.id, digest, one.text, json.dumps(one.facts)),
                )
        return [one for one in wanted if one.failing]

    def describe(self, id: str, facts: Mapping[str, str]) -> None:
        """Replace some of what is known of a query, also with an intake that fails; `UsageError` if there is none."""
        with self.transaction() as sql:
            known = {**self.query(id).facts, **facts}
            sql.execute("UPDATE annotated SET facts = ? WHERE id = ?", (json.dumps(known), id))

    def remove(self, id: str) -> None:
        """Forget a query, its list and its audits; `UsageError` if somebody has marked a photo, for marks stay."""
        number = self._number(id)
        with self.transaction() as sql:
            if marks := sum(map(len, self.said_by(id, self.annotators()).values())):
                raise UsageError(f"photos that are marked for {id!r}: {marks}; marks stay, so take them back first")
            for table in ("audit_designs", "audit_lists", "audit_people", "audit_shares"):
                of_query = "audit IN (SELECT number FROM audits WHERE annotated = ?)"
                sql.execute(f"DELETE FROM {table} WHERE {of_query}", (number,))
            for table in ("candidates", "audits", "narrowings", "openings"):
                sql.execute(f"DELETE FROM {table} WHERE annotated = ?", (number,))
            sql.execute("DELETE FROM annotated WHERE number = ?", (number,))
        self.team.forget(id)

    def queries(self) -> dict[str, AnnotationQuery]:
        """The queries by id, in the order in which they came."""
        rows = self.select("SELECT id, text, facts FROM annotated ORDER BY number")
        return {id: AnnotationQuery(id, text, json.loads(facts)) for id, text, facts in rows}

    def query(self, id: str) -> AnnotationQuery:
        """A query by its id; `UsageError` if there is none."""
        for text, facts in self.select("SELECT text, facts FROM annotated WHERE id = ?", id):
            return AnnotationQuery(id, text, json.loads(facts))
        there = ", ".join(list(self.queries())[:20]) or "none yet; take some in with: eyespot annotate add FILE.csv"
        raise UsageError(f"no query {id!r} is being annotated; there are: {there}")

    def extend(self, id: str, photos: Iterable[Candidate]) -> int:
        """Put photos at the end of a query's list, those already on it left out; gives how many are new."""
        number = self._number(id)
        with self.transaction() as sql:
            listed = self.select("SELECT image, place FROM candidates WHERE annotated = ?", number)
            known, last = {image for image, _ in listed}, max((place for _, place in listed), default=0)
            new = {photo.image: photo for photo in photos if photo.image not in known}
            rows = ((number, place, *photo) for place, photo in enumerate(new.values(), last + 1))
            sql.executemany("INSERT INTO candidates VALUES (?, ?, ?, ?)", rows)
        return len(new)

    def narrow(self, id: str) -> None:
        """Remember that what is put on the list from here on is chosen by labels, not ranked out of all photos."""
        number = self._number(id)
        statement = "INSERT OR IGNORE INTO narrowings SELECT ?, count(*) FROM candidates WHERE annotated = ?"
        self.change(statement, [(number, number)])

    def ranked_depth(self, id: str) -> int | None:
        """How many photos at the head of the list were ranked out of all photos; None where labels chose none."""
        place: int | None = self.first("SELECT place FROM narrowings WHERE annotated = ?", self._number(id))
        return place

    def let_grow(self, id: str, *, ended: bool = False) -> None:
        """Remember that a list is the beginning of a search, which goes on or has `ended` with the gallery."""
        self.change(
            "UPDATE annotated SET grows = ? WHERE number = ?", [(ENDED if ended else GOES_ON, self._number(id))]
        )

    def grows(self, id: str) -> bool:
        """Whether the list is the beginning of a search."""
        return self._growth(id) > 0

    def goes_on(self, id: str) -> bool:
        """Whether there may be more of that search than the list holds."""
        return self._growth(id) == GOES_ON

    def _growth(self, id: str) -> int:
        return int(self.first("SELECT grows FROM annotated WHERE number = ?", self._number(id)))

    def stamp(self, id: str) -> tuple[Any, ...]:
        """What differs once anything kept of a query has changed: its last judgement, photos listed, all else."""
        last = self.judgements.last(self._digest(id))
        (row,) = self.select(
            "SELECT (SELECT ifnull(max(place), 0) FROM candidates WHERE annotated = wanted.number),"
            " (SELECT ifnull(max(number), 0) FROM audits WHERE annotated = wanted.number),"
            " (SELECT count(*) FROM audit_people JOIN audits ON audits.number = audit WHERE annotated = wanted.number),"
            " (SELECT count(*) FROM group_marks WHERE query = wanted.id),"
            " (SELECT ifnull(max(at), 0) FROM group_marks WHERE query = wanted.id),"
            " grows, facts, text"
            " FROM annotated AS wanted WHERE id = ?",
            id,
        )
        return last, *row

    def candidates(self, id: str) -> list[Candidate]:
        """A query's list, best first."""
        number = self._number(id)
        photos = self.select("SELECT image, path FROM candidates WHERE annotated = ? ORDER BY place", number)
        return [Candidate(*row) for row in photos]

    def _number(self, id: str) -> int:
        number = self.first("SELECT number FROM annotated WHERE id = ?", id)
        return self._number(self.query(id).id) if number is None else int(number)

    # -- marks ----------------------------------------------------------------------------------------------

    def open_page(self, id: str, who: str, seconds_ago: float) -> None:
        """Note that somebody opened the photos of a query so long ago: the time of their first marks begins there."""
        row = self._number(id), judge_of(who), time.time() - seconds_ago
        self.change("INSERT OR IGNORE INTO openings VALUES (?, ?, ?)", [row])

    def openings(self, id: str, who: str) -> list[float]:
        """When somebody opened the photos of a query, in seconds since 1970, from the first time on."""
        whose = self._number(id), judge_of(who)
        return [at for (at,) in self.select("SELECT at FROM openings WHERE annotated = ? AND person = ?", *whose)]

    def mark(
        self,
        id: str,
        who: str,
        marks: Mapping[str, str | None],
        kind: str = "",
        dates: Mapping[str, float] | None = None,
    ) -> int:
        """Keep what somebody says of photos: y, n, d for doubt, None to take it back; gives how many changed.

        What is said already is not kept a second time, so a click that is sent twice counts once. `kind` is empty, or
        `ADJUDICATION` for the word that settles a dispute. Of marks with `dates` (seconds since 1970) those change
        nothing that are older than the last mark of their photo or its withdrawal, or have none. Raises `UsageError`
        for any other mark and a bad name.
        """
        if wrong := [mark for mark in marks.values() if mark is not None and mark not in MARKS]:
            raise UsageError(f"a mark is y, n or d for doubt, not {wrong[0]!r}")
        blank = Judgement(self._digest(id), "", judge_of(who), _prompt(kind), None, at=time.time())
        with self._marking:
            known = self.judgements.known_or_withdrawn(blank.query, marks, blank.judge, blank.prompt)
            before = {image: mark_of(last) for image, last in known.items() if last.verdict is not None}
            changed = {image: mark for image, mark in marks.items() if before.get(image) != mark}
            if dates is not None:
                older = {image for image in known if dates.get(image, 0.0) <= known[image].at}
                changed = {image: mark for image, mark in changed.items() if image not in older}
            where, number = "annotated = ? AND image IN (SELECT value FROM json_each(?))", self._number(id)
            rows = self.select(f"SELECT image, place FROM candidates WHERE {where}", number, json.dumps(list(changed)))
            ranks, judgements = dict(rows), []
            for image, mark in changed.items():
                verdict, failure = (None, WITHDRAWN) if mark is None else (MARKS[mark], "")
                rank, at = ranks.get(image), (dates or {}).get(image, blank.at)
                judgements.append(blank._replace(image=image, rank=rank, at=at, verdict=verdict, failure=failure))
            self.judgements.record(judgements)
        return len(changed)

    def last_judgements(self, id: str, who: str) -> dict[str, Judgement]:
        """The last word of somebody on each photo of a query's list and audits; photos without one are left out."""
        return self.said_by(id, [who])[who]

    def said_by(self, id: str, people: Iterable[str], kind: str = "") -> dict[str, dict[str, Judgement]]:
        """The same of several people, by name."""
        query, prompt, images = self._digest(id), _prompt(kind), self.photos(id)
        return {who: self.judgements.known(query, images, judge_of(who), prompt) for who in people}

    def all_candidates(self, id: str) -> list[Candidate]:
        """All photos that somebody may be shown for a query: those of its list, then those of audits alone."""
        drawn = self.select("SELECT drawn FROM audits WHERE annotated = ?", self._number(id))
        audited = [Candidate(*photo) for (photos,) in drawn for photo in json.loads(photos)]
        return list({photo.image: photo for photo in [*self.candidates(id), *audited]}.values())

    def photos(self, id: str) -> list[str]:
        """The ids of all of them."""
        return [photo.image for photo in self.all_candidates(id)]

    def _digest(self, id: str) -> str:
        return query_digest(self.query(id).query)

    def annotators(self) -> list[str]:
        """The names of all who ever judged in this ledger."""
        return [judge.removeprefix(PERSON) for judge in self.judgements.judges() if judge.startswith(PERSON)]

    # -- audits ---------------------------------------------------------------------------------------------

    def audits(self, id: str) -> int:
        """How many audits of a query were drawn, by whomever."""
        return int(self.first("SELECT count(*) FROM audits WHERE annotated = ?", self._number(id)))

    def keep_audit(self, id: str, team: Sequence[str], drawn: AuditSample, *, before: int, listed: int) -> None:
        """Keep what the first of a team drew to audit; a later draw takes the place of an earlier one.

        `listed` is how many photos were on the list: what is listed later is not part of its rest. Raises `UsageError`
        unless `before` audits were drawn so far: of draws at the same moment the first one stands.
        """
        lists, people = (json.dumps(drawn.photos), json.dumps(drawn.seen)), [judge_of(who) for who in team]
        row = (self._number(id), people[0], drawn.rest, UNUSED, *lists, time.time())
        with self.transaction() as sql:
            if self.audits(id) != before:
                raise UsageError("an audit was drawn at the same moment; load the page again and finish that one")
            cursor = sql.execute(
                "INSERT INTO audits(annotated, person, rest, lot, drawn, seen, at) VALUES (?, ?, ?, ?, ?, ?, ?)", row
            )
            number = cursor.lastrowid
            if drawn.design is not None:
                design = [json.dumps(part) for part in drawn.design]
                sql.execute("INSERT INTO audit_designs VALUES (?, ?, ?)", (number, *design))
            sql.execute("INSERT INTO audit_lists VALUES (?, ?)", (number, listed))
            sql.executemany(JOIN, [(number, person) for person in people])

    def last_audit(self, id: str, who: str | None = None) -> tuple[int, AuditSample] | None:
        """The last audit that somebody drew or joined, as it was drawn, and its number; without a name of anybody."""
        judge = None if who is None else judge_of(who)
        rows = self.select(
            "SELECT number, rest, drawn, seen, even, bands FROM audits LEFT JOIN audit_designs ON audit = number"
            " WHERE annotated = ? AND (? IS NULL OR person = ? OR EXISTS (SELECT 1 FROM audit_people"
            " WHERE audit = audits.number AND audit_people.person = ?)) ORDER BY number DESC LIMIT 1",
            self._number(id),
            *(judge,) * 3,
        )
        for number, rest, drawn, seen, even, bands in rows:
            design = None if even is None else DepthDesign(json.loads(even), [Band(*one) for one in json.loads(bands)])
            photos = [Candidate(*photo) for photo in json.loads(drawn)]
            return number, AuditSample(rest, photos, json.loads(seen), design)
        return None

    def auditors(self, number: int) -> list[str]:
        """The names of those who work at an audit, the one who drew it first."""
        drew = self.select("SELECT person FROM audits WHERE number = ?", number)
        joined = self.select("SELECT person FROM audit_people WHERE audit = ? ORDER BY number", number)
        return [person.removeprefix(PERSON) for (person,) in dict.fromkeys([*drew, *joined])]

    def listed_at_draw(self, number: int) -> int:
        """How many photos were on the list at the draw, at least: 0 for an audit of earlier versions."""
        return int(self.first("SELECT listed FROM audit_lists WHERE audit = ?", number) or 0)

    def audit_share(self, number: int, who: str) -> list[str]:
        """The photos that were handed to somebody, in the order in which they got them."""
        statement = "SELECT image FROM audit_shares WHERE audit = ? AND person = ? ORDER BY number"
        return [image for (image,) in self.select(statement, number, judge_of(who))]

    def hand_out_audit(self, number: int, who: str, photos: Sequence[str], labelled: Collection[str], most: int) -> int:
        """Hand somebody the next photos of an audit; gives how many there were.

        `labelled` are the photos with a label. What others hold unlabelled is theirs until it lapses.
        """
        now = time.time()
        with self.transaction() as sql:
            rows = self.select("SELECT image, person, at FROM audit_shares WHERE audit = ?", number)
            taken = set(labelled)
            taken |= {image for image, holder, at in rows if holder == judge_of(who) or 0 <= now - at < LAPSE}
            handed = [image for image in photos if image not in taken][:most]
            sql.executemany(
                "INSERT INTO audit_shares(audit, image, person, at) VALUES (?, ?, ?, ?)",
                [(number, image, judge_of(who), now) for image in handed],
            )
        return len(handed)


# -- marks and judgements -------------------------------------------------------------------------------------------


def mark_of(judgement: Judgement) -> str:
    """What somebody said, as the mark that says it."""
    assert judgement.verdict is not None
    if judgement.verdict.reason == MARKS["d"].reason:
        return "d"
    return "y" if relevant(judgement) else "n"


def relevant(judgement: Judgement) -> bool:
    """Whether somebody found it relevant; doubt counts as no."""
    assert judgement.verdict is not None
    return (judgement.verdict.grade or 0) > 0


def _prompt(kind: str) -> str:
    """How a person was asked: as at the terminal; whoever settles disputes knows what others said, and is another."""
    prompt = str(person.load("anybody").prompt)
    return f"{prompt}:{kind}" if kind else prompt
