"""A search over a gallery is the full ranking of cosines, cut at k: with shards, filters and gone pictures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import eyespot
from eyespot import rooms
from eyespot.gallery import disk
from eyespot.runs import read_run, write_run
from eyespot.search import JudgeRerank, Nearest
from eyespot.search.collection import NO_MATCH, Collection, no_match
from eyespot.search.embedding import embed
from eyespot.search.hits import Hits
from eyespot.search.query_language import parse
from eyespot.search.why import MOST_WORDS, QueryParts
from eyespot.types import EyespotError, Query, Run, Term, UsageError
from eyespot.types.messages import codes_of
from tests.wording import raises
from tests.worlds import draw_photos, index_gallery


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Thirty drawn photos in shards of four, two of them gone again, with a label on every third."""
    folder = tmp_path_factory.mktemp("collection")
    photos = draw_photos(folder / "photos", 30, name="{:02}.jpg")
    rows = "".join(f"{seed:02d}.jpg,{seed}\n" for seed in range(0, 30, 3))
    (photos / "metadata.csv").write_text("file_name,third\n" + rows)
    index_gallery(folder / "gallery", photos, shard_rows=4)
    for seed in (5, 17):
        (photos / f"{seed:02d}.jpg").unlink()
    index_gallery(folder / "gallery", shard_rows=4, forget=True)
    return eyespot.open(folder / "gallery")


def expected(collection: Collection, query: Query, allowed: np.ndarray) -> list[str]:
    """Ids by brute force in float64."""
    vectors = np.concatenate(collection.view.blocks).astype(np.float64)
    scores = vectors @ embed([query], collection.encoder)[0].astype(np.float64)
    rows = [row for row in np.argsort(-scores, kind="stable") if allowed[row]]
    return [fact["id"] for fact in collection.view.facts(rows)]


@pytest.mark.parametrize("words", ["stripes", "a red ball", "2:stripes - a ball"])
def test_the_whole_ranking_is_that_of_the_cosines(collection: Collection, words: str) -> None:
    run = collection.search(words, k=100).run

    query = parse(words)
    assert list(run.image) == expected(collection, query, collection.view.live)
    assert len(run.image) == 28


@pytest.mark.parametrize(("where", "count"), [("third IS NOT NULL", 10), ("third < 4", 2), ("third = 27", 1)])
def test_a_filter_never_costs_a_hit(collection: Collection, where: str, count: int) -> None:
    run = collection.search("stripes", k=100, where=where).run

    assert len(run.image) == count
    everything = list(collection.search("stripes", k=100).run.image)
    assert list(run.image) == [id for id in everything if id in run.facts]


def test_hits_show_themselves(collection: Collection, tmp_path: Path) -> None:
    hits = collection.search("stripes", k=12)

    assert hits.ids == list(hits.run.image) and hits.scores == hits.run.score.tolist() and len(hits) == 12
    assert hits[0].path == Path(hits.run.facts[hits.ids[0]]["path"]) and hits[0].title in hits[0].path.name
    assert [hit.rank for hit in hits[3:5]] == [4, 5] and list(hits[3:5].run.image) == hits.ids[3:5]
    assert max(hits[0].thumbnail(50).size) == 50
    assert repr(hits).splitlines()[0] == "12 hits for 'stripes' by starter" and "… and 2 more" in repr(hits)
    assert [row["id"] for row in hits.to_dicts()] == hits.ids and len({*hits, *hits}) == 12
    assert repr(collection).endswith("28 pictures, 512 numbers each by starter, searched by exact>")
    assert set(hits.ids) < set(collection.ids)
    write_run(hits, tmp_path / "run.txt")  # as the ranking that they are
    assert list(read_run(tmp_path / "run.txt").image) == hits.ids and len(collection.ids) == 28
    with pytest.raises(UsageError, match="1 pixel"):
        hits[0].thumbnail(0)


def test_a_notebook_shows_at_most_forty_pictures_with_their_names_escaped(collection: Collection) -> None:
    ids = [fact["id"] for fact in collection.view.facts(np.flatnonzero(collection.view.live).tolist())]
    run = Run({"q": [(f"{id}{again}", 0.5) for again in range(2) for id in ids]})
    run.facts = {image: {**collection.view.facts([0])[0], "title": "<script>x</script>"} for image in run.images}
    page = Hits(run)._repr_html_()

    assert page.count("<img") == 40 and "and 16 more" in page and ">2 · 0.500 · " in page and ">q</b>" in page
    assert "<script" not in page and "&lt;script&gt;" in page and "http" not in page


def test_several_queries_find_what_each_finds_alone(collection: Collection) -> None:
    photo = Path(collection.view.facts([0])[0]["path"])
    pixels = np.asarray(Image.open(photo).convert("RGB"))
    queries = ["stripes", Query.words("a red ball", "ball"), photo, Image.open(photo), pixels]

    found = collection.search(queries, k=7)

    assert [hits.run["q" if "q" in hits.run else next(iter(hits.run))] for hits in found] == [
        next(iter(collection.search(query, k=7).run.values())) for query in queries
    ]
    assert found[2].ids == found[3].ids == found[4].ids and found[0].query == "stripes"
    assert collection.search([], k=7) == []


def test_each_of_several_queries_has_the_notes_on_itself_alone(collection: Collection) -> None:
    queries = ["stripes", "no stripes at all", "xqzzy"]
    for how in ({"rerank": "encoder:starter", "depth": 3}, {}):
        notes = [collection.search(query, k=5, **how).notes for query in queries]
        assert [hits.notes for hits in collection.search(queries, k=5, **how)] == notes
        assert notes[1] != notes[0] != notes[2]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"query": "a", "limit": 5}, r"no setting 'limit' \(write k\)"),
        ({"query": "a", "wher": "x"}, r"no setting 'wher' \(write where\)"),
        ({"query": np.ones(512, np.float32)}, "a vector: collection.index.search"),
        ({"query": [5]}, "a picture is a path"),
        ({"query": "a", "where": {"category": "x"}}, "where is a condition in SQL"),
        ({"query": "a", "k": "x"}, "k cannot be 'x'"),
    ],
)
def test_what_is_no_search_is_refused_with_the_way_out(collection: Collection, how: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        collection.search(**how)


def test_a_function_is_a_judge_and_a_stage(collection: Collection) -> None:
    last = collection.search("stripes", k=9, by="look").ids[-1]
    place = Path(collection.view.facts(collection.view.rows_of([last]))[0]["path"])

    def judge(query: str, picture: str) -> bool:
        return query == "stripes" and picture == str(place)

    def backwards(queries: Any, run: Run) -> Run:
        return Run.from_orders({query: [hit.image for hit in run[query]][::-1] for query in run})

    stages = Nearest.of(collection, 9), JudgeRerank.of(collection, judge, depth=9)
    assert eyespot.Chain(*stages)([Query.words("stripes")])["q"][0].image == last
    assert eyespot.Chain(*stages, backwards)([Query.words("stripes")])["q"][-1].image == last
    (run,) = collection.answers([Query.words("stripes")], eyespot.Chain(*stages, backwards))
    assert run.images[-1] == last
    with pytest.raises(UsageError, match="a judge gives a probability"):
        eyespot.Chain(stages[0], JudgeRerank.of(collection, lambda *_: "yes", depth=9))([Query.words("stripes")])


def test_pictures_and_words_are_added_with_their_weights(collection: Collection) -> None:
    photo = Path(collection.view.facts([0])[0]["path"])
    words, picture = Query.words("stripes"), Query.picture(photo)
    both = Query("q", (Term(3.0, text="stripes"), Term(-1.0, image=photo)))

    vectors = embed([words, picture, both], collection.encoder)

    mixed = 3 * vectors[0] - vectors[1]
    np.testing.assert_allclose(vectors[2], mixed / np.linalg.norm(mixed), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def doubts(collection: Collection, query: Query | str) -> bool:
    """Whether the answer says that there is probably no good match."""
    return NO_MATCH in codes_of(collection.search(query).notes)


@pytest.mark.parametrize(("best", "weakest"), [(0.2431, 0.2434), (0.1, 0.2), (0.24300001, 0.24300002)])
def test_the_note_tells_the_best_score_from_that_of_a_match(best: float, weakest: float) -> None:
    shown = re.findall(r"\d\.\d+", no_match(best, weakest))

    assert float(shown[0]) < float(shown[1])


def test_one_text_is_doubted_exactly_below_its_weakest_match(collection: Collection) -> None:
    flags = {text: doubts(collection, text) for text in ("piano", "a giraffe", "a photo of a disc", "stripes")}

    below = {text: collection.search(text).run.score.max() < collection.encoder.weakest_match(text) for text in flags}
    assert flags == below
    assert flags["piano"] and not flags["stripes"]
    assert doubts(collection, "2:piano")


def test_sums_and_pictures_are_not_doubted(collection: Collection) -> None:
    photo = Path(collection.view.facts([0])[0]["path"])

    assert not doubts(collection, "piano + piano")
    assert not doubts(collection, Query("q", (Term(-1.0, text="piano"),)))
    assert not doubts(collection, Query.composed(photo, "piano"))
    assert not doubts(collection, Query.picture(photo))


@pytest.mark.parametrize(
    ("query", "known"), [("piano", True), ("two pianos", False), ("stripes", False), ("stripes - piano", False)]
)
def test_a_search_has_an_end_where_the_encoder_knows_the_words(collection: Collection, query: str, known: bool) -> None:
    end = collection.search(query).run.header["likely_above"]
    assert end == (collection.encoder.weakest_match(query) if known else None)


def test_a_space_of_another_revision_is_refused_with_the_way_out(collection: Collection, tmp_path: Path) -> None:
    header = disk.read_header(collection.gallery.path)
    ((stem, space),) = header.spaces.items()
    older = type(space)(space.encoder, "0", space.weights, space.preprocessing, space.dim)
    disk.write_header(tmp_path, disk.Header(header.roots, {stem: older}, stem, header.rows))
    (tmp_path / "shards").symlink_to(collection.gallery.path / "shards")

    with pytest.raises(EyespotError, match="made with another"):
        eyespot.open(tmp_path).search("stripes")


# -- why a photo has its score -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encoder() -> Any:
    return rooms.load("encoders", "starter")


@pytest.fixture(scope="module")
def photo(encoder: Any) -> Any:
    """What a photo of a penguin on rocks might be."""
    vectors = encoder.encode_texts(["a penguin", "rocks"])
    return vectors.sum(0) / np.linalg.norm(vectors.sum(0))


def test_what_terms_add_sums_up_to_the_score(encoder: Any, photo: Any) -> None:
    report = QueryParts.of(parse("2:penguin + rocks - people"), encoder).explain(photo)

    assert [(one.name, one.weight) for one in report.terms] == [("penguin", 2), ("rocks", 1), ("people", -1)]
    assert sum(one.adds or 0 for one in report.terms) == pytest.approx(report.score, abs=1e-5)
    penguin, rocks, people = report.terms
    assert (penguin.adds or 0) > (rocks.adds or 0) > abs(people.adds or 0)
    assert penguin.without == pytest.approx(
        QueryParts.of(parse("rocks - people"), encoder).explain(photo).score, abs=1e-6
    )


def test_without_a_word_is_the_score_of_the_words_that_are_left(encoder: Any, photo: Any) -> None:
    report = QueryParts.of(Query.words("a penguin on rocks"), encoder).explain(photo)

    assert [word for word, _ in report.words] == ["a", "penguin", "on", "rocks"]
    assert report.words[1][1] == pytest.approx(
        QueryParts.of(Query.words("a on rocks"), encoder).explain(photo).score, abs=1e-6
    )
    assert min(report.words, key=lambda one: one[1])[0] in ("penguin", "rocks")
    assert report.terms[0].without is None  # nothing would be left


def test_of_a_long_text_only_some_words_are_left_out(encoder: Any, photo: Any) -> None:
    report = QueryParts.of(Query.words("penguin " * 40), encoder).explain(photo)

    assert len(report.words) == MOST_WORDS


def test_what_cancels_out_without_a_term_has_no_score(encoder: Any, photo: Any) -> None:
    report = QueryParts.of(parse("penguin - penguin + rocks"), encoder).explain(photo)

    assert report.terms[2].without is None and report.terms[0].without is not None
    with raises(UsageError):
        QueryParts.of(parse("penguin - penguin"), encoder).explain(photo)
