"""Hours of a table: operations are counted again by torch's own counter, and the arithmetic holds on planted rates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyespot import reproduce
from eyespot.reproduce.hours import (
    OPERATIONS,
    SHARE,
    ProductRate,
    TransformerShape,
    duration,
    hours,
    operations,
    shapes,
)
from eyespot.storage.toml import toml_of
from tests.command import run_eyespot

PLANTED = ProductRate("a planted card", 1e12)


def counted(shape: TransformerShape) -> float:
    """What torch counts in the true architecture, without weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from torch.utils.flop_counter import FlopCounterMode

    sizes = {"image_size": shape.side, "patch_size": shape.patch, "hidden_size": shape.width}
    sizes |= {"num_hidden_layers": shape.layers, "intermediate_size": shape.hidden}
    family = "Siglip" if shape.pooling == "attention" else "CLIP"
    config = getattr(transformers, f"{family}VisionConfig")(**sizes, num_attention_heads=shape.width // 64)
    with torch.device("meta"):
        model = getattr(transformers, f"{family}VisionModel")._from_config(config, attn_implementation="eager").eval()
        picture = torch.zeros(1, 3, shape.side, shape.side)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(pixel_values=picture)
    return float(counter.get_total_flops())


@pytest.mark.parametrize("name", ["clip-b-32", "eva-g-14", "siglip-b-16-512"])
def test_torch_counts_the_same_operations(name: str) -> None:
    shape = shapes()[name]

    assert shape.operations == pytest.approx(counted(shape), rel=0.01)


def test_every_model_has_a_shape_or_a_count() -> None:
    models = toml_of(OPERATIONS)["models"].keys()
    assert all(operations(model) for model in models)
    used = {step.model for name in reproduce.names() for step in hours(reproduce.recipe(name), PLANTED).steps}
    assert models <= used, "a model that no table uses"
    assert {model.split(":")[0] for model in used if operations(model) is None} == {"mllm", "openai", "hf"}
    assert [model for model in used if operations(model) is None and model.startswith("hf:")] == ["hf:tuned/model"]


def test_a_judge_reads_every_view_and_all_tokens() -> None:
    small = "transformers:llava-hf/llava-1.5-13b-hf"
    assert operations(small) == operations("hf:openai/clip-vit-large-patch14-336") + 2 * 13.0e9 * 640
    assert operations("transformers:somebody/else") is None


def test_hours_are_pictures_times_operations_over_the_rate() -> None:
    found = hours(reproduce.recipe("inquire-3"), PLANTED)

    index, judge = found.steps[0], next(step for step in found.steps if "llava-1.5-13b" in step.command)
    assert index.model == "open_clip:ViT-H-14-378-quickgelu/dfn5b" and index.pictures == 4_813_543
    assert index.hours == pytest.approx(4_813_543 * 1.007e12 / (SHARE * 1e12) / 3600, rel=0.01)
    assert judge.model == "transformers:llava-hf/llava-1.5-13b-hf" and judge.pictures == 10_000
    assert found.total == pytest.approx(found.operations / (SHARE * 1e12) / 3600)
    assert found.machine == "a planted card"
    shared = hours(reproduce.recipe("quari-3a"), PLANTED)  # a line that several systems share is one step
    assert [step.pictures for step in shared.steps] == [100_005_947]


@pytest.mark.parametrize(
    ("given", "text"),
    [(0.02, "1.2 minutes"), (1.5, "90 minutes"), (3, "3.0 hours"), (50, "2.1 days"), (24 * 365 * 12.3, "12 years")],
)
def test_durations_are_for_people(given: float, text: str) -> None:
    assert duration(given) == text


def test_check_prints_the_hours_and_json_has_them(tmp_path: Path) -> None:
    shown = run_eyespot("reproduce", "recos-3", "--check", "--work", tmp_path, cwd=tmp_path)
    assert "15,982 pictures" in shown.stdout
    checked = run_eyespot("reproduce", "inquire-2", "--check", "--json", "--work", tmp_path, cwd=tmp_path)
    given = json.loads(checked.stdout)["hours"]
    assert len(given["steps"]) == 11 and given["total"] > 1 and given["share"] == SHARE
