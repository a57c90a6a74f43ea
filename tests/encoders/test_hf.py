"""Vectors of `hf:` equal transformers' own, for CLIP and SigLIP."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from hypothesis import given, strategies as st

from eyespot import rooms
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

torch = lazy_import("torch")
transformers = lazy_import("transformers")
pytestmark = requires("torch", "transformers")

FAMILIES: dict[str, Callable[..., Path]] = {"clip": tiny_models.hf_clip, "siglip": tiny_models.hf_siglip}
TEXTS = ["A heron, standing in a pool", "no", "x" * 300]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("hf")
    return {family: make(home / family) for family, make in FAMILIES.items()}


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def load(folder: Path, **options: Any) -> Any:
    return rooms.load("encoders", f"hf:{folder}", device="cpu", **options)


def own_vectors(folder: Path, inputs: dict[str, Any], half: str) -> Any:
    """What the library's own classes give, of unit length."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        rows = getattr(model, f"get_{half}_features")(**inputs).pooler_output
    return torch.nn.functional.normalize(rows, dim=1).numpy()


def test_image_vectors_equal_the_librarys(family: str, folders: dict[str, Path]) -> None:
    """The processor of the model, called as its documentation does."""
    processor = transformers.AutoProcessor.from_pretrained(folders[family])
    inputs = processor(images=tiny_models.pictures(), return_tensors="pt")
    encoder = load(folders[family])

    vectors = encoder.encode_pixels(np.stack([encoder.read(picture) for picture in tiny_models.pictures()]))

    assert vectors.dtype == np.float32
    assert np.abs(vectors - own_vectors(folders[family], inputs, "image")).max() < 1e-5


@pytest.mark.parametrize("name", ["clip", "siglip"])
def test_the_longer_side_is_fitted_as_ilias_does_it(name: str, folders: dict[str, Path]) -> None:
    """Each picture by itself, by hand: resized by Pillow, normalised, with zeros around it to whole patches."""
    encoder = load(Path(f"{folders[name]}#long=42"))
    processor = transformers.AutoImageProcessor.from_pretrained(folders[name])
    model = transformers.AutoModel.from_pretrained(folders[name]).eval()
    rows = []
    for picture, sides, pad in zip(
        tiny_models.pictures(), [(42, 28), (31, 42), (42, 42)], [(3, 3, 2, 2), (0, 1, 3, 3), (3, 3, 3, 3)], strict=True
    ):
        shown = np.asarray(picture.resize(sides), np.float32) / 255
        normal = torch.tensor((shown - processor.image_mean) / processor.image_std).permute(2, 0, 1)[None].float()
        padded = torch.nn.functional.pad(normal, pad)
        with torch.no_grad():
            rows.append(model.get_image_features(padded, interpolate_pos_encoding=True).pooler_output[0])

    vectors = encoder.encode_pixels(np.stack([encoder.read(picture) for picture in tiny_models.pictures()]))

    assert np.abs(vectors - torch.nn.functional.normalize(torch.stack(rows), dim=1).numpy()).max() < 1e-5
    own = load(folders[name]).space
    assert encoder.space.digest != own.digest and encoder.space.encoder.endswith("#long=42")
    assert encoder.space.picture_view == "longer side 42, positions interpolated"
    assert own.picture_view == {"clip": "centre crop of 32 x 32", "siglip": "squashed to 32 x 32"}[name]


def test_text_vectors_equal_the_librarys(family: str, folders: dict[str, Path]) -> None:
    """CLIP as it comes; SigLIP in lower case, padded to 64, and without the mask that it was trained without."""
    processor = transformers.AutoProcessor.from_pretrained(folders[family])
    texts = TEXTS if family == "clip" else [text.lower() for text in TEXTS]
    padding = {"padding": True, "max_length": 32} if family == "clip" else {"padding": "max_length", "max_length": 64}
    inputs = processor(text=texts, return_tensors="pt", truncation=True, **padding)
    if family != "clip":
        inputs.pop("attention_mask", None)

    vectors = load(folders[family]).encode_texts(TEXTS)

    assert np.abs(vectors - own_vectors(folders[family], inputs, "text")).max() < 1e-5


def test_other_weights_or_preprocessing_are_another_space(tmp_path: Path, folders: dict[str, Path]) -> None:
    """A copy has the weights' digest, a model of another seed has not; a changed mean is a changed picture."""
    copy, other = shutil.copytree(folders["siglip"], tmp_path / "copy"), tiny_models.hf_siglip(tmp_path / "s", seed=1)
    first = load(folders["siglip"]).space

    assert load(copy).space.weights == first.weights
    assert load(other).space.digest != first.digest
    settings_file = copy / "processor_config.json"
    settings_file.write_text(settings_file.read_text().replace("0.5", "0.4"))
    assert load(copy).space.preprocessing != first.preprocessing


def test_a_revision_is_that_commit_of_the_hub(tmp_path: Path, hub_cache: Path) -> None:
    """`@revision` reaches the hub's files and the name of the space; without one it is main."""
    old = tiny_models.published(hub_cache, "eyespot/tiny", tiny_models.hf_clip(tmp_path / "old"), main=False)
    new = tiny_models.published(hub_cache, "eyespot/tiny", tiny_models.hf_clip(tmp_path / "new", seed=1))

    pinned, latest = rooms.load("encoders", f"hf:eyespot/tiny@{old}"), rooms.load("encoders", "hf:eyespot/tiny")

    assert (pinned.space.revision, latest.space.revision) == (old, new)
    assert pinned.space.weights == load(tmp_path / "old").space.weights
    assert pinned.space.digest != latest.space.digest
    assert latest.licence == "see https://huggingface.co/eyespot/tiny"


def test_a_model_of_any_aspect_ratio_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(folders["siglip"], tmp_path / "naflex")
    (copy / "processor_config.json").unlink()
    (copy / "preprocessor_config.json").write_text('{"image_processor_type": "Siglip2ImageProcessor"}')
    with raises(UsageError):
        load(copy)


def test_a_half_fetched_model_is_not_taken_for_whole(tmp_path: Path, hub_cache: Path) -> None:
    """A shard that the index names and the cache lacks is told, not filled with random numbers."""
    folder = tiny_models.hf_clip(tmp_path / "sharded")
    shards = '{"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(shards)
    tiny_models.published(hub_cache, "eyespot/sharded", folder)

    with pytest.raises(EyespotError, match="cut short"):
        rooms.load("encoders", "hf:eyespot/sharded")


def test_missing_weights_are_refused(tmp_path: Path, folders: dict[str, Path]) -> None:
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(folders["clip"], tmp_path / "copy")
    state = load_file(copy / "model.safetensors")
    del state["visual_projection.weight"]
    save_file(state, copy / "model.safetensors", {"format": "pt"})

    with pytest.raises(EyespotError, match=r"visual_projection\.weight"):
        load(copy)


def test_a_model_without_a_text_half_is_refused(tmp_path: Path) -> None:
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
    transformers.Dinov2Model(transformers.Dinov2Config(**size)).save_pretrained(tmp_path)

    with pytest.raises(UsageError, match="Dinov2Model"):
        load(tmp_path)


def test_what_names_no_model_is_told_so(tmp_path: Path) -> None:
    """Neither a folder nor ORG/NAME; an empty folder; weights without a configuration; no such device."""
    for spec, kind in (("nope", UsageError), ("./nope", UsageError), ("a/b/c", UsageError), (tmp_path, EyespotError)):
        with raises(kind):
            rooms.load("encoders", f"hf:{spec}")

    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(EyespotError, match="hf:"):
        load(tmp_path)
    with pytest.raises(UsageError, match=r"'tpu'.*cpu$"):
        rooms.load("encoders", "hf:eyespot/tiny", device="tpu")


def test_a_pickle_with_code_is_not_run(tmp_path: Path, folders: dict[str, Path]) -> None:
    copy = shutil.copytree(folders["clip"], tmp_path / "copy")
    (copy / "model.safetensors").unlink()
    torch.save({"logit_scale": tiny_models.Bomb(tmp_path / "crater")}, copy / "pytorch_model.bin")

    with pytest.raises(EyespotError, match="more than weights"):
        load(copy)
    assert not (tmp_path / "crater").exists()


def test_clip_says_that_it_reads_english(folders: dict[str, Path]) -> None:
    """Byte-level vocabularies take any script in and understand none but Latin."""
    encoder = load(folders["clip"])

    assert encoder.caveat("a heron, 2 m") is None
    assert "English" in (encoder.caveat("серая цапля") or "")
    assert "hardly counts" in (encoder.caveat("two dogs") or "")
    assert f"reads {encoder.length} of" in (encoder.caveat("a heron " * 40) or "")


@given(st.floats(1, 200), st.floats(-20, -0.1))
def test_the_floor_is_where_the_sigmoid_says_one_in_a_thousand(scale: float, bias: float) -> None:
    """A cosine outside (0, 1) would not help anyone and is left out."""
    from eyespot.encoders._torch import sigmoid_floor

    floor = sigmoid_floor(scale, bias)

    if floor is None:
        assert not 0 < (np.log(1 / 999) - bias) / scale < 1
    else:
        assert 1 / (1 + np.exp(-(scale * floor + bias))) == pytest.approx(0.001)
