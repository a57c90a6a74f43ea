"""A finished set for others, in a folder."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.command import refuses, run_eyespot
from tests.worlds import rmir

CARD = """
[card]
licence = "CC-BY-4.0"
[card.motivation]
makers = "Ada's laboratory"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small RMIR set under a licence."""
    folder = tmp_path_factory.mktemp("built")
    place = rmir.recipe(folder, rmir.photos(folder / "photos"))
    place.write_text(place.read_text(encoding="utf-8") + CARD, encoding="utf-8")
    rmir.made(place, folder / "out")
    return folder / "out" / "set"


def published(*words: object) -> dict[str, Any]:
    done = run_eyespot("build", "publish", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_folder_has_version_citation_and_checksums_that_sha256sum_takes(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "release"
    report = published(built, "--to", out, "--version", "1.2.0")

    assert (report["at"], report["version"]) == (str(out), "1.2.0") and report["red"] >= 1  # seven queries are too few
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=True)
    described = json.loads((out / "croissant.json").read_text())
    assert described["version"] == "1.2.0" and re.fullmatch(r"\d{4}-\d\d-\d\d", described["datePublished"])
    cited = yaml.safe_load((out / "CITATION.cff").read_text())
    assert (cited["version"], cited["license"], cited["authors"]) == (
        "1.2.0",
        "CC-BY-4.0",
        [{"name": "Ada's laboratory"}],
    )
    names = {path.relative_to(built) for path in built.rglob("*")}
    more = {path.relative_to(out).name for path in out.rglob("*") if path.relative_to(out) not in names}
    assert more == {"CITATION.cff", "SHA256SUMS"}
    assert pq.read_table(out / "queries.parquet").equals(pq.read_table(built / "queries.parquet"))
    assert "is there" in refuses("build", "publish", built, "--to", out)


def test_what_is_not_ready_is_refused(built: Path, tmp_path: Path) -> None:
    refuses("build", "publish", built, "--to", tmp_path / "a", "--version", "first")
    refuses("build", "publish", tmp_path, "--to", tmp_path / "b")
    copy = tmp_path / "set"
    subprocess.run(["cp", "-r", built, copy], check=True)
    (copy / "queries.parquet").write_bytes(b"another")
    refuses("build", "publish", copy, "--to", tmp_path / "c")
    about = json.loads((copy / "croissant.json").read_text())
    (copy / "croissant.json").write_text(json.dumps({**about, "license": ""}))
    refuses("build", "publish", copy, "--to", tmp_path / "d")
    assert not [name for name in "abcd" if (tmp_path / name).exists()]
