"""From a recipe to a set in a folder with its card: samples, what was lost where, how the panel voted, shortcuts.

OUT/work    the steps with what they kept and dropped, answers, cost
OUT/set     the set: tables, `mteb`, README.md, card.html; replaced as a whole, unless the new one has lost records
OUT/audit   what a person is to look at, and their decisions
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from eyespot.curate.rmir import audit, demonstration, files, questions
from eyespot.curate.rmir.files import COLUMNS, FinishedSteps
from eyespot.curate.rmir.panel import ABSTAIN, FALSE, SURPLUS, TEST, TRAIN, TRUE, settle_votes
from eyespot.curate.rmir.pipeline import ASKED, RmirPipeline
from eyespot.curate.rmir.quality import CUTOFFS, Shortcut, audit_tables, leaks, quality_checks, shortcuts
from eyespot.curate.set_folder import SetFolder, SharePicture, datasheet, write_cards
from eyespot.pipelines import StepResult, drops
from eyespot.pipelines.data_card import CardContent, CardTable, SampleRecord, card_of, content_of, write_head
from eyespot.runs.agreement import Ratings, krippendorff_alpha
from eyespot.storage.atomic import make_folder, new_folder, write_whole

AUDIT = "audit"
FOR_MTEB = "Corpus, queries and qrels as MTEB loads them. The data card stands in the folder above.\n"


def in_rounds(pipe: RmirPipeline, carry_out: Callable[[RmirPipeline], Sequence[StepResult]]) -> FinishedSteps:
    """The finished steps once there are as many queries as are wanted, or no photo is left to ask about.

    Each round asks about more photos; no request is sent twice.
    """
    made = FinishedSteps(pipe, carry_out(pipe))
    while missing := shortfalls(made):
        inputs = made.of("inputs").counts
        if inputs.kept == inputs.came or pipe.limit is not None:
            break
        factor = max(wanted / max(1, there) for _, _, wanted, there, _ in missing)
        count = min(inputs.came, math.ceil(inputs.kept * min(4.0, 1.1 * factor)) + 1)
        write_whole(pipe.work / ASKED, lambda file, count=count: file.write(str(count).encode()))  # type: ignore[misc]
        pipe = replace(pipe)
        made = FinishedSteps(pipe, carry_out(pipe))
    return made


class MissingQueries(NamedTuple):
    """A split and kind with fewer queries than wanted: how many are wanted and there, and the setting it is owed to."""

    split: str
    kind: str
    wanted: int
    there: int
    owed_to: str


def shortfalls(made: FinishedSteps) -> list[MissingQueries]:
    """What is missing of the queries that are wanted."""
    found = []
    for split, wanted in made.pipe.settings("inputs").want.items():
        for kind in made.kinds:
            there = sum(one["kind"] == kind for one in made.in_split(split))
            left = {**left_after(made, kind), "threshold of split": there}
            steps = zip([*left][1:], pairwise(left.values()), strict=True)
            lost = {name: before - after for name, (before, after) in steps}
            if there < wanted:
                found.append(MissingQueries(split, kind, wanted, there, max(lost, key=lambda name: lost[name])))
    return found


def left_after(made: FinishedSteps, kind: str) -> dict[str, int]:
    """The input photos, then how many queries of a kind are left after what each setting decides."""
    settled = [(one["query"], *settle_votes(one, len(made.seats))) for one in made.triplets if one["kind"] == kind]
    least, lost = made.pipe.settings("confident").least, drops(made.of("split").folder)
    count = {at: sum(one["kind"] == kind for one in made.records(at)) for at in ("questions", "checked", "queries")}
    return {
        "inputs": made.of("inputs").counts.kept,
        "the prompt of questions": count["questions"],
        "the prompt of checked": count["checked"],
        "images and texts of candidates": len({query for query, answers, _ in settled if answers}),
        "least of confident": len({query for query, answers, share in settled if answers and share >= least}),
        "doubt of confident": count["queries"],
        "apart of split": count["queries"] - sum(it.record["kind"] == kind for it in lost if it.reason != SURPLUS),
    }


STAGES = {"asked": "questions", "keeping the rules": "checked", "with a sure target": "queries", "in the set": "split"}


def write_set(
    made: FinishedSteps,
    out: Path,
    *,
    share: SharePicture | None = None,
    verdicts: int = 100,
    target: SetFolder | None = None,
) -> dict[str, int]:
    """The set, and the audit's queues; how many cases these have. With `share` the set holds the photos."""
    make_folder(out)
    target = target or SetFolder.of(out, files.MAIN, len(made.queries), made.done)
    cases = audit.write_queues(made, out / AUDIT, verdicts)  # first, for the card counts what of them is decided
    data_card = card_of(made.done, card_content(made, out / AUDIT))
    with new_folder(target.place) as folder:
        files.write_tables(made, folder)
        files.write_mteb(made, folder / files.MTEB, share)
        if made.queries:
            write_head(data_card, files.mteb_tables(made), folder / files.MTEB, FOR_MTEB)
        write_cards(data_card, folder, files.tables_of(made), files.WHOLE_TABLES)
    target.settle()
    return cases


CITATION = "The method is that of RMIR: A Benchmark Dataset for Reasoning-Intensive Multimodal Image Retrieval"
SHOWN, TARGETS = 8, 4  # queries that the card shows, and targets of each


def card_content(made: FinishedSteps, audit: Path | None = None) -> CardContent:
    """The pipeline's own part of the card; `audit` is the folder of a person's decisions."""
    found = shortcuts(made, made.in_split(TEST) or made.queries)
    texts = {f"questions, {kind}": [q["question"] for q in made.queries if q["kind"] == kind] for kind in made.kinds}
    texts |= {"target descriptions": [query["target"] for query in made.queries]}
    return content_of(
        made.pipe.recipe,
        answers(made),
        CITATION,
        texts=texts,
        samples=_samples(made),
        tables=[*audit_tables(audit), *tables(made, found)],
        notes=list(notes(made)),
        checks=list(quality_checks(made, found, audit)),
    )


def notes(made: FinishedSteps) -> Iterator[str]:
    """What somebody should know before they use it."""
    uses = {str(model.get("use", "")).partition(":")[0] for model in made.pipe.recipe.models.values()}
    if demonstration.NAME in uses:
        yield "This is a demonstration: rules over labels took the place of a model that sees; this set tests nothing."
    if failed := sum(one.counts.failed for one in made.done):
        yield f"{failed:,} records failed and are left out; --retry-failed tries them again."
    if not made.queries:
        yield "No query is left, so the set is empty; the losses below say where they went."
    elif not made.in_split(TEST):
        yield "No query reaches the threshold of reliability, so there is no test set."
    for split, kind, wanted, there, owed in shortfalls(made):
        yield (
            f"Split {split}, {kind}: {there:,} of {wanted:,} wanted queries, and no photo is left to ask about; "
            f"most were lost by {owed}. More photos (clusters, each of seeds) give more."
        )


# -- samples ------------------------------------------------------------------------------------------------------


def _samples(made: FinishedSteps) -> list[SampleRecord]:
    """Test queries first, a kind after the other, from different inputs and questions as far as there are."""
    seen: Counter[str] = Counter()
    ordered = sorted(made.queries, key=lambda one: one["split"] != TEST)
    turns: list[tuple[int, int, int]] = []
    for one in ordered:
        turns.append((seen[one["question"]] + seen[one["image"]], seen[one["kind"]], len(turns)))
        seen.update((one["question"], one["image"], one["kind"]))
    samples = []
    for query in (ordered[number] for *_, number in sorted(turns)[:SHOWN]):
        targets, others = query["targets"][:TARGETS], len(query["targets"][TARGETS:])
        pictures = [("input", Path(query["path"])), *(("target", Path(made.seeds[id]["path"])) for id in targets)]
        standing = f"{query['kind']}, {query['split']}, reliability {query['tsr']:.2f}"
        standing += f"; targets not shown: {others}" if others else ""
        lines = [f"Target: {query['target']}", f"Reasoning: {query['reasoning']}", standing]
        samples.append(SampleRecord(query["question"], pictures, lines))
    return samples


# -- tables -------------------------------------------------------------------------------------------------------


def tables(made: FinishedSteps, found: Sequence[Shortcut]) -> Iterator[CardTable]:
    """All tables of the card; `found` are the shortcuts of its queries."""
    rows = []
    for kind in made.kinds:
        of_kind = [one for one in made.queries if one["kind"] == kind]
        counts = [sum(one["split"] == name for one in of_kind) for name in (TEST, TRAIN)]
        targets = sum(len(one["targets"]) for one in of_kind) / len(of_kind) if of_kind else 0
        rows.append([kind, *counts, f"{targets:.1f}"])
    note = f"The pool holds {len(made.pool):,} photos; {len(made.doubted):,} of {len(made.seeds):,} left the seed set."
    yield CardTable("Queries", ["kind", TEST, TRAIN, "targets of each"], rows, note)
    left = {what: Counter(one["kind"] for one in made.records(name)) for what, name in STAGES.items()}
    kinds = [[kind, *(left[what][kind] for what in STAGES)] for kind in made.kinds]
    yield CardTable("Queries from stage to stage", ["kind", *STAGES], kinds)
    yield _rules(made)
    yield _judges(made)
    if len(made.seats) > 1 and made.triplets:
        yield _agreement(made)
    yield _thresholds(made)
    queries = made.in_split(TEST) or made.queries
    shortcuts_rows = [[one.way, *(f"{fmean(one.by_query[k]):.1%}" for k in CUTOFFS)] for one in found]
    note = (
        f"By {made.pipe.lists.space}, over the pool of {len(made.pool):,}, "
        f"on {len(queries):,} queries ({TEST if made.in_split(TEST) else 'all'}). "
        "Where one half alone does as well as both, nothing has to be reasoned over both."
    )
    yield CardTable("Shortcuts: targets found by", ["asked with", *(f"R@{k}" for k in CUTOFFS)], shortcuts_rows, note)
    yield CardTable("What is shared", ["what", "found", "among"], leaks(made))


def _rules(made: FinishedSteps) -> CardTable:
    """How many of the questions on which there is a verdict break each rule; one may break several."""
    failing = Counter(name for one in drops(made.of("checked").folder) for name in one.record.get("failing", {}))
    counts = made.of("checked").counts
    checked = counts.came - counts.failed - counts.dropped.get(questions.DECLINED, 0)
    rows = [[name, failing[name], _share(failing[name], checked)] for name in made.pipe.settings("checked").rules]
    at_odds = counts.dropped.get(questions.AT_ODDS, 0)
    note = f"Of {checked:,} questions; one may break several rules. In {at_odds:,} the check contradicted itself."
    return CardTable("Rules that questions break", ["rule", "questions", "share"], rows, note)


def _judges(made: FinishedSteps) -> CardTable:
    """How each judge votes, beside the others: one that says yes too often shows."""
    majority = {one["id"]: settle_votes(one, len(made.seats))[0] for one in made.triplets}
    votes: dict[str, list[tuple[str, str]]] = {seat: [] for seat in made.seats}
    for one in made.triplets:
        for vote in one["votes"]:
            votes[vote["judge"]].append((one["id"], vote["verdict"]))
    rows = []
    for seat, given in votes.items():
        counts = Counter(verdict for _, verdict in given)
        same = sum(majority[id] is (verdict == TRUE) for id, verdict in given if verdict != ABSTAIN)
        shares = [_share(counts[verdict], len(given)) for verdict in (TRUE, FALSE, ABSTAIN)]
        rows.append([seat, f"{len(given):,}", *shares, _share(same, len(given) - counts[ABSTAIN])])
    columns = ["judge", "votes", "true", "false", "abstain", "with the majority"]
    return CardTable("How the panel votes", columns, rows, "With the majority: of the votes that are true or false.")


def _agreement(made: FinishedSteps) -> CardTable:
    """How far the panel agrees beyond chance, an abstention as a vote of its own and left out."""
    ratings = Ratings.of((one["triplet"], one["judge"], one["verdict"]) for one in made.votes())
    found = {
        "Krippendorff's alpha, abstentions a vote of their own": krippendorff_alpha(ratings),
        "Krippendorff's alpha, abstentions left out": krippendorff_alpha(ratings.without(ABSTAIN)),
    }
    rows = []
    for what, one in found.items():
        value = "cannot be told" if math.isnan(one.value) else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
        rows.append([what, value, f"{one.items:,}", f"{one.ratings:,}"])
    note = "In brackets: 95% by resampling triplets. 1 is full agreement, 0 that of chance."
    return CardTable("How far the panel agrees", ["coefficient", "value", "triplets", "votes"], rows, note)


def _thresholds(made: FinishedSteps) -> CardTable:
    scores = [one["tsr"] for one in made.queries]
    rows = [[f"{at / 10:.1f}", sum(score > at / 10 for score in scores)] for at in range(10)]
    threshold, judges = made.pipe.settings("split").threshold, len(made.seats)
    failed = sum(len(hit["votes"]) < judges for query in made.queries for hit in made.hits.get(query["id"], []))
    note = (
        f"Reliability (TSR) of {len(scores):,} queries; those over {threshold:g} test. "
        f"The negativeness of a hit is the share, of the judges that answered, that said false; "
        f"0 if under half of all {judges} did. On {failed:,} hits of these queries a judge failed."
    )
    return CardTable("Queries over a threshold of reliability", ["threshold", "queries"], rows, note)


def _share(count: int, of: int) -> str:
    return f"{count / of:.1%}" if of else "–"


def summary(made: FinishedSteps) -> dict[str, Any]:
    """The set in numbers, for the command line."""
    kinds = {name: Counter(one["kind"] for one in made.in_split(name)) for name in (TEST, TRAIN)}
    splits = {name: {kind: counts[kind] for kind in made.kinds} for name, counts in kinds.items()}
    sizes = {"pool": len(made.pool), "seeds": len(made.seeds), "left": len(made.doubted)}
    return {"queries": splits, "missing": [one._asdict() for one in shortfalls(made)], **sizes}


# -- datasheet --------------------------------------------------------------------------------------------------


def answers(made: FinishedSteps) -> dict[str, dict[str, str]]:
    """What a datasheet can answer by itself, by section and question."""
    found, split = made.pipe.settings("candidates"), made.pipe.settings("split")
    by_description = f" and the first {found.texts} by description" * (found.text_encoder is not None)
    seeds, inputs = made.of("seeds").counts, made.of("inputs").counts
    models = {name: made.of(name).step.models for name in ("questions", "checked", "judged")}
    return datasheet(
        Path(__file__),
        **{step: ", ".join(f"{name} ({one.get('use')})" for name, one in of.items()) for step, of in models.items()},
        depth=f"the first {found.images} of each index of pictures{by_description}",
        spaces=", ".join(found.space_names(made.pipe.world)),
        pool=f"{len(made.pool):,}",
        fields=", ".join(COLUMNS["queries"]),
        threshold=f"{split.threshold:g}",
        **{name: f"{len(made.in_split(name)):,}" for name in (TEST, TRAIN)},
        **{"photos": f"{seeds.added:,}", "drawn": f"{seeds.kept:,}", "asked": f"{inputs.kept:,}"},
    )
