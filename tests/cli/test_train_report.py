"""What `eyespot train quari` says of a model that is not shown to help: the reason, and what would be needed."""

from __future__ import annotations

import numpy as np
import pytest
import typer

from eyespot.adapters.quari import FrozenComparison
from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings
from eyespot.cli._train_report import report
from tests.lazy_import import lazy_import, requires

loop = lazy_import("eyespot.adapters.quari.training.loop")
pytestmark = requires("torch")
VECTORS = np.eye(50, dtype=np.float32)
PAIRS = TrainingData(Pairs(VECTORS, VECTORS, np.arange(50)))


def sentences(found: FrozenComparison, frozen: float, capsys: pytest.CaptureFixture[str]) -> str:
    """What stands on stderr after six steps, of which the first was the best."""
    done = loop.TrainingResult(None, 6, 6, frozen, 1, 0.1, True, frozen, found)
    with pytest.raises(typer.Exit):
        report(done, PAIRS, TrainingSettings(), json=False)
    return capsys.readouterr().err


def compared(lead: float, spread: float, images: int) -> FrozenComparison:
    return FrozenComparison(0.5 + lead, 0.5, (lead - 0.1, lead + 0.1), 0.6, spread, images, images, 1000)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (compared(0.00001, 0.2, 5), "fewer than 6 images to test on can show of no model that it helps"),
        (compared(0.0, 0.0, 40), "the model changed the rank of none of the 40 texts of the test"),
        (compared(0.00001, 0.2, 40), "40 held-out images show a lead of 0.089 in 80 % of the cases"),
        (compared(0.05, 0.2, 40), "about 126 held-out images like these 40 would show such a lead"),
    ],
)
def test_what_a_test_would_need(found: FrozenComparison, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = sentences(found, 0.5, capsys)

    assert sentence in shown and "more pairs, or a lower --rate, may help (in a new folder)" in shown
    assert shown.count("an estimate") == ("in 80 %" in sentence or "such a lead" in sentence)


def test_where_the_frozen_space_finds_all_nothing_is_to_gain(capsys: pytest.CaptureFixture[str]) -> None:
    shown = sentences(compared(0.0, 0.0, 40), 1.0, capsys)

    assert "there is nothing to gain on these" in shown and "may help" not in shown
