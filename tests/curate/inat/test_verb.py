"""`eyespot build inat` at the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import refuses, run_eyespot
from tests.worlds.inat import TIT, export, pictures, seen

pytestmark = pytest.mark.long  # whole pipelines


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Two species with a photo each at hand, and a casual observation."""
    export(tmp_path / "export", [seen("a"), seen("b", taxon_id=TIT), seen("c", quality_grade="casual")])
    (tmp_path / "photos").mkdir()
    for at in range(2):
        (tmp_path / "photos" / f"{at}.jpg").write_bytes(pictures()[at].read_bytes())
    return tmp_path


CHECKS = ("--check", "decode", "--check", "empty")


def test_a_collection_that_opens_in_index(world: Path) -> None:
    shown = run_eyespot("build", "inat", "export", "--out", "set", "--photos", "photos", *CHECKS, "--json", cwd=world)
    report = json.loads(shown.stdout)
    assert (shown.returncode, report["pictures"], report["failed"]) == (0, 2, 0), shown.stderr
    assert report["steps"][1]["dropped"] == {"another quality grade": 1}
    assert run_eyespot("index", "set/train.json", "-g", "gallery", cwd=world).returncode == 0
    label = "category=Parus major"
    found = run_eyespot("search", "bird", "-g", "gallery", "--label", label, "--json", cwd=world)
    (item,) = json.loads(found.stdout)["items"]
    assert (item["license"], item["class"], item["latitude"]) == ("CC BY 4.0", "Aves", 50.0)


def test_without_photos_it_says_what_to_fetch_and_a_missing_one_is_a_failure(world: Path) -> None:
    shown = run_eyespot("build", "inat", "export", "--out", "set", cwd=world)
    (world / "photos" / "1.jpg").unlink()
    missing = run_eyespot("build", "inat", "export", "--out", "set", "--photos", "photos", *CHECKS, cwd=world)
    assert shown.returncode == 0 and "download.csv" in shown.stderr and missing.returncode == 3
    assert shown.stdout.splitlines()[1] == "filtered     3 in, 2 kept; 1 another quality grade"


def test_a_trial_counts_only(world: Path) -> None:
    shown = run_eyespot("build", "inat", "export", "--dry-run", "--sample", "2", "--json", cwd=world)
    report = json.loads(shown.stdout)
    assert (shown.returncode, report["steps"][0]["came"], report["first"]) == (0, 2, 2)
    assert sorted(path.name for path in world.iterdir()) == ["export", "photos"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        (("--out", "set", "--years", "last"), 2),
        (("--out", "set", "--photos", "nowhere"), 2),
        (("--out", "set", "--years", "1999"), 4),
        (("--out", "photos"), 2),
        (("--out", "set", "--memory", "nan"), 2),
        (("--dry-run", "--sample", "0"), 2),
    ],
)
def test_what_cannot_be_done_says_why(world: Path, words: tuple[str, ...], code: int) -> None:
    refuses("build", "inat", "export", *words, code=code, cwd=world)
