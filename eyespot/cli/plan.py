"""`eyespot plan`: how many machines, how much memory, disk, time and money a collection of any size would take."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import note, print_json, print_line
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.plan.arithmetic import Building, Needs, PlanRequest
    from eyespot.search.plan.slopes import Slopes

_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "": 1.0}
_MOST = 1e15  # images; more are a slip of the hand
_SECONDS = {"ms": 1e-3, "s": 1.0, "": 1.0}
_MEASURED = (100_000, 200_000)  # rows; with vectors of 1152 numbers a minute on two cores, and half a gigabyte


def run(
    images: str = typer.Option(..., "--images", help="The number of images: 5000000, 5M or 1.5B."),
    encoder: str = typer.Option(
        "starter", "-e", "--encoder", envvar="EYESPOT_ENCODER", help="The encoder that makes the vectors."
    ),
    dim: int = typer.Option(
        None, "--dim", min=1, help="The dimension of the vectors; default: the encoder's, if known."
    ),
    latency: str = typer.Option("1s", "--latency", help="The maximum time per query: 200ms or 2s."),
    machines_ram: float = typer.Option(64.0, "--machines-ram", min=1.0, help="GiB of memory per machine."),
    rate: float = typer.Option(None, "--rate", min=0.001, help="Images that a machine embeds per second, if known."),
    measure: bool = typer.Option(
        False, "--measure", help="Measure this machine first, about a minute; stored in --slopes if given."
    ),
    slopes: Path = typer.Option(None, "--slopes", help="The table of measurements, in TOML."),
    json: bool = json_option(),
) -> None:
    """Estimate machines, memory, disk, hours and money for a collection, from measured slopes."""
    from eyespot.search.plan.arithmetic import building, cheapest, needs
    from eyespot.search.plan.measuring import as_toml
    from eyespot.search.plan.slopes import read_slopes
    from eyespot.storage.files import write_whole

    if not measure:
        known = read_slopes(slopes)
    else:
        known = _measured(read_slopes(slopes if slopes and slopes.exists() else None), encoder, dim)
        if slopes:
            write_whole(slopes, lambda file: file.write(as_toml(known).encode()))
    wanted = _wanted(known, encoder, (images, dim, latency), machines_ram, rate)
    found = needs(wanted, known)
    steps = list(building(wanted, known))
    exact = cheapest(one for one in found if one.exact and one.way != "quari")
    if json:
        asked = {name: getattr(wanted, name) for name in ("images", "dim", "latency", "ram", "images_per_second")}
        machine = {"machine": known.machine, "cores": known.cores}
        rows = {"ways": [one._asdict() for one in found], "building": [one._asdict() for one in steps]}
        plan_fields: dict[str, Any] = {"asked": asked, "measured_on": machine} | rows
        print_json(plan_fields | {"choice": exact.way if exact else None})
        return
    for text in (*_head(wanted, encoder, known), *map(_row, found), "", *map(_step, steps)):
        print_line(text)
    _close(wanted, known, exact, encoder)


def _measured(known: Slopes, encoder: str, dim: int | None) -> Slopes:
    from eyespot import rooms, sample
    from eyespot.search.plan.measuring import measured, with_rate

    loaded = rooms.load("encoders", encoder)
    known = with_rate(known, loaded, sorted(sample.photos().glob("*.jpg")))
    with tempfile.TemporaryDirectory(prefix="eyespot-plan-") as folder:
        return measured(known, dim or loaded.space.dim, Path(folder), _MEASURED)


def _wanted(
    known: Slopes, encoder: str, asked: tuple[str, int | None, str], ram: float, rate: float | None
) -> PlanRequest:
    from eyespot.search.plan.arithmetic import PlanRequest

    images, dim, latency = asked
    told = known.encoders.get(encoder)
    if dim is None and told is None:
        raise UsageError(
            f"how long the vectors of {encoder} are is not known here; say it with --dim, or let it be measured with"
            " --measure"
        )
    speed = rate or (told.images_per_second if told else None)
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmb]?)", images.strip().lower().replace(",", "").replace("_", ""))
    count = float(found[1]) * _TIMES[found[2]] if found else 0.0
    if not 0.5 < count < _MOST:
        raise UsageError(f"--images {images[:40]} is no number of images; write it as in 5000000, 5M or 1.5B")
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(ms|s|)", latency.strip().lower())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not seconds:
        raise UsageError(f"--latency {latency} is no time; write it as in 200ms or 2s")
    return PlanRequest(round(count), dim or (told.dim if told else 0), seconds, ram, speed)


# -- for people ---------------------------------------------------------------------------------------------


def _head(wanted: PlanRequest, encoder: str, known: Slopes) -> list[str]:
    asked = f"{wanted.images:,} images of {encoder}, {wanted.dim} numbers each; an answer within {wanted.latency:g} s"
    machine = f"machines of {wanted.ram:g} GiB, else like the one measured: {known.machine}"
    columns = f"{'way':<12} {'exact':<6} {'memory':>11} {'disk':>11} {'machines':>9} {'seconds':>9} {'$/hour':>9}"
    return [asked, machine, "", columns]


def _row(one: Needs) -> str:
    machines = "never" if one.machines is None else f"{one.machines:,}"
    seconds = "" if one.seconds is None else f"{one.seconds:.3f}"
    price = "" if one.hour is None else f"{one.hour:,.2f}"
    memory, disk = f"{one.memory:,.1f} GiB", f"{one.disk:,.1f} GiB"
    exact = "yes" if one.exact else "no"
    return f"{one.way:<12} {exact:<6} {memory:>11} {disk:>11} {machines:>9} {seconds:>9} {price:>9}"


def _step(one: Building) -> str:
    if one.hours is None or one.money is None:
        return f"{one.step}: not known; say images per second with --rate, or --measure"
    return f"{one.step}: {one.hours:,.1f} machine hours, ${one.money:,.2f}"


def _close(wanted: PlanRequest, known: Slopes, exact: Needs | None, encoder: str) -> None:
    if exact is None:
        note(f"no exact way answers within {wanted.latency:g} s however many machines; allow more with --latency")
    else:
        machines = "1 machine" if exact.machines == 1 else f"{exact.machines:,} machines"
        note(f"exact answers take least with {exact.way}: {machines}, {exact.seconds:.3f} s")
    told = known.encoders.get(encoder)
    if told and wanted.images_per_second == told.images_per_second:
        note(f"{encoder} embeds {told.images_per_second:.1f} images a second on: {told.measured}")
    note(f"money: {known.core_hour:g} $ an hour for a core and {known.gib_hour:g} for a GiB are assumed; edit a copy of"
         " the table and give it with --slopes")  # fmt: skip
