"""Validation against the frozen space: ranks in the whole gallery, the gate, and the card of what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from eyespot.adapters.quari import AdapterCard, Config, FrozenComparison, load
from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings, preset
from eyespot.search import paired_gain
from eyespot.search.adapted import cautions
from eyespot.types import Query, UsageError
from tests.adapters.test_training import SMALL, unit, world
from tests.examples import examples
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

torch = lazy_import("torch")
torch_network = lazy_import("eyespot.adapters.quari.network")  # this and the next two import torch
loop = lazy_import("eyespot.adapters.quari.training.loop")
validation = lazy_import("eyespot.adapters.quari.training.validation")
pytestmark = requires("torch")


def cpu() -> Any:
    return torch.device("cpu")


@given(st.integers(4, 30), st.integers(0, 50))
@settings(max_examples=examples(20), deadline=None)
def test_frozen_ranks_are_those_of_a_sort_over_all_images(images: int, seed: int) -> None:
    """Also those that no text is of, and those of the training."""
    rng = np.random.default_rng(seed)
    gallery = unit(rng.normal(size=(images + 3, 6)))
    pairs = Pairs(unit(rng.normal(size=(images, 6))), gallery, np.arange(images))
    learned, held = pairs.split(0.5, 100, seed)

    both = validation.held_out_queries(TrainingData(learned, held), 1, seed)

    found = sorted(np.concatenate([one.frozen(cpu()) for one in both]).tolist())
    scores = held.texts @ gallery.T
    ranks = [1 + int((row >= row[own]).sum()) - 1 for row, own in zip(scores, held.of.tolist(), strict=True)]
    assert found == pytest.approx(sorted(1 / rank for rank in ranks))


def test_images_with_the_same_words_are_no_rivals_and_count_as_one_subject() -> None:
    images = np.eye(6, dtype=np.float32)
    texts = np.array([[1, 1, 0, 0, 0, 0]] * 2 + [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0.5]], np.float32)
    held = Pairs(texts, images, np.array([0, 1, 2, 5]))
    learned = Pairs(np.ones((2, 6), np.float32), images, np.array([3, 4]))

    both = validation.held_out_queries(TrainingData(learned, held), 1, 0)

    values = np.concatenate([one.frozen(cpu()) for one in both])
    assert sum(len(one.own) for one in both) == 4 and sorted(values.tolist()) == [0.5, 1.0, 1.0]


def test_no_subject_both_chooses_and_tests() -> None:
    learned, held = world(200).split(0.5, 1000, 0)

    choosing, testing = validation.held_out_queries(TrainingData(learned, held), 1, 0)

    assert not set(choosing.subject) & set(testing.subject)
    assert len(choosing.own) + len(testing.own) == len(held) and len(choosing.gallery) == 100


def test_held_out_texts_are_not_trained_on() -> None:
    """Names of species are the words of many images: all of them are on one side."""
    rng = np.random.default_rng(0)
    words = np.repeat(np.arange(10), 5)
    pairs = Pairs(np.eye(10, dtype=np.float32)[words], unit(rng.normal(size=(50, 10))), np.arange(50))

    learned, held = pairs.split(0.2, 100, 0)

    assert len(held) == 10 and not set(words[learned.of]) & set(words[held.of])
    with raises(UsageError):
        replace(pairs, texts=np.ones((50, 10), np.float32)).split(0.2, 100, 0)
    with raises(UsageError):
        pairs.split(0.04, 100, 0)
    assert len(pairs.split(0.1, 100, 0)[1]) == 5
    with raises(UsageError):
        Pairs(pairs.texts[:1], pairs.images[:1], np.arange(1)).split(0.2, 100, 0)


RECIPE, FORM = preset("identity")
SHORT = replace(RECIPE, batch=32, epochs=12, rate=3e-3, noise=0.0, device="cpu", semi_positives=0)
SHAPE = Config(16, low_rank_dim=4, hidden_dim=32, num_steps=2, nhead=2, num_layers=1, dropout=0.0, **FORM)


def mirrored(count: int, noise: float = 0.1) -> TrainingData:
    """Texts are their images with the first half of the components turned round, which a map can learn."""
    rng = np.random.default_rng(0)
    images = unit(rng.normal(size=(count, 16)))
    texts = images * np.r_[-np.ones(8), np.ones(8)] + noise * rng.normal(size=images.shape)
    return TrainingData(*Pairs(unit(texts), images, np.arange(count)).split(0.2, 1000, 0), test=paired_gain)


@pytest.mark.long
def test_a_model_that_finds_more_is_named_with_its_card(tmp_path: Path) -> None:
    done = loop.train(mirrored(600), replace(SHAPE, feature_extractor="my encoder"), SHORT, tmp_path)

    adapter = load(done.model)
    found = done.comparison
    assert found.better and found.interval[0] > 0.05 and found.gallery == 600 and found.images == 60
    assert adapter.card == AdapterCard("my encoder", 480, 480, adapter.card.data, "identity", done.best_step, 0,
                                adapter.card.version, found, done.by_picture)  # fmt: skip
    assert adapter.caution is None


def test_a_model_that_finds_no_more_is_not_named_and_kept_only_anyway(tmp_path: Path) -> None:
    """Texts are their images: the frozen space finds all of them, and nothing can be better."""
    images = unit(np.random.default_rng(0).normal(size=(200, 16)))
    material = TrainingData(*Pairs(images, images, np.arange(200)).split(0.2, 1000, 0), test=paired_gain)
    recipe = replace(SHORT, epochs=2)

    done = loop.train(material, SHAPE, recipe, tmp_path)
    assert done.model is None and not (tmp_path / "model").exists() and done.frozen == 1
    anyway = loop.train(material, SHAPE, replace(recipe, keep_anyway=True), tmp_path)

    assert anyway.step == done.step and anyway.comparison == done.comparison
    caution = load(tmp_path / "model").caution
    assert load(tmp_path / "candidate").caution == caution  # the candidate of a training that names none warns too
    assert "RR" in caution and "\n" not in caution
    assert loop.train(material, SHAPE, recipe, tmp_path).model is None and not (tmp_path / "model").exists()
    assert loop.train(material, SHAPE, replace(recipe, keep_anyway=True), tmp_path).model is not None


def test_a_model_without_a_validation_says_so(tmp_path: Path) -> None:
    recipe = TrainingSettings(batch=8, epochs=1, device="cpu")
    with pytest.raises(UsageError, match="--keep-anyway"):
        loop.train(TrainingData(world()), SMALL, recipe, tmp_path)

    loop.train(TrainingData(world()), SMALL, replace(recipe, keep_anyway=True), tmp_path)

    assert "without a validation" in load(tmp_path / "model").caution


def test_pictures_ask_as_well_and_a_search_by_one_is_told_where_they_find_less(tmp_path: Path) -> None:
    """Texts are images with half of their components turned round: the map that undoes it harms pictures."""
    material = mirrored(300)
    crops = Pairs(material.held_out.images, material.pairs.images, np.arange(300))  # each picture asks as it is
    _, testing = validation.held_out_queries(material, 1, 0)

    noisy = loop.train(material, SHAPE, replace(SHORT, epochs=20, keep_anyway=True), tmp_path).by_picture
    exact = validation.picture_queries(replace(material, crops=crops), testing, 0)

    assert exact.frozen(cpu()).mean() == 1 > noisy.frozen > 0.5 and noisy.worse
    assert len(exact.own) == noisy.images == 30 and noisy.gallery == 300
    adapter = load(tmp_path / "model")
    assert adapter.card.by_picture == noisy and "with pictures as queries" in adapter.card.picture_caution
    words, picture = Query.words("a heron"), Query.picture("heron.jpg")
    assert [len(cautions(adapter, [query])) - len(cautions(adapter, [words])) for query in (words, picture)] == [0, 1]


def compared(model: float, low: float, high: float, p: float) -> FrozenComparison:
    return FrozenComparison(model, 0.5, (low, high), p, 0.2, 100, 120, 2000)


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (compared(0.6, 0.05, 0.15, 0.001), None),
        (compared(0.51, -0.03, 0.05, 0.6), "not shown"),
        (compared(0.3, -0.25, -0.15, 0.001), "found less"),
        (None, "without a validation"),
    ],
)
def test_a_card_comes_back_and_warns_of_what_is_not_better(found: FrozenComparison | None, part: str | None) -> None:
    card = AdapterCard("starter", 10, 8, "abc", "identity", 5, 0, "1.0", found)

    again = AdapterCard.of(yaml.safe_load(yaml.safe_dump(card.as_yaml())))

    assert again == card
    assert card.caution is None if part is None else part in str(card.caution)
    with raises(UsageError):
        AdapterCard.of({"encoder": "starter", "validation": {"model": "much"}})


def test_what_is_needed_is_what_a_paired_t_test_needs_for_80_percent() -> None:
    """((1.96 + 0.84) · .2 / .01)² = 3140 images for a lead of .01; none shows a lead that is none."""
    assert compared(0.51, -0.03, 0.05, 0.6).needed == pytest.approx(3140, abs=3)
    assert compared(0.5, -0.03, 0.05, 0.6).needed is None
    assert compared(0.51, -0.03, 0.05, 0.6).smallest == pytest.approx(0.056, abs=1e-3)
