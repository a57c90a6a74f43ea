"""The pages build as a site without a warning, and each of them is in its table of contents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lazy_import import requires

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


@pytest.mark.long
@requires("sphinx", "myst_parser", "furo", "torch")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    words = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path / "site")]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    built = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert built.returncode == 0, built.stderr
    assert "load_encoder" in (tmp_path / "site" / "reference.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(re.findall(r"^([a-z_]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE))

    assert {page.stem for page in (*DOCS.glob("*.md"), *DOCS.glob("*.rst"))} - {"index"} == listed


def test_no_page_has_the_name_of_a_page_that_sphinx_makes() -> None:
    assert {page.stem for page in DOCS.glob("*.md")} & {"search", "genindex", "modindex"} == set()
