"""Searching by words and look: a small world checked by hand, and the laws of the fusion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from PIL import Image

import eyespot
from eyespot.search.by_words import WEIGHT, ByWords, reasons
from eyespot.search.chain import chain_of
from eyespot.search.collection import Collection
from eyespot.search.label_learning import Contrast, learned
from eyespot.search.word_matches import label_words, word_matches
from eyespot.settings.search import StageSettings
from eyespot.types import Mask, Query, Run, Term, UsageError
from tests.examples import examples
from tests.worlds import draw_photos, index_gallery

LABELS = {0: "Ardea cocoi", 1: "Ardea cocoi", 2: "Ardea alba", 3: "Egretta thula", 4: "heron"}
KNOWN = ["ardea", "cocoi", "alba", "thula", "heron"]
WORDS = st.lists(st.sampled_from([*KNOWN, "a", "the", "stripes", "zzz"]), max_size=5)
LAW = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """24 drawn photos in shards of 7; five of them bear a species; 00 and 01 look alike."""
    folder = tmp_path_factory.mktemp("by_words")
    photos = draw_photos(folder / "x", 24, name="{:02}.png")
    darker = Image.open(photos / "00.png").point(lambda value: value * 9 // 10)
    darker.save(photos / "01.png")
    rows = "".join(f"{seed:02d}.png,{name}\n" for seed, name in LABELS.items())
    (photos / "metadata.csv").write_text("file_name,species\n" + rows)
    index_gallery(folder / "gallery", photos, shard_rows=7)
    return eyespot.open(folder / "gallery")


def searched(collection: Collection, text: str | Query, k: int = 24, mask: Mask | None = None, **how: object) -> Run:
    query = Query.words(text) if isinstance(text, str) else text
    return chain_of(collection, StageSettings.read(**{"by": "look", **how}), k=k, mask=mask)([query])


def names(run: Run, first: int = 30) -> list[str]:
    return [Path(run.facts[hit.image]["path"]).stem for hit in run["q"][:first]]


def test_what_the_encoder_does_not_see_is_noted_where_labels_do_not_answer(collection: Collection) -> None:
    assert "may not know" not in str(collection.search("Ardea cocoi").notes)
    assert "may not know" in str(collection.search("Ardea cocoi", by="look").notes)
    assert "hardly sees colours (red)" in str(collection.search("a red heron").notes)


def test_words_alone_rank_by_the_share_of_the_query_that_a_photo_bears(collection: Collection) -> None:
    run = searched(collection, "ardea cocoi", by="words")

    assert names(run) == ["00", "01", "02"]
    assert run["q"][0].score == pytest.approx(1)
    assert 0 < run["q"][2].score < 0.9
    assert run.header["by"] == "words"


def test_function_words_name_nothing() -> None:
    assert label_words("a photo of the Ardea, 5 m from a lake") == ["ardea", "lake"]
    assert label_words("鹭") == ["鹭"]


def test_both_puts_photos_with_all_words_first_and_says_so(collection: Collection) -> None:
    run = searched(collection, "ardea cocoi", by="both")

    assert {*names(run, 2)} == {"00", "01"}
    assert len(run["q"]) == 24 and run.header["by"] == "both" and run.header["worded"] == ["q"]
    rows = collection.view.rows_of([hit.image for hit in run["q"]])
    why = [[note.code for note in its] for its in reasons(collection, Query.words("ardea cocoi"), run.header, rows)]
    assert why[0][:2] == ["label species", "look"] and why[-1][0] == "look"


def test_a_part_of_a_name_counts_where_no_photo_bears_the_whole(collection: Collection) -> None:
    """Ardea alba is no Ardea cocoi; and Ardea alone moves up and stays below what looks most like two words."""
    query = Query.words("ardea cocoi")
    run = searched(collection, query, by="both")
    (alba,) = [at for at, name in enumerate(names(run)) if name == "02"]
    rows = collection.view.rows_of([run["q"][alba].image])

    assert reasons(collection, query, run.header, rows)[0][0].code == "look"
    look, both = (searched(collection, "ardea zzz", by=by)["q"] for by in ("look", "both"))
    scores = {hit.image: hit.score for hit in look}
    up = {hit.image: hit.score - scores[hit.image] for hit in both if hit.score != scores[hit.image]}
    assert len(up) == 3 and min(up.values()) > 0 and both[0] == look[0]
    assert {*names(searched(collection, "zzz ardea cocoi", by="both"), 2)} == {"00", "01"}


def test_the_score_is_the_cosine_and_the_share_on_the_scale_of_the_cosines(collection: Collection) -> None:
    look = {hit.image: hit.score for hit in searched(collection, "thula", by="look")["q"]}
    both = {hit.image: hit.score for hit in searched(collection, "thula", by="both", teach=False)["q"]}

    raised = {image: both[image] - look[image] for image in look}
    (egret,) = [image for image, more in raised.items() if more > 1e-4]
    assert raised[egret] == pytest.approx(WEIGHT * np.std(list(look.values())), rel=0.01)


def test_a_word_to_avoid_pushes_its_photos_away(collection: Collection) -> None:
    query = Query("q", (Term(1.0, text="ardea"), Term(-1.0, text="cocoi")))

    assert names(searched(collection, query, by="both"), 1) == ["02"]
    assert names(searched(collection, query, by="words"))[0] == "02"
    pushed = Query("q", (Term(1.0, text="stripes"), Term(-0.01, text="cocoi")))
    assert {*names(searched(collection, pushed, by="both"))[-2:]} == {"00", "01"}
    look = names(searched(collection, pushed, by="look"))
    assert names(searched(collection, pushed, by="both", k=9)) == [name for name in look if name > "01"][:9]


def test_a_filter_holds_and_photos_outside_of_it_still_teach(collection: Collection) -> None:
    allowed = collection.allowed("species IS NULL")
    run = searched(collection, "ardea cocoi", by="both", mask=allowed)

    assert len(run["q"]) == 19 and not {"00", "01", "02"} & {*names(run)}
    assert run.header["taught"]["q"]["photos"] == 2
    assert names(searched(collection, "ardea", by="words", mask=allowed)) == []


def test_words_need_a_first_stage_of_their_own(collection: Collection) -> None:
    for options in ({"neighbours": 3, "by": "both"}, {"by": "smell"}):
        with pytest.raises(UsageError):
            searched(collection, "thula", **options)
    assert ByWords.of(collection, 3)([Query.words("thula")])["q"]


@LAW
@given(words=WORDS)
def test_a_query_whose_words_stand_nowhere_is_ranked_as_by_look(collection: Collection, words: list[str]) -> None:
    text = " ".join(["stripes", *words])
    matched = word_matches(collection.words, collection.view, Query.words(text)).rows
    look, both = searched(collection, text, by="look"), searched(collection, text, by="both")

    assert bool(len(matched)) == bool({*words} & {*KNOWN})
    if not len(matched):
        assert both["q"] == look["q"]
        assert both.header["worded"] == []


@LAW
@given(words=WORDS, k=st.integers(1, 24))
def test_the_first_hits_do_not_depend_on_how_many_are_wanted(collection: Collection, words: list[str], k: int) -> None:
    text = " ".join(["stripes", *words])

    whole, cut = searched(collection, text, by="both"), searched(collection, text, by="both", k=k)

    assert [hit.image for hit in cut["q"]] == [hit.image for hit in whole["q"][:k]]


@LAW
@given(words=WORDS)
def test_a_photo_with_words_never_stands_lower_than_by_look(collection: Collection, words: list[str]) -> None:
    text = " ".join(["stripes", *words])
    look, both = ([hit.image for hit in searched(collection, text, by=by, teach=False)["q"]] for by in ("look", "both"))
    rows = word_matches(collection.words, collection.view, Query.words(text)).rows.tolist()

    best = {fact["id"] for fact in collection.view.facts(rows)}
    without = [image for image in look if image not in best]
    assert [image for image in both if image not in best] == without
    assert all(both.index(image) <= look.index(image) + len(best) for image in best)


def unit(rows: object) -> np.ndarray:
    made = np.asarray(rows, np.float32)
    return made / np.linalg.norm(made, axis=-1, keepdims=True)


def test_what_the_encoder_does_not_know_is_learned_from_photos_that_agree() -> None:
    """The words point along z, the labelled photos along x, the others along y."""
    rng = np.random.default_rng(0)
    background = unit(np.array([0, 1, 0]) + rng.normal(0, 0.1, (50, 3)))
    labelled = unit([[1, 0.1, 0], [1, 0, 0.05], [1, 0, -0.1]])

    mixed, teaching = learned(unit([0, 0, 1]), labelled, Contrast(background))

    assert teaching.photos == 3 and teaching.agreed > 0.85
    assert mixed[0] > 0.3 and np.linalg.norm(mixed) == pytest.approx(1)
    assert teaching.sentence.startswith("3 photos have these words")


@pytest.mark.parametrize(("labels", "teaches"), [("aabbccddee", True), ("abcdeabcde", False), ("aabbccddef", False)])
def test_one_photo_teaches_what_labels_of_its_column_have_shown(labels: str, teaches: bool) -> None:
    """Ten photos of five looks: of two with one label each, which look alike or not; too few labels show nothing."""
    sample = unit(np.repeat(np.eye(5), 2, axis=0) + np.random.default_rng(0).normal(0, 0.1, (10, 5)))
    contrast = Contrast(sample, lambda: [{"species": label} for label in labels])
    query, teaching = learned(unit([0, 1, 1, 0, 0]), sample[:1], contrast, contrast.agreed("species"))
    assert (teaching.weight > 0.5, query[0] > 0.3) == (teaches, teaches)
    assert teaching.sentence.startswith("1 photo has these words in a label")


def test_what_the_encoder_knows_is_taught_less() -> None:
    """Photos on both sides of an axis: one vector of words points along it, the other along another."""
    rng, axes = np.random.default_rng(0), np.eye(8)
    background = unit(rng.normal(0, 1, (400, 8)))
    labelled = unit([axes[0] + 0.5 * axes[1], axes[0] - 0.5 * axes[1]])

    known, unknown = (learned(unit(axes[at]), labelled, Contrast(background))[1].weight for at in (0, 5))

    assert 0 < known < unknown <= 1


def test_photos_that_have_nothing_in_common_teach_nothing() -> None:
    background = unit(np.random.default_rng(0).normal(0, 1, (400, 8)))
    words = unit(np.eye(8)[0])

    mixed, teaching = learned(
        words, unit([np.eye(8)[1], -np.eye(8)[1], np.eye(8)[2], -np.eye(8)[2]]), Contrast(background)
    )

    assert teaching.weight == 0
    np.testing.assert_array_equal(mixed, words)


def test_directions_in_which_all_photos_differ_count_less() -> None:
    """All photos differ along x, and the labelled ones also stand out along y."""
    rng = np.random.default_rng(0)
    background = unit(np.array([0, 0, 3]) + rng.normal(0, (1.0, 0.1, 0.1), (200, 3)))
    labelled = unit([[0.9, 0.5, 3], [1.1, 0.6, 3], [0.8, 0.4, 3]])

    look = Contrast(background).direction(labelled)

    mean = labelled.mean(0) - background.mean(0)
    assert look[1] / look[0] > mean[1] / mean[0]


def test_teaching_can_be_left_out_and_says_what_it_did(collection: Collection) -> None:
    """The Python call is by both, and is taught, unless told."""
    run, untold = collection.search("ardea cocoi").run, collection.search("ardea cocoi", teach=False).run

    assert run.header["taught"]["q"]["photos"] == 2 and run.header["by"] == "both"
    assert [getattr(note, "code", "") for note in run.notes][:1] == ["taught"] and "--" not in run.notes[0]
    assert "taught" not in untold.header and untold.notes == run.notes[1:]
    assert collection.search("thula", by="look").run.header["by"] == "look"


@LAW
@given(WORDS, st.integers(1, 24), st.integers(1, 8), st.integers(0, 24))
def test_its_depth_changes_nothing(collection: Collection, words: list[str], k: int, first: int, rescored: int) -> None:
    """The same rows with the same scores as where every photo with words is compared with the query."""
    query = Query.words(" ".join(["stripes", *words]))
    stage = replace(ByWords.of(collection, k), rescored=24)
    deep, shallow = stage([query]), replace(stage, rescored=rescored, first=first)([query])

    assert [tuple(hit) for hit in shallow["q"]] == [tuple(hit) for hit in deep["q"]]
    assert shallow.header == deep.header and shallow.notes == deep.notes
