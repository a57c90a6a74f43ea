"""The line that installs an extra is the one that works here: for a checkout, a file, a repository, or an index."""

from __future__ import annotations

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


def test_a_checkout_is_installed_from_where_it_lies() -> None:
    """Nothing of this name may be on an index, and what is there may be another version."""
    assert shlex.split(extras.install_line("web")) == [sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[web]"]


COMMIT = "4eb7db8e" * 5


@pytest.mark.parametrize(
    ("origin", "named"),
    [
        ("", "eyespot[web]"),  # from an index
        ('{"url": "WHEEL", "archive_info": {}}', "eyespot[web] @ WHEEL"),
        ('{"url": "file:///gone.whl", "archive_info": {}}', "eyespot[web]"),
        (
            f'{{"url": "https://example.org/eyespot.git", "vcs_info": {{"vcs": "git", "commit_id": "{COMMIT}"}}}}',
            f"eyespot[web] @ git+https://example.org/eyespot.git@{COMMIT}",
        ),
        ("{", "eyespot[web]"),  # a record that cannot be read
    ],
)
def test_it_is_installed_from_where_it_came(origin: str, named: str, site: Path, tmp_path: Path) -> None:
    (wheel := tmp_path / "my files" / "eyespot-0.1.0-py3-none-any.whl").parent.mkdir()
    wheel.touch()
    if origin:
        record = site / "eyespot-0.1.0.dist-info" / "direct_url.json"
        record.write_text(origin.replace("WHEEL", wheel.as_uri()), encoding="utf-8")

    line = [sys.executable, "-m", "pip", "install", named.replace("WHEEL", wheel.as_uri())]
    assert installed_line(site) == line


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


def test_pages_name_lines_that_work_in_a_checkout() -> None:
    """`eyespot[x]` is found on no index yet, and outside of .venv another pip would install it."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    named = [line for line in re.findall(r"[^\s`]*pip install [^`\n]*", text) if re.search(r"eyespot\[|-e ", line)]

    assert [line for line in named if not re.fullmatch(r"\.venv/bin/pip install -e '\.\[[a-z0-9,]+\]'", line)] == []


def test_every_extra_is_tried_alone() -> None:
    """`make extras` installs each into a fresh environment; `dev` is what this test runs in."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    others = {"none", "messages", "checkout", "croissant", "doors", "exports", "release"} | {
        "langchain",
        "llamaindex",
        "haystack",
    }
    assert (project["optional-dependencies"].keys() - {"dev"}) | others == set(CASES)


def test_the_commands_of_an_extra_are_a_script_that_a_shell_reads() -> None:
    for name, case in CASES.items():
        read = subprocess.run(["sh", "-n", "-c", case["commands"]], capture_output=True, text=True)
        assert read.returncode == 0, (name, read.stderr)


def test_the_first_visit_begins_with_the_lines_of_the_readme() -> None:
    """And `make extras` tries them word for word."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "use" / "label.md").read_text(encoding="utf-8")
    lines = ["make demo", ".venv/bin/pip install -e '.[web]'"]

    assert [line for line in lines if line not in readme or f"\n{line}\n" not in page] == []
    assert [line for line in lines if line not in CASES["checkout"]["commands"].splitlines()] == []
