"""`eyespot --verbose VERB …` shows what happens on the way to a model, from outside; without it nothing is logged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_models import pictures

from tests.worlds.servers import Double, error

KEY, QUERY = "key-that-nobody-may-see", "a heron by the reeds"


def eyespot(*words: object, url: str = "") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY}
    line = [sys.executable, "-m", "eyespot.cli", *map(str, words)]
    return subprocess.run(line, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("openai")
    home = tmp_path_factory.mktemp("verbose")
    (home / "photos").mkdir()
    pictures()[0].save(home / "photos" / "a.png")
    done = eyespot("index", home / "photos", "-g", home / "g")
    assert done.returncode == 0, done.stderr
    return home / "g"


def stderr_of(gallery: Path, ledger: Path, *options: str) -> str:
    """Of a search whose first request is turned away for no time."""
    search = ("search", QUERY, "-g", gallery, "--rerank", "openai:tiny", "--depth", 1, "--ledger", ledger)
    with Double([error(429, f"{QUERY} {KEY}", Retry_After="0")]) as server:
        done = eyespot(*options, *search, url=server.url)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.long
def test_retries_are_shown_and_neither_the_prompt_nor_the_key(gallery: Path, tmp_path: Path) -> None:
    lines = stderr_of(gallery, tmp_path / "l.sqlite", "--verbose")

    assert "eyespot.llms.retry: tiny: the server answers 429; retry 1 of 5 in 0.0 s" in lines
    assert "eyespot.llms.client: tiny /chat/completions: 100 tokens in, 1 tokens out" in lines
    assert KEY not in lines and QUERY not in lines


@pytest.mark.long
def test_a_search_is_in_the_query_log_without_its_words(gallery: Path) -> None:
    done = eyespot("--verbose", "search", QUERY, "-g", gallery)

    assert "eyespot.search.query_log: search by 1 terms took " in done.stderr
    assert QUERY not in done.stderr


@pytest.mark.long
def test_nothing_is_logged_without_the_option(gallery: Path, tmp_path: Path) -> None:
    lines = stderr_of(gallery, tmp_path / "l.sqlite")

    assert "eyespot.llms" not in lines and "429" not in lines and "2 calls" in lines
