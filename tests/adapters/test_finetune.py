"""Fine-tuning a backbone: the loss by hand, what learns and what stays, and that the result loads as any model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from PIL import Image

from eyespot import rooms
from eyespot.adapters.quari.training.finetune import FineTuneData, FineTuning, finetune, info_nce
from eyespot.encoders import _saving
from eyespot.settings import SettingsConflict
from eyespot.settings.train import BackboneSettings
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

torch = lazy_import("torch")
open_clip = lazy_import("open_clip")
pytestmark = requires("torch", "transformers", "open_clip")

NAMES = ["heron", "owl", "osprey", "a very red fox", "wren", "two otters", "newt", "moth"]


def short(out: Path, **more: Any) -> BackboneSettings:
    """Six steps."""
    usual = {"pairs": "gallery", "epochs": 3, "batch": 4, "rate": 1e-3, "checkpoint_every": 2}
    return BackboneSettings.read(out=out, **{**usual, **more})


Make = Callable[[], Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The names of two tiny models with random weights."""
    folder = tmp_path_factory.mktemp("models")
    weights = tiny_models.tiny_clip_weights(folder / "open_clip")
    return {"hf": f"hf:{tiny_models.hf_clip(folder / 'hf')}", "open_clip": f"open_clip:tiny-clip/{weights}"}


@pytest.fixture(params=["hf", "open_clip"])
def encoder(request: pytest.FixtureRequest, models: dict[str, str]) -> Any:
    return rooms.load("encoders", models[request.param])


@pytest.fixture
def hf(models: dict[str, str]) -> Any:
    return rooms.load("encoders", models["hf"])


def picture(number: int) -> Image.Image:
    noise = np.random.default_rng(number).integers(0, 256, (4, 4, 3), np.uint8)
    return Image.fromarray(noise).resize((32, 32))


def pictures(rows: Sequence[int]) -> list[Image.Image | None]:
    return [picture(row) for row in rows]


def world() -> FineTuneData:
    return FineTuneData(NAMES, np.arange(len(NAMES)), pictures)


def weights(encoder: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in encoder.model.state_dict().items()}


def changed(before: dict[str, Any], encoder: Any) -> set[str]:
    return {name for name, value in weights(encoder).items() if not torch.equal(value, before[name])}


@pytest.mark.parametrize(
    ("rows", "same", "negatives"), [([0, 1, 2], [], [2, 2, 2]), ([0, 0, 1], [(0, 1), (1, 0)], [1, 1, 2])]
)
def test_the_loss_of_orthogonal_pairs_by_hand(
    rows: list[int], same: list[tuple[int, int]], negatives: list[int]
) -> None:
    """Whatever their lengths; another caption of the same picture is no negative."""
    texts, right = torch.eye(3)[rows], torch.zeros(3, 3, dtype=torch.bool)
    for pair in same:
        right[pair] = True

    loss = info_nce(2 * texts, 5 * texts, right, torch.tensor(2.0))

    assert float(loss) == pytest.approx(np.mean([math.log(1 + count * math.exp(-2)) for count in negatives]), rel=1e-6)


@pytest.mark.long
def test_it_learns_which_picture_each_text_means(encoder: Any, tmp_path: Path) -> None:
    found = finetune(encoder, world(), short(tmp_path / "out", epochs=40, batch=8, rate=3e-3))

    images = encoder.encode_pixels(np.stack([encoder.read(picture(at)) for at in range(len(NAMES))]))
    best = (encoder.encode_texts(NAMES) @ images.T).argmax(axis=1)
    assert best.tolist() == list(range(len(NAMES)))
    assert (found.step, found.unread) == (40, 0) and found.loss < 0.5


def test_only_the_last_blocks_and_what_follows_them_learn(encoder: Any, tmp_path: Path) -> None:
    before = weights(encoder)

    finetune(encoder, world(), short(tmp_path / "out", blocks=1))

    touched = changed(before, encoder)
    assert not [name for name in touched if "embed" in name or "layers.0." in name or "blocks.0." in name]
    assert [name for name in touched if ".1." in name] and [name for name in touched if "proj" in name]


@pytest.mark.long
def test_a_question_about_a_picture_learns_its_answer(encoder: Any, tmp_path: Path) -> None:
    """The words are the same for all: only the picture that is asked with tells which answer is meant."""
    query_ids = np.arange(len(NAMES)) + 20
    material = FineTuneData(["what follows?"] * len(NAMES), np.arange(len(NAMES)), pictures, query_ids)

    finetune(encoder, material, short(tmp_path / "out", epochs=60, batch=8, rate=3e-3))

    images, asking = (
        encoder.encode_pixels(np.stack([encoder.read(picture(at)) for at in numbers]))
        for numbers in (range(len(NAMES)), query_ids.tolist())
    )
    queries = encoder.encode_texts(["what follows?"]) + asking  # (8, dim), of equal weight
    best = (queries @ images.T).argmax(axis=1)
    assert best.tolist() == list(range(len(NAMES)))


def test_another_answer_to_the_same_question_is_no_negative(hf: Any, tmp_path: Path) -> None:
    """Two answers each: a question, the same about another picture, and words alone, which are no question."""
    texts, asking = ["why?"] * 6, np.array([9, 9, 8, 8, -1, -1])
    tuning = FineTuning(hf, FineTuneData(texts, np.arange(6), pictures, asking), short(tmp_path), 1)

    right = tuning.others(np.arange(6))

    assert right.nonzero().tolist() == [[0, 1], [1, 0], [2, 3], [3, 2]]


def test_an_interrupted_training_ends_in_the_same_weights(hf: Any, models: dict[str, str], tmp_path: Path) -> None:
    def interrupted(point: Any, _total: int) -> None:
        if point.step == 3:
            raise KeyboardInterrupt

    cut, again = (rooms.load("encoders", models["hf"]) for _ in range(2))
    whole = finetune(hf, world(), short(tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        finetune(cut, world(), short(tmp_path / "cut"), interrupted)
    resumed = finetune(again, world(), short(tmp_path / "cut"))

    assert resumed == whole and changed(weights(hf), again) == set()
    assert (tmp_path / "cut" / "log.csv").read_bytes() == (tmp_path / "whole" / "log.csv").read_bytes()


def test_a_picture_that_cannot_be_read_is_left_out_and_counted(hf: Any, tmp_path: Path) -> None:
    def some(rows: Sequence[int]) -> list[Image.Image | None]:
        return [None if row in (3, 20) else picture(row) for row in rows]

    asking = FineTuneData(NAMES[:4], np.array([0, 1, 2, 4]), some, np.array([20, 21, -1, 22]))

    found = finetune(hf, replace(world(), pictures=some), short(tmp_path / "out"))
    with_questions = finetune(hf, asking, short(tmp_path / "questions", epochs=1))

    assert (found.step, found.unread) == (6, 3)  # once an epoch
    assert (with_questions.step, with_questions.unread) == (1, 1)  # the picture that a question is asked with
    gone = replace(world(), pictures=lambda rows: [None] * len(rows))
    with raises(EyespotError):
        finetune(hf, gone, short(tmp_path / "gone"))


def test_what_cannot_be_trained_is_told(hf: Any, tmp_path: Path) -> None:
    finetune(hf, world(), short(tmp_path / "out"))

    for wrong, folder in (({"batch": 9}, "new"), ({"blocks": 3}, "new"), ({"rate": 2e-3}, "out")):
        with raises(UsageError):
            finetune(hf, world(), short(tmp_path / folder, **wrong))


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch": 1}, {"rate": 0.0}, {"blocks": -1}])
def test_a_recipe_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with raises(SettingsConflict):
        short(Path("out"), **wrong)
    with raises(UsageError):
        _saving.trainable(rooms.load("encoders", "starter"))  # it has no weights to train


def test_what_is_saved_loads_by_its_name_and_gives_the_same_vectors(encoder: Any, tmp_path: Path) -> None:
    _saving.refuse_if_lost(encoder)
    finetune(encoder, world(), short(tmp_path / "out"))
    (tmp_path / "model").mkdir()

    again = rooms.load("encoders", _saving.save(encoder, tmp_path / "model"))

    pixels = np.stack([again.read(picture(at)) for at in range(3)])
    assert np.abs(again.encode_texts(NAMES) - encoder.encode_texts(NAMES)).max() < 1e-6
    assert np.abs(again.encode_pixels(pixels) - encoder.encode_pixels(pixels)).max() < 1e-6
    assert again.space.weights != encoder.space.weights


def test_a_model_that_would_load_as_another_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other-clip.json"
    file.write_text(json.dumps(tiny_models.clip_config()))
    open_clip.add_model_config(file)
    tiny_models.open_clip_weights(tmp_path / "weights.pt", "other-clip")
    encoder = rooms.load("encoders", f"open_clip:other-clip/{tmp_path / 'weights.pt'}")

    file.write_text(json.dumps(tiny_models.clip_config() | {"quick_gelu": False}))
    open_clip.add_model_config(file)

    with raises(UsageError):
        _saving.refuse_if_lost(encoder)
