"""What a release says about itself agrees with the package, on every page that says it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import eyespot

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))


def test_the_citation_names_the_version_and_the_home_of_the_package() -> None:
    assert CITATION["version"] == eyespot.__version__
    assert CITATION["repository-code"] == PROJECT["urls"]["Source"]
    assert PROJECT["license"].startswith(CITATION["license"])


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
    assert all(link.startswith(PROJECT["urls"]["Source"]) for link in links.values())


def test_no_section_of_the_changelog_has_two_lists_of_one_kind() -> None:
    sections = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    kinds = [re.findall(r"^### (.*)$", section, re.MULTILINE) for section in sections]

    assert all(len(set(listed)) == len(listed) > 0 for listed in kinds)


def test_every_python_that_the_package_names_is_tested() -> None:
    named = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in PROJECT["classifiers"]]

    assert {match[1] for match in named if match} == set(WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"])


def test_the_workflow_runs_commands_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    lines = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    made = {line.removeprefix("make ") for line in lines if line.startswith("make ")}

    assert {"check", "extras"} <= made <= targets


def test_the_licence_expression_has_the_licence_of_every_file_that_has_its_own() -> None:
    parts = set(PROJECT["license"].split(" AND "))
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
    files = {path.name for pattern in PROJECT["license-files"] for path in ROOT.glob(pattern)}

    assert files == names.keys()
    assert parts == set(names.values()) | {"CC0-1.0"}  # the sample photos: eyespot/sample/ATTRIBUTION.md
