"""What the package imports is declared: in the base install, or in the extra of the feature that imports it."""

from __future__ import annotations

import ast
import functools
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from eyespot import extras

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "eyespot"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {"multipart": ("python-multipart",)}  # where the installed packages do not say it

BROUGHT = {"pandas"}  # by whoever wants its tables

# Where the packages of an extra may be imported; everywhere else an import belongs to the base install.
PLACES = {
    "faiss": ("indexes/faiss.py", "kernels/kmeans.py", "adapters/quari/mining.py", "cli/mine.py"),
    "fast": ("kernels/",),
    "hdf5": ("gallery/hdf5.py",),
    "inat": ("curate/inat/pictures.py",),
    "ir": ("metrics/_outside.py",),
    "local": ("descriptors/sift.py", "search/local/spatial.py"),
    "map": ("gallery/layout/embedding.py",),
    "mcp": ("web/mcp.py",),
    "mteb": ("bridges/mteb.py",),
    "ocr": ("photos/ocr/rapidocr.py",),
    "plots": ("cli/tune.py", "reports/drawing.py", "reports/figures/"),
    "raw": ("photos/raw.py",),
    "video": ("photos/videos/decoding.py",),
    "ray": ("cluster/",),
    "recos": ("curate/recos/checking.py",),
    "remote": ("gallery/remote/",),
    "rerank": ("judges/cross_encoder.py",),
    "torch": (
        "adapters/",
        "cli/doctor.py",
        "descriptors/dinov2.py",
        "encoders/",
        "judges/",
        "models/",
        "models/repository.py",
    ),
    "watch": ("gallery/watching.py",),
    "web": ("web/", "cli/serve.py", "cli/_answering.py"),
}


def plain(name: str) -> str:
    return name.lower().replace("_", "-")


def requirements(extra: str | None) -> frozenset[str]:
    """The names of the packages that one extra declares, or the base install for None."""
    lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    names = {plain(re.split(r"[\[<>=~!; ]", line, maxsplit=1)[0]) for line in lines}
    inner = {name for line in lines for name in re.findall(r"^eyespot\[(.*)\]$", line)}
    return frozenset(names).union(*(requirements(part) for part in ",".join(inner).split(",") if part))


@functools.cache
def imports(file: Path) -> frozenset[str]:
    """Each imported package that is not Python's own, wherever in the file; those for the type checker are left out."""
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).partition(".")[0])
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            waiting += ast.iter_child_nodes(node)
    return frozenset(names - (sys.stdlib_module_names | {"eyespot"}) - BROUGHT)


@functools.cache
def installed() -> dict[str, list[str]]:
    return {package: [plain(name) for name in names] for package, names in packages_distributions().items()}


def distributions(package: str) -> set[str]:
    """What a package may be called where it is installed from."""
    return {plain(package), *DISTRIBUTIONS.get(package, ()), *installed().get(package, ())}


def test_each_import_is_declared_where_its_feature_is_installed_from() -> None:
    """Otherwise a feature works for developers, who have every extra, and for nobody else."""
    missing: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        named = [extra for extra, places in PLACES.items() if place.startswith(places)]
        declared = requirements(None).union(*map(requirements, named))
        for package in imports(file):
            if not distributions(package) & declared:
                missing.setdefault(package, []).append(str(file.relative_to(PACKAGE)))

    assert missing == {}


def test_the_sentence_on_a_missing_package_knows_each_package_of_an_extra() -> None:
    """`EXTRAS` says what brings a package."""
    all_imports = {package for file in PACKAGE.rglob("*.py") for package in imports(file)}
    optional = {package for package in all_imports if not distributions(package) & requirements(None)}

    assert {package for package in optional if package not in extras.EXTRAS} == set()
    wrong = [(name, extra) for name, extra in extras.EXTRAS.items() if not distributions(name) & requirements(extra)]
    assert wrong == []


def test_each_place_of_an_extra_exists() -> None:
    """A place that has moved would let an import pass where it is not meant."""
    assert [place for places in PLACES.values() for place in places if not (PACKAGE / place).exists()] == []


# -- the line that installs an extra is the one that works here --------------------------------------------------------


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
    others = {"none", "messages", "checkout", "croissant", "doors", "exports", "release"} | {
        "langchain",
        "llamaindex",
        "haystack",
    }
    assert (PROJECT["optional-dependencies"].keys() - {"dev"}) | others == set(CASES)


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
