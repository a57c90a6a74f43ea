"""What the package imports is declared: in the base install, or in the extra of the feature that imports it."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from eyespot.extras import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "eyespot"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = sys.stdlib_module_names | {"eyespot"}
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
    return frozenset(names - OWN - BROUGHT)


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
        extras = [extra for extra, places in PLACES.items() if place.startswith(places)]
        declared = requirements(None).union(*map(requirements, extras))
        for package in imports(file):
            if not distributions(package) & declared:
                missing.setdefault(package, []).append(str(file.relative_to(PACKAGE)))

    assert missing == {}


def test_the_sentence_on_a_missing_package_knows_each_package_of_an_extra() -> None:
    """`EXTRAS` says what brings a package."""
    all_imports = {package for file in PACKAGE.rglob("*.py") for package in imports(file)}
    optional = {package for package in all_imports if not distributions(package) & requirements(None)}

    assert {package for package in optional if package not in EXTRAS} == set()
    wrong = [(name, extra) for name, extra in EXTRAS.items() if not distributions(name) & requirements(extra)]
    assert wrong == []


def test_each_place_of_an_extra_exists() -> None:
    """A place that has moved would let an import pass where it is not meant."""
    assert [place for places in PLACES.values() for place in places if not (PACKAGE / place).exists()] == []
