from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.judging import draw_colours


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Eight pictures of one colour each; nobody changes them."""
    return draw_colours(tmp_path_factory.mktemp("pictures"), 8)
