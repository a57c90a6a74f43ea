"""Pairs of vectors in every layout: the same pairs whichever way they were left, and what is wrong is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot.adapters.quari.training import Pairs
from eyespot.adapters.quari.training.reading import read_images, read_pairs
from eyespot.types import NothingFound, UsageError
from tests.wording import check_wording

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
    found = read_pairs(layout(tmp_path))

    pairs = found.pairs
    assert not found.notes
    assert np.allclose(pairs.texts, TEXTS, atol=1e-3) and np.allclose(pairs.images[pairs.of], IMAGES[OF])
    same = pairs.image[pairs.of]  # two captions of one image are known as such
    assert (same[:, None] == same).tolist() == (OF[:, None] == OF).tolist()


def test_ids_of_images_are_taken_along_and_images_read_alone(tmp_path: Path) -> None:
    (arrays(tmp_path) / "ids.txt").write_text("a\nb\na\n")

    alone, _ = read_images(tmp_path / "images.npy")

    assert read_pairs(tmp_path).pairs.image.tolist() == [0, 1, 0]
    assert np.array_equal(alone, IMAGES) and np.array_equal(read_images(tmp_path)[0], IMAGES)


def test_rows_without_a_vector_are_left_out_and_told(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"text_embedding": [*TEXTS, None], "image_embedding": [*IMAGES[OF], TEXTS[0]]}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")

    found = read_pairs(tmp_path / "pairs.parquet")

    assert len(found.pairs) == 4 and "1 rows" in found.notes[0]


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
