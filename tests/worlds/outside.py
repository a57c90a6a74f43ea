"""What other people's programs find in a folder: `python -m tests.worlds.outside` reads `[WHAT, FOLDER]` and prints it,
a line of JSON for each.

WHAT is `datasets` (every configuration, its splits, rows, columns and first row) or `mteb` (what MTEB's own loader
makes of the test split). They run in a process of their own, for they write to a cache that environment variables
name; one process for all, for they take seconds to import.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ANSWER = "found: "  # before each answer; the programs print as well


def loaded(what: str, folder: Path) -> Any:
    child, complaints = _reader()
    assert child.stdin and child.stdout
    print(json.dumps([what, str(folder)]), file=child.stdin, flush=True)
    while line := child.stdout.readline():
        if line.startswith(ANSWER):
            return json.loads(line.removeprefix(ANSWER))
    _reader.cache_clear()  # it ended
    raise AssertionError(complaints.read_text()[-2000:])


@cache
def _reader() -> tuple[subprocess.Popen[str], Path]:
    """The process, and where it complains; it ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="eyespot-outside-"))
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder)}
    cached = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    complaints = folder / "complaints.txt"
    with complaints.open("w") as file:
        line, pipe = [sys.executable, "-m", "tests.worlds.outside"], subprocess.PIPE
        child = subprocess.Popen(line, cwd=ROOT, env=cached | offline, stdin=pipe, stdout=pipe, stderr=file, text=True)
    atexit.register(_end, child, folder)
    return child, complaints


def _end(child: subprocess.Popen[str], folder: Path) -> None:
    child.communicate()
    shutil.rmtree(folder)


def by_datasets(folder: str) -> Any:
    import datasets

    found = {name: datasets.load_dataset(folder, name) for name in datasets.get_dataset_config_names(folder)}
    usual = datasets.load_dataset(folder)
    return {"default": summary(usual)} | {name: summary(splits) for name, splits in found.items()}


def summary(splits: Any) -> dict[str, Any]:
    return {
        name: {"rows": len(rows), "columns": rows.column_names, "first": plain(rows[0]) if len(rows) else None}
        for name, rows in splits.items()
    }


def by_mteb(folder: str) -> Any:
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

    found = RetrievalDatasetLoader(folder, revision=None, split="test").load()  # type: ignore[arg-type]
    corpus, queries = found["corpus"], found["queries"]
    return {
        "corpus": {"ids": corpus["id"][:], "first": plain(corpus[0])},
        "queries": {"ids": queries["id"][:], "first": plain(queries[0])},
        "qrels": found["relevant_docs"],
    }


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row; pictures by their size, after all of them was decoded."""
    return {
        name: list(value.convert("RGB").size) if hasattr(value, "convert") else value for name, value in row.items()
    }


def main() -> None:
    import datasets

    for line in sys.stdin:
        what, folder = json.loads(line)
        datasets.config.HF_DATASETS_CACHE = Path(tempfile.mkdtemp(dir=os.environ["HF_HOME"]))  # knows nothing yet
        print(ANSWER + json.dumps({"datasets": by_datasets, "mteb": by_mteb}[what](folder), default=str), flush=True)


if __name__ == "__main__":
    main()
