"""The steps `verify`, `grammar` and `review`, which check captions, and `complete`, which drops ambiguous ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from eyespot.curate.recos.captions import CAPTIONS, DECLINED, REPEATED, CaptionWriter
from eyespot.curate.recos.confusing import changed
from eyespot.curate.recos.pictures import AMBIGUOUS, DRAWN, Sources, same_words, wordings
from eyespot.llms.fences import filled
from eyespot.pipelines import Context, Drop, Failed, Keep, Outcome, Record, Records
from eyespot.pipelines.human_review import AWAITS, Case, reviewed
from eyespot.pipelines.prompts import AnswerForm, PromptPicture, ask_model, prompt_of, shared_lines
from eyespot.rooms import needs

UNGRAMMATICAL = "ungrammatical"
DIALECTS = ("american", "british", "australian", "canadian", "indian")


@dataclass(frozen=True)
class Grammar:
    """Which English, which kinds of error do not count, and whether a caption with an error is marked or dropped."""

    dialect: Literal["american", "british", "australian", "canadian", "indian"] = "american"
    ignore: tuple[str, ...] = ("Capitalization", "Formatting", "Style", "Readability", "WordChoice", "Enhancement")
    at_fault: Literal["mark", "drop"] = "mark"
    version: str = "v0"


class Checker:
    """Finds errors in English sentences; Harper is loaded with the first sentence."""

    def __init__(self, how: Grammar) -> None:
        self._how, self._lock = how, Lock()
        self._linter: Any = None

    def __call__(self, text: str) -> list[str]:
        """The errors, each as "Kind: 'words' (what to write instead)"; `EyespotError` without the extra [recos].

        Harper knows few names, so a capitalised word inside a sentence counts as a name, however it is spelled.
        """
        with self._lock:
            if self._linter is None:
                with needs("the step grammar"):
                    import harper
                self._linter = harper.Linter(DIALECTS.index(self._how.dialect))
            lints = self._linter.lint(text, language="plaintext")
        errors = []
        for lint in lints:
            before = text[: lint.span.start].rstrip(" \"'([")
            inside = before and before[-1] not in ".!?:"
            is_name = lint.lint_kind == "Spelling" and lint.problem_text[:1].isupper() and inside
            if lint.lint_kind not in self._how.ignore and not is_name:
                instead = ", ".join(fix.replacement_text for fix in lint.suggestions[:3] if fix.replacement_text)
                errors.append(f"{lint.lint_kind}: {lint.problem_text!r}{f' ({instead})' if instead else ''}")
        return errors


def checked(record: Record, _context: Context, checker: Checker, how: Grammar) -> Outcome:
    """The caption, with its errors; those of drawn pictures are written by rules and name what no dictionary has."""
    if not _is_caption(record, how.version) or record["source"] == DRAWN:
        return Keep(record)
    errors = checker(record["text"])
    if errors and how.at_fault == "drop":
        return Drop(record, UNGRAMMATICAL, "; ".join(errors))
    return Keep({**record, "doubts": [*record.get("doubts", []), *errors]} if errors else record)


UNTRUE, NOT_UNIQUE = "not true of its picture", "true of the similar picture too"
UNSEARCHABLE, UNFIT = "nobody could search for it", "its picture does not fit the sub-task"


class CaptionVerdict(AnswerForm):
    """What a model finds of a caption beside its picture, and beside the similar one of v1."""

    reasoning: str
    true_of_first: bool
    true_of_second: bool
    searchable: bool
    fits: bool


@dataclass(frozen=True)
class Verifying:
    """The version whose captions a model judges, and how many requests are sent at the same time."""

    version: str = "v0"
    workers: int = 4


def verified(record: Record, context: Context, judge: CaptionWriter, how: Verifying) -> Outcome:
    """The caption of a photo if a model finds it true of its picture, and in v1 false of the picture it confuses with.

    Captions of drawn pictures are true by their generator, and are not judged.
    """
    if not _is_caption(record, how.version) or record["source"] == DRAWN:
        return Keep(record)
    shown = [PromptPicture(record["image"], str(judge.sources.place(record)))]
    if record["version"] == "v1":
        other = {**record, "path": record["of_path"]}
        shown.append(PromptPicture(record["of"], str(judge.sources.place(other))))
    about = judge.sources.subtask(record["subtask"])
    words = filled(judge.template, {"caption": record["text"]}, subtask=about.name, about=about.about)
    shared = shared_lines(judge.template, "caption")
    prompt = prompt_of(judge.model, words, CaptionVerdict, shown, _shared=shared)
    reply = ask_model(context, prompt, CaptionVerdict)
    if reply.answer is None:
        return Drop(record, DECLINED, reply.declined)
    fault = fault_found(reply.answer, len(shown))
    return Drop(record, fault, f"{record['text']} ({reply.answer.reasoning})") if fault else Keep(record)


def fault_found(verdict: CaptionVerdict, pictures: int) -> str:
    """Why a caption is dropped that was judged beside this many pictures; "" if it is not."""
    if not verdict.true_of_first:
        return UNTRUE
    if pictures > 1 and verdict.true_of_second:
        return NOT_UNIQUE
    return UNFIT if not verdict.fits else "" if verdict.searchable else UNSEARCHABLE


CONFIRMED, CHANGED, UNSEEN = "confirmed", "changed", "unseen"
"""The column `review` of a caption: a person accepted it, rewrote it, or no person decided on it."""
UNDECIDED = "undecided"  # in steps: unseen, though it was put to a person
TOO_FEW, UNREVIEWED, SURPLUS = "its picture has too few captions", "nobody looked", "more than are wanted"


@dataclass(frozen=True)
class Reviewing:
    """The share of a version's captions that a person checks, besides all in doubt; what happens to undecided ones."""

    share: float = 1.0
    undecided: Literal["wait", "keep", "drop"] = "wait"
    version: str = "v0"


@dataclass(frozen=True)
class Completing:
    """How many captions each picture of a version needs."""

    least: int = CAPTIONS
    version: str = "v0"


def review_captions(
    records: Records, context: Context, queue: Path, sources: Sources, how: Reviewing
) -> Iterator[Outcome]:
    """Captions as a person accepts, edits or drops them."""

    def doubt(record: Record) -> Case | None:
        if not _is_caption(record, how.version):
            return None
        drawn = context.rng(record["id"]).random() < how.share
        if not record.get("doubts") and not drawn:
            return None
        why = f"{record['subtask']}: is this true, good English, and said with neither too much nor too little?"
        pictures, ids = [str(sources.place(record))], [record["image"]]
        if record["version"] == "v1":
            why = f"{record['subtask']}: is this true of the first picture, and not of the second?"
            pictures.append(str(sources.place({**record, "path": record["of_path"]})))
            ids.append(record["of"])
        doubts = "".join(f" Doubt: {text}." for text in record.get("doubts", []))
        return Case(record["id"], why + doubts, tuple(pictures), {"text": record["text"]}, tuple(ids))

    def undecided(record: Record) -> Outcome:
        if how.undecided == "wait":
            return Failed(record, AWAITS)
        if how.undecided == "drop":
            return Drop(record, UNREVIEWED)
        return Keep(record if is_seen(record) else {**record, "review": UNDECIDED})

    return reviewed(records, queue, doubt, undecided, confirm)


def is_seen(record: Record) -> bool:
    """Whether a person confirmed or wrote the words of a caption."""
    return record.get("review") in (CONFIRMED, CHANGED)


def confirm(record: Record, texts: Mapping[str, str]) -> Record:
    """A caption that a person accepted, with its new text if they edited it.

    The differences of a new text from the original are counted again, and its dis(t) is unknown.
    """
    if not texts:
        return record if is_seen(record) else {**record, "review": CONFIRMED}
    fields = {"review": CHANGED} | dict.fromkeys(set(record) & {"dis", "rounds"})
    if "original" in record:
        fields["edits"] = changed(record["original"], texts["text"])
    return {**record, **texts, **fields}


def apart(records: Records, context: Context) -> Iterator[Outcome]:
    """Captions that no other picture has, and records of other kinds."""
    shared = _shared(records, context.earlier["render"])
    for record in records:
        yield Drop(record, AMBIGUOUS, record["text"]) if record["id"] in shared else Keep(record)


def completed(records: Records, context: Context, how: Completing, goals: Mapping[str, int]) -> Iterator[Outcome]:
    """Captions that no other picture has, of pictures with enough such captions.

    Of each picture five, and of a sub-task at most as many pictures of v0 as are wanted, the first ones.
    """
    faults: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()  # captions by their picture
    for record in records:
        if _is_caption(record, how.version):
            key = record["image"], same_words(record["text"])
            if key in seen:
                faults[record["id"]] = REPEATED
            seen.add(key)
    faults |= dict.fromkeys(_shared(records, context.earlier["render"]), AMBIGUOUS)
    fair = [one for one in records if _is_caption(one, how.version) and one["id"] not in faults]
    left, subsets = Counter(one["image"] for one in fair), dict[str, Counter[str]]()
    details = {record["id"]: record["text"] for record in records if record["id"] in faults}
    for record in fair:
        image, subset = record["image"], subsets.setdefault(record["subtask"], Counter())
        full = how.version == "v0" and image not in subset and len(subset) >= goals.get(record["subtask"], len(left))
        if left[image] < how.least:
            faults[record["id"]], details[record["id"]] = TOO_FEW, f"{left[image]} of {how.least}"
        elif full or subset[image] == CAPTIONS:
            faults[record["id"]] = SURPLUS
        else:
            subset[image] += 1
    for record in records:
        fault = faults.get(record["id"])
        yield Drop(record, fault, details.get(record["id"], "")) if fault else Keep(record)


def _shared(records: Records, drawn: Records) -> set[str]:
    """Captions of any version that are true of two pictures, so that a search for either would also match the other.

    Two pictures have the same caption, or it is a wording of a drawn picture, in the set or not.
    """
    images = wordings(drawn)
    for record in records:
        if "text" in record:
            images.setdefault(same_words(record["text"]), set()).add(record["image"])
    return {record["id"] for record in records if "text" in record and len(images[same_words(record["text"])]) > 1}


def _is_caption(record: Record, version: str) -> bool:
    return "text" in record and record["version"] == version
