"""What becomes of pictures and texts before a tower sees them, by the form of its training: each rule fails when wrong.

Expected are vectors computed here from pixels and tokens, by what each kind of model was trained on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot import rooms
from tests.lazy_import import requires
from tests.worlds import plain_exports
from tests.worlds.plain_exports import END, PAD, SIDE, picture_vector, text_vector

pytestmark = requires("onnx")
TEXT, LONG = "Two Herons, at ten!", "A heron stands in a pool. " * 8
PICTURE = Image.fromarray(np.random.default_rng(1).integers(0, 256, (30, 50, 3), np.uint8))


def load(folder: Path) -> Any:
    return rooms.load("encoders", f"onnx:{folder}")


def tokens(text: str, length: int, *, side: str = "right") -> list[str]:
    """Letters, the end token, and what fills up to the length; a longer text keeps its end token."""
    some = [*text[: length - 1], END]
    fill = [PAD] * (length - len(some))
    return [*fill, *some] if side == "left" else [*some, *fill]


def cosine(encoder: Any, text: str, expected: Any) -> float:
    return float(encoder.encode_texts([text])[0] @ expected)


@pytest.mark.parametrize(
    ("layout", "read"),
    [
        ("siglip", "two herons at ten"),
        ("siglip2", "two herons, at ten!"),
        ("clip", TEXT),
        ("immich", "two herons at ten"),
    ],
)
def test_case_and_punctuation(layout: str, read: str, tmp_path: Path) -> None:
    """SigLIP 1 drops punctuation, SigLIP 2 keeps it, both in lower case; open_clip's "canonicalize" does both."""
    encoder = load(plain_exports.save(tmp_path, layout))
    padded = tokens(read, 77 if layout == "clip" else 64)

    mask = [int(token != PAD) for token in padded] if layout == "clip" else None
    assert cosine(encoder, TEXT, text_vector(padded, mask)) > 0.9999


@pytest.mark.parametrize("layout", ["siglip", "siglip2", "clip"])
def test_the_mask_is_clip_s_alone(layout: str, tmp_path: Path) -> None:
    """SigLIP was trained without one, also where its export has the input."""
    padded = tokens("a heron", 77 if layout == "clip" else 64)
    mask = [int(token != PAD) for token in padded] if layout == "clip" else None
    encoder = load(plain_exports.save(tmp_path, layout, mask=True))

    assert cosine(encoder, "a heron", text_vector(padded, mask)) > 0.9999
    assert text_vector(padded) @ text_vector(padded, [int(token != PAD) for token in padded]) < 0.99


@pytest.mark.parametrize(("layout", "length"), [("siglip", 64), ("siglip2", 64), ("clip", 77), ("immich", 64)])
def test_texts_are_as_long_as_in_training_and_keep_their_end(layout: str, length: int, tmp_path: Path) -> None:
    """Padded to exactly that, and a longer one is cut before its end token."""
    encoder, read = load(plain_exports.save(tmp_path, layout)), LONG.strip()
    read = read if layout == "clip" else read.lower()
    read = read.replace(".", "") if layout in ("siglip", "immich") else read

    assert cosine(encoder, LONG.strip(), text_vector(tokens(read, length))) > 0.9999
    assert len(tokens(read, length)) == length and tokens(read, length)[-1] == END
    assert f"reads {length} of" in encoder.cut(LONG)


def test_a_siglip_of_longer_positions_reads_64_all_the_same(tmp_path: Path) -> None:
    folder = plain_exports.save(tmp_path, "siglip2")
    (folder / "config.json").write_text('{"model_type": "siglip", "text_config": {"max_position_embeddings": 128}}')

    assert cosine(load(folder), "heron", text_vector(tokens("heron", 64))) > 0.9999


@pytest.mark.parametrize("told_by", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("layout", ["clip", "siglip", "rclip"])
def test_the_side_of_padding_is_that_of_the_files(layout: str, told_by: str, tmp_path: Path) -> None:
    """SigLIP's is the right one whatever its tokenizer says: so it was trained."""
    folder = plain_exports.save(tmp_path, layout, mask=False)
    file = folder / "tokenizer.json"
    if told_by == "tokenizer.json":
        stated = {"strategy": {"Fixed": 5}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 0,
                  "pad_type_id": 0, "pad_token": PAD}  # fmt: skip
        file.write_text(json.dumps(json.loads(file.read_text()) | {"padding": stated}))
    elif layout == "rclip":  # which has no such file
        return
    else:
        config = folder / told_by
        config.write_text(json.dumps(json.loads(config.read_text()) | {"padding_side": "left"}))
    if layout == "rclip":
        ports = 'input = "input", output = "output"'
        image = f'image = {{file = "visual.onnx", {ports}, size = {SIDE}}}'
        words = f'text = {{file = "textual.onnx", {ports}, length = 77}}'
        (folder / "eyespot.toml").write_text(f'dim = 16\nlicence = ""\n{image}\n{words}\n')
    side, length = ("right", 64) if layout == "siglip" else ("left", 77)

    assert cosine(load(folder), "heron", text_vector(tokens("heron", length, side=side))) > 0.9999


@pytest.mark.parametrize(("number", "kind"), [(2, Image.Resampling.BILINEAR), (3, Image.Resampling.BICUBIC)])
@pytest.mark.parametrize("layout", ["siglip", "siglip2", "immich", "immich next", "clip"])
def test_the_filter_of_a_picture_is_that_of_the_files(layout: str, number: int, kind: Any, tmp_path: Path) -> None:
    """SigLIP 1 and open_clip are bicubic, SigLIP 2 bilinear, by their files; CLIP cuts out a square."""
    name = {"interpolation": kind.name.lower()} if "immich" in layout else {"resample": number}
    encoder = load(plain_exports.save(tmp_path, layout, **name))
    shown = PICTURE.resize((SIDE, SIDE), kind)
    if layout == "clip":
        wide = PICTURE.resize((SIDE * 50 // 30, SIDE), kind)
        left = round((wide.width - SIDE) / 2)
        shown = wide.crop((left, 0, left + SIDE, SIDE))
    expected = picture_vector((np.asarray(shown, np.float32).transpose(2, 0, 1) / 255 - 0.5) / 0.5)

    assert encoder.encode([PICTURE])[0] @ expected > 0.9999
    usual = plain_exports.save(tmp_path / "usual", layout)
    same = load(usual).space.preprocessing == encoder.space.preprocessing
    assert same == ((number == 2) == (layout == "siglip2"))


def test_a_batch_changes_no_vector(tmp_path: Path) -> None:
    """Also of a graph whose batch is one."""
    for layout in plain_exports.LAYOUTS[:-1]:
        encoder = load(plain_exports.save(tmp_path / layout, layout))
        alone = [encoder.encode_texts([text]) for text in (TEXT, "no", LONG)]
        assert np.allclose(encoder.encode_texts([TEXT, "no", LONG]), np.concatenate(alone), atol=1e-6)
        assert np.allclose(encoder.encode([PICTURE] * 2), encoder.encode(PICTURE), atol=1e-6)


@pytest.mark.parametrize("form", ["_int8", "_fp16"])
def test_a_smaller_variant_is_read_by_its_types_and_alone_where_neighbours_count(form: str, tmp_path: Path) -> None:
    """The scale of dynamically quantised numbers depends on the batch."""
    from eyespot.encoders._layouts import described
    from eyespot.storage.text_files import toml_text

    folder = plain_exports.save(tmp_path, "siglip", form=form)
    exact, values = load(plain_exports.save(tmp_path / "exact", "siglip")), described(folder, form.strip("_"))
    (folder / "eyespot.toml").write_text(toml_text(values))
    pictures = [PICTURE, Image.new("RGB", (9, 9), (140, 128, 120)), Image.new("RGB", (9, 9), "white")]
    encoder = load(folder)
    alone = np.concatenate([encoder.encode(one) for one in pictures])

    assert (encoder.batch == 1) == (form == "_int8")
    assert np.allclose(encoder.encode(pictures), alone, atol=1e-6) and not np.array_equal(alone, exact.encode(pictures))
    assert (alone * exact.encode(pictures)).sum(axis=1).min() > 0.99
    (folder / "eyespot.toml").write_text(toml_text(values | {"batch": 32}))
    assert np.allclose(load(folder).encode(pictures), alone, atol=1e-6) == (form == "_fp16")
