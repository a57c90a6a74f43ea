"""What is packed and shipped: every file of the package, and nothing that only happened to lie around."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import eyespot

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SHIPPED = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"])
# What the repository holds at its root.
PLACES = SHIPPED | {".ci", ".github", ".gitattributes", ".gitignore", "pyproject.toml"}
READ_ELSEWHERE = {  # files that no code names, and who reads them
    "eyespot/encoders/starter_data/reference.npz": "the test of the starter, which compares its vectors with these",
    "eyespot/py.typed": "type checkers",
    "eyespot/reproduce/samples/": "`eyespot reproduce --sample`, as a folder",
    "eyespot/reproduce/tables/": "`eyespot reproduce`, as a folder",
    "eyespot/sample/ATTRIBUTION.md": "people; the page of the README and the module link it",
    "eyespot/sample/photos/": "`sample.photos`, as a folder",
}


def tracked(*more: str) -> set[str]:
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
    files = [path for path in (ROOT / "eyespot").rglob("*") if path.suffix in (".py", ".html", ".js", ".css", ".toml")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    licences = {path for pattern in PROJECT["project"]["license-files"] for path in ROOT.glob(pattern)}
    data = [name for name in sorted(tracked()) if name.startswith("eyespot/") and not name.endswith(".py")]
    unexplained = [
        name
        for name in data
        if not name.startswith(tuple(READ_ELSEWHERE)) and ROOT / name not in licences and not is_named(name, code)
    ]

    assert unexplained == []


def is_named(name: str, code: str) -> bool:
    """Whether code has the file's name in quotes, with its ending or as the stem to which an ending is added."""
    stem = re.escape(Path(name).name.partition(".")[0])
    return re.search(rf"""["'/]{stem}(\.[a-z.]+)?["'?]""", code) is not None


# -- what a release says about itself agrees with the package, on every page that says it -------------------------


RELEASE_PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))


def test_the_citation_names_the_version_and_the_home_of_the_package() -> None:
    assert CITATION["version"] == eyespot.__version__
    assert CITATION["repository-code"] == RELEASE_PROJECT["urls"]["Source"]
    assert RELEASE_PROJECT["license"].startswith(CITATION["license"])


def test_the_changelog_has_a_section_for_each_version_and_the_newest_is_the_packages() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    versions = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})", section) for section in sections[1:]]
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    links = dict(re.findall(r"^\[(.+)\]: (\S+)$", text, re.MULTILINE))

    assert sections[0] == "[Unreleased]" and all(versions)
    newest = versions[0]
    assert newest and newest.groups() == (eyespot.__version__, str(CITATION["date-released"]))
    dates = [match[2] for match in versions if match]
    assert dates == sorted(dates, reverse=True)
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert links.keys() == {"Unreleased", *(match[1] for match in versions if match)}
    assert all(link.startswith(RELEASE_PROJECT["urls"]["Source"]) for link in links.values())


def test_no_section_of_the_changelog_has_two_lists_of_one_kind() -> None:
    sections = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    kinds = [re.findall(r"^### (.*)$", section, re.MULTILINE) for section in sections]

    assert all(len(set(listed)) == len(listed) > 0 for listed in kinds)


def test_every_python_that_the_package_names_is_tested() -> None:
    named = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in RELEASE_PROJECT["classifiers"]
    ]

    assert {match[1] for match in named if match} == set(WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"])


def test_the_workflow_runs_commands_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    lines = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    made = {line.removeprefix("make ") for line in lines if line.startswith("make ")}

    assert {"check", "extras"} <= made <= targets


def test_the_licence_expression_has_the_licence_of_every_file_that_has_its_own() -> None:
    parts = set(RELEASE_PROJECT["license"].split(" AND "))
    names = {
        "LICENSE": "Apache-2.0",
        "OFL.txt": "OFL-1.1",
        "deckgl.LICENSE.txt": "MIT",
        "htmx.LICENSE.txt": "0BSD",
        "apache-2.0.txt": "Apache-2.0",
        "efficientnet-lite2.txt": "Apache-2.0",
        "minilm-packager.txt": "MIT",
        "wordnet.txt": "LicenseRef-WordNet",
    }
    files = {path.name for pattern in RELEASE_PROJECT["license-files"] for path in ROOT.glob(pattern)}

    assert files == names.keys()
    assert parts == set(names.values()) | {"CC0-1.0"}  # the sample photos: eyespot/sample/ATTRIBUTION.md
