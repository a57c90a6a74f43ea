"""The details of the published codes and presets: schedule, losses, noise, the form of May 2025, the identity start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot.adapters.quari import Config, files, load
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.adapters.quari.training import PRESETS, preset
from eyespot.adapters.quari.training.settings import cycled_beta, one_cycle
from eyespot.types import UsageError
from tests.adapters.test_training import SMALL, material, unit, views_of, world
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

torch = lazy_import("torch")
torch_network = lazy_import("eyespot.adapters.quari.network")  # this and the next two import torch
loop = lazy_import("eyespot.adapters.quari.training.loop")
loss = lazy_import("eyespot.adapters.quari.training.loss")
pytestmark = requires("torch")


@pytest.mark.parametrize("total", [3, 40, 99, 150, 1000, 1234])
def test_one_cycle_has_the_rates_and_momenta_of_torch(total: int) -> None:
    """torch's OneCycleLR with the authors' arguments, which cycles β₁ unless it is told not to."""
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
