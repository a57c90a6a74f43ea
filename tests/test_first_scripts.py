"""Short scripts as newcomers type them, on the sample photos: each gives what it should, or says what to type."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot import sample
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import requires
from tests.worlds import copy_of_sample_gallery

WORKS = {
    "embed pictures": (
        """
        model = eyespot.load_encoder("starter")
        files = sorted(glob("photos/*.jpg"))[:3]
        print(model.encode([files[0], Path(files[1]), Image.open(files[2])]).shape, model.encode(files[0]).shape)
        """,
        "(3, 512) (1, 512)",
    ),
    "embed words": (
        """
        model = eyespot.load_encoder("starter")
        print(model.encode_texts(["a windmill", "a fish"]).shape, model.encode_texts("a windmill").shape)
        """,
        "(2, 512) (1, 512)",
    ),
    "index and search": (
        """
        photos = eyespot.index("few")
        hits = photos.search("a windmill", k=2)
        print(len(photos), len(hits), hits[0].path.name, hits[0].title, hits[0].score > 0)
        """,
        "3 pictures in .eyespot, 3 of them new to starter\n3 2 windmill.jpg windmill True",
    ),
    "search many": (
        """
        found = eyespot.open("gallery").search(["a windmill", "a fish"], k=3)
        print([type(hits).__name__ for hits in found], [len(hits.paths) for hits in found])
        """,
        "['Hits', 'Hits'] [3, 3]",
    ),
    "search by a picture": (
        """
        collection, picture = eyespot.open("gallery"), Image.open(sorted(glob("photos/*windmill*.jpg"))[0])
        for query in (picture, Path(picture.filename), np.asarray(picture.convert("RGB"))):
            print("Windmill" in collection.search(query, k=1)[0].title)
        """,
        "True\nTrue\nTrue",
    ),
    "a filter": (
        """
        hits = eyespot.open("gallery").search("a windmill", where="title LIKE '%Windmill%'", k=3)
        print(all("Windmill" in hit.title for hit in hits), hits[:2].ids == hits.ids[:2])
        """,
        "True True",
    ),
    "arrays": (
        """
        rows = np.random.default_rng(0).normal(size=(1000, 64)).astype("float32")
        index = eyespot.load_index(rows / np.linalg.norm(rows, axis=1, keepdims=True))
        print(index, index.search(rows[:3], 5).rows[:, 0].tolist())
        """,
        "<exact index of 1,000 vectors of 64 numbers> [0, 1, 2]",
    ),
    "other forms of the same": (
        """
        collection, picture = eyespot.open("gallery"), Image.open(sorted(glob("photos/*windmill*.jpg"))[0])
        print(len(collection.search(image=picture, k="5")), collection.view.vectors(range(3)).shape, collection.ids[0])
        print(eyespot.load_index([[1.0, 0.0], [0.0, 1.0]]).search(np.eye(2, dtype="f4"), 1).rows.tolist())
        print(eyespot.Qrels({"q": {"a": 1.0, "b": 0.4}}).relevant("q"), eyespot.Run({"q": {"a": 0.5, "b": 0.6}}))
        """,
        "5 (3, 512) ccd2b4202e0af11b23e1e3bc8bbbc8f1\n[[0], [1]]\n{'a'} <Run of 1 query and 2 images; q: b, a, …>",
    ),
    "a judge of one's own": (
        """
        from eyespot.search import JudgeRerank, Nearest
        collection = eyespot.open("gallery")
        judge = JudgeRerank.of(collection, lambda query, path: "windmill9" in path, depth=20)
        run = eyespot.Chain(Nearest.of(collection, k=20), judge)([eyespot.Query.words("a windmill", id="w")])
        print(run.facts[run["w"][0].image]["title"])
        """,
        "Windmill Linda 2",
    ),
    "a stage of one's own": (
        """
        from eyespot.search import Nearest, TopK
        collection = eyespot.open("gallery")
        turned = lambda queries, run: eyespot.Run.from_orders({q: [hit.image for hit in run[q]][::-1] for q in run})
        run = eyespot.Chain(Nearest.of(collection, k=20), turned, TopK(3))([eyespot.Query.words("a windmill", id="w")])
        print(len(run["w"]), run)
        """,
        "3 <Run of 1 query and 3 images; w: ",
    ),
    "save and read": (
        """
        from eyespot.runs import read_run, write_run
        hits = eyespot.open("gallery").search("a windmill", k=5)
        write_run(hits, "run.txt")
        print([hit.image for hit in read_run("run.txt")["q"]] == hits.ids)
        """,
        "True",
    ),
    "what things print": (
        """
        collection = eyespot.open("gallery")
        for thing in (collection, collection.gallery, collection.encoder, collection.search("a windmill", k=1)):
            print(thing)
        print(eyespot.Qrels({"q": {"a": 1, "b": 0}}), eyespot.Chain(Nearest.of(collection, k=3)))
        """,
        "<collection gallery: 208 pictures, 512 numbers each by starter, searched by exact>\n"
        "<gallery gallery: 208 pictures, vectors of starter>\n"
        "<encoder starter: 512 numbers a vector, on cpu, licence Apache-2.0 (networks), WordNet-3.0 (words)>\n"
        "1 hit for 'a windmill' by starter\nrank   score  title ",
    ),
}  # fmt: skip
SAYS = {
    "limit": ('eyespot.open("gallery").search("a cat", limit=5)', "k"),
    "a string for a number": ('eyespot.open("gallery").search("a cat", k="many")', "k"),
    "a dict as a filter": (
        'eyespot.open("gallery").search("a cat", where={"category": "x"})',
        'where is a condition in SQL, as in where="width > 300"',
    ),
    "a filter without quotes": (
        'eyespot.open("gallery").search("a cat", where="category=renewable")',
        "text goes in 'single quotes'",
    ),
    "no hits": ('eyespot.open("gallery").search("a cat", k=0)', "greater than or equal to 1"),
    "hits by a query's name": ('eyespot.open("gallery").search("a cat")["q"]', "as in hits[0]"),
    "a gallery that is nowhere": ('eyespot.open("nowhere")', "eyespot index PHOTOS -g nowhere"),
    "a name with a slip": ('eyespot.load_encoder("startr")', "there are: hf, mllm, model, onnx"),
    "encode_images": ('eyespot.load_encoder("starter").encode_images(["a.jpg"])', "encode([…])"),
    "a text as a ranking": ('eyespot.Run.from_orders({"q": "abc"})', "orders are {query: [image, …]}"),
    "a measure with a slip": ('eyespot.evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, ["map@10x"])', "as in AP@10"),
    "a query of one dimension": (
        'eyespot.load_index(np.eye(4, dtype="f4")).search(np.ones(4, "f4"), 2)',
        "(queries, 4)",
    ),
    "a query of another length": ('eyespot.load_index(np.eye(4, dtype="f4")).search(np.eye(3), 2)', "(queries, 4)"),
    "a query that is not a number": (
        'eyespot.load_index(np.eye(4, dtype="f4")).search(np.full((1, 4), np.nan, "f4"), 2)',
        "encode it again",
    ),
    "a stage without a run": (
        'eyespot.Chain(lambda queries, run: None)([eyespot.Query.words("a")])',
        "a stage gives a Run",
    ),
    "a vector": ('eyespot.open("gallery").search(np.ones(512, "f4"))', "collection.index.search(vector[None], k)"),
    "a model that is not here": ('eyespot.load_encoder("siglip2-base")', "eyespot models get siglip2-base"),
    "vectors in double precision": ("eyespot.load_index(np.eye(4))", "take .astype(np.float32)"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    copy_of_sample_gallery(folder / "gallery")
    (folder / "photos").symlink_to(sample.photos())
    (folder / "few").mkdir()
    for name in ("windmill9", "fish20", "fish21"):
        found = next(iter(sorted(sample.photos().glob(f"*{name}*"))))
        shutil.copy(found, folder / "few" / f"{name.replace('windmill9', 'windmill')}.jpg")
    return folder


def run(script: str, place: Path, patch: pytest.MonkeyPatch) -> None:
    from glob import glob

    from PIL import Image

    from eyespot.search import Nearest

    patch.chdir(place)
    patch.setenv("EYESPOT_MODELS", str(place / "models"))
    known: dict[str, Any] = {
        "eyespot": eyespot,
        "np": np,
        "Path": Path,
        "glob": glob,
        "Image": Image,
        "Nearest": Nearest,
    }
    exec(textwrap.dedent(script), known)


@pytest.mark.parametrize("name", WORKS)
def test_it_gives_what_it_should(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, printed = WORKS[name]
    run(script, place, monkeypatch)

    assert capsys.readouterr().out.startswith(printed)


@pytest.mark.parametrize("name", SAYS)
def test_it_says_what_to_type(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, sentence = SAYS[name]
    with pytest.raises(EyespotError) as caught:
        run(script, place, monkeypatch)

    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@requires("torch")
def test_an_adapter_is_trained_on_rows_that_belong_together(tmp_path: Path) -> None:
    """Without the row of each text's image; and it says what it is."""
    from eyespot.adapters.linear import Linear
    from eyespot.adapters.quari import Config, Pairs, Quari, TrainingData, train
    from eyespot.adapters.quari.training import preset

    draws = np.random.default_rng(0)
    images = draws.normal(size=(30, 8)).astype(np.float32)
    assert Pairs(images, images).of.tolist() == [*range(30)]
    with pytest.raises(UsageError, match="keep_anyway=True"):
        train(TrainingData(Pairs(images, images)), Config(8), preset("identity")[0], tmp_path)
    with pytest.raises(UsageError, match="5 texts need as many rows of images"):
        Pairs(images[:5], images)
    with pytest.raises(UsageError, match="it takes texts, images, of, ids"):
        eyespot.adapters.quari.Pairs(images)  # type: ignore[attr-defined]
    assert repr(Linear(np.eye(8, 4, dtype=np.float32).T, np.zeros(4, np.float32))).startswith("<linear adapter, 8 to 4")
    shown = repr(Quari(Config(8), None))  # type: ignore[arg-type]
    assert shown == "<QuARI adapter for 8 numbers of an encoder that nobody names; without a card>"
