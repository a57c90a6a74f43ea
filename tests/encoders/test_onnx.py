"""`onnx:FOLDER` gives the vectors of the model it was exported from, and reads its settings with suspicion."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from hypothesis import given, settings, strategies as st
from PIL import Image

from eyespot import rooms
from eyespot.gallery.disk import shard_paths
from eyespot.gallery.indexing import index
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds import draw

TEXTS = ["A heron, standing in a pool", "no", "x" * 300]
SETTINGS = """
dim = 16
licence = "MIT"

[image]
size = 32
mean = [0.48145466, 0.4578275, 0.40821073]
std = [0.26862954, 0.26130258, 0.27577711]

[text]
length = 32
mask = "attention_mask"
pad_token = "<pad>"
"""


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    return tiny_models.hf_clip(tmp_path_factory.mktemp("hf") / "clip")


@pytest.fixture(scope="module")
def exported(clip: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The towers of a tiny CLIP as docs/how/encoders.md exports them."""
    folder = tmp_path_factory.mktemp("onnx")
    tiny_models.exported_clip(clip, folder)
    (folder / "eyespot.toml").write_text(SETTINGS)
    return folder


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return shutil.copytree(exported, tmp_path / "model")


def load(folder: Path, **options: Any) -> Any:
    return rooms.load("encoders", f"onnx:{folder}", **options)


def rewritten(folder: Path, old: str, new: str) -> Path:
    file = folder / "eyespot.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    return folder


def pixels(encoder: Any) -> Any:
    return np.stack([encoder.read(picture) for picture in tiny_models.pictures()])


def test_vectors_equal_those_of_the_model_exported(clip: Path, exported: Path) -> None:
    ours, theirs = load(exported), rooms.load("encoders", f"hf:{clip}", device="cpu")

    assert np.abs(ours.encode_texts(TEXTS) - theirs.encode_texts(TEXTS)).max() < 1e-5
    assert np.abs(ours.encode_pixels(pixels(theirs)) - theirs.encode_pixels(pixels(theirs))).max() < 1e-5
    np.testing.assert_allclose(ours.encode_pixels(pixels(ours)), theirs.encode_pixels(pixels(theirs)), atol=2e-2)


def test_any_change_is_another_space(folder: Path) -> None:
    """Of the towers, the tokenizer and the settings; not of how many pictures go at once."""
    spaces = [load(folder).space.digest]
    for name, more in (("image.onnx", b"\0"), ("tokenizer.json", b" "), ("eyespot.toml", b"lower_case = true\n")):
        (folder / name).write_bytes((folder / name).read_bytes() + more)
        spaces.append(load(folder).space.digest)

    assert len(set(spaces)) == 4
    assert load(folder, batch=7).space.digest == spaces[-1]


def test_the_towers_open_when_they_are_used(folder: Path) -> None:
    encoder = load(folder)
    (folder / "image.onnx").write_bytes(b"no model")

    assert encoder.encode_texts(["a"]).shape == (1, 16)
    with pytest.raises(UsageError, match=r"image\.onnx"):
        encoder.encode_pixels(pixels(encoder))


@pytest.mark.parametrize(
    "name", ["../image.onnx", "/etc/passwd", "sub/../../image.onnx", "..", "..\\\\image.onnx", "C:image.onnx", ""]
)
@pytest.mark.parametrize("key", ["file", "tokenizer"])
def test_settings_cannot_name_files_elsewhere(folder: Path, key: str, name: str) -> None:
    """A folder from the web must not read the rest of the disk."""
    rewritten(folder, "[text]", f'[text]\n{key} = "{name}"')

    with pytest.raises(UsageError, match=rf"text\.{key}: "):
        load(folder)


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("tokenizer.json", ("", "{}"), "is not a tokenizer"),
        ("tokenizer.json", ('"z": ', '"zebra": 4000000000, "z": '), "does not read word 4000000000"),
        ("text.onnx", ("", "no model"), "is not a model"),
    ],
)
def test_words_that_cannot_be_read_are_noticed_before_a_photo_is_embedded(
    folder: Path, tmp_path: Path, name: str, change: tuple[str, str], why: str
) -> None:
    old, new = change
    (folder / name).write_text((folder / name).read_text().replace(old, new, 1) if old else new)
    draw(tmp_path / "photos" / "a.png", 0)

    with pytest.raises(UsageError, match=why):
        index(tmp_path / "gallery", [tmp_path / "photos"], [load(folder)])
    assert shard_paths(tmp_path / "gallery") == []


@pytest.mark.parametrize("name", ["image.onnx", "text.onnx", "tokenizer.json", "eyespot.toml"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()

    with raises(UsageError):
        load(folder)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("dim = 16", "dim = 0", "dim"),
        ("dim = 16", "", "dim"),
        ("size = 32", "size = [32]", r"image\.size"),
        ("size = 32", 'size = 32\nresize = "crop"', r"image\.resize"),
        ("size = 32", "size = 32\nsizes = 3", r"image\.sizes"),
        ("[text]", "[text", "TOML"),
        ("dim = 16", "dim = 17", r"\(16,\)"),
        ("[text]", '[text]\noutput = "nope"', "text_embeds"),
        ("[text]", '[text]\ninput = "nope"', "input_ids"),
        ('"<pad>"', '"<nope>"', "pad_token"),
    ],
)
def test_settings_that_do_not_fit_are_told(folder: Path, old: str, new: str, named: str) -> None:
    """With the file, so that it can be mended; at first use those that do not fit the towers."""
    with pytest.raises(UsageError, match=named):
        load(rewritten(folder, old, new)).encode_texts(["a"])


def test_pictures_of_the_wrong_size_fail_in_one_sentence(folder: Path) -> None:
    encoder = load(rewritten(folder, "size = 32", "size = 40"))

    with pytest.raises(UsageError, match=r"takes pixel_values of \[3, 32, 32\], not \[3, 40, 40\]; set \[image\] size"):
        encoder.encode_pixels(pixels(encoder))


def test_an_export_that_is_too_new_says_what_to_upgrade(folder: Path) -> None:
    import onnx

    graph = onnx.load(str(folder / "text.onnx"))
    graph.opset_import[0].version = 99
    onnx.save(graph, str(folder / "text.onnx"))
    with pytest.raises(UsageError, match="pip install -U onnxruntime"):
        rooms.load("encoders", f"onnx:{folder}").encode_texts(["a heron"])


def test_the_settings_in_the_documentation_are_whole_and_right(tmp_path: Path) -> None:
    from eyespot.encoders.onnx import ImageSettings, OnnxSettings, TextSettings, checked
    from eyespot.storage.text_files import toml_of

    page = (Path(__file__).resolve().parents[2] / "docs" / "how" / "encoders.md").read_text("utf-8")
    section = page.partition("## An ONNX folder")[2]
    (tmp_path / "eyespot.toml").write_text(section.partition("```toml\n")[2].partition("```")[0])

    shown = checked(toml_of(tmp_path / "eyespot.toml"), tmp_path)

    assert shown.model_fields_set == set(OnnxSettings.model_fields)
    assert shown.image.model_fields_set == set(ImageSettings.model_fields)
    assert shown.text.model_fields_set == set(TextSettings.model_fields)
    assert shown.image.model_copy(update={"mean": (0.0,) * 3, "std": (1.0,) * 3}) == ImageSettings(size=224)


def test_the_weakest_match_is_the_floor_of_the_settings(folder: Path) -> None:
    assert load(folder).weakest_match("a heron") is None

    rewritten(folder, "dim = 16", "dim = 16\nmatch_floor = 0.25")
    assert load(folder).weakest_match("a heron") == 0.25


def test_a_text_that_is_cut_counts_or_denies_has_a_caveat(folder: Path) -> None:
    """The tokenizer makes one token of each letter, and the tower reads 32."""
    encoder, long = load(folder), "a heron among the reeds, and no bird at all"

    assert encoder.cut("a heron") is None
    assert "tokens; it ends at ‘…" in encoder.cut(long) and "reads 32 of" in encoder.cut(long)
    assert encoder.cut(long).partition("…")[2][:-1] in long[:32] and encoder.cut(long) in encoder.caveat(long)
    assert "hardly counts" in encoder.caveat("two dogs") and "dogs - people" in encoder.caveat("dogs without people")


def test_a_vocabulary_with_gaps_has_a_caveat(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    assert load(folder).caveat("серая цапля") is None

    words = Tokenizer(models.WordLevel({"<pad>": 0, "[UNK]": 1, "a": 2, "heron": 3}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(folder / "tokenizer.json"))
    assert load(folder).caveat("a heron") is None
    assert load(folder).caveat("серая цапля")


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 40))
def test_the_shortest_side_is_fitted_as_torchvision_does(width: int, height: int, size: int) -> None:
    pytest.importorskip("torch")
    transforms = pytest.importorskip("torchvision.transforms")
    from eyespot.encoders.onnx import ImageSettings, fitted

    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    both = [transforms.Resize(size, transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(size)]

    ours = fitted(Image.fromarray(noise), ImageSettings(size=size))

    assert np.array_equal(np.asarray(ours), np.asarray(transforms.Compose(both)(Image.fromarray(noise))))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.sampled_from(["shortest", "squash", "longest"]),
)
def test_every_mode_gives_the_size_asked_for(width: int, height: int, size: tuple[int, int], mode: Any) -> None:
    """Height and width, in this order; "longest" keeps the whole picture."""
    from eyespot.encoders.onnx import ImageSettings, fitted

    picture = fitted(Image.new("RGB", (width, height), "white"), ImageSettings(size=size, resize=mode))

    assert picture.size == size[::-1]
    assert np.asarray(picture).min() == 255 or mode == "longest"
