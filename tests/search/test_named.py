"""Names that mean one thing: every one of them finds the same photos, a higher taxon what belongs to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot.gallery.taxonomy.name_index import add_names
from eyespot.search.by_words import reasons
from eyespot.search.chain import chain_of
from eyespot.search.collection import Collection
from eyespot.search.named import NameReader
from eyespot.settings.search import StageSettings
from eyespot.types import Query, Run, Term, codes_of
from tests.command import run_eyespot
from tests.worlds import draw_photos, index_gallery

LABELS = ["Ardea cocoi", "Ardea alba", "heron", "Anas georgica", "pato", "Erithacus rubecula", "Turdus migratorius", ""]
TAXA = """taxonID,parentNameUsageID,scientificName
1,,Aves
2,1,Ardeidae
3,2,Ardea cocoi
4,2,Ardea alba
5,1,Anas georgica
6,1,Erithacus rubecula
7,1,Turdus migratorius
"""
VERNACULARS = """taxonID,vernacularName,language
2,herons,en
3,Cocoi Heron,en
3,garza cuca,es
6,robin,en
7,robin,en
"""


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    folder = tmp_path_factory.mktemp("named")
    photos = draw_photos(folder / "x", 12, name="{:02}.png")
    rows = "".join(f"{seed:02d}.png,{name}\n" for seed, name in enumerate(LABELS))
    (photos / "metadata.csv").write_text("file_name,species\n" + rows)
    index_gallery(folder / "gallery", photos)
    (folder / "dwc").mkdir()
    (folder / "dwc" / "taxa.csv").write_text(TAXA)
    (folder / "dwc" / "VernacularNames-all.csv").write_text(VERNACULARS)
    (folder / "own.csv").write_text("garza,Ardeidae\n")
    for names in ("dwc", "own.csv"):
        add_names(folder / "gallery", folder / names)
    return eyespot.open(folder / "gallery")


def searched(collection: Collection, query: str | Query, **how: Any) -> Run:
    search_query = Query.words(query) if isinstance(query, str) else query
    k, named = how.pop("k", 24), how.pop("named", True)
    return chain_of(collection, StageSettings.read(**{"by": "words", **how}), k=k, named=named)([search_query])


def labels(run: Run) -> set[str]:
    return {run.facts[hit.image]["species"] for hit in run["q"]}


@pytest.mark.parametrize("name", ["garza", "Herons", "heron", "ARDEIDAE", "garzas"])
def test_every_name_of_a_family_finds_its_species_and_its_own_names(collection: Collection, name: str) -> None:
    assert labels(searched(collection, name)) == {"Ardea cocoi", "Ardea alba", "heron"}


def test_a_species_finds_no_other_one_and_not_its_family(collection: Collection) -> None:
    assert labels(searched(collection, "garza cuca")) == {"Ardea cocoi"}
    run = searched(collection, "Cocoi Heron")
    assert run.facts[run["q"][0].image]["species"] == "Ardea cocoi"


def test_words_around_a_name_count_as_ever(collection: Collection) -> None:
    run = searched(collection, "a garza beside Anas georgica")
    assert labels(run) == {"Ardea cocoi", "Ardea alba", "heron", "Anas georgica"}


def test_a_name_of_two_taxa_takes_both_and_says_so(collection: Collection) -> None:
    run = searched(collection, "robin")

    assert labels(run) == {"Erithacus rubecula", "Turdus migratorius"}
    (note,) = run.notes
    assert "Erithacus rubecula, Turdus migratorius" in note
    assert getattr(note, "code", "") == "names"


def test_the_notes_say_what_counts_as_one_and_by_which_file(collection: Collection) -> None:
    run = searched(collection, "garza")

    (note,) = run.notes
    assert note.startswith("garza = Ardeidae = herons") and "own.csv" in note and "dwc" in note
    assert [*run.header["names"]["q"]] == ["garza"]


def test_looks_are_compared_by_the_name_that_the_encoder_knows_best(collection: Collection) -> None:
    run = searched(collection, "garza", by="both")
    (by_look,) = [note for note in run.notes if note.startswith("by look")]
    texts = ["garza", "Ardeidae", "herons"]
    live = collection.view.vectors(range(12))
    best = texts[int((collection.encoder.encode_texts(texts) @ live.T).max(axis=1).argmax())]

    assert best != "garza" and f"'{best}'" in by_look and run.header["wordings"] == {"q": [best]}
    reworded = NameReader(collection.words).reworded(Query.words("garza"), collection.encoder, live)
    assert reworded.terms == (Term(1.0, text=best),)
    picture = Query.picture("x.jpg")
    assert NameReader(collection.words).reworded(picture, collection.encoder, live) == picture


@pytest.mark.parametrize(
    ("text", "reworded"),
    [
        ("a garza on a garzadero", "a Ardeidae on a garzadero"),
        ("garza-like birds, a Garza, garza!", "garza-like birds, a Ardeidae, Ardeidae!"),
        ("garza\u0301 by a garza", "Ardeidae by a Ardeidae"),
        ("two  garza   cuca", "two  Ardea cocoi"),
    ],
)
def test_a_name_is_reworded_where_it_is_a_word_of_its_own(collection: Collection, text: str, reworded: str) -> None:
    class Knows:
        """An encoder that knows scientific names best."""

        def encode_texts(self, texts: list[str]) -> object:
            likes = [sum(text.count(name) for name in ("Ardeidae", "Ardea cocoi")) for text in texts]
            return np.array(likes, np.float32)[:, None]

    found = NameReader(collection.words).reworded(Query.words(text), Knows(), np.ones((1, 1), np.float32))  # type: ignore[arg-type]
    assert found.terms[0].text == reworded


@pytest.mark.parametrize("teach", ["--teach", "--no-teach"])
def test_why_explains_the_query_that_was_searched(collection: Collection, teach: str) -> None:
    done = run_eyespot("search", "a garza", "-g", collection.gallery.path, "--why", "--json", "--by", "both", teach)

    assert done.returncode == 0, done.stderr
    best = searched(collection, "a garza", by="both").header["wordings"]["q"][0].split()
    notes = json.loads(done.stdout)["items"][0]["why"]
    assert [one["sentence"].split()[-1] for one in notes if one["code"] == "word"] == best != ["a", "garza"]
    assert any("photos with the words" in one["sentence"] for one in notes) == (teach == "--teach")


def test_a_name_to_avoid_avoids_its_equals(collection: Collection) -> None:
    query = Query("q", (Term(1.0, text="Aves"), Term(-1.0, text="garza")))

    assert not labels(searched(collection, query)) & {"Ardea cocoi", "Ardea alba", "heron"}
    assert "Anas georgica" in labels(searched(collection, query))


def test_a_hit_says_where_its_other_name_stands(collection: Collection) -> None:
    query = Query.words("garza")
    run = searched(collection, query)
    rows = collection.view.rows_of([hit.image for hit in run["q"]])

    (why, *_) = reasons(collection, query, run.header, rows)
    assert [note.code for note in why] == ["label species"] and "other names" in why[0]


def test_only_who_wants_names_gets_them(collection: Collection, tmp_path: Path) -> None:
    assert searched(collection, "garza", by="both").header["taught"]["q"]["photos"] == 3
    assert "taught" not in searched(collection, "garza", by="both", named=False).header
    assert labels(searched(collection, "garza", named=False)) == set()
    assert collection.search("garza", by="words").run.facts
    without = Path(shutil.copytree(collection.gallery.path, tmp_path / "gallery"))
    (without / "names.sqlite").unlink()
    assert labels(searched(eyespot.open(without), "heron")) == {"heron"}
    assert "names" not in searched(eyespot.open(without), "heron").header


def test_of_several_queries_each_has_the_notes_on_its_own_words(collection: Collection) -> None:
    garza, other = collection.search(["garza", "a grey disc"], k=5)

    assert garza.notes == collection.search("garza", k=5).notes and codes_of(garza.notes) == ["names", "taught"]
    assert other.notes == collection.search("a grey disc", k=5).notes and "names" not in codes_of(other.notes)
