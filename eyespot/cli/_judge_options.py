"""What verbs that let a judge re-rank have in common: some of their options, what it costs and what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import SOME_FAILED, note, print_json, print_line
from eyespot.cli.settings import option_of
from eyespot.settings.judge import JudgeSettings

if TYPE_CHECKING:
    from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate


def calls_option() -> Any:
    """`--budget-calls`, in requests."""
    return option_of(JudgeSettings, "budget_calls")


def money_option() -> Any:
    """`--budget-money`, in US dollars."""
    return option_of(JudgeSettings, "budget_money")


def prices_option() -> Any:
    """`--prices`, a table of one's own."""
    return option_of(JudgeSettings, "prices")


def ledger_option() -> Any:
    """`--ledger`, where verdicts are kept."""
    return option_of(JudgeSettings, "ledger")


def tell_plan(settings: JudgeSettings, stage: JudgeRerank, plan: RerankEstimate, json: bool) -> None:
    """How many requests the judge would get, and their cost; on stdout, because it is the output of a dry run."""
    from eyespot.llms.prices import estimate
    from eyespot.search.parts import prices_of

    fields = {"judge": stage.judge.name, "prompt": stage.judge.prompt, "depth": stage.depth, **plan._asdict()}
    cost: dict[str, Any] = {"tokens": 0, "money": 0.0}
    cost_text = ""
    if stage.judge.language_model is not None:
        price = prices_of(settings).of(str(settings.rerank).partition(":")[2])
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


def tell_cost(stage: JudgeRerank, looked: JudgeResult) -> None:
    """One line on the requests of the judge and their cost."""
    note(f"{stage.judge.name}: {looked.stats}")


def end(looked: JudgeResult) -> None:
    """Exit code 3 where a judge left pictures without a verdict, or with one that their ranking cannot use."""
    if looked.stats.failed or looked.unscored or looked.stopped:
        raise typer.Exit(SOME_FAILED)
