"""Type checkers of people who install eyespot see its types."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import eyespot
from eyespot.adapters.quari import Hypernetwork, load, train
from eyespot.gallery import Gallery
from eyespot.indexes import Exact
from eyespot.llms import Budget
from eyespot.metrics import AP, evaluate, parse
from eyespot.pipelines import MapStep, Step, run
from eyespot.runs import read_qrels, read_run
from eyespot.search import Adapted, Fused, JudgeRerank, LocalRerank, Nearest, QueryExpansion

collection = eyespot.open(".eyespot")
found = collection.search("a heron", k=5)
qrels = read_qrels("qrels.txt")
reveal_type(collection)
reveal_type(found)
reveal_type(eyespot.Query.words("a heron"))
reveal_type(eyespot.evaluate(found, qrels, [AP(50), "nDCG@10"]))
reveal_type(eyespot.compare(read_run("other.txt"), found, qrels))
reveal_type(eyespot.load_encoder("starter"))
reveal_type(eyespot.load_index(eyespot.load_encoder("starter").encode_texts(["a heron"])))
reveal_type(eyespot.load_adapter("checkpoint"))
reveal_type(eyespot.load_judge("encoder:starter"))
for name in (Hypernetwork, load, train, Gallery, Exact, Budget, AP, evaluate, parse, MapStep, Step, run):
    print(name)
chain = eyespot.Chain(Nearest.of(collection), JudgeRerank.of(collection, "encoder:starter"))
reveal_type(chain([eyespot.Query.words("a heron")]))
reveal_type(eyespot.Chain(Fused(chain, chain)))
for stage in (Adapted, Fused, LocalRerank, QueryExpansion):
    print(stage)
reveal_type(eyespot.load_language_model("openai:gpt-5-mini"))
reveal_type(Hypernetwork)
reveal_type(train)
reveal_type(Gallery)
reveal_type(Exact)
reveal_type(Budget)
reveal_type(Step)
"""
MISSPELLED = """
import eyespot
import eyespot.metrics
from eyespot.gallery import Galery

eyespot.serach
eyespot.metrics.Recal
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What `mypy --strict` says of the scripts of somebody who installed eyespot."""
    folder = tmp_path_factory.mktemp("typed")
    venv.create(folder / "venv", with_pip=False)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "eyespot.pth").write_text(f"{ROOT}\n", encoding="utf-8")  # as an editable install does it
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "misspelled.py").write_text(MISSPELLED, encoding="utf-8")
    line = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(folder / "venv" / "bin" / "python")]
    quiet = ["--cache-dir", str(folder / "cache"), "--config-file", "", "script.py", "misspelled.py"]
    return subprocess.run([*line, *quiet], cwd=folder, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.long
def test_a_script_that_uses_eyespot_is_checked_against_its_types(messages: list[str]) -> None:
    """Without `py.typed` all of them would be `Any`, and mypy would say that stubs are missing."""
    revealed = [line for line in messages if line.startswith("script.py") and "Revealed type" in line]

    assert [line for line in messages if line.startswith("script.py") and line not in revealed] == []
    assert len(revealed) == SCRIPT.count("reveal_type")
    assert [line for line in revealed if "eyespot." not in line] == []


def test_a_misspelled_name_is_an_error(messages: list[str]) -> None:
    """Names are imported lazily, and a checker would take any name of a module with `__getattr__`."""
    errors = [line for line in messages if line.startswith("misspelled.py") and " error: " in line]

    assert [any(f'"{name}"' in line for line in errors) for name in ("Galery", "serach", "Recal")] == [True] * 3
