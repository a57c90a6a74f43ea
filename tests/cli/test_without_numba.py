"""What the default install does: the same commands where numba cannot be imported give what they give with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command import run_process
from tests.pages import ROOT
from tests.worlds import draw_photos
from tests.worlds.adapters import checkpoint

WITH, WITHOUT = "with", "without"
MISSING = "import sys\nsys.modules['numba'] = sys.modules['llvmlite'] = None\n"


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The environment of a process with numba, and of one whose Python refuses to import it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(MISSING)
    return {WITH: {}, WITHOUT: {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}}


def twice(blocked: dict[str, dict[str, str]], *words: object, cwd: Path | None = None) -> list[str]:
    """What `eyespot …` prints with numba and without."""
    shown = [run_process(*words, cwd=cwd, **env) for env in blocked.values()]
    assert [done.returncode for done in shown] == [0, 0], [done.stderr for done in shown]
    return [done.stdout for done in shown]


def python(env: dict[str, str], script: str, *words: object) -> Any:
    """The JSON that a script prints."""
    line = [sys.executable, "-c", script, *map(str, words)]
    return json.loads(subprocess.run(line, env=os.environ | env, capture_output=True, text=True, check=True).stdout)


@pytest.mark.long
def test_numba_is_really_missing(blocked: dict[str, dict[str, str]]) -> None:
    """Else the other tests would compare a thing with itself."""
    script = "from eyespot.kernels import compiled; print(str(compiled()).lower())"
    assert [python(env, script) for env in blocked.values()] == [True, False]
    (line,) = (line for line in run_process("doctor", **blocked[WITHOUT]).stdout.splitlines() if "[fast]" in line)
    assert line.startswith("advice: the extra [fast] brings compiled kernels") and line.endswith("[fast]'")


@pytest.mark.long
def test_a_gallery_is_indexed_and_searched_alike(tmp_path: Path, blocked: dict[str, dict[str, str]]) -> None:
    """Words, a QuARI adapter, and the codes that are written beside the vectors."""
    photos, adapter = draw_photos(tmp_path / "photos"), checkpoint(tmp_path / "quari", 512, "starter")
    for name, env in blocked.items():
        run_process("index", photos, "-g", tmp_path / name, "--codes", **env)
    vectors, codes = ([next((tmp_path / name).rglob(f"starter-*{end}")) for name in blocked]
                      for end in (".npy", ".codes.npy"))  # fmt: skip

    for words in (["search", "a heron"], ["search", "a heron", "--adapt", adapter]):
        items = []
        for name, env in blocked.items():
            text = run_process(*words, "-g", tmp_path / name, "--json", "-k", 5, **env).stdout
            items.append([(item["id"], round(item["score"], 12)) for item in json.loads(text)["items"]])
        assert items[0] and items[0] == items[1]

    assert codes[0].read_bytes() == codes[1].read_bytes()
    assert np.array_equal(*(np.load(next(file.parent.glob("starter-*.match.npy"))) for file in vectors))


@pytest.mark.long
def test_observations_are_drawn_alike(tmp_path: Path, blocked: dict[str, dict[str, str]]) -> None:
    subprocess.run([sys.executable, "-m", "tests.worlds.inat_export", tmp_path / "export", "2000"], check=True)
    for name, env in blocked.items():
        words = ("inat", tmp_path / "export", "--targets", tmp_path / "export" / "targets.csv", "--cap", 5)
        done = run_process("build", *words, "--out", tmp_path / name, **env)
        assert done.returncode == 0, done.stderr

    compiled, plain = ((tmp_path / name / "download.csv").read_text() for name in blocked)
    assert len(compiled.splitlines()) > 5 and compiled == plain


@pytest.mark.long
def test_a_search_of_many_pictures_says_what_would_make_it_fast(
    tmp_path: Path, blocked: dict[str, dict[str, str]]
) -> None:
    script = """if True:
        import json, sys
        from eyespot.search import collection
        collection.MANY_ROWS = int(sys.argv[2])
        print(json.dumps(collection.Collection(sys.argv[1]).search("a heron", k=1).notes))
    """
    gallery = tmp_path / "gallery"
    run_process("index", draw_photos(tmp_path / "photos"), "-g", gallery)

    (compiled, many), (_, few) = ([python(env, script, gallery, most) for env in blocked.values()] for most in (2, 99))

    assert not any("[fast]" in note for note in [*compiled, *few])
    assert sum("compiled kernels search" in note and note.endswith("[fast]'") for note in many) == 1
