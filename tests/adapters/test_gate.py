"""Checkpoints from others: damaged, lying and packed files end in a sentence, run nothing and take little memory."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as packed

from eyespot.adapters import linear, quari
from eyespot.adapters.quari.files import read
from eyespot.models.torch_models import tensors_in
from eyespot.types import UsageError
from tests.worlds.adapters import checkpoint

EYE, ZEROS = np.eye(4, dtype=np.float32), np.zeros(4, np.float32)


class Code:
    """What runs when a careless program opens it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("it-ran",)


def safe(head: Any, length: int | None = None) -> bytes:
    text = head if isinstance(head, bytes) else json.dumps({"bias": part([4], 64, 80)} | head).encode()
    return struct.pack("<Q", length or len(text)) + text + bytes(80)


def part(shape: list[int], start: int = 0, end: int = 64, kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [start, end]}


SAFE = {
    "empty": b"",
    "cut": packed({"weight": EYE, "bias": ZEROS})[:-7],
    "pickle": pickle.dumps(Code()),
    "endless head": safe(b"{}", 1 << 62),
    "lying shape": safe({"weight": part([1 << 40, 1 << 40])}),
    "bfloat16": safe({"weight": part([8, 4], kind="BF16")}),
    "float8": safe({"weight": part([16, 4], kind="F8_E4M3")}),
    "no number": packed({"weight": EYE * np.nan, "bias": ZEROS}),
    "too large": packed({"weight": EYE.astype(np.float64) * 1e300, "bias": ZEROS}),
    "beyond sums": packed({"weight": EYE * np.float32(3e38), "bias": ZEROS}),
    "no rows": packed({"weight": EYE[:0], "bias": ZEROS[:0]}),
    "no columns": packed({"weight": EYE[:, :0], "bias": ZEROS}),
    "no matrix": packed({"weight": ZEROS, "bias": ZEROS}),
    "lacking": packed({"weight": EYE}),
}


@pytest.mark.parametrize("name", SAFE)
def test_safetensors_from_others_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(linear.FILE).write_bytes(SAFE[name])
    (checkpoint(tmp_path / "quari", 4) / "weights.safetensors").write_bytes(SAFE[name])
    for load in (lambda: linear.load(tmp_path), lambda: quari.load(tmp_path / "quari")):
        with pytest.raises(UsageError):
            load()
    assert not Path("it-ran").exists()


def saved(weight: Any) -> bytes:
    import torch

    file = io.BytesIO()
    torch.save({"layer.weight": weight, "layer.bias": torch.zeros(4)}, file)
    return file.getvalue()


def bomb(weight: Any) -> bytes:
    """The same file with its members packed: some kilobytes that unfold to 64 MB."""
    file = io.BytesIO()
    whole = zipfile.ZipFile(io.BytesIO(saved(weight.new_zeros(4096, 4096))))
    with whole, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as other:
        for name in whole.namelist():
            other.writestr(name, whole.read(name))
    return file.getvalue()


TORCH: dict[str, Callable[[Any], bytes]] = {
    "empty": lambda _: b"",
    "a pickle": lambda _: pickle.dumps(Code()),
    "code": lambda _: saved(Code()),
    "a lying shape": lambda eye: saved(eye[0, 0].expand(1 << 20, 1 << 20)),
    "packed": bomb,
    "sparse": lambda eye: saved(eye.to_sparse()),
    "without data": lambda eye: saved(eye.to("meta")),
    "complex": lambda eye: saved(eye * 1j),
    "a number": lambda _: saved(3.0),
    "a list": lambda _: saved([[[]]]),
    "no number": lambda eye: saved(eye * float("nan")),
    "beyond sums": lambda eye: saved(eye * 3e38),
    "another shape": lambda eye: saved(eye[None]),
}


@pytest.mark.parametrize("name", TORCH)
def test_files_of_torch_from_others_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("layer.pth").write_bytes(TORCH[name](torch.eye(4)))
    folder = checkpoint(tmp_path / "quari", 4)
    (folder / "weights.safetensors").unlink()
    (folder / "weights.pt").write_bytes(Path("layer.pth").read_bytes())
    for load in (lambda: linear.load(tmp_path / "layer.pth"), lambda: quari.load(folder)):
        with pytest.raises(UsageError):
            load()
    if name == "packed":
        with pytest.raises(ValueError, match="more than its size"):
            tensors_in(folder / "weights.pt")
    assert not Path("it-ran").exists()


def test_a_trained_parameter_and_half_numbers_are_weights(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for weight in (torch.nn.Parameter(torch.eye(4)), torch.eye(4).bfloat16(), torch.eye(4).int()):
        (tmp_path / "layer.pth").write_bytes(saved(weight))
        assert (linear.load(tmp_path / "layer.pth").weight == EYE).all()


# -- config.yml -------------------------------------------------------------------------------------------------

ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
CONFIGS: dict[str, Callable[[str], str]] = {
    "brackets": lambda _: "[" * 100_000,
    "aliases": lambda good: ALIASES + good,
    "an alias of itself": lambda _: "hparams: &h {embedding_dim: *h}",
    "a key twice": lambda good: good.replace("num_steps: 2", "num_steps: 2\n  num_steps: 3"),
    "code": lambda _: "!!python/object/apply:os.mkdir [it-ran]",
    "digits": lambda _: "hparams: " + "9" * 5_000,
    "layers": lambda good: good.replace("num_layers: 2", "num_layers: 1000000000"),
    "width": lambda good: good.replace("hidden_dim: 16", "hidden_dim: 100000000000000000000"),
    "names of two kinds": lambda _: "hparams: {1: 2, x: 3, embedding_dim: 4}",
    "an encoder that is a list": lambda good: good.replace("feature_extractor: null", "feature_extractor: [1]"),
    "long": lambda good: good + "#" * (1 << 22),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_from_others_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = checkpoint(tmp_path / "quari", 4) / "config.yml"
    text = CONFIGS[name](good := place.read_text("utf-8"))
    assert text != good
    place.write_text(text, "utf-8")
    with pytest.raises(UsageError):
        read(place.parent)
    assert not Path("it-ran").exists()


# -- the state of a training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [{}, [], {"step": 3}, {"network": {"x": 1}, "optimizer": {}, "scaler": {}}, Code()])
def test_the_state_of_another_training_is_refused(state: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from eyespot.adapters.quari import Config, Pairs, TrainingData, TrainingSettings, train

    monkeypatch.chdir(tmp_path)
    vectors = np.eye(8, dtype=np.float32)
    data = TrainingData(Pairs(vectors, vectors, np.arange(8)))
    config = Config(8, low_rank_dim=2, hidden_dim=8, num_steps=1, nhead=2, num_layers=1)
    settings = TrainingSettings(epochs=1, batch=4, keep_anyway=True)
    train(data, config, settings, Path("run"))
    torch.save(state, "run/checkpoint.pt")
    with pytest.raises(UsageError, match=r"checkpoint\.pt cannot be read .*; remove it to train from the start"):
        train(data, config, settings, Path("run"))
    assert not Path("it-ran").exists()
