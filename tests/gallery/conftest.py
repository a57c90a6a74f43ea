"""Small folders of drawn photos, and a gallery made of them with the built-in encoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds import draw


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Nine photos in a folder with a sub-folder."""
    folder = tmp_path / "photos"
    for seed in range(9):
        draw(folder / ("deep/er" if seed % 3 == 0 else "") / f"photo{seed}.jpg", seed)
    return folder
