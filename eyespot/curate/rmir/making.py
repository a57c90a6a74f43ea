"""From a recipe to a set in a folder: the steps are run, the tables and the card written, the audit drawn.

OUT/work    the steps with what they kept and dropped, answers, cost
OUT/set     the set: tables, `mteb`, README.md, card.html; replaced as a whole, unless the new one has lost records
OUT/audit   what a person is to look at, and their decisions
"""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.rmir import audit, card, files
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.curate.set_folder import SetFolder, SharePicture, write_cards
from eyespot.pipelines import plan, run
from eyespot.pipelines.data_card import card_of, write_head
from eyespot.storage.atomic import make_folder, new_folder
from eyespot.types import UsageError

AUDIT = "audit"
FOR_MTEB = "Corpus, queries and qrels as MTEB loads them. The data card stands in the folder above.\n"


def finished_steps(pipe: RmirPipeline) -> FinishedSteps:
    """The set as it was made; `UsageError` if it is not finished, or the recipe has changed since."""
    if not all(one.finished for one in plan(pipe.steps, pipe.work, pipe.running())):
        raise UsageError(f"the set in {pipe.out} is not finished, or its recipe changed; run eyespot build rmir first")
    return FinishedSteps(pipe, run(pipe.steps, pipe.work, pipe.running()))


def set_of(made: FinishedSteps, out: Path, *, replace: bool = False) -> SetFolder:
    """The folder of the set that these steps made."""
    return SetFolder.of(out, "queries.parquet", len(made.queries), made.done, replace=replace)


def write_set(
    made: FinishedSteps,
    out: Path,
    *,
    share: SharePicture | None = None,
    sizes: audit.Sizes = audit.Sizes(),
    target: SetFolder | None = None,
) -> dict[str, int]:
    """The set, and the audit's queues; how many cases these have. With `share` the set holds the photos."""
    make_folder(out)
    target = target or set_of(made, out)
    cases = audit.write_queues(made, out / AUDIT, sizes)  # first, for the card counts what of them is decided
    data_card = card_of(made.done, card.card_content(made, out / AUDIT))
    with new_folder(target.place) as folder:
        files.write_tables(made, folder)
        files.write_mteb(made, folder / files.MTEB, share)
        if made.queries:
            write_head(data_card, files.mteb_tables(made), folder / files.MTEB, FOR_MTEB)
        write_cards(data_card, folder, files.tables_of(made), files.whole_tables())
    target.settle()
    return cases
