"""The page on evaluation runs as it stands, and names every benchmark and option."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from eyespot.benchmarks import names
from tests.pages import ROOT, blocks, tools

PAGE = ROOT / "docs" / "eval.md"


@pytest.mark.long
def test_the_page_on_evaluation_runs_as_it_stands(tmp_path: Path) -> None:
    script = "set -e\n" + "\n".join(blocks(PAGE, "sh"))

    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True)

    assert shell.returncode == 0, shell.stderr
    reports = {name: json.loads((tmp_path / name / "summary.json").read_text()) for name in ("starter", "again")}
    means = [one["tasks"][0]["measures"]["RR@50"]["mean"] for one in reports.values()]
    assert means[0] == means[1] > 0.5


def test_every_benchmark_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert [name for name in names() if f"`{name}`" not in text] == []


def test_every_file_of_a_report_is_on_the_page() -> None:
    files = re.findall(r"`([\w.]+\.(?:html|md|tex|parquet|json))`", PAGE.read_text(encoding="utf-8"))

    wanted = {"report.html", "tables.md", "tables.tex", "per_query.parquet", "run.parquet", "summary.json"}
    assert wanted <= set(files)
