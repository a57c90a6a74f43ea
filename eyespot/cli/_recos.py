"""`eyespot build recos`: captions and pictures of everyday scenes in three sizes, made from one's own photos."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli._building import replace_option
from eyespot.cli._judge_options import calls_option, money_option
from eyespot.cli.console import note, print_line, print_summary
from eyespot.cli.settings import json_option


def recos(
    recipe: Path = typer.Argument(help="The recipe, a TOML file; or `demonstration`, which needs no model."),
    out: Path | None = typer.Option(None, "--out", help="The output folder; use the same one again to continue a run."),
    gallery: list[str] = typer.Option(
        [], "-g", "--gallery", help="NAME=FOLDER, once per source; overrides the recipe."
    ),
    limit: int | None = typer.Option(None, "--limit", min=1, help="A trial: at most this many pictures in v0."),
    calls: int | None = calls_option(),
    money: float | None = money_option(),
    positions: bool = typer.Option(False, "--positions", help="Keep the positions that photos tell in their metadata."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Retry what failed in earlier runs."),
    replace: bool = replace_option(),
    show: bool = typer.Option(False, "--show", help="Only print the recipe, as a start for your own."),
    json: bool = json_option(),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Only print how many requests would be sent, and their cost."
    ),
) -> None:
    """Make a ReCoS set: captioned pictures (v0), a similar one for each (v1), and many more like them (v2)."""
    from eyespot.cli._building import carry_out, tell_done, tell_lapsed, tell_planned
    from eyespot.curate.recos.card import notes
    from eyespot.curate.recos.dry_run import plan_steps
    from eyespot.curate.recos.making import RecosJob, galleries_of, place_of, recipe_at
    from eyespot.curate.set_folder import set_note
    from eyespot.formats.positions import as_it_is, without_position
    from eyespot.pipelines import CostLimits
    from eyespot.storage.text_files import text_of
    from eyespot.types import UsageError

    if show:
        print_line(text_of(place_of(recipe)).rstrip())
        return
    if out is None:
        raise UsageError("the set needs a folder; name one with --out")
    share = as_it_is if positions else without_position
    making = RecosJob(recipe_at(recipe), out, galleries_of(gallery), limit, share, replace)
    own = making.recipe.limits
    limits = CostLimits(own.calls if calls is None else calls, own.tokens, own.money if money is None else money)
    how = making.running(limits, retry_failed)
    if dry_run:
        tell_planned(plan_steps(making.pipeline, how), json)
        return
    making.check(how.limits)
    done = carry_out(making.steps, making.pipeline.work, how)
    place = making.place(done)
    made, counts = making.write(done)
    for sentence in filter(None, [*notes(made), set_note(out, place)]):
        note(sentence)
    tell_lapsed(making.pipeline.queues())
    print_summary(f"the set is in {place}; look at {place / 'card.html'}")
    tell_done(done, json, out=str(place), versions=counts)
