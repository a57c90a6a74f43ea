"""The scores of vision–language models that INQUIRE's authors released, as runs.

They lie in a .npy file, as a dict {image file + "--" + prompt: score}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.lib import format as npy

from eyespot.storage import plain_pickles
from eyespot.types import NothingFound, RankedImage, Run, UsageError

BETWEEN = "--"
ENDINGS = ("--nosystem-cache", "--cache")
MOST_HEADER = 10_000  # bytes


def model_of(path: Path) -> str:
    """The model that the name of a cache file says: "llava-hf--llava-1.5-13b-hf--cache.npy"."""
    stem = path.stem
    for ending in ENDINGS:
        stem = stem.removesuffix(ending)
    return stem.replace(BETWEEN, "/").replace("__", ":")


def read(path: Path, prompts: Mapping[str, str], names: Mapping[str, str]) -> tuple[Run, int]:
    """The scores under these prompts (query id → whole prompt), and how many the cache has for other prompts.

    `names` are the ids of images by their files; an image that is not among them keeps its file's. Raises `UsageError`
    for a file that is not such a cache, and `NothingFound` if no score is of these prompts.
    """
    queries = {prompt: query for query, prompt in prompts.items()}
    scores: dict[str, list[RankedImage]] = {}
    other = 0
    for key, score in _scores(path).items():
        image, _, prompt = key.partition(BETWEEN) if isinstance(key, str) else ("", "", "")
        if prompt not in queries:
            other += 1
            continue
        value = _of_reply(score) if isinstance(score, dict) else None
        if isinstance(score, int | float) and not isinstance(score, bool):
            with suppress(OverflowError):
                value = float(score)
        if value is None or value != value:
            raise UsageError(f"{path} holds no score for {key!r}; name a cache of scores or of OpenAI's replies")
        scores.setdefault(queries[prompt], []).append(RankedImage(names.get(image, image), value))
    if not scores:
        raise NothingFound(
            f"{path} has no score for these queries in the prompt of this model; name the model with --model, and the "
            "clone that the cache was made by"
        )
    # Equal scores stand in the order of the cache; measures average over them
    run = Run({query: sorted(hits, key=lambda hit: -hit[1]) for query, hits in scores.items()})
    run.header = {"cache": path.name}
    return run, other


def _of_reply(reply: Mapping[str, Any]) -> float | None:
    """The score of a reply of OpenAI's, as the released code has it: without "Yes" 0, without "No" 1."""
    try:
        tokens = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        yes, no = (
            sum(math.exp(token["logprob"]) for token in tokens if token["token"] == word) for word in ("Yes", "No")
        )
    except (KeyError, IndexError, TypeError, OverflowError):
        return None
    return yes / (yes + no) if yes else 0.0


def _scores(path: Path) -> dict[Any, Any]:
    try:
        with path.open("rb") as file:
            version = npy.read_magic(file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, kind = header(file, max_header_size=MOST_HEADER)
            value = plain_pickles.read(file.read()) if kind.hasobject and shape == () else None
    except plain_pickles.NotPlain as error:
        raise UsageError(f"{path} holds {error}, and only plain values are read; name a cache of scores") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}); name a .npy file of INQUIRE's caches") from None
    if not isinstance(value, dict):
        raise UsageError(f"{path} holds no dict of scores; name a .npy file of INQUIRE's caches")
    return value
