"""Real servers over a tiny LLaVA: transformers' own, and one that tells the probabilities of the first token."""

from __future__ import annotations

import base64
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from PIL import Image

from tests.worlds.judge_models import llava

# Pictures are decoded by Pillow: a torchvision that does not fit its torch could not do it.
SERVE = "import sys; sys.modules['torchvision'] = None; from transformers.cli.transformers import main; main()"
PATIENCE = 90  # seconds until a server is given up
TEMPLATE = (
    "<s>{% for m in messages %}{{ m['role'].upper() }}: {% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}{% else %}<image>\n{% endif %}"
    "{% endfor %}{% endif %} {% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def model(folder: Path) -> Path:
    """A tiny LLaVA with random weights whose template takes words as a string and as parts.

    The template writes the first token, not the tokenizer: the server's decisions want it so.
    """
    words = llava(folder, TEMPLATE) / "tokenizer.json"
    words.write_text(json.dumps({**json.loads(words.read_text()), "post_processor": None}))
    return folder


# -- transformers serve --------------------------------------------------------------------------------------------


@contextmanager
def transformers_serve(folder: Path) -> Iterator[str]:
    """The address of `transformers serve` with the model of a folder."""
    port = _free_port()
    command = [sys.executable, "-c", SERVE, "serve", "--host", "127.0.0.1", "--port", port, "--device", "cpu", folder]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen(map(str, command), env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait_until_up(process, f"http://127.0.0.1:{port}/health", folder / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(PATIENCE * 10):
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, log.read_text()[-2000:]
            time.sleep(0.1)
    raise AssertionError(f"no server after {PATIENCE} seconds:\n{log.read_text()[-2000:]}")


# -- one with probabilities ----------------------------------------------------------------------------------------


class Answering:
    """A loaded model and what it makes of a conversation."""

    def __init__(self, folder: Path) -> None:
        import torch
        import transformers

        torch.set_num_threads(1)
        self.network = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
        self.processor = transformers.AutoProcessor.from_pretrained(folder)

    def first_token(self, messages: list[dict[str, Any]]) -> dict[str, float]:
        """The log-probability of every token as the first of the answer."""
        import torch

        pictures = [_picture(part) for message in messages for part in _parts(message) if part["type"] == "image_url"]
        text = self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        batch = self.processor(images=pictures, text=text, return_tensors="pt")
        with torch.inference_mode():
            logits = self.network(**batch).logits[0, -1]  # (vocabulary,)
        words = self.processor.tokenizer.convert_ids_to_tokens(range(len(logits)))
        return dict(zip(words, torch.log_softmax(logits.double(), 0).tolist(), strict=True))


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message["content"] if isinstance(message["content"], list) else []


def _picture(part: dict[str, Any]) -> Image.Image:
    data = part["image_url"]["url"].partition("base64,")[2]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


@contextmanager
def telling_server(answering: Answering) -> Iterator[str]:
    """The address of a FastAPI server whose completions tell the probabilities of all tokens."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/v1/chat/completions")
    def complete(body: dict[str, Any]) -> dict[str, Any]:
        found = answering.first_token(body["messages"])
        best = max(found, key=lambda token: found[token])
        listed = [{"token": token, "logprob": logprob} for token, logprob in found.items()]
        content = [{"token": best, "logprob": found[best], "top_logprobs": listed}]
        message = {"role": "assistant", "content": best}
        choice = {"index": 0, "message": message, "logprobs": {"content": content}, "finish_reason": "length"}
        return {"object": "chat.completion", "model": body["model"], "choices": [choice]}

    server = uvicorn.Server(uvicorn.Config(app, port=_free_port(), log_level="error", ws="none"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.config.port}"
    finally:
        server.should_exit = True
        thread.join(20)
