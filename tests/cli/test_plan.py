"""`eyespot plan`: numbers that can be checked by hand, from a table that says what was measured."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from eyespot.cli import app
from eyespot.search.plan import GIB, costs, search_costs
from eyespot.types import UsageError

TABLE: dict[str, Any] = {
    "machine": "a machine for tests",
    "other": {"rechecked": 100.0, "seek": 0.0001, "call": 0.01, "facts": 64, "first": 0.5},
    "build": {"codes": {"slope": 3.6, "source": "a run"}, "words": {"rows": 20.0, "source": "a run"}},
    "scan": {
        "float32": {"fixed": 0.0, "slope": 0.05, "source": "a run"},
        "float16": {"fixed": 0.0, "slope": 0.1, "source": "a run"},
        "int8": {"fixed": 0.02, "slope": 0.025, "source": "a run"},
        "quari": {"fixed": 0.02, "slope": 0.1, "source": "a run"},
    },
    "encoders": {"some:encoder": {"rate": 100.0, "dim": 1024, "source": "a run"}},
}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyespot.search.plan.costs", lambda: TABLE)


def plan(*words: str) -> Any:
    done = CliRunner().invoke(app, ["plan", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def of(report: Any, way: str) -> Any:
    return next(one for one in report["ways"] if one["way"] == way)


@pytest.mark.usefixtures("table")
def test_a_hundred_million_images_by_hand() -> None:
    report = plan("--images", "100M", "-e", "some:encoder", "--latency", "1s")
    half, codes = of(report, "float16"), of(report, "int8")
    assert half["memory"] == pytest.approx(100e6 * 2048 / GIB)
    assert half["disk"] == pytest.approx(100e6 * (2048 + 64) / GIB)
    assert half["machines"] == 11  # four of 51.2 GiB hold them; 10.24 s of one machine in 0.99 s each take eleven
    assert half["seconds"] == pytest.approx(10.24 / 11 + 0.01)
    assert codes["memory"] == pytest.approx(100e6 * 1044 / GIB)
    assert codes["machines"] == 3  # 2.56 s, of which each machine may take 0.96
    assert codes["seconds"] == pytest.approx(0.02 + 2.56 / 3 + 0.01 + 0.01)
    assert report["choice"] == "int8" and report["measured_on"] == "a machine for tests"


@pytest.mark.usefixtures("table")
def test_what_is_done_once_by_hand() -> None:
    embedding, codes, words = plan("--images", "36M", "-e", "some:encoder")["building"]
    assert embedding == {"step": "embedding", "hours": 100.0, "source": "a run"}
    assert codes["hours"] == pytest.approx(36e6 * 1024 / 1e9 * 3.6 / 3600)
    assert words["hours"] == pytest.approx(36 * 20 / 3600)
    assert plan("--images", "36M", "-e", "some:encoder", "--rate", "1000")["building"][0]["hours"] == 10.0


@pytest.mark.usefixtures("table")
def test_an_answer_sooner_than_a_machine_can_begin_is_never() -> None:
    report = plan("--images", "100M", "-e", "some:encoder", "--latency", "25ms")
    assert of(report, "int8")["machines"] is None and report["choice"] == "float32"
    assert of(plan("--images", "1M", "-e", "some:encoder"), "float16")["seconds"] == pytest.approx(0.1024)


@pytest.mark.usefixtures("table")
def test_for_people_the_table_and_where_it_comes_from() -> None:
    done = CliRunner().invoke(app, ["plan", "--images", "5M", "-e", "some:encoder"])
    assert "5,000,000 images" in done.stdout and "a machine for tests" in done.stdout and "a run" in done.stdout
    assert "the first search after one new photo takes 0.5 s more than the next" in done.stdout
    assert "exact answers take least with int8: 1 machine" in done.stderr


def test_an_encoder_nobody_knows_needs_its_dim() -> None:
    with pytest.raises(UsageError, match="--dim"):
        plan("--images", "1M", "-e", "hf:some/model")
    assert plan("--images", "1M", "-e", "hf:some/model", "--dim", "512")["building"][0]["hours"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--images", "many"), "not a number of images"),
        (("--images", "0"), "not a number of images"),
        (("--images", "9" * 400), "not a number of images"),
        (("--images", "1M", "--latency", "soon"), "not a time"),
        (("--images", "1M", "--latency", "0s"), "not a time"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(*words)


@pytest.mark.parametrize("images", ["1e7", "10 M", "10,000,000", "0.01B"])
def test_a_number_of_images_is_read_as_people_write_it(images: str) -> None:
    assert plan("--images", images)["asked"]["images"] == 10_000_000


def test_each_cost_of_the_table_says_where_it_was_measured() -> None:
    table = costs()
    rows = [row for part in ("scan", "build", "encoders") for row in table[part].values()]
    assert table["machine"] and all(row["source"] for row in rows) and "starter" in table["encoders"]


@given(st.integers(1, 10**10), st.sampled_from([64, 768, 1152]), st.floats(0.05, 10), st.floats(1, 1024))
def test_one_machine_less_is_not_enough(images: int, dim: int, latency: float, ram: float) -> None:
    found = next(way for way in search_costs(images, dim, latency=latency, ram=ram) if way.way == "float16")
    machines, call = found.machines, costs()["other"]["call"]
    assert machines is not None and found.seconds is not None and found.seconds <= latency * (1 + 1e-9)
    assert machines * ram * 0.8 >= found.memory * (1 - 1e-9)
    fewer = machines - 1
    late = 0.388 * images * dim / 1e9 / max(fewer, 1) + (call if fewer > 1 else 0) > latency * (1 - 1e-9)
    assert fewer == 0 or late or fewer * ram * 0.8 < found.memory * (1 + 1e-9)
