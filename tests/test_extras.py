"""The line that installs an extra is the one that works here: for a checkout, a file, a repository, or an index."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from eyespot import extras

ROOT = Path(__file__).resolve().parent.parent
CASES = tomllib.loads((ROOT / "scripts" / "extras.toml").read_text(encoding="utf-8"))
LINE = "from eyespot import extras; print(extras.install_line('web'))"


def installed_line(site: Path) -> list[str]:
    """The words of the line that an installed copy of the package says, of which `site` is the site-packages."""
    env = {"PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", LINE], cwd=site, env=env, capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder as pip leaves it, with as much of the package as the line needs."""
    (tmp_path / "site" / "eyespot").mkdir(parents=True)
    for name in ("__init__.py", "extras.py"):
        shutil.copy(ROOT / "eyespot" / name, tmp_path / "site" / "eyespot" / name)
    info = tmp_path / "site" / "eyespot-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: eyespot\nVersion: 0.1.0\n", encoding="utf-8")
    return tmp_path / "site"


def record(site: Path, **origin: object) -> None:
    (site / "eyespot-0.1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")


def test_a_checkout_is_installed_from_where_it_lies() -> None:
    """Nothing of this name may be on an index, and what is there may be another version."""
    assert shlex.split(extras.install_line("web")) == [sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[web]"]


def test_what_came_from_an_index_is_installed_by_name(site: Path) -> None:
    assert installed_line(site) == [sys.executable, "-m", "pip", "install", "eyespot[web]"]


def test_a_file_that_is_still_there_is_installed_again(site: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "my files" / "eyespot-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    record(site, url=wheel.as_uri(), archive_info={})

    assert installed_line(site)[-1] == f"eyespot[web] @ {wheel.as_uri()}"


def test_a_file_that_is_gone_is_not_named(site: Path, tmp_path: Path) -> None:
    record(site, url=(tmp_path / "gone.whl").as_uri(), archive_info={})

    assert installed_line(site)[-1] == "eyespot[web]"


def test_a_repository_is_named_with_its_commit(site: Path) -> None:
    commit = "4eb7db8e" * 5
    record(site, url="https://example.org/eyespot.git", vcs_info={"vcs": "git", "commit_id": commit})

    assert installed_line(site)[-1] == f"eyespot[web] @ git+https://example.org/eyespot.git@{commit}"


def test_a_record_that_cannot_be_read_is_passed_over(site: Path) -> None:
    (site / "eyespot-0.1.0.dist-info" / "direct_url.json").write_text("{", encoding="utf-8")

    assert installed_line(site)[-1] == "eyespot[web]"


def test_a_python_without_pip_is_given_packages_by_uv(site: Path, tmp_path: Path) -> None:
    """As uv makes its environments."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv" / "bin" / "python")
    line = [python, "-c", LINE]
    done = subprocess.run(line, cwd=site, env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True)

    assert shlex.split(done.stdout) == ["uv", "pip", "install", "--python", python, "eyespot[web]"]


def test_only_one_place_writes_the_line() -> None:
    """A message with a line of its own would name one that does not work for somebody."""
    places = [*(ROOT / "eyespot").rglob("*.py"), *(ROOT / "bench").glob("*.py")]
    written = [path.name for path in places if re.search(r"pip install (-\S+ )?['\"]?eyespot", path.read_text("utf-8"))]

    assert written == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))], ids=lambda page: page.stem)
def test_pages_name_lines_that_work_in_a_checkout(page: Path) -> None:
    """`eyespot[x]` is found on no index yet, and outside of .venv another pip would install it."""
    lines = re.findall(r"[^\s`]*pip install [^`\n]*", page.read_text(encoding="utf-8"))
    named = [line for line in lines if re.search(r"eyespot\[|-e ", line)]

    assert [line for line in named if not re.fullmatch(r"\.venv/bin/pip install -e '\.\[[a-z0-9,]+\]'", line)] == []


def test_every_extra_is_tried_alone() -> None:
    """`make extras` installs each into a fresh environment; `dev` is what this test runs in."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    others = {"none", "messages", "checkout", "croissant", "doors", "release", "langchain", "llamaindex", "haystack"}
    assert (project["optional-dependencies"].keys() - {"dev"}) | others == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_commands_of_an_extra_are_a_script_that_a_shell_reads(name: str) -> None:
    read = subprocess.run(["sh", "-n", "-c", CASES[name]["commands"]], capture_output=True, text=True)

    assert read.returncode == 0, read.stderr


def test_the_first_visit_begins_with_the_lines_of_the_readme() -> None:
    """And `make extras` tries them word for word."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "use" / "label.md").read_text(encoding="utf-8")
    lines = ["make demo", ".venv/bin/pip install -e '.[web]'"]

    assert [line for line in lines if line not in readme or f"\n{line}\n" not in page] == []
    assert [line for line in lines if line not in CASES["checkout"]["commands"].splitlines()] == []
