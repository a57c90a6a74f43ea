"""`eyespot plan`: how much memory and disk, how many machines and hours a collection of any size would take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import print_result, warn
from eyespot.cli.settings import encoder_option, json_option
from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from eyespot.search.plan import BuildCost, SearchCost

_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "": 1.0}
_MOST = 1e15  # images; more are a typing error
_MANY = 100_000_000  # images, from which docs/how/engines.md advises another engine for many people
_STEPS = {
    "import": "or import, where vectors are there already",
    "codes": "codes (eyespot index --codes)",
    "merging": "merging (eyespot compact)",
    "words": "words (in index, import and compact)",
}


def run(
    images: str = typer.Option(..., "--images", help="The number of images: 5000000, 5M or 1.5B."),
    encoder: str = encoder_option("The encoder that makes the vectors.", "starter"),
    dim: int = typer.Option(None, "--dim", min=1, help="The vectors' dimension; default: the encoder's, if known."),
    latency: str = typer.Option("1s", "--latency", help="The maximum time per query: 200ms or 2s."),
    machines_ram: float = typer.Option(64.0, "--machines-ram", min=1.0, help="GiB of memory per machine."),
    rate: float = typer.Option(None, "--rate", min=0.001, help="Images that a machine embeds per second, if known."),
    json: bool = json_option(),
) -> None:
    """Estimate memory, disk, machines and hours for a collection, from a table of measured costs."""
    from eyespot.search.plan import build_costs, costs, search_costs

    # As people write numbers of images, 5000000, 5M, 1.5B or 1e7, and times, 200ms or 2s
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?)([kmb]?)", re.sub(r"[\s,_]", "", images.lower()))
    exact = float(number[1]) * _TIMES[number[2]] if number else 0.0
    if not 0.5 < exact < _MOST:
        raise UsageError(f"--images {images[:40]} is not a number of images; write it as in 5000000, 5M or 1.5B")
    count, time = round(exact), re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(ms|s|)", latency.strip().lower())
    seconds = float(time[1]) * (1e-3 if time[2] == "ms" else 1.0) if time else 0.0
    if not seconds:
        raise UsageError(f"--latency {latency} is not a time; write it as in 200ms or 2s")
    known = costs()["encoders"].get(encoder, {})
    size = dim or known.get("dim")
    if size is None:
        raise UsageError(f"how long the vectors of {encoder} are is not known here; give it with --dim")
    speed, source = (rate, "--rate") if rate else (known.get("rate"), known.get("source", ""))
    ways = search_costs(count, size, latency=seconds, ram=machines_ram)
    steps = build_costs(count, size, rate=speed, source=source)
    plain = [way for way in ways if way.way != "quari" and way.seconds is not None]
    choice = min(plain, key=lambda way: (way.machines, way.seconds), default=None)
    asked = {"images": count, "dim": size, "latency": seconds, "ram": machines_ram, "images_per_second": speed}
    rows = {"ways": [asdict(way) for way in ways], "building": [asdict(step) for step in steps]}
    first = costs()["other"]["first"]
    rest = {"first": first, "choice": choice.way if choice else None}
    fields = {"asked": asked, "measured_on": costs()["machine"], **rows, **rest}
    lines = [f"{quantity(count, 'image')} of {encoder}, {size} numbers each; an answer within {seconds:g} s"]
    lines += [f"machines: {machines_ram:g} GiB, else like the one measured: {costs()['machine']}", ""]
    print_result(fields, [*lines, *_lines(ways, steps, first)], json)
    if json:
        return
    if choice is None:
        warn(f"no exact way answers within {seconds:g} s however many machines; allow more with --latency")
    else:
        machines = quantity(choice.machines or 1, "machine")
        warn(f"exact answers take least with {choice.way}: {machines}, {choice.seconds:.3f} s")
    warn("an approximate index may take less: see docs/how/approximate.md")
    if count >= _MANY:
        warn("at this size, with many people, an engine made for it may serve better: see docs/how/engines.md")


def _lines(ways: Sequence[SearchCost], steps: Sequence[BuildCost], first: float) -> Iterator[str]:
    """What each way of searching needs, and what each step of building takes."""
    yield f"{'way':<8} {'memory':>11} {'disk':>11} {'machines':>9} {'seconds':>9}  measured by"
    for way in ways:
        machines = "never" if way.machines is None else f"{way.machines:,}"
        time = "" if way.seconds is None else f"{way.seconds:.3f}"
        sizes = f"{f'{way.memory:,.1f} GiB':>11} {f'{way.disk:,.1f} GiB':>11}"
        yield f"{way.way:<8} {sizes} {machines:>9} {time:>9}  {way.source}"
    yield ""
    for step in steps:
        if step.hours is None:
            yield f"{step.step}: not known; give images per second with --rate"
        else:
            hours = f"{step.hours:,.1f} machine hours" if step.hours >= 1 else f"{60 * step.hours:,.1f} machine minutes"
            yield f"{_STEPS.get(step.step, step.step)}: {hours} ({step.source})"
    yield f"the first search after one new photo takes {first:g} s more than the next"
