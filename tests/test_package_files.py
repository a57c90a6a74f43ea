"""What is packed and shipped: every file of the package, and nothing that only happened to lie around."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SHIPPED = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"])
# What the repository holds at its root.
PLACES = SHIPPED | {".ci", ".github", ".gitattributes", ".gitignore", "pyproject.toml"}
READ_ELSEWHERE = {  # files that no code names, and who reads them
    "eyespot/encoders/starter_data/reference.npz": "the test of the starter, which compares its vectors with these",
    "eyespot/py.typed": "type checkers",
    "eyespot/reproduce/tables/": "`eyespot reproduce`, as a folder",
    "eyespot/sample/ATTRIBUTION.md": "people; the page of the README and the module link it",
    "eyespot/sample/photos/": "`sample.photos`, as a folder",
}


def tracked(*more: str) -> set[str]:
    """The files of the repository."""
    line = ["git", "ls-files", "-z", *more]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("not a checkout of the repository")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}


def packed(kind: str) -> set[str]:
    """The files that hatchling would pack, by the names they get; without those that somebody's work left here."""
    builders = pytest.importorskip("hatchling.builders." + kind)
    builder = getattr(builders, f"{kind.capitalize()}Builder")(str(ROOT))
    files = {Path(file.distribution_path).as_posix() for file in builder.recurse_included_files()}
    return files - tracked("--others", "--exclude-standard")


def test_a_wheel_has_every_file_of_the_package() -> None:
    assert packed("wheel") == {name for name in tracked() if name.startswith("eyespot/")}


def test_a_source_distribution_has_every_file_that_it_is_meant_to_have() -> None:
    """A wheel is usually built out of it: what it lacks, the wheel lacks."""
    meant = {name for name in tracked() if name.partition("/")[0] in SHIPPED}

    assert "eyespot/cli/demo.py" in meant
    assert packed("sdist") == meant


def test_every_file_of_the_repository_has_its_place() -> None:
    assert {name.partition("/")[0] for name in tracked()} - PLACES == set()


def test_every_data_file_of_the_package_is_read() -> None:
    """What nothing reads costs every install its bytes."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in code_files())
    licences = {path for pattern in PROJECT["project"]["license-files"] for path in ROOT.glob(pattern)}
    data = [name for name in sorted(tracked()) if name.startswith("eyespot/") and not name.endswith(".py")]
    unexplained = [
        name
        for name in data
        if not name.startswith(tuple(READ_ELSEWHERE)) and ROOT / name not in licences and not is_named(name, code)
    ]

    assert unexplained == []


def code_files() -> list[Path]:
    return [path for path in (ROOT / "eyespot").rglob("*") if path.suffix in (".py", ".html", ".js", ".css")]


def is_named(name: str, code: str) -> bool:
    """Whether code has the file's name in quotes, with its ending or as the stem to which an ending is added."""
    stem = re.escape(Path(name).name.partition(".")[0])
    return re.search(rf"""["'/]{stem}(\.[a-z.]+)?["'?]""", code) is not None
