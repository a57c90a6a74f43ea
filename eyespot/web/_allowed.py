"""What the owner allowed beside plain search: adapters, and judges under one budget; opened when the server starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from eyespot import rooms
from eyespot.gallery.view import Gallery
from eyespot.llms.budget import Budget
from eyespot.llms.prices import Price, estimate, read_prices
from eyespot.search.adapted import refuse_other_space
from eyespot.search.judge_rerank import is_judge, judge_named
from eyespot.types import Adapter, Judge, Space, UsageError
from eyespot.web._problems import Problem
from eyespot.web._settings import Judging


def open_adapters(folders: Iterable[tuple[str, str]], gallery: Gallery) -> dict[str, Adapter]:
    """The checkpoints by their names; `UsageError` for one that is none, or fits no space of the gallery."""
    spaces = [gallery.view(gallery.stem(encoder)).space for encoder in gallery.encoders]
    adapters = {}
    for name, folder in folders:
        adapter: Adapter = rooms.load("adapters", f"quari:{folder}")
        wrong = [_misfit(adapter, space) for space in spaces]
        if all(wrong):
            raise UsageError(f"--adapt {name}: {wrong[0]}")
        adapters[name] = adapter
    return adapters


def _misfit(adapter: Adapter, space: Space) -> str:
    """Why an adapter does not fit a space; "" if it does."""
    try:
        refuse_other_space(adapter, space)
    except UsageError as error:
        return str(error)
    return ""


def refuse_misfit(name: str, adapter: Adapter, space: Space) -> None:
    """`Problem` if the adapter is of another space than the one that is searched."""
    if _misfit(adapter, space):
        raise Problem(
            422,
            f"the adapter {name!r} is not made for vectors of {space.encoder}; choose another encoder, or no adapter",
        )


# -- judges -----------------------------------------------------------------------------------------------------


class CostEstimate(NamedTuple):
    """What so many questions would come to; `money` is None where no table knows the price."""

    calls: int
    tokens: int
    money: float | None


@dataclass(frozen=True)
class Allowed:
    """A judge whom people may ask, under the name that they see.

    `paid`: its questions cost money, or may: no table knows their price. One round at a time asks (`asking`).
    """

    name: str
    judge: Judge
    paid: bool
    price: Price | None
    asking: Lock = field(default_factory=Lock, repr=False)

    def cost(self, questions: int) -> CostEstimate:
        """What so many questions would come to, if none has to be repeated."""
        if not hasattr(self.judge, "endpoint"):
            return CostEstimate(0, 0, 0.0)
        spent = estimate(questions, self.price)
        money = spent.money if self.price or not self.paid else None
        return CostEstimate(spent.calls, spent.tokens_in + spent.tokens_out, money)


@dataclass(frozen=True)
class Judges:
    """All judges that are allowed, and the budget that they share as long as the server runs."""

    named: Mapping[str, Allowed]
    depth: int
    budget: Budget

    def __getitem__(self, name: str) -> Allowed:
        if name not in self.named:
            there = f"there are: {', '.join(self.named)}" if self.named else "the owner of this gallery allows none"
            raise UsageError(f"no judge {name!r} re-ranks here; {there}")
        return self.named[name]


def open_judges(judging: Judging) -> Judges:
    """The judges by their names.

    `UsageError` for one that is none, that cannot be asked from a server, or whose money no limit could hold.
    """
    budget, table = Budget(judging.calls, None, judging.money), read_prices(judging.prices)
    named = {}
    for name, spec in judging.judges:
        if spec.partition(":")[0] == "person" or not is_judge(spec):
            models = ", ".join(one for one in rooms.names("judges") if one != "person")
            raise UsageError(f"--rerank {name}: {spec!r} is no judge that a server can ask; there are: {models}")
        price = table.of(spec.partition(":")[2])
        judge = judge_named(spec, budget=budget, prices=table if price else None)
        _ = judge.name  # a model that is not there is told now and not to every visitor
        # Whether questions leave this machine, or a table has a price for them
        from eyespot.llms.client import free

        paid = hasattr(judge, "endpoint") and judge.endpoint.money is not free
        named[name] = Allowed(name, judge, paid, price)
    if judging.money is not None:
        # What no table knows would count as nothing, and a limit in money would never end it
        for one in named.values():
            if one.paid and one.price is None:
                raise UsageError(
                    f"--rerank {one.name}: no table has its model's price, so --budget-money would not hold it; "
                    "name the"
                    " price in a file of yours and give that with --prices"
                )
    return Judges(named, judging.depth, budget)
