"""The page on clusters says what is so: its commands and its Python run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, run_page, tools


@pytest.mark.slow
def test_the_page_on_clusters_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs" / "ray.md"
    run_page(page, tmp_path, tools(tmp_path), monkeypatch)
    (code,) = blocks(page, "python")
    exec(compile(code, str(page), "exec"), {})

    assert len(capsys.readouterr().out.strip()) > 0
    assert (tmp_path / "semipositives.npz").is_file()
