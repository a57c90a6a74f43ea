"""`eyespot serve` as a process: it says where to look, answers, and ends when asked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import run_eyespot

pytest.importorskip("fastapi", reason="the server needs the extra [web]")


@contextmanager
def serving(gallery: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the address that it told."""
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", "0", *words]
    env = {name: value for name, value in os.environ.items() if not name.startswith("EYESPOT_")}
    process = subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        told = process.stderr.readline()
        found = re.search(r"look at (\S+);", told)
        assert found, told + process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


def test_it_answers_at_the_address_it_tells_and_ends_with_ctrl_c(sample_gallery: Path, tmp_path: Path) -> None:
    with serving(sample_gallery, "--cache", str(tmp_path / "cache")) as (process, address):
        with urllib.request.urlopen(f"{address}healthz", timeout=60) as answer:
            assert answer.read() == b"ok\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, "")


def test_other_addresses_get_a_fresh_token_that_no_log_sees(sample_gallery: Path, tmp_path: Path) -> None:
    words = ("--host", "0.0.0.0", "--always-token", "--cache", str(tmp_path / "cache"))
    with serving(sample_gallery, *words) as (_, address):
        place, _, token = address.partition("login#token=")
        place = place.replace("0.0.0.0", "127.0.0.1")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{place}v1/items", timeout=60)
        allowed = urllib.request.Request(f"{place}v1/items", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(allowed, timeout=60) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("words", [["--always-token"], ["--host", "0.0.0.0", "--allow-host", "photos.example"]])
def test_the_address_that_is_told_lets_its_token_in(sample_gallery: Path, tmp_path: Path, words: list[str]) -> None:
    with serving(sample_gallery, "--cache", str(tmp_path / "cache"), *words) as (_, address):
        place, _, token = address.partition("login#token=")
        asked = urllib.request.Request(f"{place}v1/items", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--port", "1", "--host", "192.0.2.1"], 1, "cannot listen on 192.0.2.1:1"),
        (["-e", "nothing"], 2, "no vectors of nothing"),
        (["--tokens", "nowhere"], 2, "cannot be read from nowhere"),
        (["-g", "nowhere"], 2, "there is no gallery at nowhere"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_sentence(
    sample_gallery: Path, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    told = run_eyespot("serve", "-g", sample_gallery, *words, cwd=tmp_path)

    assert (told.returncode, told.stdout) == (code, "")
    assert says in told.stderr and "Traceback" not in told.stderr
