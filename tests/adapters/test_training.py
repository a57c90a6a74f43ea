"""Training QuARI: the loss against its dense formula, batches, schedules, and trainings that are cut and resumed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.adapters.quari import Config, files, load
from eyespot.adapters.quari.mining import SemiPositives
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.adapters.quari.training import (
    ABLATIONS,
    PRESETS,
    Pairs,
    TrainingData,
    TrainingSettings,
    ablated,
    memory,
    preset,
)
from eyespot.adapters.quari.training.data import TrainingBatches
from eyespot.adapters.quari.training.settings import cosine, cycled_beta, one_cycle
from eyespot.types import EyespotError, NothingFound, UsageError
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

torch = lazy_import("torch")
torch_network = lazy_import("eyespot.adapters.quari.network")  # this and the next two import torch
loop = lazy_import("eyespot.adapters.quari.training.loop")
loss = lazy_import("eyespot.adapters.quari.training.loss")
pytestmark = requires("torch")

SMALL = Config(16, low_rank_dim=3, hidden_dim=16, num_steps=2, nhead=2, num_layers=1, dropout=0.0)
SHORT = TrainingSettings(batch=8, epochs=3, accumulate=2, validate_every=4, checkpoint_every=3, device="cpu", rate=3e-3)
SHORT = replace(SHORT, keep_anyway=True)


def unit(rows: Any) -> Any:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def world(count: int = 96, seed: int = 0) -> Pairs:
    """Two captions an image, each its image's vector with its own noise."""
    rng = np.random.default_rng(seed)
    images = unit(rng.normal(size=(count // 2, 16)))
    of = np.repeat(np.arange(count // 2), 2)
    return Pairs(unit(images[of] + 0.2 * rng.normal(size=(count, 16))), images, of)


def material(semi: SemiPositives | None = None) -> TrainingData:
    return TrainingData(world(), world(24, seed=1), semi)


def views_of(count: int, dim: int, identity: float, seed: int = 0) -> Any:
    rng = torch.Generator().manual_seed(seed)
    queries = torch.nn.functional.normalize(torch.randn(count, dim, generator=rng, dtype=torch.float64), dim=1)
    left, right = (torch.randn(count, dim, 3, generator=rng, dtype=torch.float64) for _ in range(2))
    return torch_network.AdaptedBatch(queries, left, right, identity)


@pytest.mark.parametrize("identity", [1.0, 0.0])
def test_cosines_in_factors_are_those_of_dense_maps(identity: float) -> None:
    views = views_of(5, 16, identity)
    images = torch.randn(7, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    maps = identity * torch.eye(16, dtype=torch.float64) + views.left @ views.right.mT
    mapped = torch.nn.functional.normalize(images @ maps, dim=-1)  # (5, 7, 16)

    shared = loss.cosines(views, images)
    own = loss.cosines(views, images.expand(5, 7, 16))

    wanted = (mapped @ views.queries[..., None])[..., 0]
    assert torch.allclose(shared, wanted, atol=1e-12) and torch.allclose(own, wanted, atol=1e-12)


def test_pieces_change_neither_cosines_nor_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    images, found = torch.randn(7, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64), []
    for piece in (1 << 24, 1):
        monkeypatch.setattr(loss, "PIECE", piece)  # a limit, not our code
        views = views_of(5, 16, 1.0)
        views.left.requires_grad_()
        cosines = loss.cosines(views, images)
        cosines.square().sum().backward()
        found.append((cosines.detach(), views.left.grad))

    assert all(torch.allclose(one, other, atol=1e-12) for one, other in zip(*found, strict=True))


def test_the_loss_of_one_batch_by_hand() -> None:
    """Orthogonal images under identity maps: every logit is 0, 1/τ or the semi-positive's."""
    flat = torch.zeros(2, 4, 1)
    views = torch_network.AdaptedBatch(torch.eye(4)[:2], flat, flat, 1.0)
    semi = torch.tensor([[[0.6, 0.0, 0.8, 0.0]], [[1.0, 0.0, 0.0, 0.0]]])
    targets = loss.Targets(torch.eye(4)[:2], semi, torch.tensor([[0.5], [0.0]]), torch.zeros(2, 2, dtype=torch.bool))

    found = loss.symmetric(views, targets, 1.0)

    first = math.log(math.e + 1 + math.exp(0.6))  # own image 1, the other 0, semi-positive 0.6
    second = math.log(math.e + 1)  # no semi-positive
    to_image = ((first - 1) + 0.5 * (first - 0.6) + (second - 1)) / 2
    assert float(found) == pytest.approx((to_image + (second - 1)) / 2, rel=1e-6)


def test_another_caption_s_copy_of_the_image_is_no_negative() -> None:
    flat = torch.zeros(2, 4, 1)
    views, images = torch_network.AdaptedBatch(torch.eye(4)[[0, 0]], flat, flat, 1.0), torch.eye(4)[[0, 0]]
    nothing = torch.zeros(2, 0, 4), torch.zeros(2, 0)
    hidden = torch.tensor([[False, True], [True, False]])

    assert float(loss.symmetric(views, loss.Targets(images, *nothing, hidden), 0.07)) == 0
    assert float(loss.symmetric(views, loss.Targets(images, *nothing, ~(hidden | ~hidden)), 0.07)) > 0.5


def test_noise_has_one_strength_a_query_and_is_not_made_unit_again() -> None:
    queries = torch.nn.functional.normalize(torch.ones(4000, 64), dim=1)

    added = loss.noisy(queries, 2.0, torch.Generator().manual_seed(0)) - queries

    shares = added.std(dim=1) / 2  # u of each query, up to the spread of 64 draws
    assert float(shares.mean()) == pytest.approx(0.5, abs=0.02) and float(shares.max()) <= 1.4
    assert float(shares.std()) == pytest.approx(1 / math.sqrt(12), abs=0.02)
    assert loss.noisy(queries, 0.0, torch.Generator()) is queries


def test_the_cosine_cycles_between_its_published_rates() -> None:
    rates = [1e-5 * cosine(step, 1000, 100) for step in (0, 50, 100, 200)]

    assert rates == pytest.approx([1e-5, 5.1e-6, 2e-7, 1e-5], rel=1e-9)


def test_each_ablation_takes_one_component_away() -> None:
    one_step, no_semi, no_noise = (ablated(SMALL, SHORT, name) for name in ABLATIONS)

    assert one_step == (replace(SMALL, num_steps=1), SHORT)
    assert no_semi == (SMALL, replace(SHORT, semi_positives=0)) and no_noise == (SMALL, replace(SHORT, noise=0.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 1},
        {"temperature": 0.0},
        {"token_drop": 1.0},
        {"noise": math.nan},
        {"schedule": "steps"},
        {"precision": "int8"},
    ],
)
def test_a_wrong_recipe_is_told_in_a_sentence(wrong: dict[str, Any]) -> None:
    with raises(UsageError):
        replace(SHORT, **wrong)


def test_memory_at_full_size_is_under_six_gigabytes_and_grows_with_the_batch() -> None:
    full = Config(1024, dropout=0.0)

    found = memory.needed(full, TrainingSettings())

    assert memory.recomputes(full, TrainingSettings()) and found.total < 6e9
    assert memory.needed(full, TrainingSettings(activations="kept")).total > 5 * found.total
    assert memory.needed(full, TrainingSettings(batch=640)).total > 1.5 * found.total


@given(st.integers(2, 40), st.integers(2, 9), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_an_epoch_has_every_pair_at_most_once(count: int, size: int, seed: int) -> None:
    images, size = unit(np.random.default_rng(seed).normal(size=(count, 4))), min(size, count)
    pairs = Pairs(unit(np.ones((count, 4))), images, np.arange(count))
    batches = TrainingBatches(TrainingData(pairs), size, 0, seed)

    first = np.concatenate([batches.rows(number) for number in range(batches.per_epoch)])

    assert len(np.unique(first)) == len(first) == count - count % size


def test_a_semi_positive_in_the_batch_is_no_negative_and_a_lacking_one_has_no_weight() -> None:
    pairs = Pairs(np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32), np.arange(4))
    semi = SemiPositives(np.array([[1], [-1], [3], [2]]), np.array([[0.3], [0], [0.2], [0.2]], np.float32))
    batches = TrainingBatches(TrainingData(pairs, None, semi), 4, 2, seed=0)

    _, targets = batches.batch(0)

    order = batches.rows(0).tolist()
    hidden = {(order[i], order[j]) for i, j in targets.hidden.nonzero().tolist()}
    assert hidden == {(0, 1), (2, 3), (3, 2)}
    assert targets.weights[order.index(1)].tolist() == [0.0] and targets.semi.shape == (4, 1, 4)


def test_captions_of_one_image_are_hidden_from_each_other_by_id_and_by_content() -> None:
    images = unit(np.array([[1, 0], [1, 0], [0, 1]]))
    texts = unit(np.ones((3, 2)))
    for ids, same in ((None, {(0, 1), (1, 0)}), (["a", "b", "a"], {(0, 2), (2, 0)})):
        batches = TrainingBatches(TrainingData(Pairs(texts, images, np.arange(3), ids)), 3, 0, seed=0)
        _, targets = batches.batch(0)
        order = batches.rows(0).tolist()
        assert {(order[i], order[j]) for i, j in targets.hidden.nonzero().tolist()} == same


def test_held_out_pairs_share_no_image_with_those_trained() -> None:
    pairs = world()

    trained, held = pairs.split(0.25, 1000, seed=2)

    assert not set(trained.of) & set(held.of) and len(trained) + len(held) == 96 and len(set(held.of)) == 12


@pytest.mark.parametrize("shared", ["vector", "id", "text"])
def test_pairs_of_another_file_that_share_an_image_or_a_text_are_left_out(shared: str) -> None:
    pairs, other = world(12), world(4, seed=1)
    pairs = replace(pairs, ids=[f"mine {row}" for row in range(6)])
    texts, images, ids = other.texts.copy(), other.images.copy(), ["other 0", "other 1"]
    if shared == "vector":
        images[1] = pairs.images[2]
    elif shared == "id":
        ids[1] = "mine 2"
    else:
        texts[3] = pairs.texts[4]
    held = Pairs(texts, images, other.of, ids)

    rest = pairs.without(held)
    assert pairs.of.tolist() == np.repeat(np.arange(6), 2).tolist()
    left = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11] if shared == "text" else [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]
    assert np.array_equal(rest.texts, pairs.texts[left])
    semi = SemiPositives(np.full((6, 1), 2), np.ones((6, 1), np.float32))
    taught = TrainingData(rest, held).with_semi_positives(semi).semi
    assert taught is not None and bool((taught.rows == 2).any()) == (shared == "text")


def test_pairs_without_direction_are_left_out() -> None:
    texts = np.array([[1, 0], [0, 0], [np.nan, 1], [0, 1]], np.float32)
    pairs = Pairs(texts, np.array([[1, 0], [0, 0]], np.float32), np.array([0, 0, 0, 1]))

    assert len(pairs.with_direction()) == 1
    with pytest.raises(NothingFound):
        pairs.only(np.array([1, 2])).with_direction()


class Cut(Exception):
    """What stands for a kill: nothing is tidied up after it."""


def cut_after(step: int) -> Any:
    def tell(point: Any, _total: int) -> None:
        if point.step == step:
            raise Cut

    return tell


@pytest.mark.parametrize("step", [1, 4, 11])
def test_a_cut_training_ends_in_the_same_bits(step: int, tmp_path: Path) -> None:
    config, recipe = replace(SMALL, dropout=0.1), replace(SHORT, token_drop=0.1)
    semi = SemiPositives(np.roll(np.arange(48), 1)[:, None], np.full((48, 1), 0.4, np.float32))
    whole = loop.train(material(semi), config, recipe, tmp_path / "whole")

    with pytest.raises(Cut):
        loop.train(material(semi), config, recipe, tmp_path / "cut", cut_after(step))
    resumed = loop.train(material(semi), config, recipe, tmp_path / "cut")

    assert replace(resumed, model=whole.model) == whole
    for name in ("log.csv", "model/weights.safetensors", "model/config.yml"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()


def test_validations_below_the_best_stop_a_training_only_once_the_rate_has_fallen(tmp_path: Path) -> None:
    """Texts are their images, so the start finds all and what is learned only harms."""
    pairs = Pairs(images := unit(np.random.default_rng(0).normal(size=(96, 16))), images, np.arange(96))
    recipe = replace(SHORT, start="identity", accumulate=1, epochs=14, rate=0.1, semi_positives=0, patience=2)

    done = loop.train(TrainingData(*pairs.split(0.3, 99, 0)), replace(SMALL, use_fro_norm=False), recipe, tmp_path)

    assert done.stopped_early and done.step >= max(done.total / 2, done.best_step + 2 * done.total / 14)
    assert not done.rising


@pytest.mark.parametrize(("part", "near", "patient"), [(0.25, 0, True), (0.75, 0, False), (0.75, 0.74, True)])
def test_a_lucky_validation_early_on_ends_no_training(part: float, near: float, patient: bool, tmp_path: Path) -> None:
    """Neither while the rate is high, nor while validations are within their standard error of the best."""
    from eyespot.adapters.quari.training.loop import _Training

    training = _Training(material(), SMALL, replace(SHORT, epochs=20, patience=2), tmp_path)
    training.best, training.step = 0.5, int(part * training.total)
    training.near_best = int(near * training.total)

    assert training.patient == patient


def test_a_folder_of_another_training_is_refused(tmp_path: Path) -> None:
    loop.train(material(), SMALL, SHORT, tmp_path)
    semi = SemiPositives(np.zeros((48, 1), np.int64), np.zeros((48, 1), np.float32))

    for changed in (
        (material(), SMALL, replace(SHORT, noise=0.5)),
        (TrainingData(world(seed=5), world(24, seed=1)), SMALL, SHORT),
        (material(), replace(SMALL, num_steps=1), SHORT),
        (material(semi), SMALL, SHORT),
    ):
        with pytest.raises(UsageError, match="new folder"):
            loop.train(*changed, tmp_path)


def test_a_damaged_candidate_or_checkpoint_says_how_to_train_again(tmp_path: Path) -> None:
    whole = loop.train(material(), SMALL, SHORT, tmp_path)
    trained = (tmp_path / "model" / "weights.safetensors").read_bytes()

    for name in ("candidate/weights.safetensors", "checkpoint.pt"):
        (tmp_path / name).write_bytes(b"")
        with raises(UsageError):
            loop.train(material(), SMALL, SHORT, tmp_path)
    (tmp_path / "checkpoint.pt").unlink()

    assert loop.train(material(), SMALL, SHORT, tmp_path) == whole
    assert (tmp_path / "model" / "weights.safetensors").read_bytes() == trained


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path) -> None:
    with pytest.raises(EyespotError, match="lower --rate"):
        loop.train(material(), replace(SMALL, use_fro_norm=False), replace(SHORT, rate=1e30, clip=0.0), tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        (TrainingData(world()), replace(SMALL, embedding_dim=20), SHORT),
        (TrainingData(world(4)), SMALL, SHORT),
        (material(SemiPositives(np.zeros((3, 1), int), np.zeros((3, 1)))), SMALL, SHORT),
        (TrainingData(world()), SMALL, replace(SHORT, device="tpu")),
    ],
)
def test_what_cannot_be_trained_is_told_in_a_sentence(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        loop.train(*wrong, tmp_path / "out")
    with raises(UsageError):  # pairs whose ids are not those of their images
        Pairs(np.eye(2, 4), np.eye(2, 4), np.arange(2), ["a", "b", "c"])


def test_the_caller_s_random_numbers_are_theirs(tmp_path: Path) -> None:
    torch.manual_seed(9)
    wanted = torch.rand(3)
    torch.manual_seed(9)

    loop.train(material(), SMALL, replace(SHORT, epochs=1), tmp_path)

    assert torch.equal(torch.rand(3), wanted)


def test_unasked_a_processor_trains_in_full_precision(tmp_path: Path) -> None:
    """Halves save no time there and lose digits, though they learn nearly the same."""
    unasked, full, half = (
        loop.train(material(), SMALL, replace(SHORT, epochs=1, precision=name), tmp_path / name)
        for name in ("auto", "float32", "bfloat16")
    )

    assert SHORT.precision == "auto" and unasked.loss == full.loss != half.loss
    assert half.loss == pytest.approx(full.loss, rel=0.05)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["bfloat16", "float16", "float32"])
def test_an_accelerator_learns_the_same(precision: str, tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs an accelerator of CUDA")
    recipe = replace(SHORT, epochs=12, noise=0.2)
    there = loop.train(material(), SMALL, replace(recipe, device="cuda", precision=precision), tmp_path / "there")
    here = loop.train(material(), SMALL, recipe, tmp_path / "here")

    assert there.loss == pytest.approx(here.loss, rel=0.1)


# -- the published codes and presets: schedule, losses, noise, the form of May 2025, the identity start -----------


@pytest.mark.parametrize("total", [3, 40, 99, 150, 1000, 1234])
def test_one_cycle_has_the_rates_and_momenta_of_torch(total: int) -> None:
    """torch's OneCycleLR with the authors' arguments, which cycles β₁ unless `cycle_momentum` is off."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    torchs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=5e-4, total_steps=total, pct_start=0.01, div_factor=25, final_div_factor=20
    )
    for step in range(total):
        group = optimizer.param_groups[0]
        assert 5e-4 * one_cycle(step, total, 10) == pytest.approx(group["lr"], rel=1e-9)
        assert cycled_beta(step, total, 10) == pytest.approx(group["betas"][0], rel=1e-9)
        optimizer.step()
        if step + 1 < total:
            torchs.step()


def test_published_validations_count_batches_and_a_short_training_has_twenty() -> None:
    assert PRESETS["released"].validation_steps(100_000) == 250  # of 500 batches, two a step
    assert PRESETS["paper"].validation_steps(100_000) == 500
    assert PRESETS["released"].validation_steps(40) == 2 and PRESETS["released"].validation_steps(10) == 1


def test_noise_of_each_component_has_a_strength_of_its_own() -> None:
    queries = torch.zeros(400, 64)

    added = loss.noisy(queries, 1.0, torch.Generator().manual_seed(0), 64)

    shared = loss.noisy(queries, 1.0, torch.Generator().manual_seed(0))
    assert float(added.std(dim=1).std()) < 0.5 * float(shared.std(dim=1).std())
    assert float(added.square().mean()) == pytest.approx(1 / 3, rel=0.05)


def test_the_released_image_to_query_term_is_that_of_the_dense_formula() -> None:
    """-(refined_query * transformed).sum(dim=1).mean() / τ of (B, B, E) products, as the code has it."""
    views, images = views_of(5, 16, 1.0), torch.randn(5, 16, generator=torch.Generator().manual_seed(1)).double()
    targets = loss.Targets(images, images.new_zeros(5, 0, 16), images.new_zeros(5, 0), torch.zeros(5, 5).bool())
    maps = torch.eye(16, dtype=torch.float64) + views.left @ views.right.mT
    mapped = torch.nn.functional.normalize(images @ maps, dim=-1)  # (5 maps, 5 images, 16)
    term = -(views.queries * mapped).sum(dim=1).mean() / 0.07
    logits = torch.einsum("ie,ije->ij", views.queries, mapped) / 0.07

    found = loss.linear(views, targets, 0.07)

    wanted = (torch.nn.functional.cross_entropy(logits, torch.arange(5)) + term) / 2
    assert float(found) == pytest.approx(float(wanted), rel=1e-9)


def test_paired_maps_score_each_image_under_its_own_query_s_map() -> None:
    views, images = views_of(5, 16, 0.0), torch.randn(5, 16, generator=torch.Generator().manual_seed(1)).double()
    targets = loss.Targets(images, images.new_zeros(5, 0, 16), images.new_zeros(5, 0), torch.zeros(5, 5).bool())
    own = torch.einsum("ne,nef->nf", images, views.left @ views.right.mT)
    logits = views.queries @ torch.nn.functional.normalize(own, dim=-1).T / 0.07

    found = loss.paired_maps(views, targets, 0.07)

    both = [torch.nn.functional.cross_entropy(one, torch.arange(5)) for one in (logits, logits.T)]
    assert float(found) == pytest.approx(float(sum(both)) / 2, rel=1e-9)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains_and_serves(name: str, tmp_path: Path) -> None:
    recipe, form = preset(name)
    short = replace(recipe, batch=96, epochs=1, device="cpu", keep_anyway=True, rate=1e-3)

    done = loop.train(material(), replace(SMALL, **form), short, tmp_path)

    (view,) = load(done.model).adapt(world().texts[:1])
    assert done.step == 1 and np.isfinite(view.query).all() and np.isfinite(view.left).all()
    assert np.linalg.norm(view.left) > 0 and np.linalg.norm(view.right) > 0  # also away from the identity


@pytest.mark.parametrize("dim", [96, 512, 1152])  # of encoders
def test_an_untrained_identity_start_ranks_as_the_frozen_space(dim: int, tmp_path: Path) -> None:
    _, form = preset("identity")
    config = Config(dim, low_rank_dim=4, hidden_dim=32, num_steps=2, nhead=4, num_layers=1, **form)
    network = torch_network.TorchHypernetwork(config)
    network.start_at_identity()
    files.save(tmp_path, config, network.weights())
    rng = np.random.default_rng(dim)
    queries, gallery = unit(rng.normal(size=(20, dim))), unit(rng.normal(size=(500, dim)))

    found = AdaptedIndex([gallery]).search(load(tmp_path).adapt(queries), 500)

    plain = queries.astype(np.float64) @ gallery.astype(np.float64).T  # (20, 500)
    assert np.array_equal(found.rows, np.argsort(-plain, axis=1, kind="stable"))
    assert np.abs(found.scores - np.sort(plain, axis=1)[:, ::-1]).max() < 1e-6


def test_the_identity_start_stays_in_the_released_layout(tmp_path: Path) -> None:
    config = replace(SMALL, **preset("identity")[1])
    network = torch_network.TorchHypernetwork(config)
    network.start_at_identity()

    files.export(tmp_path, config, network.weights())

    again, weights = files.read(tmp_path)
    assert again == config and config.preset == "released" and "preset" not in (tmp_path / "config.yml").read_text()
    assert not weights["dec_u_img.3.weight"].any() and weights["dec_v_img.3.weight"].any()


@pytest.mark.parametrize("form", [{}, {"preset": "paper"}, {"use_fro_norm": False, "query_residual_weight": 0.0}])
def test_a_form_without_a_frozen_space_in_it_cannot_start_there(form: dict[str, Any]) -> None:
    with raises(UsageError):
        torch_network.TorchHypernetwork(replace(SMALL, **form)).start_at_identity()
    with raises(UsageError):
        preset("best")


def test_dropped_tokens_reach_the_decoders_as_zeros() -> None:
    """As released: also after the last step, so a share of the decoded columns are those of a zero token."""
    torch.manual_seed(0)
    network = torch_network.TorchHypernetwork(replace(SMALL, low_rank_dim=64, hidden_dim=16), 0.25).train()

    _, ours, theirs = network.tokens(torch.from_numpy(world().texts[:8]))

    for tokens in (ours, theirs):
        share = float((tokens == 0).all(dim=2).float().mean())
        assert 0.15 < share < 0.35
