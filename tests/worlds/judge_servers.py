"""`transformers serve` over a tiny LLaVA: a real server that we did not write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.worlds.judge_models import llava

# Pictures are decoded by Pillow: a torchvision that does not fit its torch could not do it.
SERVE = "import sys; sys.modules['torchvision'] = None; from transformers.cli.transformers import main; main()"
PATIENCE = 250  # seconds until a server is given up; a busy machine takes long to load its libraries
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


@contextmanager
def transformers_serve(folder: Path) -> Iterator[str]:
    """The address of `transformers serve` with the model of a folder, at a port that it takes itself."""
    command = [sys.executable, "-c", SERVE, "serve", "--host", "127.0.0.1", "--port", "0", "--device", "cpu", folder]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen(map(str, command), env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield _address(process, folder / "server.log")
    finally:
        process.terminate()
        process.wait(20)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where the server says that it is up."""
    for _ in range(PATIENCE * 10):
        if said := re.search(r"running on (http://[\d.]+:\d+)", log.read_text()):
            return said[1]
        assert process.poll() is None, log.read_text()[-2000:]
        time.sleep(0.1)
    raise AssertionError(f"no server after {PATIENCE} seconds:\n{log.read_text()[-2000:]}")
