"""Every encoder keeps the promises of `eyespot.types.Encoder`; a new file in the room is tested by existing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from eyespot import rooms
from eyespot.types import EyespotError
from tests.models import exports
from tests.wording import check_wording
from tests.worlds import embedding_server
from tests.worlds.servers import Quiet, listening

ONNX_SETTINGS = 'dim = 16\nlicence = "MIT"\nimage.size = 32\ntext = {length = 32, mask = "attention_mask"}\n'
TEXTS = ["a heron", "two people by a pool, at night", ""]


def starter(folder: Path) -> Any:
    return rooms.load("encoders", "starter")


def hf(folder: Path) -> Any:
    return rooms.load("encoders", f"hf:{tiny_models.hf_siglip(folder)}", device="cpu")


def open_clip(folder: Path) -> Any:
    weights = tiny_models.tiny_clip_weights(folder)
    return rooms.load("encoders", f"open_clip:tiny-clip/{weights}", device="cpu")


def wildclip(folder: Path) -> Any:
    weights = tiny_models.tiny_clip_weights(folder)
    return rooms.load("encoders", f"wildclip:{weights}", device="cpu", architecture="tiny-clip")


def mllm(folder: Path) -> Any:
    from tests.encoders import tiny_multimodal

    return rooms.load("encoders", f"mllm:{tiny_multimodal.ume_r1(folder)}", device="cpu", thoughts=4)


@contextmanager
def served(folder: Path) -> Iterator[Any]:
    with embedding_server.serving() as server:
        yield rooms.load("encoders", "served:tiny", url=server.url)


def onnx(folder: Path) -> Any:
    tiny_models.exported_clip(tiny_models.hf_clip(folder / "hf"), folder)
    (folder / "eyespot.toml").write_text(ONNX_SETTINGS)
    return rooms.load("encoders", f"onnx:{folder}")


@contextmanager
def model(folder: Path) -> Iterator[Any]:
    from eyespot.encoders import bring
    from eyespot.models.table import entry

    source = exports.transformers_js(folder / "export", tiny_models.hf_clip(folder / "hf"), "clip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EYESPOT_MODELS", str(folder / "models"))
        yield rooms.load("encoders", bring(entry("org/tiny"), "fp32", source).encoder)


CASES: dict[str, Callable[[Path], Any]] = {
    made.__name__: made for made in (starter, hf, open_clip, wildclip, mllm, served, onnx, model)
}


@pytest.fixture(scope="module", params=rooms.names("encoders"))
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if request.param not in CASES:
        pytest.fail(f"add a tiny case for {request.param} to CASES in {Path(__file__).name}")
    if request.param not in ("starter", "served"):
        pytest.importorskip("torch")
    made = CASES[request.param](tmp_path_factory.mktemp(request.param))
    with made if isinstance(made, AbstractContextManager) else nullcontext(made) as found:
        yield found


@pytest.fixture
def pixels(encoder: Any) -> Any:
    return np.stack([encoder.read(picture) for picture in tiny_models.pictures()])


def test_it_says_what_it_is(encoder: Any) -> None:
    assert encoder.space.encoder.partition(":")[0] in rooms.names("encoders")
    assert len(encoder.space.digest) == 16
    assert encoder.space.weights and encoder.space.preprocessing and encoder.licence
    assert encoder.batch >= 1
    assert encoder.min_side is None or encoder.min_side >= 1


def test_vectors_are_unit_rows_of_its_space(encoder: Any, pixels: Any) -> None:
    """Float32, finite, (n, dim); of nothing no rows."""
    for rows in (encoder.encode_pixels(pixels), encoder.encode_texts(TEXTS)):
        assert rows.dtype == np.float32
        assert rows.shape == (3, encoder.space.dim)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert encoder.encode_texts([]).shape == encoder.encode_pixels(pixels[:0]).shape == (0, encoder.space.dim)


def test_the_same_batch_gives_the_same_bits(encoder: Any, pixels: Any) -> None:
    assert np.array_equal(encoder.encode_pixels(pixels), encoder.encode_pixels(pixels))
    assert np.array_equal(encoder.encode_texts(TEXTS), encoder.encode_texts(TEXTS))


def test_a_batch_gives_what_each_gives_alone(encoder: Any, pixels: Any) -> None:
    alone = np.concatenate([encoder.encode_pixels(one[None]) for one in pixels])
    words_alone = np.concatenate([encoder.encode_texts([text]) for text in TEXTS])

    assert np.abs(encoder.encode_pixels(pixels) - alone).max() < 1e-5
    assert np.abs(encoder.encode_texts(TEXTS) - words_alone).max() < 1e-5


@pytest.mark.parametrize("text", TEXTS)
def test_the_weakest_match_is_a_cosine_or_none(encoder: Any, text: str) -> None:
    weakest = encoder.weakest_match(text)

    assert weakest is None or -1 < weakest < 1
    assert encoder.weakest_match(text) == weakest


def test_a_longer_text_has_more_tokens_up_to_a_limit(encoder: Any) -> None:
    short, longer, *endless = (encoder.tokens_in("a heron " * count) for count in (1, 2, 2000, 3000))

    assert short is longer is None or (0 < short < longer and endless[0] == endless[1])


def test_a_caveat_is_one_sentence_or_none(encoder: Any) -> None:
    caveat = encoder.caveat("ворона на снегу")

    assert encoder.caveat("a crow in the snow") is None
    assert caveat is None or (caveat.strip() == caveat and "\n" not in caveat)


# -- words that it cannot read ------------------------------------------------------------------------------------


def with_a_word_beyond(folder: Path) -> None:
    """Give the tokenizer a word that the text half has no row for."""
    for place in {file.resolve() for file in folder.rglob("tokenizer.json")}:
        settings = json.loads(place.read_text("utf-8"))
        settings["model"]["vocab"]["zebra"] = 4_000_000_000
        place.write_text(json.dumps(settings), "utf-8")


def with_fewer_words(folder: Path) -> Path:
    """The weights of short-clip, which has no row for the last word of open_clip's own tokenizer."""
    import open_clip as library

    config = tiny_models.clip_config()
    config["text_cfg"]["vocab_size"] -= 1
    (folder / "short-clip.json").write_text(json.dumps(config))
    library.add_model_config(folder)
    return tiny_models.open_clip_weights(folder / "short.pt", "short-clip")


@contextmanager
def unreadable(member: str, folder: Path) -> Iterator[Callable[[], Any]]:
    """What loads a member of the room whose words cannot be read."""
    if member == "starter":
        from eyespot.encoders.starter import DATA, Starter

        shutil.copytree(DATA, folder / "data", ignore=shutil.ignore_patterns("text.onnx"))
        yield lambda: Starter(folder / "data")
    elif member == "served":
        with embedding_server.serving(then=embedding_server.refusing("words")) as server:
            yield lambda: rooms.load("encoders", "served:tiny", url=server.url)
    elif member in ("open_clip", "wildclip"):
        name = "open_clip:short-clip/" if member == "open_clip" else "wildclip:"
        options = {"architecture": "short-clip"} if member == "wildclip" else {}
        yield lambda: rooms.load("encoders", f"{name}{with_fewer_words(folder)}", device="cpu", **options)
    else:
        made = CASES[member](folder)
        with made if isinstance(made, AbstractContextManager) else nullcontext(made) as found:
            with_a_word_beyond(folder)
            options = {} if member in ("onnx", "model") else {"device": "cpu"}
            yield lambda: rooms.load("encoders", found.space.encoder, **options)


@pytest.mark.parametrize("member", rooms.names("encoders"))
def test_words_that_it_cannot_read_are_noticed_before_a_photo_is_embedded(member: str, tmp_path: Path) -> None:
    if member not in ("starter", "served"):
        pytest.importorskip("torch")
    with unreadable(member, tmp_path) as load:
        encoder = load()
        with pytest.raises((EyespotError, OSError)):
            encoder.check_texts()


def test_words_that_it_reads_pass(encoder: Any) -> None:
    encoder.check_texts()


# -- the encoders of the model hub --------------------------------------------------------------------------------


LOAD = """
import json, sys
from eyespot import rooms
from eyespot.types import EyespotError
for spec in sys.argv[1:]:
    try:
        rooms.load("encoders", spec)
    except EyespotError as error:
        print(json.dumps(str(error)))
"""
SPECS = (
    "hf:eyespot/absent",
    "hf:eyespot/absent@v2",
    "open_clip:hf-hub:eyespot/absent",
    "open_clip:ViT-B-16-SigLIP2/webli",
    "open_clip:RN50/yfcc15m",
)
CODES = ("RepoNotFound", "RevisionNotFound", "GatedRepo")


def child(code: str, env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True, check=True)


def sentences(specs: Sequence[str], env: dict[str, str]) -> list[str]:
    """What refuses each of these encoders in a process of its own, which says nothing else."""
    done = child(LOAD, env, *specs)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_importing_a_model_imports_none_of_its_libraries(child_env: dict[str, str]) -> None:
    """They cost seconds, so they wait for `load`; `judges list` imports every judge."""
    heavy = {"torch", "torchvision", "transformers", "open_clip", "sentence_transformers", "huggingface_hub"}
    heavy |= {"onnxruntime", "tokenizers", "PIL.Image"}
    modules = [f"encoders.{name}" for name in ("hf", "open_clip", "wildclip", "onnx")]
    modules += [f"judges.{name}" for name in ("transformers", "blip_itm", "cross_encoder")]
    lines = "\n".join(f"import eyespot.{module}" for module in modules)

    done = child(f"import sys\n{lines}\nprint({heavy} & set(sys.modules))", child_env)

    assert done.stdout == "set()\n"


@pytest.mark.long
@pytest.mark.parametrize("offline", ["1", "0"], ids=["told", "found out"])
def test_without_the_hub_there_is_one_sentence_and_no_noise(offline: str, child_env: dict[str, str]) -> None:
    """Offline by order, or with nobody at the other end; the second gives up at once (the clients retry otherwise)."""
    pytest.importorskip("open_clip")
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
    specs = SPECS[:4] if offline == "1" else SPECS[::4]

    said = sentences(specs, {**child_env, **nobody, "HF_HUB_OFFLINE": offline})

    assert len(said) == len(specs)
    for sentence in said:
        check_wording(sentence)


@pytest.mark.long
def test_what_the_hub_answers_is_told(child_env: dict[str, str]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("huggingface_hub")
    specs = [f"hf:eyespot/{code}" for code in CODES]
    with hub_that_answers() as address:
        said = sentences(specs, {**child_env, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": address})

    assert len(said) == 3
    for sentence in said:
        check_wording(sentence)


@contextmanager
def hub_that_answers() -> Iterator[str]:
    """It answers with the error that the name of the model says."""

    class Answer(Quiet):
        def do_GET(self) -> None:
            code = next(code for code in CODES if code in self.path)
            self.send_response(403 if code == "GatedRepo" else 404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

    with listening(Answer) as place:
        yield f"http://{place}"


@pytest.mark.long
def test_a_torchvision_that_does_not_match_is_told_as_such(child_env: dict[str, str]) -> None:
    """Without our stub: its operators do not load beside a CPU torch, and the libraries' errors do not say why."""
    pytest.importorskip("open_clip")
    bare = {**child_env, "PYTHONPATH": child_env["PYTHONPATH"].partition(":")[2]}
    broken = "try:\n    import torchvision\nexcept RuntimeError as error: print('torchvision::' in str(error))"
    if child(broken, bare).stdout != "True\n":
        pytest.skip("the torchvision here matches torch")

    done = child(LOAD, bare, "open_clip:ViT-B-32/openai")

    assert "torchvision" in done.stdout
