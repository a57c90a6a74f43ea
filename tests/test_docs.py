"""The pages say what is so: their commands run as they stand, and their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lazy_import import requires

from eyespot import benchmarks, metrics, rooms
from eyespot.extras import EXTRAS
from eyespot.metrics import PRESETS
from tests.pages import ROOT, blocks, run_code, run_page

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.long
def test_the_pages_on_search_run_as_they_stand(tmp_path: Path) -> None:
    pages = [DOCS / "use" / f"{name}.md" for name in ("search", "filter", "take_along", "files", "trouble")]
    (code,) = blocks(pages[0], "python")

    run_page(pages[0], tmp_path, *pages[1:])

    assert "indmill" in run_code(code, tmp_path).splitlines()[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    inside = [link for link in links if not re.match(r"[a-z]+:", link)]

    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_every_room_and_verb_is_described() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    verbs = [path.stem for path in (ROOT / "eyespot" / "cli").glob("[a-z]*.py")]
    shown = [verb for verb in verbs if verb not in ("settings", "console", "transfer", "galleries")]

    assert [verb for verb in [*shown, "import", "export"] if f"eyespot {verb}" not in text] == []
    rooms = [path.name for path in (ROOT / "eyespot").iterdir() if path.is_dir() and not path.name.startswith("_")]
    assert [room for room in rooms if f"`{room}/`" not in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")] == []


REPORT = ("report.html", "tables.md", "tables.tex", "per_query.parquet", "run.parquet", "summary.json")


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("judges", [f"{name}:" for name in rooms.names("judges")]),
        ("metrics", [*metrics.names(), *(f"{name}`" for name in PRESETS)]),
        ("eval", [f"{name}`" for name in (*benchmarks.names(), *REPORT)]),
    ],
)
def test_every_member_of_a_room_is_on_its_page(page: str, names: list[str]) -> None:
    text = (ROOT / "docs" / "research" / f"{page}.md").read_text(encoding="utf-8")

    assert [name for name in names if f"`{name}" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_a_page_uses_public_names_only(page: Path) -> None:
    """What a page shows is what people build on."""
    code = "\n".join(blocks(page, "python"))
    imports = re.findall(r"^\s*(?:from (eyespot\S*) import (.+)|import (eyespot\S*))$", code, re.MULTILINE)
    used = " ".join(word for words in imports for word in words)

    assert re.findall(r"(?:^|[\s.(,])(_\w+)", used) == []
    assert re.findall(r"eyespot(?:\.\w+)*\.(_[a-z]\w*)", code) == []


# What on a page needs an extra; a snippet that imports a package of one needs it, too.
NEEDS = {
    r"\beyespot serve\b": "web",
    r"\beyespot mcp\b": "mcp",
    r"\beyespot train (quari|linear|backbone)\b": "torch",
    r"(^|[ \"'=])(open_clip|hf|wildclip|mllm|transformers|blip_itm):": "torch",
    r"(^|[ \"'=])(openai|anthropic|served):": "llm",
    r"\bcross_encoder:": "rerank",
    r"--kind (ivf|hnsw)|--index faiss": "faiss",
    r" --ray ": "ray",
    r"\bimport hdf5\b": "hdf5",
    r" --ocr\b": "ocr",
    r" --watch\b": "watch",
    r"\beyespot publish\b|\b(s3|gs)://": "remote",
    r"\beyespot describe\b|--rerank-local": "local",
    r"\beyespot\.reports\.figures\b": "plots",
    r"--check face": "inat",
    r"\beyespot build recos\b": "recos",
    r"\beyespot map\b": "map",
    r"\beyespot index .*\.(cr2|dng|nef)\b": "raw",
    r"\beyespot index .*\.(mp4|mov)\b": "video",
    r"\beyespot\.bridges\.mteb\b": "mteb",
    r"-m (Bpref|infAP|ERR|RBP)": "ir",
}


def extras_needed(text: str) -> set[str]:
    """The extras that the snippets of a page need."""
    code = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    needed = {extra for pattern, extra in NEEDS.items() if re.search(pattern, code, re.MULTILINE)}
    imported = re.findall(r"^\s*(?:import|from) (\w+)", code, re.MULTILINE)
    return needed | {EXTRAS[package] for package in imported if package in EXTRAS}


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in ("api.md", "README.md")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_a_page_names_the_extras_that_it_needs_before_its_first_snippet(page: Path) -> None:
    """Who follows a page must not stop in its middle to install something."""
    text = page.read_text(encoding="utf-8")
    head = re.split(r"^(?:## |\||```sh|```python)", text, maxsplit=1, flags=re.MULTILINE)[0]
    named = {name for group in re.findall(r"\[([a-z0-9,]+)\]", head) for name in group.split(",")}

    assert extras_needed(text) - named == set()


def test_every_extra_of_a_feature_is_looked_for_on_the_pages() -> None:
    assert set(EXTRAS.values()) - {"fast"} <= set(NEEDS.values())  # [fast] changes no answer


# -- the pages build as a site without a warning, and each of them is in its table of contents --------------------


@pytest.mark.long
@requires("sphinx", "myst_parser", "furo", "torch")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    words = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path / "site")]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    built = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert built.returncode == 0, built.stderr
    assert "load_encoder" in (tmp_path / "site" / "reference.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(re.findall(r"^([a-z_/]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE))

    pages = {page.relative_to(DOCS).with_suffix("") for page in (*DOCS.rglob("*.md"), *DOCS.glob("*.rst"))}
    assert {str(page) for page in pages if page.parent.name != "decisions"} - {"index"} == listed


def test_no_page_has_the_name_of_a_page_that_sphinx_makes() -> None:
    assert {page.stem for page in DOCS.glob("*.md")} & {"search", "genindex", "modindex"} == set()
