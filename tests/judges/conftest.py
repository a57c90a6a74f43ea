from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot.ledger.judgements import Judgements
from tests.worlds.judging import draw_colours


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Judgements]:
    with Judgements(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Eight pictures of one colour each; nobody changes them."""
    return draw_colours(tmp_path_factory.mktemp("pictures"), 8)
