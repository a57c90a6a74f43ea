"""Pairs of vectors in every layout: the same pairs whichever way they were left, and what is wrong is notes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot import rooms
from eyespot.adapters.quari.mining import Mining, NeighbourSearch, mine, mine_into, read
from eyespot.adapters.quari.training import Pairs
from eyespot.adapters.quari.training.reading import read_images, read_pairs
from eyespot.indexes import exact
from eyespot.types import NothingFound, UsageError
from tests.wording import check_wording, raises

IMAGES = np.eye(3, 4, dtype=np.float32)
OF = np.array([0, 0, 1, 2])
TEXTS = (IMAGES[OF] + 0.25).astype(np.float32)


def arrays(folder: Path) -> Path:
    np.save(folder / "texts.npy", TEXTS)
    np.save(folder / "images.npy", IMAGES)
    np.save(folder / "of.npy", OF)
    return folder


def archive(folder: Path) -> Path:
    np.savez(folder / "pairs.npz", texts=TEXTS, images=IMAGES, of=OF)
    return folder / "pairs.npz"


def tensors(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    for name, array in (("texts", TEXTS), ("images", IMAGES), ("of", OF)):
        torch.save(torch.from_numpy(array).to(torch.float16 if name != "of" else torch.int32), folder / f"{name}.pt")
    return folder


def mapping(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    parts = {"texts": TEXTS, "images": IMAGES, "of": OF}
    torch.save({name: torch.from_numpy(array) for name, array in parts.items()}, folder / "pairs.pt")
    return folder / "pairs.pt"


def clip_retrieval(folder: Path) -> Path:
    for kind, rows in (("text_emb", TEXTS), ("img_emb", IMAGES[OF])):
        (folder / kind).mkdir()
        for part, some in ((2, rows[:3]), (10, rows[3:])):
            np.save(folder / kind / f"{kind}_{part}.npy", some.astype(np.float16))
    return folder


def parquet(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"text_embedding": list(TEXTS), "image_embedding": list(IMAGES[OF]), "image_id": OF}
    table = pa.table(columns)
    pq.write_table(table.slice(0, 2), folder / "part-0.parquet")
    pq.write_table(table.slice(2), folder / "part-1.parquet")
    return folder


@pytest.mark.parametrize("layout", [arrays, archive, tensors, mapping, clip_retrieval, parquet])
def test_the_same_pairs_in_every_layout(layout: Callable[[Path], Path], tmp_path: Path) -> None:
    notes: list[str] = []
    pairs = read_pairs(layout(tmp_path), notes.append)

    assert not notes
    assert np.allclose(pairs.texts, TEXTS, atol=1e-3) and np.allclose(pairs.images[pairs.of], IMAGES[OF])
    same = pairs.image[pairs.of]  # two captions of one image are known as such
    assert (same[:, None] == same).tolist() == (OF[:, None] == OF).tolist()


def test_ids_of_images_are_taken_along_and_images_read_alone(tmp_path: Path) -> None:
    (arrays(tmp_path) / "ids.txt").write_text("a\nb\na\n")

    alone, _ = read_images(tmp_path / "images.npy")

    assert read_pairs(tmp_path).image.tolist() == [0, 1, 0]
    assert np.array_equal(alone, IMAGES) and np.array_equal(read_images(tmp_path)[0], IMAGES)


def test_rows_without_a_vector_are_left_out_and_told(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"text_embedding": [*TEXTS, None], "image_embedding": [*IMAGES[OF], TEXTS[0]]}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")

    notes: list[str] = []

    assert len(read_pairs(tmp_path / "pairs.parquet", notes.append)) == 4 and "1 row" in notes[0]


def broken(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def saved(name: str, **parts: Any) -> Callable[[Path], None]:
    return lambda folder: np.savez(folder / name, **parts)


def pickled(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"texts": Pairs}, folder / "pairs.pt")


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: None,
        broken("a.npz", b"junk"),
        broken("a.parquet", b"junk"),
        broken("a.pt", b"junk"),
        pickled,
        saved("a.npz", texts=TEXTS),
        saved("a.npz", texts=TEXTS, images=IMAGES),
        saved("a.npz", texts=TEXTS, images=IMAGES, of=OF + 1),
        saved("a.npz", texts=TEXTS, images=IMAGES[:, :2], of=OF),
        saved("a.npz", texts=TEXTS.astype(int), images=IMAGES, of=OF),
        saved("a.npz", texts=TEXTS, images=IMAGES.astype("int8"), of=OF),
        saved("a.npz", texts=np.array([object()]), images=IMAGES),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path)

    with pytest.raises((UsageError, NothingFound)) as caught:
        read_pairs(tmp_path)

    check_wording(str(caught.value))


def quiet(_what: str, _done: int, _total: int) -> None:
    pass


def circle(*degrees: float) -> Any:
    return np.array([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in degrees], np.float32)


def vectors(count: int = 60) -> Any:
    drawn = np.random.default_rng(0).normal(size=(count, 8)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


class Counted:
    """An exact search that notes how many rows were asked for, and breaks off when it has had enough."""

    def __init__(self, patience: int = 10**9) -> None:
        self.asked, self.patience = 0, patience

    def __call__(self, images: Any) -> Any:
        self.index = exact.load(images)
        return self

    exact = True

    def search(self, queries: Any, k: int, mask: Any = None) -> Any:
        self.asked += len(queries)
        if self.asked > self.patience:
            raise KeyboardInterrupt
        return self.index.search(queries, k, mask)


def test_weights_are_a_softmax_over_all_neighbours_and_the_nearest_are_kept() -> None:
    images = circle(0, 10, 40, 90)

    found = mine(images, None, exact.load, Mining(neighbours=3, keep=2, temperature=0.5))

    powers = [math.exp(math.cos(math.radians(angle)) / 0.5) for angle in (10, 40, 90)]
    assert found.rows.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    assert found.weights[0] == pytest.approx([powers[0] / sum(powers), powers[1] / sum(powers)], rel=1e-5)
    assert mine(images, None, exact.load, Mining(neighbours=1, keep=1)).weights.tolist() == [[1.0]] * 4


@pytest.mark.parametrize(
    ("images", "ids", "neighbours", "rows"),
    [
        (circle(0, 30, 0, 90), None, 3, [[1, 3], [0, 3], [1, 3], [1, 0]]),  # a copy is no semi-positive
        (circle(0, 30, 2, 90), ["a", "b", "a", "c"], 3, [[1, 3], [0, 3], [1, 3], [1, 0]]),
        (circle(0, 30), None, 20, [[1, -1], [0, -1]]),  # there are not enough others
        (
            np.r_[circle(0, 9), [[0, 0], [np.nan, 1]]].astype(np.float32),
            None,
            9,
            [[1, -1], [0, -1], [-1, -1], [-1, -1]],
        ),
    ],
    ids=["content", "id", "few", "no direction"],
)
def test_nearest_others_are_taken(images: Any, ids: list[str] | None, neighbours: int, rows: list[list[int]]) -> None:
    found = mine(images, ids, exact.load, Mining(neighbours=neighbours, keep=2))

    assert found.rows.tolist() == rows
    assert not found.weights[found.rows == -1].any()


def test_lengths_do_not_matter() -> None:
    images = vectors()

    one, other = (mine(rows, None, exact.load, Mining()) for rows in (images, images * np.arange(1, 61)[:, None]))

    assert np.array_equal(one.rows, other.rows)


def test_an_interrupted_mining_goes_on_where_it_was(tmp_path: Path) -> None:
    images, out, how = vectors(), tmp_path / "semi.npz", Mining(piece=20)
    with pytest.raises(KeyboardInterrupt):
        mine_into(out, images, None, NeighbourSearch("exact", Counted(patience=40), how), quiet)
    assert not out.exists()

    rest = Counted()
    mine_into(out, images, None, NeighbourSearch("exact", rest, how), quiet)

    whole = mine(images, None, exact.load, how)
    assert rest.asked == 20
    assert all(np.array_equal(one, other) for one, other in zip(read(out), whole, strict=True))
    assert [path.name for path in tmp_path.iterdir()] == ["semi.npz"]


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    out, how = tmp_path / "semi.npz", Mining(piece=20)
    with pytest.raises(KeyboardInterrupt):
        mine_into(out, vectors(), None, NeighbourSearch("exact", Counted(patience=20), how), quiet)

    with raises(UsageError):  # pieces of other vectors
        mine_into(out, vectors()[:50], None, NeighbourSearch("exact", exact.load, how), quiet)
    for content in (b"", b"no archive"):
        (tmp_path / "other.npz").write_bytes(content)
        with raises(UsageError):
            read(tmp_path / "other.npz")
    with raises(NothingFound):
        mine(circle(0, 0), None, exact.load, Mining())


def test_cells_find_nearly_what_an_exact_search_finds() -> None:
    pytest.importorskip("faiss")
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(40, 16))[rng.integers(0, 40, 2000)]
    images = (centres + 0.1 * rng.normal(size=(2000, 16))).astype(np.float32)

    searches = (lambda rows: rooms.load("indexes", "faiss", rows, kind="ivf"), exact.load)
    cells, certain = (mine(images, None, make, Mining(keep=2)) for make in searches)

    assert np.mean(cells.rows == certain.rows) > 0.95


def test_images_that_are_held_out_are_taken_away() -> None:
    found = mine(circle(0, 10, 40, 90), None, exact.load, Mining(neighbours=3, keep=2))

    left = found.without(np.array([1]))

    assert left.rows[0].tolist() == [-1, 2] and left.weights[0].tolist() == [0, found.weights[0, 1]]
