"""A library that reports its use is silent under eyespot: another program looks at what it leaves on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")
ENCODES = """
import eyespot
assert eyespot.load_encoder("starter").encode_texts(["a heron"]).shape[1] > 0
from huggingface_hub import constants
assert constants.HF_HUB_DISABLE_TELEMETRY
"""


def test_encoding_words_leaves_no_device_id_and_no_events(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / ".cache")}
    own = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    subprocess.run([sys.executable, "-c", ENCODES], env=own | home, check=True)
    assert not [path for path in tmp_path.rglob("*") if "telemetry" in path.name or "Microsoft" in path.parts]


def test_a_setting_of_ones_own_is_left_as_it_is() -> None:
    code = "import os, eyespot; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, env=os.environ | {"ORT_DISABLE_TELEMETRY": "0"}, check=True, capture_output=True)
    assert done.stdout == b"0\n"
