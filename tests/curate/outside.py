"""What other people's programs find in a folder: `python -m tests.curate.outside WHAT FOLDER CACHE` prints it as JSON.

WHAT is `datasets` (every configuration, its splits, rows, columns and first row) or `mteb` (what MTEB's own loader
makes of the test split). They run in a process of their own: both write to a cache that environment variables name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def loaded(what: str, folder: Path, cache: Path) -> Any:
    """What the program finds."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(cache)}
    cached = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    line = [sys.executable, "-m", "tests.curate.outside", what, str(folder)]
    done = subprocess.run(line, cwd=ROOT, env=cached | offline, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def by_datasets(folder: str) -> Any:
    import datasets

    found = {name: datasets.load_dataset(folder, name) for name in datasets.get_dataset_config_names(folder)}
    usual = datasets.load_dataset(folder)
    return {"default": told(usual)} | {name: told(splits) for name, splits in found.items()}


def told(splits: Any) -> dict[str, Any]:
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


if __name__ == "__main__":
    print(json.dumps({"datasets": by_datasets, "mteb": by_mteb}[sys.argv[1]](sys.argv[2]), default=str))
