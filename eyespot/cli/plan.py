"""`eyespot plan`: how many machines, how much memory, disk, time and money a collection of any size would take."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import note, print_json, print_line
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.plan.arithmetic import Building, Needs, PlanRequest
    from eyespot.search.plan.slopes import Slopes

_TIMES = {"k": 1e3, "m": 1e6, "b": 1e9, "": 1.0}
_RAM = 64.0  # GiB
_MOST = 1e15  # images; more are a typing error
_MANY = 100_000_000  # images, from which docs/engines.md advises another engine for many people
_SECONDS = {"ms": 1e-3, "s": 1.0, "": 1.0}
_STEPS = {
    "import": "or import, where vectors are there already",
    "codes": "codes (eyespot index --codes)",
    "merging": "merging (eyespot compact)",
}
_MEASURED = (100_000, 400_000)  # rows; with vectors of 1152 numbers two minutes on two cores, and 3 GB


def run(
    images: str = typer.Option(..., "--images", help="The number of images: 5000000, 5M or 1.5B."),
    encoder: str = typer.Option(
        "starter", "-e", "--encoder", envvar="EYESPOT_ENCODER", help="The encoder that makes the vectors."
    ),
    dim: int = typer.Option(
        None, "--dim", min=1, help="The dimension of the vectors; default: the encoder's, if known."
    ),
    latency: str = typer.Option("1s", "--latency", help="The maximum time per query: 200ms or 2s."),
    machines_ram: float = typer.Option(None, "--machines-ram", min=1.0, help="GiB of memory per machine; default: 64."),
    cores: int = typer.Option(None, "--cores", min=1, help="Cores per machine; default: those of the one measured."),
    rent: bool = typer.Option(False, "--rent", help="Choose the cheapest machine of the table instead."),
    users: int = typer.Option(1, "--users", min=1, help="People who search at once."),
    percentile: float = typer.Option(
        95.0, "--percentile", min=50.0, max=99.9, help="Of a hundred queries of several people, how many end in time."
    ),
    rate: float = typer.Option(None, "--rate", min=0.001, help="Images that a machine embeds per second, if known."),
    measure: bool = typer.Option(
        False, "--measure", help="Measure this machine first, a minute or two; stored in --slopes if given."
    ),
    slopes: Path = typer.Option(None, "--slopes", help="The table of measurements, in TOML."),
    json: bool = json_option(),
) -> None:
    """Estimate machines, memory, disk, hours and money for a collection, from measured slopes."""
    from eyespot.search.plan.arithmetic import building, cheapest, needs, rented
    from eyespot.search.plan.slopes import read_slopes

    known = read_slopes(slopes if not measure or (slopes and slopes.exists()) else None)
    if measure:
        known = _measured_here(known, encoder, dim, slopes)
    if rent:
        _refuse_rent(known, cores, machines_ram)
    request = _request(known, encoder, (images, dim, latency), (machines_ram or _RAM, cores), rate)
    request = replace(request, users=users, percentile=percentile)
    offers = rented(request, known) if rent else [("", one) for one in needs(request, known)]
    ways, steps = [one for _, one in offers], list(building(request, known))
    exact = cheapest(way for way in ways if way.exact and way.way != "quari")
    if json:
        parameters = vars(request)
        machine = {"machine": known.machine, "cores": known.cores}
        rows = {
            "ways": [way._asdict() | {"machine": name} for name, way in offers],
            "building": [step._asdict() for step in steps],
        }
        print_json({"asked": parameters, "measured_on": machine, **rows, "choice": exact.way if exact else None})
        return
    size = f"{request.images:,} images of {encoder}, {request.dim} numbers each"
    many = f" for {percentile:g} % of the queries of {users:,} people" if users > 1 else ""
    print_line(f"{size}; an answer within {request.latency:g} s{many}")
    shape = "the cheapest of the table" if rent else f"{request.ram:g} GiB and {cores or known.cores} cores"
    print_line(f"machines: {shape}, else like the one measured: {known.machine}")
    print_line("")
    _print(offers, steps)
    _print_choice(request, known, exact, encoder)


def _measured_here(known: Slopes, encoder: str, dim: int | None, slopes: Path | None) -> Slopes:
    """What is known, with this machine in place of another, stored in the table if one is given."""
    from eyespot import rooms, sample
    from eyespot.search.plan.growing import with_building
    from eyespot.search.plan.measuring import as_toml, measured, with_rate
    from eyespot.storage.atomic import write_whole

    loaded = rooms.load("encoders", encoder)
    known = with_rate(known, loaded, sorted(sample.photos().glob("*.jpg")))
    with tempfile.TemporaryDirectory(prefix="eyespot-plan-") as folder:
        known = measured(known, dim or loaded.space.dim, Path(folder), _MEASURED)
        known = with_building(known, dim or loaded.space.dim, Path(folder), _MEASURED[-1])
    if slopes:
        write_whole(slopes, lambda file: file.write(as_toml(known).encode()))
    return known


def _request(
    known: Slopes,
    encoder: str,
    texts: tuple[str, int | None, str],
    machine: tuple[float, int | None],
    rate: float | None,
) -> PlanRequest:
    """The collection and the latency of the options; `UsageError` for what is not a number, or not known."""
    from eyespot.search.plan.arithmetic import PlanRequest, speed_up

    images, dim, latency = texts
    measured = known.encoders.get(encoder)
    if dim is None and measured is None:
        raise UsageError(
            f"how long the vectors of {encoder} are is not known here; say it with --dim, or let it be measured with"
            " --measure"
        )
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?)([kmb]?)", re.sub(r"[\s,_]", "", images.lower()))
    count = float(number[1]) * _TIMES[number[2]] if number else 0.0
    if not 0.5 < count < _MOST:
        raise UsageError(f"--images {images[:40]} is no number of images; write it as in 5000000, 5M or 1.5B")
    time = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(ms|s|)", latency.strip().lower())
    seconds = float(time[1]) * _SECONDS[time[2]] if time else 0.0
    if not seconds:
        raise UsageError(f"--latency {latency} is no time; write it as in 200ms or 2s")
    ram, cores = machine
    wanted = PlanRequest(round(count), dim or (measured.dim if measured else 0), seconds, ram, rate, cores)
    if rate is None and measured is not None:  # a rate that is given is one of the machines that are meant
        wanted = replace(wanted, images_per_second=measured.images_per_second * speed_up(wanted, known))
    return wanted


def _refuse_rent(known: Slopes, cores: int | None, ram: float | None) -> None:
    if cores is not None or ram is not None:
        raise UsageError("--rent chooses the machines of the table; leave --cores and --machines-ram out, or --rent")
    if not known.machines:
        raise UsageError("the table has no machines to rent; add [machines.NAME] with cores, ram and hour to it")


# -- for people ---------------------------------------------------------------------------------------------


def _print(offers: Sequence[tuple[str, Needs]], steps: Sequence[Building]) -> None:
    """What each way of searching needs, and what each step of building costs."""
    print_line(f"{'way':<12} {'exact':<6} {'memory':>11} {'disk':>11} {'machines':>9} {'seconds':>9} {'$/hour':>9}")
    for name, way in offers:
        machines = "never" if way.machines is None else f"{way.machines:,}"
        seconds = "" if way.seconds is None else f"{way.seconds:.3f}"
        price = "" if way.hour is None else f"{way.hour:,.2f}"
        sizes = f"{f'{way.memory:,.1f} GiB':>11} {f'{way.disk:,.1f} GiB':>11}"
        head = f"{way.way:<12} {'yes' if way.exact else 'no':<6}"
        copies = f"  in {way.copies:,} copies" if way.copies > 1 else ""
        print_line(f"{head} {sizes} {machines:>9} {seconds:>9} {price:>9}  {name}{copies}".rstrip())
    print_line("")
    for step in steps:
        if step.hours is None or step.money is None:
            print_line(f"{step.step}: not known; say images per second with --rate, or --measure")
        else:
            hours = f"{step.hours:,.1f} machine hours" if step.hours >= 1 else f"{60 * step.hours:,.1f} machine minutes"
            print_line(f"{_STEPS.get(step.step, step.step)}: {hours}, ${step.money:,.2f}")


def _print_choice(request: PlanRequest, known: Slopes, exact: Needs | None, encoder: str) -> None:
    from eyespot.search.plan.arithmetic import speed_up

    if exact is None:
        note(f"no exact way answers within {request.latency:g} s however many machines; allow more with --latency")
    else:
        machines = "1 machine" if exact.machines == 1 else f"{exact.machines:,} machines"
        note(f"exact answers take least with {exact.way}: {machines}, {exact.seconds:.3f} s")
    if "approximate" not in known.scan:
        note("an approximate index is not measured here, and may take less: see docs/approximate.md")
    if request.images >= _MANY and request.users > 1:
        note("at this size, with many people, an engine made for it may serve better: see docs/engines.md")
    speed = known.encoders.get(encoder)
    if speed and request.images_per_second == speed.images_per_second * speed_up(request, known):
        note(f"{encoder} embeds {speed.images_per_second:.1f} images a second on: {speed.measured}")
    prices = f"{known.core_hour:g} $ an hour for a core and {known.gib_hour:g} for a GiB"
    note(f"money: {prices} are assumed; edit a copy of the table and give it with --slopes")
