"""Every encoder keeps the promises of `eyespot.types.Encoder`; a new file in the room is tested by existing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from eyespot import rooms
from tests.worlds import embedding_server

ONNX_SETTINGS = 'dim = 16\nlicence = "MIT"\nimage.size = 32\ntext = {length = 32, mask = "attention_mask"}\n'
TEXTS = ["a heron", "two people by a pool, at night", ""]


def starter(folder: Path) -> Any:
    return rooms.load("encoders", "starter")


def hf(folder: Path) -> Any:
    return rooms.load("encoders", f"hf:{tiny_models.hf_naflex(folder)}", device="cpu")


def open_clip(folder: Path) -> Any:
    weights = tiny_models.tiny_clip_weights(folder)
    return rooms.load("encoders", f"open_clip:tiny-clip/{weights}", device="cpu")


def wildclip(folder: Path) -> Any:
    weights = tiny_models.tiny_clip_weights(folder)
    return rooms.load("encoders", f"wildclip:{weights}", device="cpu", architecture="tiny-clip")


def mllm(folder: Path) -> Any:
    from tests.encoders import tiny_multimodal

    return rooms.load("encoders", f"mllm:{tiny_multimodal.ume_r1(folder)}", device="cpu", thoughts=4)


@contextmanager
def served(folder: Path) -> Iterator[Any]:
    with embedding_server.serving() as server:
        yield rooms.load("encoders", "served:tiny", url=server.url)


def onnx(folder: Path) -> Any:
    tiny_models.exported_clip(tiny_models.hf_clip(folder / "hf"), folder)
    (folder / "eyespot.toml").write_text(ONNX_SETTINGS)
    return rooms.load("encoders", f"onnx:{folder}")


def crops(folder: Path) -> Any:
    return rooms.load("encoders", "crops:5:starter")


CASES: dict[str, Callable[[Path], Any]] = {
    made.__name__: made for made in (starter, crops, hf, open_clip, wildclip, mllm, served, onnx)
}


@pytest.fixture(scope="module", params=rooms.names("encoders"))
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if request.param not in CASES:
        pytest.fail(f"add a tiny case for {request.param} to CASES in {Path(__file__).name}")
    if request.param not in ("starter", "crops"):
        pytest.importorskip({"served": "openai"}.get(request.param, "torch"))
    made = CASES[request.param](tmp_path_factory.mktemp(request.param))
    with made if isinstance(made, AbstractContextManager) else nullcontext(made) as found:
        yield found


@pytest.fixture
def pixels(encoder: Any) -> Any:
    return np.stack([encoder.read(picture) for picture in tiny_models.pictures()])


def test_it_says_what_it_is(encoder: Any) -> None:
    assert encoder.space.encoder.partition(":")[0] in rooms.names("encoders")
    assert len(encoder.space.digest) == 16
    assert encoder.space.weights and encoder.space.preprocessing and encoder.licence
    assert encoder.batch >= 1
    assert encoder.min_side is None or encoder.min_side >= 1


def test_vectors_are_unit_rows_of_its_space(encoder: Any, pixels: Any) -> None:
    """Float32, finite, (n, dim); of nothing no rows."""
    for rows in (encoder.encode_pixels(pixels), encoder.encode_texts(TEXTS)):
        assert rows.dtype == np.float32
        assert rows.shape == (3, encoder.space.dim)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert encoder.encode_texts([]).shape == encoder.encode_pixels(pixels[:0]).shape == (0, encoder.space.dim)


def test_the_same_batch_gives_the_same_bits(encoder: Any, pixels: Any) -> None:
    assert np.array_equal(encoder.encode_pixels(pixels), encoder.encode_pixels(pixels))
    assert np.array_equal(encoder.encode_texts(TEXTS), encoder.encode_texts(TEXTS))


def test_a_batch_gives_what_each_gives_alone(encoder: Any, pixels: Any) -> None:
    alone = np.concatenate([encoder.encode_pixels(one[None]) for one in pixels])
    words_alone = np.concatenate([encoder.encode_texts([text]) for text in TEXTS])

    assert np.abs(encoder.encode_pixels(pixels) - alone).max() < 1e-5
    assert np.abs(encoder.encode_texts(TEXTS) - words_alone).max() < 1e-5


def test_reading_leaves_the_picture_alone_and_repeats(encoder: Any) -> None:
    """`read` runs in many threads at once and shares nothing."""
    from concurrent.futures import ThreadPoolExecutor

    picture = tiny_models.pictures()[0]
    before, first = picture.tobytes(), encoder.read(picture)

    with ThreadPoolExecutor(4) as threads:
        again = list(threads.map(encoder.read, [picture] * 8))

    assert picture.tobytes() == before
    assert all(np.array_equal(first, one) for one in again)


@pytest.mark.parametrize("text", TEXTS)
def test_the_weakest_match_is_a_cosine_or_none(encoder: Any, text: str) -> None:
    weakest = encoder.weakest_match(text)

    assert weakest is None or -1 < weakest < 1
    assert encoder.weakest_match(text) == weakest


def test_a_caveat_is_one_sentence_or_none(encoder: Any) -> None:
    caveat = encoder.caveat("ворона на снегу")

    assert encoder.caveat("a crow in the snow") is None
    assert caveat is None or (caveat.strip() == caveat and "\n" not in caveat)
