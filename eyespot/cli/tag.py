"""`eyespot tag`: zero-shot labels as a column of the gallery, apart from what people and other programs say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._exporting import chosen_rows
from eyespot.cli.console import SHOWN, exit_if_failed, print_result, warn, warn_all
from eyespot.cli.settings import encoder_option, flag, gallery_here, gallery_option, json_option
from eyespot.cli.transfer import index_list
from eyespot.settings.judge import JudgeSettings, LedgerSetting
from eyespot.settings.search import FilterSettings
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.search.collection import Collection
    from eyespot.search.tagging import Tag

BESIDE = ("score", "by", "probability")  # columns that stand beside that of the labels


def run(
    filters: FilterSettings,
    stored: LedgerSetting,
    labels: str = typer.Argument(..., help="Labels that compete, with commas between them."),
    gallery: Path = gallery_option("The gallery to label."),
    encoder: str = encoder_option("Compare in this space."),
    others: str = typer.Option(
        "", "--others", metavar="LABELS", help="What else the pictures show; what is nearer to these gets no label."
    ),
    column: str = typer.Option("tag", "--column", help="The column that holds the labels."),
    calibrated_by: str = typer.Option(
        None, "--calibrated-by", metavar="person:NAME", help="Whose verdicts make probabilities of a label."
    ),
    likely: float = typer.Option(0.5, "--likely", min=0, max=1, help="The least probability of a calibrated label."),
    dry_run: bool = flag("--dry-run", "Only count the pictures of each label."),
    json: bool = json_option(),
) -> None:
    """Label pictures by what they look like; the labels become a column to filter by."""
    import eyespot
    from eyespot.judges.person import PersonJudge
    from eyespot.search.parts import judge_stage
    from eyespot.search.tagging import LabelSet, probabilities_by, tags

    names, other_names = ([part.strip() for part in text.split(",") if part.strip()] for text in (labels, others))
    if calibrated_by is not None and not calibrated_by.startswith("person:"):
        raise UsageError("--calibrated-by takes person:NAME; nobody has verified what a model says")
    collection = eyespot.open(gallery_here(gallery, writes=not dry_run), encoder)
    _refuse_foreign(collection, column)
    allowed = chosen_rows(collection.view, filters)
    known = {}  # of each label that a person's verdicts calibrate, the probabilities
    if calibrated_by is not None:
        judge = JudgeSettings(rerank=calibrated_by, ledger=stored.ledger)
        with judge_stage(judge, collection.gallery.path) as stage:
            assert isinstance(stage.judge, PersonJudge)
            silent = replace(stage, judge=replace(stage.judge, ask=lambda _: ""))  # only what is in the ledger
            known = {name: made for name in names if (made := probabilities_by(silent, collection, name)) is not None}
        if not known:
            line = f'eyespot search "{names[0]}" --rerank {calibrated_by} --calibrate 30'
            raise NothingFound(f"{calibrated_by} judged no spread of hits of a label; judge one as in: {line}")
    found = list(tags(collection, LabelSet(names, other_names, known, likely), allowed))
    counts = Counter(tag.label for tag in found)
    uncalibrated = [name for name in names if name not in known]
    if uncalibrated:
        way_out = "right or not; name what else there is with --others, or"
        nearest = f"and none where {', '.join(other_names)} is nearer;" if other_names else way_out
        spread = f'judge a spread as in: eyespot search "{uncalibrated[0]}" --rerank person:NAME --calibrate 30'
        unknown = ", ".join(map(repr, uncalibrated))
        warn(f"no person calibrated {unknown}: each picture gets the nearest label, {nearest} {spread}")
    failed = [] if dry_run else _store(collection, found, column)
    labelled = {name: {"pictures": counts[name], "calibrated": name in known} for name in names}
    failures = [{"path": path, "reason": reason} for path, reason in failed]
    fields = {"column": column, "by": collection.encoder.space.encoder, "labels": labelled, "failed": failures}
    print_result(fields, (f"{counts[name]:>8,}  {name}" for name in names), json)
    warn_all(f"not labelled: {path} ({reason})" for path, reason in failed[:SHOWN])
    if failed:
        warn(f"{quantity(len(failed), 'picture')} could not be labelled")
    exit_if_failed(failed)


def _refuse_foreign(collection: Collection, column: str) -> None:
    """`UsageError` for a column that holds what people or other programs say."""
    from eyespot.gallery import filters
    from eyespot.gallery.disk import FACTS

    if not re.fullmatch(r"[a-z][a-z0-9_]*", column):
        raise UsageError(f"--column takes a name of small letters, digits and _, as in bird_tag, not {column!r}")
    own = (collection.gallery.path / FACTS / f"tags-{column}.jsonl").is_file()
    there = {name.casefold() for name in filters.columns_of(collection.view.tables)}
    for name in [] if own else [column, *(f"{column}_{part}" for part in BESIDE)]:
        if name in there:
            raise UsageError(f"the column {name} holds what eyespot tag did not write; choose another with --column")


def _store(collection: Collection, found: Sequence[Tag], column: str) -> list[tuple[str, str]]:
    """Write the labels in place of those of an earlier run, and index them; pictures that get none, and why."""
    from eyespot.formats.imports.photo_facts import IMPORTED, PhotoFacts, take_in

    if not found:
        raise NothingFound("no picture gets a label; name other labels, or fewer --others")
    gallery, by = collection.gallery.path, f"{collection.encoder.space.encoder}, zero-shot"
    photos = []
    for tag, facts in zip(found, collection.view.facts([tag.row for tag in found]), strict=True):
        own: dict[str, Any] = {column: tag.label, f"{column}_score": round(tag.score, 4), f"{column}_by": by}
        if tag.probability is not None:
            own[f"{column}_probability"] = round(tag.probability, 4)
        photos.append(PhotoFacts(str(facts["path"] or facts["id"]), own, None if facts["path"] else IMPORTED))
    done = take_in(gallery, photos, f"tags-{column}", gallery)
    failed = [] if done.path is None else index_list(gallery, done.path)
    return [*done.failed, *((file, "it is not at its place") for file in done.unknown), *failed]
