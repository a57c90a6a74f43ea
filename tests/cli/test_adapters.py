"""`eyespot adapters list`, `eyespot adapt`, and the one sentence about an adapter that was not shown to help."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eyespot.adapters import linear, quari
from eyespot.adapters.quari.files import PUBLISHED, model_of
from eyespot.gallery.view import Gallery
from eyespot.search.adapted import adapter_named, refuse_other_space
from eyespot.types import Space, UsageError
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.wording import raises
from tests.worlds import make_gallery
from tests.worlds.adapters import HARMFUL, checkpoint

WARNED = "found less than the vectors as they are when it was trained (RR 0.517 against 0.840"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_gallery(tmp_path_factory.mktemp("warned"), 6)


@pytest.fixture(scope="module")
def worse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("quari") / "worse", 512, "starter", HARMFUL)


def test_the_four_published_checkpoints_are_listed_with_their_encoders() -> None:
    lines = done("adapters", "list").stdout.splitlines()
    entries = run_json("adapters", "list")

    assert len(lines) == len(entries) == 4 and all("hub:EricX003/QuARI-" in line for line in lines)
    assert "open_clip:ViT-B-16/openai" in lines[0] and "hf:google/siglip2-large-patch16-512" in entries[3]["encoders"]


def test_a_published_checkpoint_fits_the_encoders_that_are_listed() -> None:
    """They name their backbone by its hub id."""
    for encoders in PUBLISHED.values():
        models = {model_of(encoder) for encoder in encoders}
        assert len(models) == 1 and models.pop().count("/") == 1


class Released:
    """A checkpoint of the authors, as far as its space goes."""

    space, dim, caution = "openai/clip-vit-base-patch16", 512, None

    def adapt(self, queries: object) -> list[object]:
        raise NotImplementedError


@pytest.mark.parametrize(
    "encoder", ["hf:openai/clip-vit-base-patch16", "open_clip:ViT-B-16/openai", "open_clip:ViT-B-16-quickgelu/openai"]
)
def test_the_same_weights_in_another_library_are_the_same_space(encoder: str) -> None:
    refuse_other_space(Released(), Space(encoder, "", "", "", 512))


@pytest.mark.parametrize(
    "space",
    [
        Space("open_clip:ViT-B-16/laion2b_s34b_b88k", "", "", "", 512),
        Space("open_clip:ViT-L-14/openai", "", "", "", 512),
        Space("hf:openai/clip-vit-base-patch16", "", "", "", 7),
    ],
    ids=str,
)
def test_another_space_is_refused_with_the_way_out(space: Space) -> None:
    with raises(UsageError):
        refuse_other_space(Released(), space)


def test_an_encoder_s_folder_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tuned" / "model").mkdir(parents=True)
    made_here = quari.load(checkpoint(tmp_path / "made", 8, "hf:tuned/model"))
    space = Space(f"hf:{(tmp_path / 'tuned' / 'model').resolve()}", "", "", "", 8)

    monkeypatch.chdir(tmp_path)
    refuse_other_space(made_here, space)
    monkeypatch.chdir(tmp_path / "tuned")
    with raises(UsageError):
        refuse_other_space(made_here, space)


def test_a_search_warns_of_a_checkpoint_that_was_worse(gallery: Path, worse: Path, tmp_path: Path) -> None:
    good = checkpoint(tmp_path / "unknown", 512, "starter")

    warned = done("search", "red stripes", "-g", gallery, "--adapt", worse, "--paths")
    quiet = done("search", "red stripes", "-g", gallery, "--adapt", good, "--paths")

    assert warned.stderr.count(WARNED) == 1 and len(warned.stdout.splitlines()) == 6
    assert "vectors as they are" not in quiet.stderr


def test_an_evaluation_warns_once_and_names_the_training(gallery: Path, worse: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("id,text\nq,red stripes\n")
    (tmp_path / "qrels.txt").write_text("q 0 1.jpg 1\n")
    line = ("eval", "own", "--data", tmp_path, "-g", gallery, "--adapt")

    plain, through = done(*line, worse), done(*line, worse, "--neighbours", 1)
    shown = done(*line, checkpoint(tmp_path / "birds" / "model", 512, "starter")).stdout

    assert plain.stderr.count(WARNED) == through.stderr.count(WARNED) == 1
    assert "starter + birds" in shown


def test_doctor_shows_the_card_and_warns(gallery: Path, worse: Path, tmp_path: Path) -> None:
    report = run_json("doctor", "-g", gallery, "--adapt", worse)
    shown = done("doctor", "-g", gallery, "--adapt", worse).stdout
    nameless = done("doctor", "--adapt", checkpoint(tmp_path / "made", 8)).stdout

    assert report["adapters"][0]["card"]["pairs"] == 475 and any(WARNED in one for one in report["warnings"])
    assert "for starter, RR 0.517 against 0.840" in shown and f"warning: {worse}: the adapter found less" in shown
    assert "for vectors of 8 components, of no encoder that it names" in nameless


@pytest.mark.parametrize("model", [f"hf:{'x' * 300}", "hf:~nobody-lives-here/model", "hf:not/there", "hf:\0"])
def test_a_name_that_can_be_no_folder_is_an_encoder_that_is_not_there(gallery: Path, model: str) -> None:
    with pytest.raises(UsageError, match="no vectors of"):
        Gallery(gallery).stem(model)


FLOATS = np.ones((4, 512), np.float32)


def arrays(folder: Path, queries: object, gallery: object) -> tuple[object, ...]:
    """The options of `eyespot adapt` with these arrays; bytes are written as they are, and nothing is no file."""
    for name, content in {"queries.npy": queries, "gallery.npy": gallery}.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        elif content is not None:
            np.save(folder / name, np.asarray(content))
    given = ("--queries", folder / "queries.npy", "--gallery", folder / "gallery.npy")
    return (*given, "-k", 5, "--out", folder / "found.npz")


@pytest.mark.parametrize("kind", ["float64", "int8", "float16"])
def test_arrays_of_other_numbers_find_what_float32_finds(kind: str, worse: Path, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 512))
    other = np.round(vectors * 30).astype(kind) if kind == "int8" else vectors.astype(kind)

    ran = done("adapt", worse, *arrays(tmp_path, other[:3], other))
    found = dict(np.load(tmp_path / "found.npz"))
    done("adapt", worse, *arrays(tmp_path, other[:3].astype(np.float32), other.astype(np.float32)))

    assert WARNED in ran.stderr and np.array_equal(found["ids"], np.load(tmp_path / "found.npz")["ids"])


UNSEARCHABLE: dict[str, tuple[object, object]] = {
    "a zero": (np.zeros((1, 512), np.float32), FLOATS),
    "NaN": (np.full((1, 512), np.nan, np.float32), FLOATS),
    "infinity": (FLOATS, np.full((4, 512), np.inf, np.float32)),
    "bytes as numbers": (np.ones((1, 512), np.uint8), FLOATS),
    "long integers": (FLOATS, np.ones((4, 512), np.int64)),
    "complex": (FLOATS, np.ones((4, 512), np.complex64)),
    "texts": (FLOATS, np.full((4, 512), "a")),
    "one dimension": (np.ones(512, np.float32), FLOATS),
    "no rows": (FLOATS, np.ones((0, 512), np.float32)),
    "two lengths": (np.ones((1, 5), np.float32), FLOATS),
    "another length": (np.ones((1, 5), np.float32), np.ones((4, 5), np.float32)),
    "no file": (None, FLOATS),
    "an empty file": (b"", FLOATS),
    "a text file": (b"hello", FLOATS),
    "a torn header": (b"\x93NUMPY\x01\x00v\x00{", FLOATS),
}


@pytest.mark.parametrize("kind", UNSEARCHABLE)
def test_arrays_that_cannot_be_searched_are_a_sentence(kind: str, worse: Path, tmp_path: Path) -> None:
    refuses("adapt", worse, *arrays(tmp_path, *UNSEARCHABLE[kind]))

    assert not (tmp_path / "found.npz").exists()


def test_what_is_found_replaces_no_vectors(worse: Path, tmp_path: Path) -> None:
    words = arrays(tmp_path, FLOATS, FLOATS)[:-1]
    before = (tmp_path / "gallery.npy").read_bytes()
    refuses("adapt", worse, *words, tmp_path / "gallery.npy")
    assert (tmp_path / "gallery.npy").read_bytes() == before


@pytest.mark.parametrize("value", [0, np.nan])
def test_a_static_adapter_refuses_queries_without_a_direction(value: float, tmp_path: Path) -> None:
    linear.save(tmp_path / "static", linear.Linear(np.eye(8, dtype=np.float32), np.ones(8, np.float32)))
    queries = np.ones((2, 8), np.float32)
    queries[1] = value

    refuses("adapt", f"linear:{tmp_path / 'static'}", *arrays(tmp_path, queries, np.eye(8, dtype=np.float32)))


@pytest.mark.parametrize("made", ["model/config.yml", "candidate/config.yml", "linear.safetensors", "other.txt"])
def test_a_folder_that_is_no_checkpoint_says_what_may_be_meant(made: str, tmp_path: Path) -> None:
    (tmp_path / made).parent.mkdir(exist_ok=True)
    (tmp_path / made).touch()

    with raises(UsageError):
        adapter_named(tmp_path)


def test_a_file_of_a_checkpoint_leads_to_its_folder(worse: Path) -> None:
    with raises(UsageError):
        adapter_named(worse / "config.yml")
