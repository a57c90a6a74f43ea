"""The hypernetwork in numpy against the authors' own outputs, and its checkpoints on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from eyespot.adapters.quari import Config, Hypernetwork, load
from eyespot.adapters.quari._directions import NormTerms
from eyespot.adapters.quari._formula import Formula
from eyespot.adapters.quari.files import export, read, save
from eyespot.types import AdaptedQuery, UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds.adapters import weights_of

CONFORMANCE = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "quari"
SMALL = Config(12, low_rank_dim=3, hidden_dim=16, num_steps=2, nhead=4, num_layers=2)


def dense(view: AdaptedQuery) -> Any:
    """The map of rows, (dim, dim), in float64."""
    left, right = view.left.astype(np.float64), view.right.astype(np.float64)
    return view.identity * np.eye(len(left)) + left @ right.T


def scores(view: AdaptedQuery, gallery: Any) -> Any:
    mapped = gallery.astype(np.float64) @ dense(view)
    return mapped @ view.query / np.linalg.norm(mapped, axis=1)


@pytest.fixture(params=["anchored", "nofro"])
def official(request: pytest.FixtureRequest) -> Path:
    folder = CONFORMANCE / request.param
    if not folder.exists():
        pytest.skip(f"needs {folder}")
    pytest.importorskip("torch")
    return folder


def test_the_authors_own_outputs(official: Path) -> None:
    arrays = np.load(official / "io.npz", allow_pickle=False)

    views = load(official).adapt(arrays["queries"])

    for view, query, matrix, wanted in zip(
        views, arrays["refined_query"], arrays["W_image"], arrays["scores"], strict=True
    ):
        assert np.abs(view.query - query).max() < 1e-5
        assert np.linalg.norm(dense(view) - matrix) / np.linalg.norm(matrix) < 1e-5
        assert np.abs(scores(view, arrays["gallery"]) - wanted).max() < 1e-5


def test_a_released_checkpoint_through_our_format_and_back(official: Path, tmp_path: Path) -> None:
    config, weights = read(official)
    save(tmp_path / "ours", config, weights)
    export(tmp_path / "theirs", *read(tmp_path / "ours"))
    again, back = read(tmp_path / "theirs")

    assert again == config and yaml.safe_load((tmp_path / "theirs" / "config.yml").read_text()) == yaml.safe_load(
        (official / "config.yml").read_text()
    )
    assert weights.keys() == back.keys()
    assert all(weights[name].tobytes() == back[name].tobytes() for name in weights)


def test_the_paper_s_form_has_no_identity_and_keeps_nothing_of_the_query() -> None:
    from dataclasses import replace

    config = replace(SMALL, preset="paper")
    (view,) = Hypernetwork(config, weights_of(config)).adapt(np.eye(12, dtype=np.float32)[:1])

    assert view.identity == 0 and view.left.shape == view.right.shape == (12, 3)
    assert np.linalg.norm(view.query) == pytest.approx(1, abs=1e-6)


def test_vectors_of_another_encoder_are_refused() -> None:
    network = Hypernetwork(SMALL, weights_of(SMALL))

    with raises(UsageError):
        network.adapt(np.ones((1, 13), np.float32))


@pytest.mark.parametrize(
    "change",
    [
        {"hparams": {"embedding_dim": 12, "nhead": 5}},
        {"hparams": {"embedding_dim": 0}},
        {"hparams": {"embedding_dim": 12, "speed": 3}},
        {"hparams": {}},
        {},
        {"hparams": {"embedding_dim": 12, "dropout": "a lot"}},
    ],
)
def test_a_wrong_config_is_told_in_a_sentence(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_text(yaml.safe_dump(change))

    with raises(UsageError):
        load(tmp_path)


def test_weights_that_do_not_fit_are_told(tmp_path: Path) -> None:
    weights = weights_of(SMALL)
    save(tmp_path / "lacking", SMALL, {name: w for name, w in weights.items() if name != "pos_emb"})
    save(tmp_path / "other", SMALL, weights | {"pos_emb": np.zeros((2, 2), np.float32)})
    save(tmp_path / "strange", SMALL, weights | {"more": np.zeros(1, np.float32)})
    save(tmp_path / "nan", SMALL, weights | {"pos_scale": np.array([np.nan], np.float32)})
    save(tmp_path / "torn", SMALL, weights)
    place = tmp_path / "torn" / "weights.safetensors"
    place.write_bytes(place.read_bytes()[:-7])

    for name in ("lacking", "other", "strange", "nan", "torn", "absent"):
        with raises(UsageError):
            load(tmp_path / name)


# -- how deep a symmetric matrix goes below zero -----------------------------------------------------------------


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_a_map_about_the_identity_is_bounded_in_every_direction(data: st.DataObject) -> None:
    """Of the whole matrix: less the gains, plus the debts, no eigenvalue is below the floor."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31), "seed"))
    dim, rank = 90, data.draw(st.sampled_from([1, 5, 30, 44]), "rank")
    left, right = rng.standard_normal((2, dim, rank)) / (dim * rank) ** 0.5
    left = left * data.draw(st.sampled_from([0.0, 1e-9, 0.5, 30.0]), "size")
    shared = data.draw(st.sampled_from([0.0, 3.0]), "shared")
    left, right = (part + shared * rng.standard_normal((dim, 1)) / dim for part in (left, right))
    if data.draw(st.booleans(), "repeated"):
        left[:, rank // 2 :] = left[:, :1]
    query = rng.standard_normal(dim).astype(np.float32)
    formula = Formula.of(AdaptedQuery(query, left.astype(np.float32), right.astype(np.float32), 1.0), dim)
    sample = rng.standard_normal((200, dim)).astype(np.float32)
    bent = formula.identity * np.eye(dim) + formula.left @ formula.right.T
    terms = NormTerms.of(formula, formula.direction, sample)

    for count in (0, 1, 4, 22, 78):
        one = terms.first(count)
        rest = bent @ bent.T - one.gains.T @ one.gains + one.debts.T @ one.debts - one.floor * np.eye(dim)
        lowest = float(np.linalg.eigvalsh(rest)[0])
        assert lowest >= -one.slack
        assert len(one.gains) + len(one.debts) <= count
        assert lowest <= 0.05 * formula.identity**2 + 0.5 * float(np.linalg.norm(bent - formula.identity * np.eye(dim)))
        assert one.slack < 1e-9 * formula.size**2
