"""Models from a mirror of the hub's protocol: each layout gives the model's own vectors, whole or not at all."""

from __future__ import annotations

import json
import shutil
import string
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_models
from PIL import Image

from eyespot import rooms
from eyespot.encoders import _installing
from eyespot.models import installed, table, web
from eyespot.models.table import Entry
from eyespot.storage.text_files import toml_of, toml_text
from eyespot.types import EyespotError, Space, UsageError
from tests.command import refuses, run_eyespot
from tests.lazy_import import requires
from tests.models import exports
from tests.wording import raises
from tests.worlds.hub_mirror import HubMirror, hub

TEXTS = ["a heron standing in a pool", "no", "x" * 300, "MANY words " * 40]
ODD = [
    *TEXTS,
    "",
    " ",
    "A",
    "é",
    "серая цапля",
    "鷺",
    "🐦",
    "a\nb",
    "two  spaces",
    "Tab\there",
    "it's",
    "50 %",
    "a-b_c",
]
ODD += ["?!", "UPPER", "x " * 40]
NOISE = np.random.default_rng(7)
CLEAN = [" ".join("".join(letter for letter in text if letter not in string.punctuation).split()) for text in ODD]
SHAPES = NOISE.integers(5, 120, (20, 2)).tolist()  # of some the middle lies at half a pixel
NAMES = {"clip": "org/clip", "siglip": "org/siglip", "immich": "org/immich", "rclip": "org/rclip"}
pytestmark = requires("torch", "onnx")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Saved models ("clip", "siglip"), and their exports by layout."""
    base, made = tmp_path_factory.mktemp("models"), {}
    for kind, save in (("clip", tiny_models.hf_clip), ("siglip", tiny_models.hf_siglip)):
        made[f"hf {kind}"] = save(base / f"hf-{kind}")
        made[kind] = exports.transformers_js(base / kind, made[f"hf {kind}"], kind)
    made["immich"] = exports.immich(base / "immich", made["siglip"])
    made["rclip"] = base / "rclip" / "ViT-tiny"
    made["rclip"].mkdir(parents=True)
    for tower, name in (("vision", "visual"), ("text", "textual")):
        shutil.copy(made["clip"] / "onnx" / f"{tower}_model.onnx", made["rclip"] / f"{name}.onnx")
    return made


@pytest.fixture
def mirror(models: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubMirror]:
    """A hub with all exports, asked by this process, whose models lie in a folder of the test."""
    repos = {NAMES[kind]: exports.files_of(models[kind]) for kind in ("clip", "siglip", "immich")}
    repos["org/rclip"] = exports.files_of(models["rclip"].parent)
    for name in ("EYESPOT_MODELS", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with hub(HubMirror(repos)) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


def entry(kind: str, models: Mapping[str, Path]) -> Entry:
    if kind != "rclip":
        return table.entry(NAMES[kind])
    settings = json.loads((models["clip"] / "preprocessor_config.json").read_text())
    image = {
        "size": 32,
        "resize": "shortest",
        "crop": "floor",
        "mean": settings["image_mean"],
        "std": settings["image_std"],
    }
    text = {"length": 32, "pad_token": "<pad>"}
    return Entry(name="org/rclip", repo="org/rclip", folder="ViT-tiny", tokenizer="org/clip", image=image, text=text)


def get(kind: str, models: Mapping[str, Path], variant: str = "fp32", **more: Any) -> installed.Installed:
    wanted = entry(kind, models)
    return _installing.get(wanted, variant, _installing.offer(wanted, variant), **more)


@pytest.mark.parametrize("kind", NAMES)
def test_each_layout_gives_the_vectors_of_its_model(kind: str, models: Mapping[str, Path], mirror: HubMirror) -> None:
    made = get(kind, models)
    ours = rooms.load("encoders", made.encoder)
    theirs = rooms.load(
        "encoders", f"hf:{models['hf clip' if kind in ('clip', 'rclip') else 'hf siglip']}", device="cpu"
    )
    pictures = [Image.fromarray(NOISE.integers(0, 256, (*shape, 3), np.uint8)) for shape in SHAPES]
    seen = [encoder.encode_pixels(np.stack([encoder.read(one) for one in pictures])) for encoder in (ours, theirs)]

    read = CLEAN if kind == "immich" else ODD  # open_clip's "canonicalize"
    assert len(ODD) == len(SHAPES) == 20
    assert (ours.encode_texts(ODD) * theirs.encode_texts(read)).sum(axis=1).min() >= 0.999
    assert (seen[0] * seen[1]).sum(axis=1).min() >= 0.999
    assert made.revision == mirror.commit(made.repo) and not made.damaged()


def test_a_tokenizer_s_mask_changes_no_vector_of_siglip(models: Mapping[str, Path], tmp_path: Path) -> None:
    """SigLIP was trained without one, padded on the right (transformers PR 39378)."""
    spoiled = shutil.copytree(models["hf siglip"], tmp_path / "spoiled")
    file = spoiled / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"padding_side": "left"}))
    encoders = [rooms.load("encoders", f"hf:{folder}", device="cpu") for folder in (models["hf siglip"], spoiled)]
    plain, left = (encoder.encode_texts(TEXTS) for encoder in encoders)

    assert (plain * left).sum(axis=1).min() >= 0.999


def test_a_killed_run_goes_on(models: Mapping[str, Path], mirror: HubMirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """At two fifths; the next run fetches the other three."""
    monkeypatch.setattr(web, "PIECE", 1 << 10)
    wanted = entry("siglip", models)
    offered = _installing.offer(wanted, "fp32")

    def kill(_unit: str, done: int, total: int) -> None:
        if done >= 0.4 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _installing.get(wanted, "fp32", offered, kill)
    assert installed.find("org/siglip") is None
    mirror.sent = 0
    _installing.get(wanted, "fp32", offered)

    assert installed.find("org/siglip") is not None
    assert 0.5 * offered.bytes < mirror.sent <= 0.61 * offered.bytes


def test_one_wrong_bit_is_never_installed(models: Mapping[str, Path], mirror: HubMirror) -> None:
    mirror.flip = True
    with raises(EyespotError):
        get("clip", models)
    assert installed.find("org/clip") is None
    assert not [path for path in installed.home().rglob("*") if path.suffix in (".onnx", ".part")]


def test_the_hub_gets_the_token(models: Mapping[str, Path], mirror: HubMirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    get("clip", models)
    assert all((token is None) == path.startswith("/blobs/") for path, token in mirror.tokens)


def test_weights_beside_the_graph_count(models: Mapping[str, Path], mirror: HubMirror, tmp_path: Path) -> None:
    """In files of any name; other weights are another space."""
    import onnx

    apart = shutil.copytree(models["siglip"], tmp_path / "apart")
    tower = apart / "onnx" / "text_model.onnx"
    graph = onnx.load(str(tower))
    onnx.save_model(graph, str(tower), save_as_external_data=True, location="numbers.bin", size_threshold=0)
    mirror.repos = {**mirror.repos, "org/siglip": exports.files_of(apart)}
    made = get("siglip", models)
    before = rooms.load("encoders", made.encoder).space
    numbers = made.folder / "onnx" / "numbers.bin"
    numbers.write_bytes(numbers.read_bytes()[:-4] + b"\0\0\0\1")

    assert made.damaged() == ["onnx/numbers.bin"]
    assert rooms.load("encoders", made.encoder).space.weights != before.weights
    numbers.unlink()
    with raises(UsageError):
        rooms.load("encoders", made.encoder)


def test_a_model_moves_with_its_name(
    models: Mapping[str, Path], mirror: HubMirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied to a machine without a network it is the same space; a copy with another byte is refused."""
    made = get("clip", models)
    space: Space = rooms.load("encoders", made.encoder).space
    copied = shutil.copytree(made.folder, tmp_path / "stick")
    monkeypatch.setenv("EYESPOT_MODELS", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with raises(UsageError):
        rooms.load("encoders", made.encoder)
    brought = _installing.bring(table.entry("org/clip"), "fp32", copied)

    assert rooms.load("encoders", brought.encoder).space == space
    brought.remove()
    (copied / "tokenizer.json").write_bytes(b" ")
    with raises(EyespotError):
        _installing.bring(table.entry("org/clip"), "fp32", copied)


def test_one_commit_is_fetched_and_named(models: Mapping[str, Path], mirror: HubMirror, tmp_path: Path) -> None:
    """An earlier one too; a file that only the commit before had is gone, so the space is that of a fresh install."""
    newest = get("clip", models)
    spaces = [rooms.load("encoders", newest.encoder).space]
    before = mirror.change("org/clip", LICENSE=b"other terms")
    mirror.change("org/clip", README__md=b"about")
    env = {"EYESPOT_MODELS": str(installed.home())}
    for commit in ("", f"@{before}"):
        ran = run_eyespot("models", "get", f"org/clip{commit}", **env)
        assert ran.returncode == 0, ran.stderr
        spaces.append(rooms.load("encoders", f"model:org/clip{commit}").space)
        assert ("names no commit" in ran.stderr) == (not commit)

    assert [space.revision for space in spaces] == [before, mirror.commit("org/clip"), before]
    assert spaces[0] == spaces[2] and "README.md" not in installed.find("org/clip").files  # type: ignore[union-attr]
    with pytest.raises(UsageError, match=f"at commit {before}; get it: eyespot models get org/clip@0000$"):
        rooms.load("encoders", "org/clip@0000")
    copied = shutil.copytree(installed.place_of("org/clip", "fp32"), tmp_path / "stick")
    with pytest.raises(UsageError, match=f"models get org/clip@{before} --from {copied}"):
        _installing.bring(table.entry("org/clip@0000"), "fp32", copied)
    assert _installing.bring(table.entry(f"org/clip@{before[:7]}"), "fp32", copied).revision == before
    refuses("models", "get", f"org/clip@{'0' * 40}", code=1, **env)
    assert len(set(map(str, map(table.full_names, ("org/clip", "model:org/clip@0abc", "onnx:hub:org/clip"))))) == 1


def test_vectors_are_compared(models: Mapping[str, Path], mirror: HubMirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `scripts/pin_models.py` writes them; another mean of the pixels shows."""
    made = get("clip", models)
    golden = _installing.probe(_installing.encoder_of(made))[:, : _installing.GOLDEN].round(5).tolist()
    assert not _installing.try_out(made)
    pinned = entry("clip", models).model_copy(update={"revision": made.revision, "golden": {"fp32": golden}})
    monkeypatch.setattr(_installing, "entries", lambda: {made.name: pinned})

    assert _installing.try_out(made) and len(golden) == 6
    values = toml_of(made.folder / "eyespot.toml")
    values["image"]["mean"] = [0.9, 0.1, 0.9]
    (made.folder / "eyespot.toml").write_text(toml_text(values))
    with raises(EyespotError):
        _installing.try_out(made)


OTHER = {"name": "org/other"}


@pytest.mark.parametrize("lie", [{"variant": "../../out"}, {"files": {"../secret": "0"}}, {"files": ["x"]}, OTHER])
def test_a_record_from_elsewhere_reaches_nothing_outside(
    lie: dict[str, Any], models: Mapping[str, Path], mirror: HubMirror, tmp_path: Path
) -> None:
    made = get("clip", models)
    copied = shutil.copytree(made.folder, tmp_path / "stick")
    (tmp_path / "secret").write_text("mine")
    (copied / installed.RECORD).write_text(toml_text({**asdict(made), **lie}))
    made.remove()
    before = sorted(tmp_path.rglob("*"))
    with raises(UsageError if lie == OTHER else EyespotError):
        _installing.bring(table.entry("org/clip"), "fp32", copied)

    assert sorted(tmp_path.rglob("*")) == before
    shutil.copytree(copied, made.folder)
    if lie != OTHER:
        with raises(EyespotError):
            installed.find("org/clip")
    else:
        assert installed.find("org/clip") is None


def test_an_export_comes_with_its_weights(models: Mapping[str, Path], mirror: HubMirror, tmp_path: Path) -> None:
    import onnx

    folder = shutil.copytree(models["clip"], tmp_path / "export")
    tower = folder / "onnx" / "text_model.onnx"
    shutil.copy(tower, tower.with_name("text_model_fp16.onnx"))
    onnx.save(onnx.load(str(tower)), str(tower), save_as_external_data=True, location="numbers.bin", size_threshold=0)
    made = _installing.bring(table.entry("org/clip"), "fp32", folder)

    assert "onnx/numbers.bin" in made.files and "onnx/text_model_fp16.onnx" not in made.files
    with raises(UsageError):
        _installing.bring(table.entry("org/clip"), "q4", folder)


def test_two_runs_at_once_fetch_a_model_once(models: Mapping[str, Path], mirror: HubMirror) -> None:
    whole = _installing.offer(entry("clip", models), "fp32").bytes
    mirror.sent = 0
    line = [sys.executable, "-m", "eyespot.cli", "models", "get", "org/clip"]
    ran = [subprocess.Popen(line, stdout=subprocess.DEVNULL) for _ in range(2)]

    assert [one.wait() for one in ran] == [0, 0] and mirror.sent < 1.6 * whole
    assert not get("clip", models).damaged() and not list(installed.home().rglob("*.part"))


def test_a_full_disk_is_seen(models: Mapping[str, Path], mirror: HubMirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000))
    with raises(EyespotError):
        get("clip", models)
    assert not [path for path in installed.home().rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_a_pinned_digest_that_the_hub_lacks_fetches_nothing(models: Mapping[str, Path], mirror: HubMirror) -> None:
    wanted = entry("clip", models).model_copy(update={"sha256": {"onnx/text_model.onnx": "0" * 64}})
    with raises(EyespotError):
        _installing.offer(wanted, "fp32")
    with raises(EyespotError):
        _installing.bring(wanted, "fp32", models["clip"])
    assert installed.find("org/clip") is None


def test_what_a_repository_lacks_is_said_with_what_it_has(models: Mapping[str, Path], mirror: HubMirror) -> None:
    with raises(UsageError):
        _installing.offer(entry("clip", models), "int8")
    mirror.repos = {**mirror.repos, "org/clip": {"model.onnx": b"one", "README.md": b"about"}}
    with raises(UsageError):
        _installing.offer(entry("clip", models), "fp32")


def test_the_verb_gets_lists_checks_and_removes(models: Mapping[str, Path], mirror: HubMirror, tmp_path: Path) -> None:
    tiny_models.pictures()[0].save(tmp_path / "photo.png")
    env = {"EYESPOT_MODELS": str(installed.home())}
    lines: dict[str, Any] = {}
    for words in (
        ("models", "get", "org/clip", "--from", models["clip"], "--accept-licence", "--json"),
        ("models", "get", "org/siglip", "--json"),
        ("models", "check", "org/siglip", "--json"),
        ("models", "list", "--json"),
        ("index", tmp_path / "photo.png", "-e", "model:org/siglip", "-g", tmp_path / "g", "--json"),
        ("search", "a heron", "-e", "auto", "-g", tmp_path / "g", "--json"),
    ):
        ran = run_eyespot(*words, **env)
        assert ran.returncode == 0, ran.stderr
        lines[words[0] + words[1][:5] if words[0] == "models" else words[0]] = json.loads(ran.stdout)

    assert lines["modelsget"]["encoder"] == "model:org/siglip" and lines["modelscheck"]["damaged"] == []
    assert ("org/siglip", ["fp32"]) in [(row["name"], row["here"]) for row in lines["modelslist"]]
    assert len(lines["search"]["items"]) == 1
    refuses("models", "remove", "org/siglip", EYESPOT_GALLERY=str(tmp_path / "g"), **env)
    where = run_eyespot("models", "where", "org/siglip", "--variant", "fp32", **env)
    assert Path(where.stdout.strip()) == installed.place_of("org/siglip", "fp32")
    gone = run_eyespot(
        "models", "remove", "org/siglip", "--force", "--json", EYESPOT_GALLERY=str(tmp_path / "g"), **env
    )
    assert json.loads(gone.stdout)["freed"] > 0 and installed.find("org/siglip") is None


@pytest.mark.parametrize(
    "words", [("get", "nothing"), ("get", "nllb-siglip-large"), ("get", "clip-b32", "--variant", "x")]
)
def test_what_cannot_be_had_is_one_sentence(words: tuple[str, ...], mirror: HubMirror) -> None:
    refuses("models", *words)


def test_a_name_of_the_table_that_is_not_here_says_how_to_get_it(mirror: HubMirror) -> None:
    with raises(UsageError):
        rooms.load("encoders", "siglip2-base")
    assert table.full_names("siglip2-base") == ["model:siglip2-base"] and table.full_names("starter") == []


def test_the_verb_alone_lists_what_list_lists() -> None:
    assert run_eyespot("models").stdout == run_eyespot("models", "list").stdout != ""


def test_the_list_has_published_figures_with_their_sources_and_what_is_left_out() -> None:
    lines = run_eyespot("models", "list", "--all").stdout.splitlines()
    (found,) = (line.split() for line in lines if line.split()[0] == "clip-b32")
    assert " ".join(found) == "clip-b32 0.6 GB 1.1 GB 512 224 63.32 O 30.44 O 59.37 I MIT"
    assert "    inquire_map50 7.5 Q, not pinned yet: digests, vectors" in lines and any(
        line.startswith("left out: MetaCLIP 2: ") for line in lines
    )
    rows = json.loads(run_eyespot("models", "list", "--all", "--json").stdout)
    letters = {letter for row in rows for _, letter in row.get("figures", {}).values()}
    assert letters == toml_of(table.TABLE)["sources"].keys()
    assert {row["name"] for row in rows if "left_out" in row} == toml_of(table.TABLE)["left_out"].keys()
