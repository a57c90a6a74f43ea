"""Pages of the documentation on building sets: their commands and their Python run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, run_page, tools

PRINTED = {  # what the Python of a page prints, and a file that its commands leave
    "inat": (r"", "birds/card.html"),
    "recipes": (r"\[False, False\]\n5 What is it made of\?\n", "work/card.html"),
    "recos": (r"[1-9]\d+ [1-9]\d* \w+\n", "made/set/captions.parquet"),
    "rerank": (r".+\n.+\n", "rerank/card.md"),
    "rmir": (r"(functional|temporal|causal) .+\n", "made/set/queries.jsonl"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PRINTED)
def test_the_page_runs_as_it_stands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, env = ROOT / "docs" / f"{name}.md", tools(tmp_path)

    if name == "rerank":  # a loop of the shell
        subprocess.run(["sh", "-ec", "\n".join(blocks(page, "sh"))], cwd=tmp_path, env=env, check=True)
    else:
        run_page(page, tmp_path, env, monkeypatch)
    code = "\n".join(blocks(page, "python"))
    python = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    printed, file = PRINTED[name]
    assert re.fullmatch(printed, python.stdout), python.stderr
    assert (tmp_path / file).is_file()


@pytest.mark.long
def test_the_page_on_labelling_runs_up_to_the_server_that_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (script,) = blocks(ROOT / "docs" / "annotate.md", "sh")
    *lines, last = script.splitlines(keepends=True)
    (tmp_path / "page.md").write_text(f"```sh\n{''.join(lines)}```\n")
    *_, printed = run_page(tmp_path / "page.md", tmp_path, tools(tmp_path), monkeypatch)
    assert last == "eyespot serve\n" and printed.splitlines()[-1] == "50 new photos on the list, 50 in all"
