"""`eyespot plan`: numbers that can be checked by hand, from a table that says what was measured."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from eyespot.cli import app
from eyespot.search.plan.arithmetic import GIB, PlanRequest, building, cheapest, needs, rented
from eyespot.search.plan.growing import with_building
from eyespot.search.plan.measuring import as_toml, line, measured
from eyespot.search.plan.queueing import busiest
from eyespot.search.plan.slopes import Line, MachineOffer, Rate, Slopes, read_slopes
from eyespot.types import UsageError
from tests.cli.conftest import run_json

TABLE = """
machine = "a machine for tests"
cores = 4
rechecked = 100.0
seek = 0.0001
call = 0.01
facts = 64.0
core_hour = 0.05
gib_hour = 0.005

[build]
codes = 3.6

[scan.float16]
fixed = 0.0
slope = 0.1

[scan.int8]
fixed = 0.02
slope = 0.025

[encoders."some:encoder"]
images_per_second = 100.0
dim = 1024
measured = "a machine for tests"
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))
    (tmp_path / "slopes.toml").write_text(TABLE)
    return tmp_path / "slopes.toml"


def plan(*words: str) -> Any:
    done = CliRunner().invoke(app, ["plan", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def of(report: Any, way: str) -> Any:
    return next(one for one in report["ways"] if one["way"] == way)


def steps_of(report: Any, *names: str) -> list[Any]:
    return [next(step for step in report["building"] if step["step"] == name) for name in names]


def test_a_hundred_million_images_by_hand(table: Path) -> None:
    report = plan("--images", "100M", "-e", "some:encoder", "--latency", "1s", "--slopes", str(table))
    half = of(report, "float16")  # 2048 bytes an image, 64 GiB machines of which 0.8 count; 10.24 s on one machine
    assert half["memory"] == pytest.approx(100e6 * 2048 / GIB)
    assert half["disk"] == pytest.approx(100e6 * (2048 + 64) / GIB)
    assert (half["for_memory"], half["for_latency"], half["machines"]) == (4, 11, 11)  # 190.7 / 51.2; 10.24 / 0.99
    assert half["seconds"] == pytest.approx(10.24 / 11 + 0.01)
    assert half["hour"] == pytest.approx(11 * (4 * 0.05 + 64 * 0.005))


def test_codes_by_hand(table: Path) -> None:
    report = plan("--images", "100M", "-e", "some:encoder", "--latency", "1s", "--slopes", str(table))
    codes = of(report, "int8")  # 1024 + 20 bytes; 2.56 s of scanning, and 100 rows of 0.1 ms on each machine
    assert codes["memory"] == pytest.approx(100e6 * 1044 / GIB)
    assert (codes["for_memory"], codes["machines"]) == (2, 3)  # 2.56 s, of which each machine may take 0.96
    assert codes["seconds"] == pytest.approx(0.02 + 2.56 / 3 + 0.01 + 0.01)
    assert report["choice"] == "int8"


def test_what_is_done_once_by_hand(table: Path) -> None:
    report = plan("--images", "36M", "-e", "some:encoder", "--slopes", str(table))
    embedding, codes = steps_of(report, "embedding", "codes")
    assert embedding == {"step": "embedding", "hours": 100.0, "money": pytest.approx(100 * 0.52)}
    assert codes["hours"] == pytest.approx(36e6 * 1024 / 1e9 * 3.6 / 3600)


def test_one_machine_is_asked_without_a_call(table: Path) -> None:
    report = plan("--images", "1M", "-e", "some:encoder", "--slopes", str(table))
    assert of(report, "float16")["seconds"] == pytest.approx(0.1024) and of(report, "float16")["machines"] == 1


def test_an_answer_sooner_than_a_machine_can_begin_is_never(table: Path) -> None:
    report = plan("--images", "100M", "-e", "some:encoder", "--latency", "25ms", "--slopes", str(table))
    assert of(report, "int8")["machines"] is None and report["choice"] == "float16"


def test_for_people_the_table_and_where_it_comes_from(table: Path) -> None:
    done = CliRunner().invoke(app, ["plan", "--images", "5M", "-e", "some:encoder", "--slopes", str(table)])
    assert "5,000,000 images" in done.stdout and "a machine for tests" in done.stdout
    assert "int8" in done.stdout and "are assumed" in done.stderr


@pytest.mark.long
def test_an_encoder_nobody_knows_needs_its_dim(table: Path) -> None:
    with pytest.raises(UsageError, match="--dim"):
        plan("--images", "1M", "-e", "hf:some/model", "--slopes", str(table))
    report = plan("--images", "1M", "-e", "hf:some/model", "--dim", "512", "--slopes", str(table))
    assert report["building"][0]["hours"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--images", "many"), "no number of images"),
        (("--images", "0"), "no number of images"),
        (("--images", "9" * 400), "no number of images"),
        (("--images", "1M", "--latency", "soon"), "no time"),
        (("--images", "1M", "--latency", "0s"), "no time"),
        (("--images", "1M", "--rent", "--cores", "8"), "leave --cores"),
        (("--images", "1M", "--rent", "--machines-ram", "8"), "leave --cores"),
        (("--images", "1M", "--slopes", "nowhere.toml"), "there is no file nowhere.toml"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(*words)


@pytest.mark.parametrize(
    "text",
    [
        "speed = 3",
        "cores = -1",
        "cores = 0",
        "cores = 1.5",
        "[scan.int8]\nfixed = 1",
        'core_hour = "much"',
        "[build]\ncodes = true",
        "scan = 1",
    ],
)
def test_a_table_that_is_wrong_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(UsageError, match=r"t\.toml"):
        read_slopes(tmp_path / "t.toml")


def test_what_was_measured_is_read_again_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    rates = {"hf:a/b": Rate(12.5, 768, "here")}
    slopes = Slopes("here", 2, {"int8": Line(0.1, 0.2)}, {"codes": 1.5}, rates, 5.0, 1e-4, 0.002, 60.0, 0.1, 0.01)
    (tmp_path / "t.toml").write_text(as_toml(slopes))
    found = read_slopes(tmp_path / "t.toml")
    assert found.scan["int8"] == slopes.scan["int8"] and found.encoders["hf:a/b"] == rates["hf:a/b"]
    assert (found.machine, found.seek, found.build["codes"], found.gib_hour) == ("here", 1e-4, 1.5, 0.01)


def test_the_shipped_table_says_which_machine_it_is_of() -> None:
    shipped = read_slopes()
    assert shipped.machine and {"float16", "int8", "quari"} <= set(shipped.scan) and "starter" in shipped.encoders


@given(st.floats(0, 5), st.floats(0.001, 5))
def test_a_line_through_two_sizes_is_that_line(fixed: float, slope: float) -> None:
    found = line([(numbers, fixed + slope * numbers / 1e9) for numbers in (1e9, 2e9)])
    assert found.fixed == pytest.approx(fixed, abs=1e-6) and found.slope == pytest.approx(slope, rel=1e-6)


@given(st.integers(1, 10**10), st.sampled_from([64, 768, 1152]), st.floats(0.05, 10), st.floats(1, 1024))
def test_the_machines_of_a_plan_are_enough_and_one_less_is_not(
    images: int, dim: int, latency: float, ram: float
) -> None:
    slopes = Slopes(scan={"float16": Line(0.01, 0.1)}, call=0.005)
    (found,) = needs(PlanRequest(images, dim, latency, ram), slopes)
    machines = found.machines
    assert machines is not None and found.seconds is not None and found.seconds <= latency * (1 + 1e-9)
    assert machines * ram * 0.8 >= found.memory * (1 - 1e-9)
    fewer = machines - 1
    late = 0.01 + 0.1 * images * dim / 1e9 / max(fewer, 1) + (0.005 if fewer > 1 else 0) > latency * (1 - 1e-9)
    assert fewer == 0 or late or fewer * ram * 0.8 < found.memory * (1 + 1e-9)


def test_a_plan_without_any_way_in_time_has_no_choice() -> None:
    assert cheapest(needs(PlanRequest(10, 8, 0.001, 1), Slopes(scan={"int8": Line(1.0, 1.0)}))) is None


def test_money_follows_hours() -> None:
    slopes = Slopes(cores=2, build={"codes": 3600.0}, core_hour=1.0, gib_hour=0.5)
    steps = list(building(PlanRequest(1000, 1_000_000, 1, 4), slopes))
    assert [(one.step, one.hours, one.money) for one in steps] == [("embedding", None, None), ("codes", 1.0, 4.0)]


@pytest.mark.long
def test_a_machine_is_measured_whole(tmp_path: Path) -> None:
    """What is measured is what a plan needs, and what was known beside it stays."""
    known = read_slopes(None)
    found = with_building(measured(known, 64, tmp_path, (3000, 6000)), 64, tmp_path, 6000)

    assert set(found.scan) >= {"float32", "float16", "int8", "quari"}
    assert ("approximate" in found.scan) == ("approximate" in found.build) == bool(find_spec("faiss"))
    assert all(one.slope > 0 and one.fixed >= 0 for one in found.scan.values())
    assert set(found.build) >= {"import", "codes", "merging"} and found.build["import"] != known.build.get("import")
    assert all(seconds > 0 for seconds in found.build.values()) and found.rechecked >= 50
    assert found.encoders == known.encoders and found.core_hour == known.core_hour
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine.toml").write_text(as_toml(found))
    assert read_slopes(tmp_path / "mine.toml") == found


# -- cores, people and machines to rent -------------------------------------------------------------------------


def test_twice_the_cores_halve_the_scan_as_far_as_scaling_says(table: Path) -> None:
    words = ("--images", "10M", "-e", "some:encoder", "--latency", "5s", "--slopes", str(table))
    assert of(plan(*words), "float16")["seconds"] == pytest.approx(1.024)  # of 4 cores
    table.write_text(table.read_text().replace("cores = 4", "cores = 4\nscaling = 0.8"))
    found = of(plan(*words, "--cores", "16"), "float16")
    assert found["seconds"] == pytest.approx(1.024 / 1.6**2)
    assert found["hour"] == pytest.approx(16 * 0.05 + 64 * 0.005)


def test_people_who_wait_for_each_other_take_copies(table: Path) -> None:
    words = ("--images", "10M", "-e", "some:encoder", "--latency", "2s", "--slopes", str(table))
    alone, many = (plan(*words, "--users", str(users), "--percentile", "95") for users in (1, 40))
    one, several = of(alone, "float16"), of(many, "float16")
    assert (one["machines"], one["copies"]) == (1, 1)
    assert several["machines"] >= 5 and several["machines"] % several["copies"] == 0  # 4 queries a second of 1 s each
    assert several["machines"] <= of(plan(*words, "--users", "40", "--percentile", "99.9"), "float16")["machines"]


def test_each_way_takes_the_cheapest_machine_of_the_table(table: Path) -> None:
    text = "[machines.tiny]\ncores = 4\nram = 8\nhour = 0.1\n[machines.wide]\ncores = 4\nram = 640\nhour = 0.3\n"
    table.write_text(table.read_text() + text)
    report = plan("--images", "100M", "-e", "some:encoder", "--latency", "20s", "--rent", "--slopes", str(table))
    half = of(report, "float16")  # 190.7 GiB: 30 tiny machines or a wide one
    assert (half["machine"], half["machines"], half["hour"]) == ("wide", 1, pytest.approx(0.3))


def test_a_machine_without_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("[machines.none]\ncores = 4\nram = 0\nhour = 1")
    with pytest.raises(UsageError, match=r"t\.toml"):
        read_slopes(tmp_path / "t.toml")


@pytest.mark.parametrize(("load", "mean"), [(0.5, 1.5), (0.8, 3.0)])
def test_waiting_is_that_of_the_textbook(load: float, mean: float) -> None:
    """Pollaczek and Khinchine: the mean time of M/D/1 is 1 + load / 2 / (1 - load); half the queries take less."""
    assert busiest(mean, 50) > load - 0.05 and busiest(mean, 99) < load
    assert busiest(0.9, 50) == 0 and busiest(1e9, 99) > 0.9


@pytest.mark.parametrize("images", ["1e7", "10 M", "10,000,000", "0.01B"])
def test_a_number_of_images_is_read_as_people_write_it(table: Path, images: str) -> None:
    assert plan("--images", images, "-e", "some:encoder", "--slopes", str(table))["asked"]["images"] == 10_000_000


def test_what_is_done_once_is_priced_on_the_machine_that_is_meant(table: Path) -> None:
    table.write_text(table.read_text().replace("cores = 4", "cores = 4\nscaling = 0.8"))
    words = ("--images", "36M", "-e", "some:encoder", "--slopes", str(table), "--cores", "8")
    for rate, hours in ((), 100 / 1.6), (("--rate", "1000"), 10.0):
        embedding, codes = steps_of(plan(*words, *rate), "embedding", "codes")
        assert embedding["hours"] == pytest.approx(hours)
        assert embedding["money"] == pytest.approx(hours * (8 * 0.05 + 64 * 0.005))
        assert codes["hours"] == pytest.approx(36e6 * 1024 / 1e9 * 3.6 / 3600 / 1.6)


def test_of_rented_machines_the_least_money_is_chosen() -> None:
    """A large machine answers with float32 alone; three small ones with float16 cost less."""
    machines = {"big": MachineOffer(4, 1000, 9.0), "tiny": MachineOffer(4, 50, 1.0)}
    slopes = Slopes(cores=4, scan={"float32": Line(0, 0.001), "float16": Line(0, 0.001)}, machines=machines)
    offers = dict(reversed(offer) for offer in rented(PlanRequest(100_000_000, 512, 1, 64), slopes))
    chosen = cheapest(offers)
    assert chosen is not None and (chosen.way, offers[chosen], chosen.machines, chosen.hour) == (
        "float16",
        "tiny",
        3,
        3,
    )


@pytest.mark.long
@given(st.floats(1.0, 100), st.floats(50, 99.9))
def test_whoever_has_time_for_one_query_alone_may_have_people(room: float, percentile: float) -> None:
    assert busiest(room, round(percentile, 1)) > 0


def test_a_copy_takes_many_machines_where_that_is_cheaper() -> None:
    """At a load near 1, 99.9 % within 40 times one query alone; a copy of the least machines may hardly be busy."""
    wanted = PlanRequest(10_000_000, 512, 1.0, 10_000, users=10_000, percentile=99.9)
    (found,) = needs(wanted, Slopes(scan={"float32": Line(0.0, 0.19)}))
    least = 10_000 / 10 * 0.19 * 5.12  # machines that scan without a rest
    assert found.machines is not None and least < found.machines < 1.2 * least


def test_machines_of_more_memory_are_fewer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    line = ("plan", "--images", "100M", "--dim", 512, "--latency", "60s")

    small, large = run_json(*line, "--machines-ram", 16), run_json(*line, "--machines-ram", 256)

    needed = [{one["way"]: one["for_memory"] for one in plan["ways"]} for plan in (small, large)]
    assert all(needed[0][way] > needed[1][way] for way in needed[0])


def test_the_hours_of_embedding_follow_the_rate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A million images at a hundred a second are 10,000 seconds."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    (embedding, *_) = run_json("plan", "--images", "1M", "--dim", 64, "--rate", 100)["building"]

    assert embedding["hours"] == pytest.approx(10_000 / 3600)


@pytest.mark.slow
def test_what_was_measured_is_kept_in_a_table_and_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    line = ("plan", "--images", "1M", "--slopes", tmp_path / "mine.toml")

    first, again = run_json(*line, "--measure"), run_json(*line)

    assert (tmp_path / "mine.toml").is_file() and first["building"] == again["building"]
    assert first["measured_on"] == again["measured_on"]
