"""`eyespot adapters list`, `eyespot adapt`, and the one sentence about an adapter that was not shown to help."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from eyespot.adapters import linear, quari
from eyespot.adapters.quari.released import RELEASED, model_of
from eyespot.cli import app
from eyespot.gallery.view import Gallery
from eyespot.search.adapted import adapter_named, refuse_other_space
from eyespot.types import Space, UsageError
from tests.worlds import draw
from tests.worlds.adapters import HARMFUL, checkpoint

WARNED = "found less than the vectors as they are when it was trained (RR 0.517 against 0.840"


def eyespot(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def done(*words: object) -> Result:
    ran = eyespot(*words)
    assert ran.exit_code == 0, ran.output or ran.exception
    return ran


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warned")
    for seed in range(6):
        draw(folder / "photos" / f"{seed}.jpg", seed)
    done("index", folder / "photos", "-g", folder / "gallery")
    return folder / "gallery"


@pytest.fixture(scope="module")
def worse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("quari") / "worse", 512, "starter", HARMFUL)


# -- what is published ----------------------------------------------------------------------------------------


def test_the_four_published_checkpoints_are_listed_with_their_encoders() -> None:
    lines = done("adapters", "list").stdout.splitlines()
    entries = json.loads(done("adapters", "list", "--json").stdout)

    assert len(lines) == len(entries) == 4 and all("hub:EricX003/QuARI-" in line for line in lines)
    assert "open_clip:ViT-B-16/openai" in lines[0] and "hf:google/siglip2-large-patch16-512" in entries[3]["encoders"]


@pytest.mark.parametrize("released", RELEASED, ids=lambda one: one.name)
def test_a_published_checkpoint_fits_the_encoders_that_are_listed(released: object) -> None:
    """They name their backbone by its hub id."""
    models = {model_of(encoder) for encoder in released.encoders}  # type: ignore[attr-defined]

    assert len(models) == 1 and models.pop().count("/") == 1


class Released:
    """A checkpoint of the authors, as far as its space goes."""

    space, dim, caution = "openai/clip-vit-base-patch16", 512, None

    def adapt(self, queries: object) -> list[object]:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("encoder", "fits"),
    [
        ("hf:openai/clip-vit-base-patch16", True),
        ("open_clip:ViT-B-16/openai", True),
        ("open_clip:ViT-B-16-quickgelu/openai", True),
        ("open_clip:ViT-B-16/laion2b_s34b_b88k", False),
        ("open_clip:ViT-L-14/openai", False),
    ],
)
def test_the_same_weights_in_another_library_are_the_same_space(encoder: str, fits: bool) -> None:
    space = Space(encoder, "", "", "", 512)
    if fits:
        refuse_other_space(Released(), space)
        return
    with pytest.raises(UsageError, match="was trained on openai/clip-vit-base-patch16"):
        refuse_other_space(Released(), space)


def test_an_encoder_in_a_folder_is_the_same_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tuned" / "model").mkdir(parents=True)
    made_here = quari.load(checkpoint(tmp_path / "made", 8, "hf:tuned/model"))
    space = Space(f"hf:{(tmp_path / 'tuned' / 'model').resolve()}", "", "", "", 8)

    monkeypatch.chdir(tmp_path)
    refuse_other_space(made_here, space)
    monkeypatch.chdir(tmp_path / "tuned")
    with pytest.raises(UsageError, match="was trained on hf:tuned/model"):
        refuse_other_space(made_here, space)


@pytest.mark.parametrize("model", [f"hf:{'x' * 300}", "hf:~nobody-lives-here/model", "hf:not/there", "hf:\0"])
def test_a_name_that_can_be_no_folder_is_an_encoder_that_is_not_there(gallery: Path, model: str) -> None:
    with pytest.raises(UsageError, match="no vectors of"):
        Gallery(gallery).stem(model)


def test_vectors_of_another_length_are_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"takes 512 components, .* have 7; search the space it was made for with -e"):
        refuse_other_space(Released(), Space("hf:openai/clip-vit-base-patch16", "", "", "", 7))


# -- the warning ----------------------------------------------------------------------------------------------


def test_a_search_warns_of_a_checkpoint_that_was_worse(gallery: Path, worse: Path, tmp_path: Path) -> None:
    good = checkpoint(tmp_path / "unknown", 512, "starter")

    warned = done("search", "red stripes", "-g", gallery, "--adapt", worse, "--paths")
    quiet = done("search", "red stripes", "-g", gallery, "--adapt", good, "--paths")

    assert warned.stderr.count(WARNED) == 1 and len(warned.stdout.splitlines()) == 6
    assert "vectors as they are" not in quiet.stderr


def test_an_evaluation_warns_once(gallery: Path, worse: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("id,text\nq,red stripes\n")
    (tmp_path / "qrels.txt").write_text("q 0 1.jpg 1\n")
    line = ("eval", "own", "--data", tmp_path, "-g", gallery, "--adapt", worse)

    plain, through = done(*line), done(*line, "--neighbours", 1)

    assert plain.stderr.count(WARNED) == through.stderr.count(WARNED) == 1


def test_an_evaluation_names_a_checkpoint_by_its_training(gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("id,text\nq,red stripes\n")
    (tmp_path / "qrels.txt").write_text("q 0 1.jpg 1\n")
    made = checkpoint(tmp_path / "birds" / "model", 512, "starter")

    shown = done("eval", "own", "--data", tmp_path, "-g", gallery, "--adapt", made).stdout

    assert "starter + birds" in shown


def test_doctor_shows_the_card_and_warns(gallery: Path, worse: Path) -> None:
    report = json.loads(done("doctor", "-g", gallery, "--adapt", worse, "--json").stdout)
    shown = done("doctor", "-g", gallery, "--adapt", worse).stdout

    assert report["adapters"][0]["card"]["pairs"] == 475 and any(WARNED in one for one in report["warnings"])
    assert "for starter, RR 0.517 against 0.840" in shown and f"warning: {worse}: the adapter found less" in shown


@pytest.mark.long
def test_serve_warns_at_its_start(gallery: Path, worse: Path, child_env: dict[str, str]) -> None:
    pytest.importorskip("fastapi")
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", gallery, "--port", 0, "--adapt", f"worse={worse}"]
    with subprocess.Popen([*map(str, line)], env=child_env, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        lines = [server.stderr.readline() for _ in range(2)]
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)

    assert any("--adapt worse: the adapter found less" in line for line in lines)


# -- arrays ---------------------------------------------------------------------------------------------------


def adapted(folder: Path, worse: Path, queries: object, gallery: object) -> Result:
    np.save(folder / "queries.npy", np.asarray(queries))
    np.save(folder / "gallery.npy", np.asarray(gallery))
    arrays = ("--queries", folder / "queries.npy", "--gallery", folder / "gallery.npy")
    return eyespot("adapt", worse, *arrays, "-k", 5, "--out", folder / "found.npz")


@pytest.mark.parametrize("kind", ["float64", "int8", "float16"])
def test_arrays_of_other_numbers_find_what_float32_finds(kind: str, worse: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 512))
    other = np.round(vectors * 30).astype(kind) if kind == "int8" else vectors.astype(kind)

    ran = adapted(tmp_path, worse, other[:3], other)
    found = dict(np.load(tmp_path / "found.npz"))
    as_float32 = adapted(tmp_path, worse, other[:3].astype(np.float32), other.astype(np.float32))

    assert ran.exit_code == as_float32.exit_code == 0 and WARNED in ran.stderr
    assert np.array_equal(found["ids"], np.load(tmp_path / "found.npz")["ids"])


@pytest.mark.parametrize(
    ("queries", "gallery", "message"),
    [
        (np.zeros((1, 512), np.float32), np.ones((4, 512), np.float32), "query 0 (counted from 0) is zero"),
        (np.full((1, 512), np.nan, np.float32), np.ones((4, 512), np.float32), "holds NaN or infinity"),
        (np.ones((1, 512), np.uint8), np.ones((4, 512), np.float32), "astype('float32')"),
        (np.ones((1, 512), np.float32), np.ones((4, 512), np.int64), "astype('float32')"),
        (np.ones((1, 512), np.float32), np.ones((4, 512), np.complex64), "astype('float32')"),
        (np.ones((1, 512), np.float32), np.full((4, 512), "a"), "astype('float32')"),
        (np.ones(512, np.float32), np.ones((4, 512), np.float32), "save it as (rows, dim)"),
        (np.ones((1, 512), np.float32), np.ones((0, 512), np.float32), "save it as (rows, dim)"),
        (np.ones((1, 5), np.float32), np.ones((4, 512), np.float32), "they must be alike"),
        (np.ones((1, 5), np.float32), np.ones((4, 5), np.float32), "takes vectors of 512 components"),
        (np.ones((1, 512), np.float32), np.full((4, 512), np.inf, np.float32), "row 0 (counted from 0) of "),
    ],
)
def test_arrays_that_cannot_be_searched_are_a_sentence(
    queries: object, gallery: object, message: str, worse: Path, tmp_path: Path
) -> None:
    ran = adapted(tmp_path, worse, queries, gallery)

    assert isinstance(ran.exception, UsageError) and message in str(ran.exception)
    assert not (tmp_path / "found.npz").exists()


@pytest.mark.parametrize(("value", "message"), [(0, "query 1 (counted from 0) is zero"), (np.nan, "query 1 (")])
def test_a_static_adapter_refuses_queries_without_a_direction(value: float, message: str, tmp_path: Path) -> None:
    static = linear.Linear(np.eye(8, dtype=np.float32), np.ones(8, np.float32))
    linear.save(tmp_path / "static", static)
    queries = np.ones((2, 8), np.float32)
    queries[1] = value

    ran = adapted(tmp_path, Path(f"linear:{tmp_path / 'static'}"), queries, np.eye(8, dtype=np.float32))

    assert isinstance(ran.exception, UsageError) and message in str(ran.exception)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("model/config.yml", "give the checkpoint of this training, {place}/model"),
        ("candidate/config.yml", "this training has named no model"),
        ("linear.safetensors", "give linear:{place}, which eyespot train linear made"),
        ("other.txt", "or linear:FILE"),
    ],
)
def test_a_folder_that_is_no_checkpoint_says_what_may_be_meant(made: str, message: str, tmp_path: Path) -> None:
    (tmp_path / made).parent.mkdir(exist_ok=True)
    (tmp_path / made).touch()

    with pytest.raises(UsageError) as refused:
        adapter_named(tmp_path)

    assert message.format(place=tmp_path) in str(refused.value)


def test_a_file_of_a_checkpoint_leads_to_its_folder(worse: Path) -> None:
    with pytest.raises(UsageError, match=f"give a folder, such as {worse}, or linear:"):
        adapter_named(worse / "config.yml")


def test_doctor_says_of_an_adapter_without_an_encoder_what_it_takes(tmp_path: Path) -> None:
    shown = done("doctor", "--adapt", checkpoint(tmp_path / "made", 8)).stdout

    assert "for vectors of 8 components, of no encoder that it names, no validation known" in shown


@pytest.mark.parametrize("content", [None, b"", b"hello", b"\x93NUMPY\x01\x00v\x00{"])
def test_files_that_are_no_arrays_end_with_2_as_wrong_arrays_do(
    content: bytes | None, worse: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "gallery.npy", np.ones((4, 512), np.float32))
    if content is not None:
        (tmp_path / "queries.npy").write_bytes(content)
    arrays = ("--queries", tmp_path / "queries.npy", "--gallery", tmp_path / "gallery.npy")

    ran = eyespot("adapt", worse, *arrays, "-k", 5, "--out", tmp_path / "found.npz")

    assert isinstance(ran.exception, UsageError) and ran.exception.exit_code == 2
    assert "numpy.save" in str(ran.exception) and "queries.npy" in str(ran.exception)
