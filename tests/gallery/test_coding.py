"""Vectors in half precision and codes beside them: kept by every run, made anew where vectors change, exact always."""

from __future__ import annotations

import math
import re
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eyespot
from eyespot import rooms
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.formats.imports import npy
from eyespot.formats.imports.registered import take_in
from eyespot.gallery import disk, items_table
from eyespot.gallery.facts import table_of
from eyespot.gallery.making import write_missing_codes
from eyespot.gallery.picture_index import StoredRow
from eyespot.gallery.view import Gallery
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import Codes, has_codes, write_codes
from eyespot.search.adapted import seen_by
from eyespot.types import AdaptedQuery, Encoder, EyespotError, Space, UsageError, no_progress
from tests import tiny_models
from tests.worlds import draw, draw_photos, index_gallery
from tests.worlds.galleries import opened


def test_half_vectors_are_those_of_the_encoder_rounded_and_stay_so(tmp_path: Path, photos: Path) -> None:
    for name in ("whole", "half"):
        index_gallery(tmp_path / name, photos, half=name == "half")
    draw(photos / "new.jpg", 77)
    index_gallery(tmp_path / "half")
    (whole,), (half, more) = (opened(tmp_path / name).blocks for name in ("whole", "half"))
    assert np.array_equal(half, whole.astype(np.float16)) and half.dtype == more.dtype == np.float16


def test_codes_come_with_every_shard_and_alike_where_they_were_lost_or_vectors_are_new(
    photos: Path, tmp_path: Path
) -> None:
    coded = tmp_path / "g"
    index_gallery(coded, photos, codes=True)
    place = next(coded.rglob("*.codes.npy"))
    before = place.read_bytes()
    place.unlink()
    assert opened(coded).codes is None  # a gallery whose codes are not whole is searched without
    index_gallery(coded)
    assert place.read_bytes() == before

    draw(photos / "new.jpg", 77)
    index_gallery(coded)
    view = opened(coded)
    assert [codes and len(codes.codes) for codes in view.codes or ()] == [9, 1]

    note = disk.read_note(view.shards[0], view.stem)
    assert note is not None
    disk.write_vectors(view.shards[0], np.array(view.blocks[0])[::-1], note)
    assert not has_codes(view.shards[0] / view.stem)


def test_a_coded_import_whose_vectors_are_away_stops_nothing(tmp_path: Path, photos: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(4, dtype=np.float32))
    take_in(tmp_path / "g", npy.source([tmp_path / "vectors.npy"]), "open_clip:a/b")
    index_gallery(tmp_path / "g", encoders=(), codes=True)
    (tmp_path / "vectors.npy").unlink()
    done = index_gallery(tmp_path / "g", photos)
    assert done.pictures >= 9 and "no codes" in done.notes[-1]


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


# -- two encoders' spaces side by side in one gallery -------------------------------------------------------------


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = tiny_models.hf_clip(tmp_path_factory.mktemp("clip"))
    encoder: Encoder = rooms.load("encoders", f"hf:{folder}", device="cpu")
    return encoder


@pytest.fixture
def two_spaces_photos(tmp_path: Path) -> Path:
    return draw_photos(tmp_path / "photos", 5)


@pytest.fixture
def gallery(tmp_path: Path, two_spaces_photos: Path) -> Path:
    """Five photos in one space."""
    index_gallery(tmp_path / "my gallery", two_spaces_photos, shard_rows=3)
    return tmp_path / "my gallery"


def found(gallery: Path, encoder: Encoder | str) -> int:
    """How many photos a search in a space finds."""
    name = encoder if isinstance(encoder, str) else encoder.space.encoder
    return len(eyespot.open(gallery, name).search("stripes", k=50).run.image)


def vectors(gallery: Path, encoder: Encoder | str) -> np.ndarray:
    name = encoder if isinstance(encoder, str) else encoder.space.encoder
    return np.concatenate([np.array(block) for block in eyespot.open(gallery, name).view.blocks])


@pytest.mark.long
def test_a_second_encoder_is_added(tmp_path: Path, two_spaces_photos: Path, gallery: Path, clip: Encoder) -> None:
    before = vectors(gallery, "starter")
    added = index_gallery(gallery, encoders=[clip])
    index_gallery(tmp_path / "first", two_spaces_photos, encoders=[clip])
    # Some processors round other sizes of a batch in another way.
    assert np.allclose(vectors(gallery, clip), vectors(tmp_path / "first", clip), rtol=0, atol=1e-6)
    draw(two_spaces_photos / "new.jpg", 99)
    later = index_gallery(gallery, encoders=["starter", clip])

    assert (added.embedded, later.embedded) == (5, 1)
    assert Gallery(gallery).encoders == ["starter", clip.space.encoder]
    assert found(gallery, "starter") == found(gallery, clip) == 6
    assert np.array_equal(vectors(gallery, "starter")[:5], before)
    assert vectors(gallery, clip).shape == (6, clip.space.dim)


@pytest.mark.long
def test_pictures_without_vectors_are_filled_later(two_spaces_photos: Path, gallery: Path, clip: Encoder) -> None:
    index_gallery(gallery, encoders=[clip])
    draw(two_spaces_photos / "new.jpg", 99)
    index_gallery(gallery)

    run = eyespot.open(gallery, clip.space.encoder).search("stripes", k=50).run
    assert len(run.image) == 5
    (notice,) = [note for note in run.notes if "not searched: 1;" in note]
    assert shlex.split(notice.partition(" with: ")[2]) == ["eyespot", "index", "-g", str(gallery)]
    index_gallery(gallery, encoders=["starter", clip])
    assert found(gallery, clip) == 6


def test_an_unreadable_picture_waits(tmp_path: Path, two_spaces_photos: Path, gallery: Path, clip: Encoder) -> None:
    backup = (two_spaces_photos / "1.jpg").read_bytes()
    (two_spaces_photos / "1.jpg").write_bytes(b"damaged")
    (tmp_path / "elsewhere").mkdir()
    index_gallery(gallery, tmp_path / "elsewhere", encoders=[clip])  # the damage is not seen: no root is scanned
    before = vectors(gallery, clip)
    assert found(gallery, clip) == before.any(axis=1).sum() == 4

    two_spaces_photos.rename(tmp_path / "unplugged")
    index_gallery(gallery, encoders=[clip], retry_failed=True)
    assert np.array_equal(vectors(gallery, clip), before)

    (tmp_path / "unplugged").rename(two_spaces_photos)
    (two_spaces_photos / "1.jpg").write_bytes(backup)
    index_gallery(gallery, encoders=["starter", clip], retry_failed=True)
    assert found(gallery, clip) == 5


def test_a_picture_is_read_from_any_of_its_paths(tmp_path: Path, two_spaces_photos: Path, clip: Encoder) -> None:
    shutil.copytree(two_spaces_photos, tmp_path / "a copy")
    index_gallery(tmp_path / "gallery", tmp_path / "a copy", two_spaces_photos)
    (tmp_path / "a copy").rename(tmp_path / "unplugged")
    index_gallery(tmp_path / "gallery", encoders=[clip])

    assert found(tmp_path / "gallery", clip) == 5


def test_a_model_s_folder_may_be_relative(gallery: Path, clip: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    index_gallery(gallery, encoders=[clip])
    folder = Path(clip.space.encoder.removeprefix("hf:"))
    monkeypatch.chdir(folder.parent)

    assert eyespot.open(gallery, f"hf:{folder.name}").view.space.encoder == clip.space.encoder
    with pytest.raises(UsageError, match="hf:other"):
        eyespot.open(gallery, "hf:other")


# -- a gallery of thousands of shards -----------------------------------------------------------------------------


SPACE = Space("starter", "1", "none", "none", 8)
STEM = disk.stem_of(SPACE)
SHARDS = 60
OPEN = """
import resource, sys
from eyespot.gallery.view import Gallery
from eyespot.types import EyespotError
usual, most, times = map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
gallery = Gallery(sys.argv[1])
try:
    views = [gallery.view(gallery.stem()) for _ in range(times)]
    opened = [(len(view.blocks), view.codes is not None) for view in views]
    print(*opened[-1], *views[-1].notes)
except EyespotError as error:
    print(error)
"""


def output(gallery: Path, usual: int, most: int, times: int = 1) -> str:
    """What a program says that may open so many files and opens a gallery so often: blocks, codes and notes."""
    line = [sys.executable, "-c", OPEN, gallery, *map(str, (usual, most, times))]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_files_that_are_more_than_the_usual_limit_are_opened(tmp_path: Path) -> None:
    """The limit is raised as far as it may be, also for what is open already; codes are not silently left out."""
    for number in range(SHARDS):
        shard = disk.shard_path(tmp_path, number)
        shard.mkdir(parents=True)
        items_table.write_items(shard, table_of([StoredRow(f"{number}", {}, [0], [f"{number}.jpg"], 1, 1, {})], {}))
        disk.write_vectors(shard, np.eye(8, dtype=np.float32)[:1], disk.SpaceNote(SPACE, [], [[1.0] * 8] * 3))
    disk.write_header(tmp_path, disk.Header({0: disk.Root(str(tmp_path), "folder")}, {STEM: SPACE}, STEM, SHARDS))
    write_missing_codes(Gallery(tmp_path).view(STEM), no_progress)
    assert output(tmp_path, 100, 5000, times=4) == "60 True\n"
    few = output(tmp_path, 100, 150)
    assert few.startswith("60 False the int8 codes are 180 files")
    (advice,) = re.findall(r"ulimit -n (\d+)", few)
    assert output(tmp_path, 100, int(advice)) == "60 True\n"
    assert re.search("ulimit|raise the limit", output(tmp_path, 70, 70))


def test_fingerprints_over_several_lines_are_read_and_damaged_ones_are_told(tmp_path: Path) -> None:
    disk.write_note(tmp_path, disk.SpaceNote(SPACE, [3], [[0.5]], "/somewhere.npy"))
    place = tmp_path / f"{STEM}.toml"
    written = place.read_text()
    for right in ("[[0.5]]", "[\n  [0.5],\n]"):
        place.write_text(written.replace("[[0.5]]", right))
        assert disk.read_note(tmp_path, STEM) == disk.SpaceNote(SPACE, [3], [[0.5]], "/somewhere.npy")
        seen = disk.glance(tmp_path, STEM)
        assert seen is not None and (seen.space, seen.missing) == (SPACE, [3])
    for wrong in ("[[1.0, ]", "{}", "[1.0, x]"):
        place.write_text(written.replace("[[0.5]]", wrong))
        with pytest.raises(EyespotError, match="damaged"):
            disk.read_note(tmp_path, STEM)
