"""Runs the code of a notebook, and stores what it shows: python scripts/notebook.py examples/first_look.ipynb

It runs in a folder of its own, so that what it writes goes when it is over. Of a value that shows itself in HTML that
is stored too; `tests/test_examples.py` compares the texts.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def shown(code: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of one cell, in the notebook format: what is printed, and its last value."""
    tree, printed, outputs = ast.parse(code), StringIO(), list[dict[str, Any]]()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if value is not None:
        texts = {"text/plain": repr(value)}
        texts |= {"text/html": value._repr_html_()} if hasattr(value, "_repr_html_") else {}
        data = {kind: text.replace(f"{ROOT}{os.sep}", "").splitlines(True) for kind, text in texts.items()}
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    return outputs


def run(notebook: dict[str, Any]) -> None:
    """Run all cells in their order and put their outputs into the notebook."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = shown("".join(cell["source"]), names)


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    found = json.loads(place.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(found)
        os.chdir(place.parent)
    place.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
