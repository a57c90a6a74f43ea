"""Vectors in half precision and codes beside them: kept by every run, made anew where vectors change, exact always."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.formats.imports import npy
from eyespot.formats.imports.registered import take_in
from eyespot.gallery import disk
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import Codes, has_codes, write_codes
from eyespot.search.adapted import seen_by
from eyespot.types import AdaptedQuery
from tests.worlds import draw, index_gallery
from tests.worlds.galleries import opened


@pytest.fixture
def coded(tmp_path: Path, photos: Path) -> Path:
    """Nine photos with codes."""
    index_gallery(tmp_path / "g", photos, codes=True)
    return tmp_path / "g"


def test_half_vectors_are_those_of_the_encoder_rounded_and_stay_so(tmp_path: Path, photos: Path) -> None:
    for name in ("whole", "half"):
        index_gallery(tmp_path / name, photos, half=name == "half")
    draw(photos / "new.jpg", 77)
    index_gallery(tmp_path / "half")
    (whole,), (half, more) = (opened(tmp_path / name).blocks for name in ("whole", "half"))
    assert np.array_equal(half, whole.astype(np.float16)) and half.dtype == more.dtype == np.float16


def test_codes_come_with_every_shard_once_they_are_wanted(coded: Path, photos: Path) -> None:
    draw(photos / "new.jpg", 77)
    index_gallery(coded)
    assert [codes and len(codes.codes) for codes in opened(coded).codes or ()] == [9, 1]


@pytest.mark.parametrize("lost", [".codes.npy", ".match.npy", ".bounds.npy", "another form"])
def test_a_shard_without_codes_is_scanned_alone_and_the_others_use_theirs(
    tmp_path: Path, photos: Path, lost: str
) -> None:
    index_gallery(tmp_path / "g", photos, codes=True, shard_rows=4)
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


def test_codes_that_were_lost_are_made_again_alike(coded: Path) -> None:
    place = next(coded.rglob("*.codes.npy"))
    before = place.read_bytes()
    place.unlink()
    assert opened(coded).codes is None  # a gallery whose codes are not whole is searched without
    index_gallery(coded)
    assert place.read_bytes() == before


def test_a_coded_import_whose_vectors_are_away_stops_nothing(tmp_path: Path, photos: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(4, dtype=np.float32))
    take_in(tmp_path / "g", npy.source([tmp_path / "vectors.npy"]), "open_clip:a/b")
    index_gallery(tmp_path / "g", encoders=(), codes=True)
    (tmp_path / "vectors.npy").unlink()
    done = index_gallery(tmp_path / "g", photos)
    assert done.pictures >= 9 and "no codes" in done.notes[-1]


def test_vectors_written_anew_lose_their_codes(coded: Path) -> None:
    view = opened(coded)
    note = disk.read_note(view.shards[0], view.stem)
    assert note is not None
    disk.write_vectors(view.shards[0], np.array(view.blocks[0])[::-1], note)
    assert not has_codes(view.shards[0] / view.stem)


def test_answers_with_codes_are_those_of_the_stored_half_vectors(tmp_path: Path, photos: Path) -> None:
    index_gallery(tmp_path / "g", photos, half=True, codes=True)
    view = opened(tmp_path / "g")
    queries = np.random.default_rng(0).standard_normal((3, view.space.dim))
    found = Exact(view.blocks, view.codes, small=0).search(queries.astype(np.float32), 5)
    true = queries.astype(np.float32).astype(np.float64) @ np.array(view.blocks[0], np.float64).T
    assert found.rows.tolist() == np.argsort(-true, axis=1, kind="stable")[:, :5].tolist()


ROWS, WIDTH = 1 << 18, 512  # 256 MiB in float16


def adapted(query: np.ndarray) -> AdaptedQuery:
    columns = [np.random.default_rng(seed).standard_normal((WIDTH, 16)) for seed in (1, 2)]
    left, right = ((one / np.linalg.norm(one)).astype(np.float32) for one in columns)
    return AdaptedQuery(query / np.linalg.norm(query), left, right, 1.0)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors and queries, and the five best rows of each query by a scan of all of them."""
    folder, rng = tmp_path_factory.mktemp("large"), np.random.default_rng(0)
    some = rng.standard_normal((ROWS // 16, WIDTH), dtype=np.float32)
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    vectors = np.concatenate([np.roll(some, at, axis=1).astype(np.float16) for at in range(16)])
    queries = some[:3] + 0.02 * rng.standard_normal((3, WIDTH), dtype=np.float32)
    view = adapted(queries[0])
    pieces = [vectors[at : at + 8192].astype(np.float32) for at in range(0, ROWS, 8192)]
    plain = [one @ queries.T for one in pieces]
    seen = [seen_by(view, one) @ view.query[:, None] for one in pieces]
    best = [np.argsort(-np.concatenate(one), axis=0, kind="stable")[:5].T.tolist() for one in (plain, plain, seen)]
    np.save(folder / "v.npy", vectors)
    np.save(folder / "queries.npy", queries)
    (folder / "best.txt").write_text("\n".join(map(str, best)))
    return folder


def search(how: str, block: np.ndarray, queries: np.ndarray, prefix: Path) -> list[list[int]]:
    if how != "plain":
        write_codes(block, prefix)
    if how == "adapted":
        index = AdaptedIndex([block], [Codes.load(prefix)], small=0)
        index.window = 1 << 16
        return index.search([adapted(queries[0])], 5).rows.tolist()
    exact = Exact([block], patience=math.inf) if how == "plain" else Exact([block], [Codes.load(prefix)], small=0)
    return exact.search(queries, 5).rows.tolist()


def search_in_a_quarter(folder: Path) -> None:
    """Search, and code, with a quarter of the memory that the vectors take, after libraries and threads have theirs."""
    vectors, queries = np.load(folder / "v.npy", mmap_mode="r"), np.load(folder / "queries.npy")
    for how in ("plain", "coded", "adapted"):
        search(how, vectors[:20000], queries, folder / "warm")
    status = Path("/proc/self/status").read_text().splitlines()
    now = next(1024 * int(line.split()[1]) for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (now + vectors.nbytes // 4,) * 2)
    with pytest.raises(MemoryError):
        np.ones(vectors.nbytes // 2, np.uint8)
    for how in ("plain", "coded", "adapted"):
        print(search(how, vectors, queries, folder / "v"))


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit counts what Linux counts")
@pytest.mark.parametrize("numba", ["", "import sys; sys.modules['numba'] = None; "], ids=["compiled", "numpy"])
def test_a_gallery_of_four_times_the_memory_is_searched(large: Path, numba: str) -> None:
    """The limit counts anonymous memory: pages of mapped files come and go as there is room."""
    script = f"{numba}from tests.gallery.test_coding import Path, search_in_a_quarter as go; go(Path({str(large)!r}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == (large / "best.txt").read_text().splitlines()
