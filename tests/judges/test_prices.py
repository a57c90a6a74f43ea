"""Prices: whose table counts, what a name with a date costs, and what asking would come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot.llms.prices import own_table, read_prices
from eyespot.types import Spent, Tokens, UsageError
from tests.wording import raises

MINE = '["mine-1"]\ninput = 3\noutput = 15\ndate = 2026-11-20\n'


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "eyespot").mkdir(parents=True)
    return tmp_path / "config" / "eyespot"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "p.toml").write_text(MINE)
    return tmp_path / "p.toml"


def test_a_million_tokens_in_and_a_fifth_of_one_out(table: Path) -> None:
    price = read_prices(table).of("mine-1")

    assert price is not None and price.of(1_000_000, 200_000) == pytest.approx(3 + 3)
    assert price.of(1_000_000, 0, cached=400_000) == pytest.approx(3)  # no price of its own
    assert price._replace(cached=0.3).of(1_000_000, 0, cached=400_000) == pytest.approx(1.8 + 0.12)
    assert price._replace(cached=0.3, batch=0.5).in_batch.of(1_000_000, 0, cached=400_000) == pytest.approx(1.5)
    claude = read_prices().of("claude-sonnet-4-5")
    assert claude is not None and claude.in_batch.of(1_000_000, 0, cached=1_000_000) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("money", "shown"),
    [(0, "$0.00"), (0.0021234, "$0.0021"), (0.000045, "$0.000045"), (0.01, "$0.01"), (1234.5, "$1,234.50")],
)
def test_money_below_a_cent_is_shown_with_its_digits(money: float, shown: str) -> None:
    assert Spent(money=money).dollars == shown


@pytest.mark.parametrize("name", ["gpt-4o-2024-08-06", "gpt-4o-latest", "gpt-4o-20240806"])
def test_a_name_that_goes_on_with_a_date_costs_the_same(name: str) -> None:
    """And every price that we ship is dated and positive."""
    prices = read_prices()

    assert prices.of(name) == prices.of("gpt-4o") and prices.of("gpt-4o-gigantic") is None
    assert [name for name, price in prices.models.items() if not (price.date and price.output > 0)] == []


def test_the_last_table_has_the_last_word(config: Path, tmp_path: Path) -> None:
    own_table().write_text(MINE.replace("mine-1", "gpt-4o") + MINE)
    (tmp_path / "given.toml").write_text(MINE.replace("= 3", "= 7"))

    prices = read_prices(tmp_path / "given.toml")

    assert (prices.models["gpt-4o"].input, prices.models["mine-1"].input) == (3, 7)
    assert (prices.models["mine-1"].source, prices.models["mine-1"].date) == (tmp_path / "given.toml", "2026-11-20")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "gpt = 3",
        '["m"]\ninput = 1\n',
        MINE + "outptu = 3",
        MINE.replace("15", "-1"),
        MINE.replace("15", "nan"),
        MINE.replace("15", '"free"'),
        "[",
    ],
    ids=range(8),
)
def test_what_is_wrong_with_a_table_is_said(table: Path, text: str | None) -> None:
    table.write_text(text or "")
    if text is None:
        table.unlink()

    with raises(UsageError):
        read_prices(table)


def test_what_a_thousand_pictures_would_come_to(table: Path) -> None:
    spent = Tokens(picture=900, words=100, answer=2).cost(1000, read_prices(table).of("mine-1"))

    assert spent == Spent(1000, 1_000_000, 2000, pytest.approx(3 + 0.03))
    assert Tokens().cost(2, None) == Spent(2, 2 * (765 + 80), 2, 0.0)
