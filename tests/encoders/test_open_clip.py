"""Vectors of `open_clip:` and `wildclip:` equal open_clip's own `encode_image` and `encode_text`."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from eyespot import rooms
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

torch = lazy_import("torch")
open_clip = lazy_import("open_clip")
pytestmark = requires("torch", "open_clip")

TEXTS = ["A Heron, standing in a pool!", "no", "x" * 300]


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_models.open_clip_configs(tmp_path_factory.mktemp("configs"))
    open_clip.add_model_config(folder)
    return folder


@pytest.fixture(params=["tiny-clip", "tiny-siglip"])
def architecture(request: pytest.FixtureRequest, configs: Path) -> str:
    return str(request.param)


@pytest.fixture
def weights(tmp_path: Path, architecture: str) -> Path:
    return tiny_models.open_clip_weights(tmp_path / "weights.pt", architecture)


def load(architecture: str, weights: Path, **options: Any) -> Any:
    return rooms.load("encoders", f"open_clip:{architecture}/{weights}", device="cpu", **options)


def own_vectors(architecture: str, weights: Path) -> tuple[Any, Any]:
    """Image and text vectors as open_clip's README computes them."""
    model, _, transform = open_clip.create_model_and_transforms(architecture, pretrained=str(weights))
    model.eval()
    with torch.no_grad():
        images = torch.stack([transform(picture) for picture in tiny_models.pictures()])
        seen = model.encode_image(images, normalize=True)
        return seen.numpy(), model.encode_text(open_clip.get_tokenizer(architecture)(TEXTS), normalize=True).numpy()


def vectors(encoder: Any) -> tuple[Any, Any]:
    pixels = np.stack([encoder.read(picture) for picture in tiny_models.pictures()])
    return encoder.encode_pixels(pixels), encoder.encode_texts(TEXTS)


def close(ours: tuple[Any, Any], theirs: tuple[Any, Any]) -> bool:
    return max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True)) < 1e-5


def test_vectors_equal_the_librarys(architecture: str, weights: Path) -> None:
    assert close(vectors(load(architecture, weights)), own_vectors(architecture, weights))


def test_only_siglip_has_a_match_floor(architecture: str, weights: Path) -> None:
    """Scale 1/0.07 and bias -10, as training starts: sigmoid(cos/0.07 - 10) = 0.001 at 0.2165; CLIP only ranks."""
    expected = {"tiny-clip": None, "tiny-siglip": pytest.approx(0.2165, abs=1e-4)}

    assert load(architecture, weights).weakest_match("a heron") == expected[architecture]


def test_other_weights_are_another_space(architecture: str, weights: Path, tmp_path: Path) -> None:
    copy = shutil.copy(weights, tmp_path / "copy.pt")
    other = tiny_models.open_clip_weights(tmp_path / "other.pt", architecture, seed=1)
    first = load(architecture, weights).space

    assert load(architecture, copy).space.weights == first.weights
    assert load(architecture, other).space.digest != first.digest


def published(cache: Path, folder: Path, seed: int, *, main: bool) -> str:
    """A tiny CLIP on the hub, laid out as BioCLIP is."""
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": tiny_models.clip_config(), "preprocess_cfg": {"mean": [0.5, 0.5, 0.5]}})
    )
    tiny_models.open_clip_weights(folder / "open_clip_pytorch_model.bin", "tiny-clip", seed)
    return tiny_models.published(cache, "eyespot/bio", folder, main=main)


def test_a_name_on_the_hub_is_loaded_at_its_revision(configs: Path, hub_cache: Path, tmp_path: Path) -> None:
    """`hf-hub:ORG/NAME@revision` reaches the files, the preprocessing and the name of the space."""
    old = published(hub_cache, tmp_path / "old", 0, main=False)
    new = published(hub_cache, tmp_path / "new", 1, main=True)

    pinned = rooms.load("encoders", f"open_clip:hf-hub:eyespot/bio@{old}")
    latest = rooms.load("encoders", "open_clip:hf-hub:eyespot/bio")

    assert (pinned.space.revision, latest.space.revision) == (old, new)
    assert pinned.space.weights != latest.space.weights
    assert '"mean": [0.5, 0.5, 0.5]' in pinned.space.preprocessing
    assert close(vectors(latest), own_hub_vectors("hf-hub:eyespot/bio"))


def own_hub_vectors(name: str) -> tuple[Any, Any]:
    model, transform = open_clip.create_model_from_pretrained(name)
    images = torch.stack([transform(picture) for picture in tiny_models.pictures()])
    with torch.no_grad():
        texts = model.encode_text(open_clip.get_tokenizer(name)(TEXTS), normalize=True)
        return model.encode_image(images, normalize=True).numpy(), texts.numpy()


def test_a_tag_brings_settings(configs: Path, hub_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """open_clip 3 only warns when a tag was trained with another activation; we take the tag's."""
    tag = {"hf_hub": "eyespot/tag/w.pt", "url": "", "mean": (0.5,) * 3, "std": (0.5,) * 3, "quick_gelu": True}
    plain = {**tiny_models.clip_config(), "quick_gelu": False}
    (tmp_path / "tiny-plain.json").write_text(json.dumps(plain))
    open_clip.add_model_config(tmp_path / "tiny-plain.json")
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "tiny-plain", {"first": tag})
    (tmp_path / "repo").mkdir()
    file = tiny_models.open_clip_weights(tmp_path / "repo" / "w.pt", "tiny-clip")
    commit = tiny_models.published(hub_cache, "eyespot/tag", tmp_path / "repo")

    encoder = rooms.load("encoders", "open_clip:tiny-plain/first")

    assert encoder.space.revision == commit
    assert '"mean": [0.5, 0.5, 0.5]' in encoder.space.preprocessing
    assert np.abs(encoder.encode_texts(TEXTS) - own_vectors("tiny-clip", file)[1]).max() < 1e-5


@pytest.mark.parametrize(
    ("spec", "found"),
    [("ViT-B-99/openai", "ViT-B-"), ("ViT-B-32/nope", "openai, "), ("tiny-clip/nope.pt", "checkpoint")],
)
def test_a_wrong_name_is_told_the_right_ones(configs: Path, spec: str, found: str) -> None:
    with pytest.raises(UsageError, match=found):
        rooms.load("encoders", f"open_clip:{spec}")


def test_weights_of_another_architecture_are_told_in_one_line(configs: Path, tmp_path: Path) -> None:
    file = tiny_models.open_clip_weights(tmp_path / "w.pt", "tiny-siglip")

    with pytest.raises(EyespotError, match=r"^[^\n]*open_clip:tiny-clip/[^\n]*$"):
        load("tiny-clip", file)


def wildclip(file: Path) -> Any:
    return rooms.load("encoders", f"wildclip:{file}", architecture="tiny-clip", device="cpu")


def of_lightning(state: dict[str, Any]) -> dict[str, Any]:
    """As WildCLIP's own training writes it: wrapped, prefixed, with an adapter of no weight."""
    adapter = {"model.adapter.alpha": torch.zeros(1), "model.adapter.adapter.0.weight": torch.ones(4, 4)}
    return {"epoch": 3, "state_dict": {**{f"model.clip_model.{key}": state[key] for key in state}, **adapter}}


def of_data_parallel(state: dict[str, Any]) -> dict[str, Any]:
    return {f"module.{key}": state[key] for key in state}


def of_openai(state: dict[str, Any]) -> dict[str, Any]:
    """Half precision, and three numbers beside the weights."""
    return {**{key: state[key].half() for key in state}, "input_resolution": torch.tensor(32)}


@pytest.mark.parametrize("wrap", [dict, of_lightning, of_data_parallel, of_openai])
def test_a_fine_tuned_clip(wrap: Callable[[dict[str, Any]], dict[str, Any]], configs: Path, tmp_path: Path) -> None:
    file = tiny_models.open_clip_weights(tmp_path / "w.pt", "tiny-clip", seed=3)
    state = torch.load(file, weights_only=True)
    if wrap is of_openai:
        state = {key: value.half().float() for key, value in state.items()}
        torch.save(state, file)
    torch.save(wrap(state), tmp_path / "wild.pth")

    assert close(vectors(wildclip(tmp_path / "wild.pth")), own_vectors("tiny-clip", file))


def test_weights_that_do_not_fit_are_named(configs: Path, tmp_path: Path) -> None:
    """Never half a model at random, nor one without an adapter that its authors used."""
    state = torch.load(tiny_models.open_clip_weights(tmp_path / "w.pt", "tiny-clip"), weights_only=True)
    torch.save({**state, "adapter.alpha": torch.tensor([0.7])}, tmp_path / "adapted.pth")
    state["visual.head"] = state.pop("visual.proj")
    torch.save(state, tmp_path / "other.pth")

    for file in ("other", "adapted"):
        with raises(EyespotError):
            wildclip(tmp_path / f"{file}.pth")
    with raises(UsageError):
        wildclip(tmp_path / "none.pth")
    (tmp_path / "text.pth").write_text("hello")
    with zipfile.ZipFile(tmp_path / "w.pt") as whole, zipfile.ZipFile(tmp_path / "packed.pth", "w", 8) as other:
        for name in whole.namelist():
            other.writestr(name, bytes(len(whole.read(name))))
    for file in ("text", "packed"):
        with pytest.raises(EyespotError, match=r"^[^\n]*wildclip:[^\n]*$"):
            wildclip(tmp_path / f"{file}.pth")


@pytest.mark.parametrize("family", ["open_clip", "wildclip"])
def test_a_checkpoint_with_code_is_not_run(family: str, configs: Path, tmp_path: Path) -> None:
    torch.save({"state_dict": {"logit_scale": tiny_models.Bomb(tmp_path / "crater")}}, tmp_path / "evil.pth")
    load_evil = wildclip if family == "wildclip" else lambda file: load("tiny-clip", file)

    with pytest.raises(EyespotError, match="more than weights"):
        load_evil(tmp_path / "evil.pth")
    assert not (tmp_path / "crater").exists()
