"""Vectors in half precision and codes beside them: kept by every run, made anew where vectors change, exact always."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eyespot.gallery import disk
from eyespot.gallery.formats import npy
from eyespot.gallery.formats.registered import InPlace, take_in
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.view import Gallery, View
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import has_codes
from eyespot.search.adapted import seen_by
from eyespot.types import AdaptedQuery, Encoder
from tests.worlds import draw


def opened(gallery: Path) -> View:
    found = Gallery(gallery)
    return found.view(found.stem())


def test_half_is_half_the_bytes_and_stays_so(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    index(tmp_path / "g", [str(photos)], [starter], Options(half=True))
    draw(photos / "new.jpg", 77)
    index(tmp_path / "g", [], [starter])
    assert [block.dtype for block in opened(tmp_path / "g").blocks] == [np.float16, np.float16]


@pytest.mark.long
def test_half_vectors_are_those_of_the_encoder_rounded(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    for name, options in (("whole", Options()), ("half", Options(half=True))):
        index(tmp_path / name, [str(photos)], [starter], options)
    whole, half = opened(tmp_path / "whole").blocks[0], opened(tmp_path / "half").blocks[0]
    assert np.array_equal(half, whole.astype(np.float16))


def test_codes_come_with_every_shard_once_they_are_wanted(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    index(tmp_path / "g", [str(photos)], [starter], Options(codes=True))
    draw(photos / "new.jpg", 77)
    index(tmp_path / "g", [], [starter])
    view = opened(tmp_path / "g")
    assert [codes and len(codes.codes) for codes in view.codes or ()] == [9, 1]


def test_a_gallery_whose_codes_are_not_whole_is_searched_without(
    tmp_path: Path, photos: Path, starter: Encoder
) -> None:
    index(tmp_path / "g", [str(photos)], [starter], Options(codes=True))
    next((tmp_path / "g").rglob("*.codes.npy")).unlink()
    assert opened(tmp_path / "g").codes is None


@pytest.mark.parametrize("lost", [".codes.npy", ".match.npy", ".bounds.npy", "another form"])
def test_a_shard_without_codes_is_scanned_alone_and_the_others_use_theirs(
    tmp_path: Path, photos: Path, starter: Encoder, lost: str
) -> None:
    index(tmp_path / "g", [str(photos)], [starter], Options(codes=True, shard_rows=4))
    view = opened(tmp_path / "g")
    queries = (view.vectors(range(9)) + 0.01).astype(np.float32)
    true = Exact(view.blocks, patience=math.inf).search(queries, 9)
    prefix = view.shards[1] / view.stem
    if lost == "another form":
        np.save(f"{prefix}.codes.npy", np.zeros((4, 32), np.uint8))
    else:
        Path(f"{prefix}{lost}").unlink()

    view = opened(tmp_path / "g")
    found = Exact(view.blocks, view.codes, small=0, patience=math.inf).search(queries, 9)

    assert [codes is not None for codes in view.codes or ()] == [True, False, True]
    assert np.array_equal(found.rows, true.rows) and np.array_equal(found.scores, true.scores)


def test_codes_that_were_lost_are_made_again_alike(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    index(tmp_path / "g", [str(photos)], [starter], Options(codes=True))
    place = next((tmp_path / "g").rglob("*.codes.npy"))
    before = place.read_bytes()
    place.unlink()
    index(tmp_path / "g", [], [starter])
    assert place.read_bytes() == before


def test_a_coded_import_whose_vectors_are_away_stops_nothing(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(4, dtype=np.float32))
    take_in(tmp_path / "g", npy.source([tmp_path / "vectors.npy"]), "open_clip:a/b", InPlace())
    index(tmp_path / "g", [], [], Options(codes=True))
    (tmp_path / "vectors.npy").unlink()
    done = index(tmp_path / "g", [str(photos)], [starter])
    assert done.pictures >= 9 and "has no codes for now" in done.notes[-1]


def test_vectors_written_anew_lose_their_codes(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    index(tmp_path / "g", [str(photos)], [starter], Options(codes=True))
    view = opened(tmp_path / "g")
    note = disk.read_note(view.shards[0], view.stem)
    assert note is not None
    disk.write_vectors(view.shards[0], np.array(view.blocks[0])[::-1], note)
    assert not has_codes(view.shards[0] / view.stem)


def test_answers_with_codes_are_those_of_the_stored_half_vectors(
    tmp_path: Path, photos: Path, starter: Encoder
) -> None:
    index(tmp_path / "g", [str(photos)], [starter], Options(half=True, codes=True))
    view, queries = opened(tmp_path / "g"), np.random.default_rng(0).standard_normal((3, starter.space.dim))
    found = Exact(view.blocks, view.codes, small=0).search(queries.astype(np.float32), 5)
    true = queries.astype(np.float32).astype(np.float64) @ np.array(view.blocks[0], np.float64).T
    assert found.rows.tolist() == np.argsort(-true, axis=1, kind="stable")[:, :5].tolist()


# -- beyond memory ------------------------------------------------------------------------------------------------

ROWS, WIDTH = 1 << 18, 512  # 256 MiB in float16
MAKE = f"""
import numpy as np, sys
from pathlib import Path
from eyespot.kernels.codes import write_codes
rng, folder = np.random.default_rng(0), Path(sys.argv[1])
some = rng.standard_normal(({ROWS} // 16, {WIDTH}), dtype=np.float32)
some /= np.linalg.norm(some, axis=1, keepdims=True)
out = np.lib.format.open_memmap(folder / "v.npy", "w+", np.float16, ({ROWS}, {WIDTH}))
for at in range(16):
    out[at * len(some) : (at + 1) * len(some)] = np.roll(some, at, axis=1)
out.flush()
np.save(folder / "queries.npy", some[:3] + 0.02 * rng.standard_normal((3, {WIDTH}), dtype=np.float32))
"""
SEARCH = """
import math, resource, sys
from pathlib import Path
import numpy as np
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.indexes.exact import Exact
from eyespot.kernels import compiled
from eyespot.kernels.codes import Codes, write_codes
from eyespot.types import AdaptedQuery

how, folder = sys.argv[1], Path(sys.argv[2])
vectors, queries = np.load(folder / "v.npy", mmap_mode="r"), np.load(folder / "queries.npy")
dim = vectors.shape[1]

def factor(seed):
    columns = np.random.default_rng(seed).standard_normal((dim, 16))
    return (columns / np.linalg.norm(columns)).astype(np.float32)

view = AdaptedQuery(queries[0] / np.linalg.norm(queries[0]), factor(1), factor(2), 1.0)

def search(block, prefix):
    if how == "plain":
        return Exact([block], patience=math.inf).search(queries, 5).rows
    write_codes(block, prefix)
    codes = [Codes.load(prefix)]
    if how == "coded":
        return Exact([block], codes, small=0).search(queries, 5).rows
    index = AdaptedIndex([block], codes, small=0)
    index.window = 1 << 16
    return index.search([view], 5).rows

if compiled():
    import eyespot.kernels.halves
search(vectors[:20000], folder / "warm")  # loads libraries and starts threads
status = Path("/proc/self/status").read_text().splitlines()
now = next(1024 * int(line.split()[1]) for line in status if line.startswith("VmData"))
limit = now + vectors.nbytes // 4
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.ones(vectors.nbytes // 2, np.uint8)
except MemoryError:
    print("limited")
print(search(vectors, folder / "v").tolist())
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    subprocess.run([sys.executable, "-c", MAKE, str(folder)], check=True)
    return folder


def factor(seed: int) -> np.ndarray:
    columns = np.random.default_rng(seed).standard_normal((WIDTH, 16))
    factor: np.ndarray = (columns / np.linalg.norm(columns)).astype(np.float32)
    return factor


def best(folder: Path, how: str) -> list[list[int]]:
    """The five best rows of each query, by a scan of all of them."""
    vectors, queries = np.load(folder / "v.npy", mmap_mode="r"), np.load(folder / "queries.npy")
    view = AdaptedQuery(queries[0] / np.linalg.norm(queries[0]), factor(1), factor(2), 1.0)
    pieces = (vectors[at : at + 8192].astype(np.float32) for at in range(0, ROWS, 8192))
    scores = [seen_by(view, one) @ view.query[:, None] if how == "adapted" else one @ queries.T for one in pieces]
    found: list[list[int]] = np.argsort(-np.concatenate(scores), axis=0, kind="stable")[:5].T.tolist()
    return found


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit counts what Linux counts")
@pytest.mark.parametrize("how", ["plain", "coded", "adapted"])
@pytest.mark.parametrize("numba", ["", "import sys; sys.modules['numba'] = None"], ids=["compiled", "numpy"])
def test_a_gallery_of_four_times_the_memory_is_searched(how: str, large: Path, numba: str) -> None:
    """Coding too. The limit counts anonymous memory: pages of mapped files come and go as there is room."""
    script = f"{numba}\n{SEARCH}"
    done = subprocess.run([sys.executable, "-c", script, how, str(large)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["limited", str(best(large, how))]
