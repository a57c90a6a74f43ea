"""Which kernel scans few queries is measured once on each machine, and changes no answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.indexes.exact import Exact
from tests.lazy_import import requires

pytestmark = requires("numba")
from eyespot.indexes import _kernel_choice as choice  # noqa: E402
from eyespot.indexes._coded import single_queries  # noqa: E402

ASK = "from eyespot.indexes._coded import single_queries; print(single_queries())"


def ask(cache: Path, **env: str) -> int:
    known = {name: value for name, value in os.environ.items() if name != choice.VARIABLE}
    line = [sys.executable, "-c", ASK]
    done = subprocess.run(line, env=known | {"XDG_CACHE_HOME": str(cache)} | env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def stored(cache: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((cache / "eyespot" / "kernels.json").read_text())
    return found


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 8), st.integers(1, 60), st.integers(0, 2**31), st.booleans())
def test_both_ways_give_the_same_answers(queries: int, k: int, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(500, 24)).astype(np.float32)
    if ties:
        rows[100:200] = rows[:100]
    asked, found = rng.normal(size=(queries, 24)).astype(np.float32), []
    for number in ("0", str(choice.MOST)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(choice.VARIABLE, number)
            single_queries.cache_clear()
            index = Exact([rows], small=0)
            found.append(index.search(asked, k))
    single_queries.cache_clear()
    assert np.array_equal(found[0].rows, found[1].rows) and np.array_equal(found[0].scores, found[1].scores)


@pytest.mark.long
def test_it_is_measured_once_and_read_from_then_on(tmp_path: Path) -> None:
    first = ask(tmp_path)
    (key,) = stored(tmp_path)
    assert 0 <= first <= choice.MOST and stored(tmp_path) == {key: first}

    other = (first + 3) % choice.MOST
    (tmp_path / "eyespot" / "kernels.json").write_text(json.dumps({key: other, "another machine": 1}))
    assert ask(tmp_path) == other
    assert ask(tmp_path, EYESPOT_SINGLE_QUERIES="1") == 1
    assert 0 <= ask(tmp_path / "eyespot" / "kernels.json") <= choice.MOST  # a home that cannot be written


@pytest.mark.long
@pytest.mark.parametrize("text", ["{", '{"KEY": 99}', '{"KEY": true}'])
def test_a_file_that_is_damaged_is_measured_again(tmp_path: Path, text: str) -> None:
    place = tmp_path / "eyespot" / "kernels.json"
    place.parent.mkdir()
    place.write_bytes(text.replace("KEY", choice.machine_key()).encode("latin-1"))
    first = ask(tmp_path)
    assert stored(tmp_path)[choice.machine_key()] == first and type(first) is int
