"""The encoders of the model hub: light to import, quick to give up, one sentence when they do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.wording import check_wording

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


@pytest.mark.parametrize("offline", ["1", pytest.param("0", marks=pytest.mark.long)], ids=["told", "found out"])
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

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code = next(code for code in CODES if code in self.path)
            self.send_response(403 if code == "GatedRepo" else 404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


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
