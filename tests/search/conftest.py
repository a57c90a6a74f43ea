from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot.ledger.judgements import Judgements


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Judgements]:
    with Judgements(tmp_path / "ledger.sqlite") as opened:
        yield opened
