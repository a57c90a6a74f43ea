"""The scores that INQUIRE's authors released, as runs.

Of vision–language models a dict {image file + "--" + prompt: score} in a .npy file; of CLIP models a pickled list of
the first 1,000 hits of each query, {"query": its words, "distances": a tensor (n,), "matches": facts of each image}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from eyespot.runs import inquire
from eyespot.storage import plain_pickles
from eyespot.storage.plain_pickles import TENSORS
from eyespot.types import NothingFound, RankedImage, Run, UsageError

BETWEEN = "--"
ENDINGS = ("--nosystem-cache", "--cache")
QUERIES, ANNOTATIONS = "inquire_queries_*.csv", "inquire_annotations.csv"
LISTS, PHOTO = ".pkl", ".jpg"  # the ending of files with lists, and that which paths in them lack
MOST_HEADER = 10_000  # bytes


class CachedRun(NamedTuple):
    """The run, and how many scores the cache has for other prompts."""

    run: Run
    other: int


def model_of(path: Path) -> str:
    """The model that the name of a cache file says: "llava-hf--llava-1.5-13b-hf--cache.npy"."""
    stem = path.stem
    for ending in ENDINGS:
        stem = stem.removesuffix(ending)
    return stem.replace(BETWEEN, "/").replace("__", ":")


def read(path: Path, prompts: Mapping[str, str], names: Mapping[str, str]) -> CachedRun:
    """The scores under these prompts (query id → whole prompt); `names` are the ids of images by their files.

    An image that is not among the names keeps its file's. Raises `UsageError` for a file that is not such a cache, and
    `NothingFound` if no score is of these prompts.
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
    run = Run({query: sorted(hits, key=lambda hit: -hit.score) for query, hits in scores.items()})
    run.header = {"cache": path.name}
    return CachedRun(run, other)


def read_lists(path: Path, texts: Mapping[str, str], names: Mapping[str, str]) -> CachedRun:
    """The first hits of a CLIP model for queries (words → query id); `names` are the ids of images by their files.

    Raises `UsageError` for a file that is not such a list, and `NothingFound` if it has none of the queries.
    """
    try:
        lists = plain_pickles.read(path.read_bytes(), TENSORS)
    except plain_pickles.NotPlain as error:
        raise UsageError(f"{path} holds {error}, and only plain values are read; name a list of hits") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error}); name a .pkl file of INQUIRE's caches") from None
    if not isinstance(lists, list) or not all(isinstance(one, dict) for one in lists):
        raise UsageError(f"{path} holds no list of queries with their hits; name a .pkl file of INQUIRE's caches")
    found: dict[str, list[RankedImage]] = {}
    other = 0
    for one in lists:
        words = one.get("query")
        if not isinstance(words, str):
            raise UsageError(f"{path} has hits of a query without words; name a .pkl file of INQUIRE's caches")
        hits = _hits(path, one, names)
        query = texts.get(words)
        if query is None:
            other += len(hits)
        else:
            found[query] = sorted(hits, key=lambda hit: -hit.score)  # equals stay in the order of the list
    if not found:
        raise NothingFound(f"{path} has none of these queries; name the folder of the queries that it was made for")
    run = Run(found)
    run.header = {"cache": path.name}
    return CachedRun(run, other)


def _hits(path: Path, one: Mapping[str, Any], names: Mapping[str, str]) -> list[RankedImage]:
    scores, matches = one.get("distances"), one.get("matches")
    images = [match.get("image_path") for match in matches or () if isinstance(match, dict)]
    files = [image if image.endswith(PHOTO) else image + PHOTO for image in images if isinstance(image, str)]
    if not isinstance(scores, np.ndarray) or scores.shape != (len(files),) or not np.isfinite(scores).all():
        raise UsageError(f"{path} has no distance and image for each hit of {one.get('query')!r}; download it again")
    return [RankedImage(names.get(file, file), score) for file, score in zip(files, scores.tolist(), strict=True)]


def listed_queries(data: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The queries of INQUIRE's CSV files (words → query id), and the ids of the relevant images by their files.

    Raises `UsageError` if the folder lacks the files.
    """
    places = [place for folder in ("", "*/", "data/inquire/") for place in sorted(data.glob(f"{folder}{QUERIES}"))]
    if not places:
        raise UsageError(f"there is no {QUERIES} in {data}; name the folder of INQUIRE's CSV files with --data")
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for place in places:
        annotations = place.parent / ANNOTATIONS
        judged = inquire.read(place, annotations if annotations.is_file() else None)
        texts |= {str(facts["text"]): query for query, facts in judged.queries.items()}
        names |= {str(facts["path"]): image for image, facts in judged.images.items()}
    return texts, names


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
