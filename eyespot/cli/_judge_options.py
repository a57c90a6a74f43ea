"""What verbs that let a judge re-rank have in common: their options, the ledger, what it costs and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import note, print_json, print_line
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.llms.budget import Budget
    from eyespot.llms.prices import Prices
    from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate
    from eyespot.search.query_rewriting import Reworded

SOME_FAILED = 3
DEPTH = 100

# -- options ------------------------------------------------------------------------------------------------


def blend_option() -> Any:
    """`--blend`: how much the judge counts beside the first stage."""
    return typer.Option(
        None, min=0, max=1, help="The weight of the judge next to the first stage, 0 to 1.", show_default="1"
    )


def calls_option() -> Any:
    """`--budget-calls`, in requests."""
    return typer.Option(
        None, "--budget-calls", min=0, help="Stop after this many requests to the judge, including retries."
    )


def money_option() -> Any:
    """`--budget-money`, in US dollars."""
    return typer.Option(None, "--budget-money", min=0, help="Stop when the judge has cost this much, in US dollars.")


def wording_option() -> Any:
    """`--wording`, a name or a TOML file."""
    return typer.Option(
        None,
        "--wording",
        metavar="NAME|FILE",
        help="The prompt of the judge: a name or a TOML file.",
        show_default="its own",
    )


def judge_option() -> Any:
    """`--judge`, once for each option of the judge."""
    return typer.Option(
        None,
        "--judge",
        metavar="KEY=VALUE",
        help="An option of the judge: url=…, answer=votes, requests_per_minute=60, batch=8, extra=JSON, …; repeatable.",
    )


def prices_option() -> Any:
    """`--prices`, a table of one's own."""
    return typer.Option(
        None, "--prices", envvar="EYESPOT_PRICES", metavar="FILE", help="Your own table of model prices."
    )


def ledger_option() -> Any:
    """`--ledger`, where verdicts are kept."""
    return typer.Option(
        None, "--ledger", metavar="FILE", help="The file that stores verdicts.", show_default="the gallery's"
    )


def dry_run_option() -> Any:
    """`--dry-run` of a verb that may ask a judge."""
    return typer.Option(False, "--dry-run", help="Only print how many requests the judge would get, and their cost.")


def expand_option() -> Any:
    """`--expand`, a language model or a table of terms."""
    return typer.Option(
        None,
        "--expand",
        metavar="MODEL|FILE",
        help="Also search with rewritten queries: openai:MODEL, or a JSON file of terms.",
    )


# -- a second stage -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgeOptions:
    """The judge of the command line, with its options."""

    judge: str
    depth: int
    blend: float
    budget: Budget
    wording: str | None
    ledger: Path | None
    prices: Path | None
    options: Mapping[str, Any]  # of the judge itself

    @contextmanager
    def stage(self, gallery: Path) -> Iterator[JudgeRerank]:
        """The second stage; verdicts are kept in the gallery's ledger unless a file is named."""
        from eyespot.judges import wording
        from eyespot.ledger.judgements import Judgements
        from eyespot.search.judge_rerank import JudgeRerank, judge_named

        words = None if self.wording is None else wording(self.wording, self.judge)
        # A judge without a price takes no table.
        prices = self._table() if self.prices and self._table().of(self._model) else None
        judge = judge_named(self.judge, budget=self.budget, wording=words, prices=prices, **self.options)
        with Judgements(ledger_of(self.ledger, gallery)) as ledger:
            yield JudgeRerank(judge, ledger, self.depth, self.blend)

    def tell_plan(self, stage: JudgeRerank, plan: RerankEstimate, json: bool) -> None:
        """How many requests the judge would get, and their cost; on stdout, because it is the output of a dry run."""
        from eyespot.llms.prices import estimate

        fields = {"judge": stage.judge.name, "prompt": stage.judge.prompt, "depth": stage.depth, **plan._asdict()}
        cost: dict[str, Any] = {"tokens": 0, "money": 0.0}
        cost_text = ""
        if stage.judge.language_model is not None:
            price = self._table().of(self._model)
            spent = estimate(plan.to_ask, price)
            cost = {"tokens": spent.tokens_in + spent.tokens_out, "money": spent.money if price else None}
            money = f"${spent.money:.2f}" if price else "no price is known"
            cost_text = f", about {cost['tokens']:,} tokens, {money}"
        if json:
            print_json({**fields, **cost})
            return
        known = f"{plan.pairs - plan.to_ask:,} in the ledger, {plan.to_ask:,} to ask"
        lacking = f"; {plan.pictureless:,} hits have no picture here" if plan.pictureless else ""
        print_line(f"{stage.judge.name}: {plan.pairs:,} pairs, {known}{cost_text}{lacking}")

    def _table(self) -> Prices:
        from eyespot.llms.prices import read_prices

        return read_prices(self.prices)

    @property
    def _model(self) -> str:
        return self.judge.partition(":")[2]


@dataclass(frozen=True)
class JudgeArguments:
    """The options about a judge, by their names; None, False or empty where one is not given."""

    calibrate: int | None = None
    depth: int | None = None
    blend: float | None = None
    blend_from: str | None = None
    judge: Sequence[str] = ()
    budget_calls: int | None = None
    budget_money: float | None = None
    wording: str | None = None
    prices: Path | None = None
    ledger: Path | None = None
    dry_run: bool = False

    @property
    def first_given(self) -> str | None:
        """The first option that needs a judge; `--prices` and `--ledger` may be settings that other verbs need."""
        # 0 is a value: a budget of no calls
        empty = {name for name, value in vars(self).items() if value is None or value is False or value in ((), [])}
        given = (name for name in vars(self) if name not in empty)
        return next((f"--{name.replace('_', '-')}" for name in given if name not in ("prices", "ledger")), None)


def second_stage(judge: str | None, about: JudgeArguments) -> JudgeOptions | None:
    """The judge that re-ranks, or None.

    Raises `UsageError` for an unknown judge, and for options about a judge without one.
    """
    if judge is None:
        if option := about.first_given:
            raise UsageError(f"{option} is about a judge; name one with --rerank, as in --rerank encoder:starter")
        return None
    from eyespot import rooms
    from eyespot.llms.budget import Budget
    from eyespot.search.judge_rerank import is_judge

    if not is_judge(judge):
        raise UsageError(f"no judge {judge!r}; there are: {', '.join(rooms.names('judges'))}")
    return JudgeOptions(
        judge,
        about.depth or DEPTH,
        1.0 if about.blend is None else about.blend,
        Budget(about.budget_calls, None, about.budget_money),
        about.wording,
        about.ledger,
        None if about.prices is None else Path(about.prices),
        dict(_option(judge.partition(":")[0], text) for text in about.judge or ()),
    )


def ledger_of(given: Path | str | None, gallery: Path) -> Path:
    """The ledger that is named, else the gallery's."""
    return Path(given).expanduser() if given is not None else gallery / "ledger.sqlite"


def _option(kind: str, text: str) -> tuple[str, Any]:
    """An option of this kind of judge, with its value."""
    from importlib import import_module

    try:
        known = import_module(f"eyespot.judges.{kind}").OPTIONS
    except (ModuleNotFoundError, AttributeError):  # of another package; a judge without options
        known = {}
    key, sign, value = text.partition("=")
    if not sign or key not in known:
        there = f"there are: {', '.join(known)}" if known else "it has none"
        raise UsageError(f"--judge takes KEY=VALUE with an option of {kind}, not {text!r}; {there}")
    try:
        return key, known[key](value)
    except ValueError:
        raise UsageError(f"--judge {key} takes a number, not {value!r}") from None


# -- output ------------------------------------------------------------------------------------------------


def tell_cost(stage: JudgeRerank, looked: JudgeResult) -> None:
    """One line on the requests of the judge and their cost."""
    note(f"{stage.judge.name}: {looked.stats}")


def end(looked: JudgeResult) -> None:
    """Exit code 3 where a judge left pictures without a verdict, or with one that their ranking cannot use."""
    if looked.stats.failed or looked.unscored or looked.stopped:
        raise typer.Exit(SOME_FAILED)


# -- wordings -----------------------------------------------------------------------------------------------


def rewriter(spec: str, ledger: Path) -> Reworded:
    """Adds wordings to queries: by a JSON file of terms, or by a language model whose answers the ledger keeps."""
    from eyespot.search.query_rewriting import Remembered, Reworded, RewritingModel, chat_with, read_glossary

    if Path(spec).expanduser().is_file():
        return Reworded(read_glossary(Path(spec).expanduser()))
    return Reworded(Remembered(spec, RewritingModel(chat_with(spec, None)), ledger))
