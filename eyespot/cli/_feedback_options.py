"""What moves a search on the command line: recorded verdicts and clicks, and photos named on the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from eyespot.cli._judge_options import ledger_of
from eyespot.cli.console import note
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.collection import Collection
    from eyespot.search.feedback import Feedback
    from eyespot.types import Query


def feedback_option() -> Any:
    """`--feedback`: what people recorded for the query."""
    return typer.Option(
        False, "--feedback", help="Let the verdicts and clicks that people gave for this query move the search."
    )


def feedback_from_option() -> Any:
    """`--feedback-from`, a person or a judge."""
    return typer.Option(
        None, "--feedback-from", metavar="PERSON|JUDGE", help="The same by one person's or judge's record alone."
    )


def yes_option() -> Any:
    """`--yes`, once for each photo."""
    return typer.Option(None, "--yes", metavar="ID", help="A photo that is what you look for; repeatable.")


def no_option() -> Any:
    """`--no`, once for each photo."""
    return typer.Option(None, "--no", metavar="ID", help="A photo that is not what you look for; repeatable.")


class FeedbackArguments(NamedTuple):
    """The options as they were given."""

    recorded: bool
    whose: str | None
    yes: Sequence[str]
    no: Sequence[str]
    ledger: Path | None

    @classmethod
    def of(cls, options: Mapping[str, Any], without_query: bool) -> FeedbackArguments:
        """Of a line. `UsageError` where nothing can be moved, or verdicts would also measure what they moved."""
        yes, no = options["yes"] or (), options["no"] or ()
        made = cls(options["feedback"], options["feedback_from"], yes, no, options["ledger"])
        if made.whose is not None and not made.whose.strip():
            raise UsageError("--feedback-from names nobody; give a person or a judge, or --feedback for everybody")
        if made.given and without_query:
            raise UsageError('feedback moves a query; give words or a picture, as in: eyespot search "heron" --yes ID')
        if made.given and options["calibrate"] is not None:
            raise UsageError(
                "verdicts that move a ranking cannot measure it; leave out --calibrate, or --feedback, --yes and --no"
            )
        return made

    @property
    def given(self) -> bool:
        """Whether anything is to move the search."""
        return bool(self.recorded or self.whose or self.yes or self.no)

    def feedback(self, collection: Collection, query: Query) -> Feedback | None:
        """The photos that move a query: a photo of the line stands before what is recorded of it. None for none.

        Raises `UsageError` for a photo of the line that the gallery does not have.
        """
        if not self.given:
            return None
        from eyespot.search.feedback import Feedback
        from eyespot.search.recorded import recorded

        named = [*self.yes, *self.no]
        lacking = [id for id, row in zip(named, collection.view.rows_by_id(named).tolist(), strict=True) if row < 0]
        if lacking:
            raise UsageError(
                f"the gallery has no picture {lacking[0]!r} with vectors of {collection.view.space.encoder}; --yes and "
                "--no take the id that eyespot search --json prints"
            )
        ledger = ledger_of(self.ledger, collection.gallery.path)
        if self.ledger is not None and (self.recorded or self.whose) and not ledger.exists():
            note(f"there is no ledger {ledger} yet; without --ledger the gallery's own is read")
        known = recorded(ledger, query, self.whose) if self.recorded or self.whose else Feedback()
        here = {*self.yes, *self.no}
        yes, no = (tuple(id for id in ids if id not in here) for ids in known[:2])
        by = " and ".join(filter(None, (known.by, "this line" if here and known.by else "")))
        return Feedback((*yes, *self.yes), (*no, *self.no), by)
