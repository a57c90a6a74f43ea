"""`eyespot build rmir`: pictures with questions that other pictures answer, made from your own photos."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import typer

from eyespot.cli._building import replace_option
from eyespot.cli._judge_options import calls_option, money_option
from eyespot.cli._ray import clustering_on, ray_option, workers_option
from eyespot.cli.console import note, print_json, print_line, print_summary
from eyespot.cli.settings import json_option


def rmir(
    context: typer.Context,
    recipe: Path = typer.Argument(help="The recipe, a TOML file; docs/rmir.md has one to start with."),
    out: Path = typer.Option(..., "--out", help="The output folder; use the same one again to continue a run."),
    gallery: Path | None = typer.Option(None, "-g", "--gallery", help="The photos.", show_default="the recipe's"),
    limit: int | None = typer.Option(None, "--limit", min=1, help="A trial: ask about at most this many photos."),
    calls: int | None = calls_option(),
    money: float | None = money_option(),
    audit: int = typer.Option(
        100, "--audit", min=0, help="The number of judgements of each verdict that a person checks."
    ),
    pictures: bool = typer.Option(
        False, "--pictures", help="Put the photos into the set; only if you are allowed to share them."
    ),
    positions: bool = typer.Option(False, "--positions", help="Keep the positions that photos tell in their metadata."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Retry what failed in earlier runs."),
    replace: bool = replace_option(),
    ray: str | None = ray_option(),
    workers: int = workers_option(),
    json: bool = json_option(),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Only print how many requests would be sent, and their cost."
    ),
) -> None:
    """Make an RMIR set: questions about your photos that need reasoning, and the photos that answer them."""
    from eyespot.cli._building import carry_out, tell_done, tell_lapsed, tell_planned
    from eyespot.curate.rmir.audit import Sizes
    from eyespot.curate.rmir.card import notes, summary
    from eyespot.curate.rmir.files import FinishedSteps
    from eyespot.curate.rmir.making import AUDIT, RmirJob, set_of, write_set
    from eyespot.curate.rmir.pipeline import forecast, plan_steps
    from eyespot.formats.positions import as_it_is, without_position
    from eyespot.pipelines import CostLimits, read_recipe

    clustering = context.with_resource(clustering_on(ray, workers))
    making = RmirJob(read_recipe(recipe), out, gallery, limit, clustering)
    own = making.recipe.limits
    limits = CostLimits(own.calls if calls is None else calls, own.tokens, own.money if money is None else money)
    pipe, how = making.pipeline(), making.running(limits, retry_failed)
    if dry_run:
        outlook = forecast(pipe)
        tell_planned(plan_steps(pipe, how), json, forecast=outlook.fields())
        for sentence in [] if json else outlook.sentences():
            print_line(sentence)
        return
    making.check(how.limits)
    made = FinishedSteps(pipe, carry_out(pipe.steps, pipe.work, how))
    share = (as_it_is if positions else without_position) if pictures else None
    target = set_of(made, out, replace=replace)
    place = target.place
    cases = write_set(made, out, share=share, sizes=Sizes(audit, audit * 3 // 4), target=target)
    for sentence in filter(None, [*notes(made), target.note]):
        note(sentence)
    tell_lapsed(out / AUDIT / name for name in cases)
    more: dict[str, Any] = {}
    if limit is not None:
        outlook = forecast(dataclasses.replace(making, limit=None).pipeline())
        more["forecast"] = outlook.fields()
        for sentence in outlook.sentences():
            note(f"without --limit: {sentence}")
    print_summary(f"the set is in {place}; look at {place / 'card.html'}")
    tell_done(made.done, json, out=str(place), audit=cases, **summary(made), **more)


def rmir_audit(
    recipe: Path = typer.Argument(help="The recipe of the set."),
    out: Path = typer.Option(..., "--out", help="The folder that eyespot build rmir wrote."),
    gallery: Path | None = typer.Option(None, "-g", "--gallery", help="The photos.", show_default="the recipe's"),
    json: bool = json_option(),
) -> None:
    """Print how far a person agrees with the panel of an RMIR set; decide with: eyespot build review OUT/audit/…"""
    from eyespot.curate.rmir.audit import agreements, last_hits
    from eyespot.curate.rmir.making import AUDIT, RmirJob
    from eyespot.pipelines import read_recipe

    made = RmirJob(read_recipe(recipe), out, gallery).finished()
    checks, groups = agreements(made, out / AUDIT), last_hits(made, out / AUDIT)
    if json:
        rows = [{**check._asdict(), "share": check.share} for check in checks]
        print_json({"agreement": rows, "last_hits": groups and groups._asdict()})
        return
    for check in checks:
        interval = f"{check.share:.0%} ({check.low:.0%} to {check.high:.0%})"
        print_line(f"{check.kind:<10} {check.agreed} of {check.cases} agreed, {interval}")
    if not groups:
        print_line("last hits  too few decisions to compare reliability by them")
        return
    counts = f"{groups.accepted} accepted, {groups.rejected} rejected"
    statistics = f"t {groups.t:.2f}, p {groups.p:.2g}, d {groups.effect:.2f}"
    print_line(f"last hits  {counts}: reliability is {groups.difference:.2f} lower before the accepted ({statistics})")
