"""The pages say what is so: their commands run as they stand, and their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from lazy_import import requires

from eyespot import benchmarks, metrics, rooms
from eyespot.extras import EXTRAS
from eyespot.metrics import PRESETS
from tests.pages import ROOT, blocks, run_code, run_page

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


RUNNING = {  # pages that run one after the other in one folder → what their lines and their Python print
    "use/search use/filter use/take_along use/duplicates use/files use/trouble": r"would be freed.*indmill",
    "use/feedback": "moved by 20 yes and 0 no of encoder:starter",
    "how/words": "puerta|pez = ",
    "how/exact": "",
    "how/approximate": '"exact"',
    "how/scale": "^100,000,000 images.*; search it with.*^20,000,000 images.*^1,000,000,000 images of starter, 1152",
    "research/compare": r"^RR ",
    "research/metrics": r"^AP@50 +0\.5000",
    "research/judges": r"'from_ledger': 20, 'asked': 0.*indmill",
    "research/calibration": "30 pairs, 0 in the ledger, .*40 verdicts from the ledger, 0 asked.*narrower by",
}


@pytest.mark.long
@pytest.mark.parametrize(("names", "printed"), RUNNING.items())
def test_a_page_runs_as_it_stands(names: str, printed: str, tmp_path: Path) -> None:
    first, *more = (DOCS / f"{name}.md" for name in names.split())

    lines = run_page(first, tmp_path, *more)

    code = run_code("\n".join(block for page in (first, *more) for block in blocks(page, "python")), tmp_path)
    shown = "".join(f"{line.stdout}{line.stderr}" for line in lines) + code
    assert re.search(printed, shown, re.DOTALL | re.MULTILINE)


def test_links_inside_the_project_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        inside = [link for link in links if not re.match(r"[a-z]+:", link)]
        assert [link for link in inside if not (page.parent / link).exists()] == [], page


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


def test_python_on_a_page_uses_public_names_only() -> None:
    """What a page shows is what people build on."""
    code = "\n".join(block for page in PAGES for block in blocks(page, "python"))
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


def test_a_page_names_the_extras_that_it_needs_before_its_first_snippet() -> None:
    """Who follows a page must not stop in its middle to install something."""
    for page in (page for page in PAGES if page.name not in ("api.md", "README.md")):
        text = page.read_text(encoding="utf-8")
        head = re.split(r"^(?:## |\||```sh|```python)", text, maxsplit=1, flags=re.MULTILINE)[0]
        named = {name for group in re.findall(r"\[([a-z0-9,]+)\]", head) for name in group.split(",")}
        assert extras_needed(text) - named == set(), page


def test_every_extra_of_a_feature_is_looked_for_on_the_pages() -> None:
    assert set(EXTRAS.values()) - {"fast"} <= set(NEEDS.values())  # [fast] changes no answer


# -- the pages build without a warning, and each of them is in the table of contents -------------------------------


@pytest.mark.long
@requires("sphinx", "myst_parser", "furo", "torch")
def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    """All but their HTML, which takes two thirds of the time: `make extras` writes the site."""
    words = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "dummy", str(DOCS), str(tmp_path / "site")]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    built = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert built.returncode == 0, built.stderr


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = set(re.findall(r"^([a-z_/]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE))

    pages = {page.relative_to(DOCS).with_suffix("") for page in (*DOCS.rglob("*.md"), *DOCS.glob("*.rst"))}
    assert {str(page) for page in pages if page.parent.name != "decisions"} - {"index"} == listed


# -- the pages are in short sentences and plain words, the glossary's own -------------------------------------------

PROSE = [page for page in PAGES if page.parent.name != "decisions" and page.name not in ("api.md", "settings.md")]
WORDS = tomllib.loads((ROOT / "tests" / "words.toml").read_text(encoding="utf-8"))
SENTENCE_ENDS = re.compile(r'(?<=[.!?])[*"”)]*\s+(?=[A-Z*"“(x0-9])| · ')


@cache
def sentences(page: Path) -> list[str]:
    """Those of paragraphs and lists; code is x, and tables, headings and figures are left out."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(?:#|\||!\[|    \S).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "x", text))
    blocks = re.split(r"\n\s*\n|\n *(?:[*-]|\d+\.) ", text)
    return [one for block in blocks for one in SENTENCE_ENDS.split(" ".join(block.split()))]


def test_sentences_are_short() -> None:
    lengths = {one: len(re.findall(r"\S*\w\S*", one)) for page in PROSE for one in sentences(page)}

    assert [one for one, length in lengths.items() if length > 35] == []
    assert median(length for length in lengths.values() if length) <= 15
    assert sum(len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8"))) for page in PROSE) <= 45_000  # words


def stems(word: str) -> set[str]:
    """What it may be a form of."""
    found = {word.removesuffix(end) + new for end in WORDS["endings"] if word.endswith(end) for new in ("", "e", "y")}
    undoubled = {one[:-1] for one in found if one[-1:] == one[-2:-1]}
    return {word, re.sub("^(un|re|non|mis|over)", "", word)} | found | undoubled


def test_words_are_spelled_right_and_plain() -> None:
    listed = (ROOT / "eyespot" / "encoders" / "starter_data" / "words.txt").read_text(encoding="utf-8").splitlines()
    known = {line.partition("\t")[0].lower() for line in listed} | set(WORDS["known"].split())
    plain = re.compile(r"(?<![\w./@#-])[a-z][a-z']+(?![\w/@#]|\.\w)")
    words = {word: one for page in PROSE for one in sentences(page) for word in plain.findall(one)}

    assert {word: one for word, one in words.items() if not any(stems(stem) & known for stem in stems(word))} == {}
    assert {word: one for word, one in words.items() if word in WORDS["instead"]} == {}


def test_the_program_and_the_pages_use_the_words_of_the_glossary() -> None:
    rows = re.findall(r"^\| \*\*(\w+)\*\* \| .* \| (.*) \|$", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    places = [DOCS / "settings.md", ROOT / "tests" / "wording.json", *ROOT.glob("eyespot/web/templates/*.html")]
    program = "\n".join(place.read_text(encoding="utf-8").lower() for place in places)  # help texts, messages, labels
    texts = program + "\n".join(page.read_text("utf-8").lower() for page in PROSE if page.name != "glossary.md")

    assert len(rows) >= 12 and [term for term, _ in rows if not re.search(rf"\b{term}s?\b", program)] == []
    others = [name for _, names in rows for name in re.findall('"(.+?)"', names)]
    assert [name for name in others if re.search(rf"\b{name}s?\b", texts)] == []
