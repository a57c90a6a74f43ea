"""MTEB: an eyespot encoder as one of its models, and judged pictures as one of its retrieval tasks.

mteb does the searching and the scoring, so the numbers are those of its leaderboards. It hands over pictures decoded
whole, where `eyespot index` lets a JPEG be decoded at a reduced scale: vectors of `starter` then differ by about 0.001
in cosine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, get_args

import numpy as np

from eyespot import rooms
from eyespot.gallery.view import Gallery
from eyespot.photos.colours import to_rgb
from eyespot.photos.embedded_facts import Exif
from eyespot.photos.found import Seen
from eyespot.photos.places import full_path, read_again
from eyespot.photos.sources import root_of, scan
from eyespot.rooms import needs
from eyespot.runs.judged import Columns, JudgedQueries
from eyespot.search.matching import matched
from eyespot.storage.digests import json_sha256
from eyespot.storage.systems import usable_cores
from eyespot.types import Encoder, UsageError, Vectors

Batch: TypeAlias = Mapping[str, Any]  # columns of mteb's loader: lists of `text` and `image` (PIL), one or both
Pictures: TypeAlias = Path | str | Gallery | Mapping[str, Path | str]
Places: TypeAlias = dict[str, str]  # image id → where its file lies; inside a tar as archive.tar/member

NAME = "the mteb bridge"


# -- the model ----------------------------------------------------------------------------------------------


def model(encoder: str | Encoder) -> MtebModel:
    """What `mteb.evaluate` takes as a model; a name is loaded as everywhere (`starter`, `open_clip:…`).

    Raises `EyespotError` if mteb is not installed and `UsageError` for an encoder that there is not.
    """
    with needs(NAME):
        import mteb  # noqa: F401
        import sentence_transformers  # noqa: F401, which mteb.evaluate imports
    return MtebModel(rooms.load("encoders", encoder) if isinstance(encoder, str) else encoder)


class MtebModel:
    """An eyespot encoder as mteb calls its own: batches of texts, pictures or both in, unit vectors out."""

    def __init__(self, encoder: Encoder) -> None:
        from mteb.models import ModelMeta
        from mteb.types import Licenses

        self.encoder, space, licence = encoder, encoder.space, encoder.licence.lower()
        if licence not in get_args(Licenses):  # mteb knows about thirty, and addresses
            licence = "multiple" if "," in licence else "not specified"
        sizes = ("n_parameters", "memory_usage_mb", "max_tokens", "open_weights")
        unknown = ("loader", "release_date", "languages", *sizes)
        unstated = ("public_training_code", "public_training_data", "training_datasets")
        known = {
            "name": f"eyespot/{re.sub(r'[^A-Za-z0-9._-]+', '_', space.encoder)}",
            # The digest keeps results of other weights or preprocessing apart in mteb's cache.
            "revision": f"{space.revision}-{space.digest}",
            "embed_dim": space.dim,
            "license": licence,
            "framework": [],
            "similarity_fn_name": "dot",
            "use_instructions": False,
            "modalities": ["text", "image"],
        }
        self.mteb_model_meta = ModelMeta.model_validate(dict.fromkeys((*unknown, *unstated)) | known)

    def encode(self, inputs: Iterable[Batch], **_unused: Any) -> Vectors:
        """One unit vector a row, (rows, dim); a row of picture and words is their sum, brought back to unit length.

        What mteb tells of task, split and prompt changes nothing: an encoder never knows the benchmark.
        """
        batches = [np.zeros((0, self.encoder.space.dim), np.float32)]
        for batch in inputs:
            texts, pictures = list(batch.get("text") or ()), list(batch.get("image") or ())
            if pictures:  # a row with a picture may have no words
                pairs = zip(texts, pictures, strict=False)
                texts = [text if text or picture is None else None for text, picture in pairs]
            sums = np.zeros((len(texts or pictures), self.encoder.space.dim), np.float32)  # (rows, dim)
            for encode, column in ((self.encoder.encode_texts, texts), (self._encode_pictures, pictures)):
                there = {row: given for row, given in enumerate(column) if given is not None}
                if there:
                    sums[list(there)] += encode(list(there.values()))
            batches.append(sums / np.linalg.norm(sums, axis=1, keepdims=True))
        return np.concatenate(batches)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Inner products as a tensor, (rows of the first, rows of the second)."""
        import torch

        return torch.as_tensor(embeddings1) @ torch.as_tensor(embeddings2).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Inner products row by row as a tensor, (rows,)."""
        import torch

        return (torch.as_tensor(embeddings1) * torch.as_tensor(embeddings2)).sum(-1)

    def _encode_pictures(self, pictures: Sequence[Any]) -> Vectors:
        with ThreadPoolExecutor(usable_cores()) as pool:
            pixels = list(pool.map(lambda one: self.encoder.read(Exif.of(one).upright(to_rgb(one))), pictures))
        starts, size = range(0, len(pixels), self.encoder.batch), self.encoder.batch
        return np.concatenate([self.encoder.encode_pixels(np.stack(pixels[at : at + size])) for at in starts])


# -- the task -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskNotes:
    """What mteb notes of a task; `language` is ISO 639-3 and a script, `citation` BibTeX, `licence` in its spelling."""

    description: str = "Pictures judged for queries, brought by eyespot."
    language: str = "eng-Latn"
    licence: str = "not specified"
    citation: str = ""
    main_score: str = "ndcg_at_10"


def task(judged: JudgedQueries, images: Pictures, name: str, about: TaskNotes | None = None) -> Any:
    """The judged queries over these pictures as an mteb `AbsTaskRetrieval`: t2i, i2i, or it2i where queries have both.

    `images` is a mapping from image id to file, a folder or tar, or a gallery; in the latter two a judged image is
    found by path, file name or stem (in a gallery also by id), whichever finds most. All pictures are ranked; with
    `judged.candidates` each query's candidates only, as mteb's `top_ranked`. A query's `image` is one of the pictures
    or a path. Raises `UsageError` for judged images and query pictures that are not there and for names that no file
    can have, `EyespotError` if mteb is not installed.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"mteb names a file after the task: use letters, digits, . _ and -, not {name!r}")
    with needs(NAME):
        from mteb import TaskMetadata
        from mteb.abstasks import AbsTaskRetrieval
    notes, collection = about or TaskNotes(), _collected(judged, images)
    facts = {
        "name": name,
        "description": notes.description,
        # mteb keeps results by name and revision and fetches nothing: this task brings its data.
        "dataset": {"path": f"eyespot/{name}", "revision": collection.digest},
        "type": "Any2AnyRetrieval" if collection.candidates is None else "Any2AnyReranking",
        "category": f"{collection.category}2i",
        "modalities": ["text", "image"] if "t" in collection.category else ["image"],
        "eval_splits": ["test"],
        "eval_langs": [notes.language],
        "main_score": notes.main_score,
        "license": notes.licence,
        "bibtex_citation": notes.citation,
    }

    class JudgedPictures(AbsTaskRetrieval):
        """Held in memory are ids and places; pictures are read when they are embedded."""

        metadata = TaskMetadata.model_validate(facts)

        def load_data(self, num_proc: int | None = None, **_unused: Any) -> None:
            if not self.data_loaded:
                self.dataset = {"default": {"test": collection.split()}}
                self.data_loaded = True

    return JudgedPictures()


@dataclass(frozen=True)
class _Collection:
    """What a task is made of; every query is judged and has words, a picture or both."""

    pool: Places
    texts: dict[str, str | None]
    places: dict[str, str | None]  # of the queries' pictures
    grades: dict[str, dict[str, int]]
    candidates: dict[str, list[str]] | None = field(default=None)

    @property
    def category(self) -> str:
        """mteb's letters for what queries are: t, i or it."""
        parts = (("i", self.places), ("t", self.texts))
        return "".join(letter for letter, column in parts if any(column.values()))

    @property
    def digest(self) -> str:
        """Sixteen hex digits of all that numbers depend on, but for the pixels."""
        whole = [list(self.pool), self.texts, self.places, self.grades, self.candidates]
        return json_sha256(whole)[:16]

    def split(self) -> Any:
        """The tables that mteb evaluates, made anew because it changes them."""
        queries: dict[str, list[Any]] = {"id": list(self.texts)}
        if "t" in self.category:
            queries["text"] = [text or "" for text in self.texts.values()]
        if "i" in self.category:
            queries["image"] = list(self.places.values())
        return {
            "corpus": _table({"id": list(self.pool), "image": list(self.pool.values())}),
            "queries": _table(queries),
            "relevant_docs": {query: dict(grades) for query, grades in self.grades.items()},
            "top_ranked": self.candidates and {query: list(order) for query, order in self.candidates.items()},
        }


def _collected(judged: JudgedQueries, images: Pictures) -> _Collection:
    """The judged queries, and where their pictures and those to rank lie."""
    queries = {query: facts for query, facts in judged.queries.items() if judged.qrels.grades.get(query)}
    if not queries:
        raise UsageError("no query has a judged image; mteb scores only queries that have one")
    judged_images, run = judged.qrels.images.tolist(), judged.candidates
    if isinstance(images, Mapping):
        given = {str(image): str(place) for image, place in images.items()}
    else:
        wanted = list(dict.fromkeys([*judged_images, *(run.images.tolist() if run else [])]))
        given = _of_gallery(images, wanted) if isinstance(images, Gallery) else _of_folder(str(images), set(wanted))
    candidates, ranked = None, judged_images
    if run is not None:
        candidates = {query: [hit.image for hit in run[query]] if query in run else [] for query in queries}
        ranked = list(dict.fromkeys(image for order in candidates.values() for image in order))
    if missing := [image for image in ranked if image not in given]:
        few = f"{len(missing)} of {len(ranked)} images have no picture, such as {missing[0]!r}"
        raise UsageError(f"{few}; bring them, or leave them out of the judgements")
    pool = given if run is None else {image: given[image] for image in ranked}
    # Where the collection lists its images, pictures that are only queries are none of them
    if run is None and judged.images:
        pictures = {str(facts["image"]) for facts in judged.queries.values() if facts.get("image")}
        outside = pictures - set(judged.images) - set(judged_images)
        pool = {image: place for image, place in given.items() if image not in outside}
    texts = {query: facts.get("text") or None for query, facts in queries.items()}
    places = {query: _query_picture(query, facts, given) for query, facts in queries.items()}
    if empty := [query for query in queries if not (texts[query] or places[query])]:
        raise UsageError(f"query {empty[0]!r} has neither text nor image; give it one, or leave it out")
    return _Collection(pool, texts, places, {query: dict(judged.qrels[query]) for query in queries}, candidates)


def _query_picture(query: str, facts: Columns, given: Places) -> str | None:
    image = facts.get("image")
    if not image:
        return None
    place = given.get(str(image), str(image))
    if place == str(image) and not Path(place).is_file():
        raise UsageError(f"the picture {place!r} of query {query!r} is neither among the images nor a file; bring it")
    return place


def _table(columns: dict[str, list[Any]]) -> Any:
    from datasets import Dataset, Features, Image, Value

    kinds = {name: Image() if name == "image" else Value("string") for name in columns}
    if "image" in columns:
        stored: list[Any] = []
        for place in columns["image"]:
            if place is None or Path(place).is_file():
                stored.append(place and {"path": place, "bytes": None})
                continue
            try:  # what lies in a tar has no path that Pillow could open: its bytes are held
                stored.append({"path": None, "bytes": read_again(place)})
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise UsageError(f"cannot read the picture {place}: {reason}") from error
        columns = columns | {"image": stored}
    return Dataset.from_dict(columns, features=Features(kinds))


# -- where the pictures lie ---------------------------------------------------------------------------------


def _of_folder(folder: str, wanted: set[str]) -> Places:
    """All pictures below a folder or in a tar, called in the one way that finds most of what is wanted."""
    if not Path(folder).exists():
        raise UsageError(f"there is no folder {folder}; give the one that holds the pictures")
    root = root_of(folder)
    paths = [record.path for record in scan(root) if isinstance(record, Seen)]
    ways: dict[str, Callable[[PurePosixPath], str]] = {"path": str, "name": lambda p: p.name, "stem": lambda p: p.stem}
    namings: list[dict[str, str]] = []
    for way in ways.values():
        names: dict[str, str] = {}
        for path in paths:  # of several pictures of one name the first has it, the others keep their path
            name = way(PurePosixPath(path))
            names[path if name in names else name] = path
        namings.append(names)
    best = max(namings, key=lambda names: len(wanted & names.keys()))
    return {name: full_path(root, path) for name, path in best.items()}


def _of_gallery(gallery: Gallery, wanted: Sequence[str]) -> Places:
    """All pictures that a search of the default space can find; those that are not wanted keep the gallery's id."""
    view = gallery.view(gallery.stem())
    by_id = matched(view, wanted).by_id
    facts = [row for row in view.facts(np.flatnonzero(view.live).tolist()) if row["path"]]
    return {name: row["path"] for row in facts for name in by_id.get(row["id"], [row["id"]])}
