"""Words beside the photos: what is found by them, whatever is typed, and when the table is made again."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eyespot.gallery import disk, postings, word_index, word_table
from eyespot.gallery.indexing import index
from eyespot.gallery.word_index import NAME, WordIndex, words_of
from eyespot.types import Encoder
from tests.examples import examples
from tests.worlds import draw

TABLE = """file_name,species,title,licence,source,count
Chile/brandenburgGate2.jpg,Ardea cocoi,Garza en el cañón,CC0,https://example.org/heron,3
Chile/b.jpg,Ardea alba,,CC0,https://example.org/b,4
c.jpg,,the OR of "NEAR",CC0,,5
"""
HOSTILE = ['"', "* OR *", "c0 : x", "NEAR(a b)", "^ardea", "a AND NOT b", "-", "\0", "ard*", "'"]


def make(folder: Path, starter: Encoder) -> Path:
    for seed, name in enumerate(("Chile/brandenburgGate2.jpg", "Chile/b.jpg", "c.jpg")):
        draw(folder / "trip" / name, seed)
    (folder / "trip" / "metadata.csv").write_text(TABLE, encoding="utf-8")
    index(folder / "gallery", [str(folder / "trip")], [starter])
    return folder / "gallery"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory, starter: Encoder) -> Path:
    return make(tmp_path_factory.mktemp("words"), starter)


@pytest.fixture(scope="module")
def words(gallery: Path) -> WordIndex:
    return WordIndex(gallery)


@pytest.mark.parametrize(
    ("text", "rows", "sources"),
    [
        ("ardea", 2, {"label species"}),
        ("CAÑON", 1, {"title"}),
        ("cañón", 1, {"title"}),
        ("canons", 1, {"title"}),
        ("brandenburg", 1, {"file name"}),
        ("brandenburggate2", 1, {"file name"}),
        ("chile", 2, {"folder name"}),
        ("trip", 3, {"folder name"}),
        ("heron", 0, set()),  # it stands in an address alone
        ("cc0", 0, set()),  # of every second photo of the web
        ("jpg", 0, set()),
    ],
)
def test_words_find_rows_and_say_where_they_stand(words: WordIndex, text: str, rows: int, sources: set[str]) -> None:
    found = words.matching(words_of(text))

    assert len(found.keys) == rows == words.counts(words_of(text))[0]
    assert {name for its in words.sources(words_of(text), found.keys.tolist()).values() for name in its} == sources


def test_a_row_says_which_words_it_holds(words: WordIndex) -> None:
    found = words.matching(["ardea", "cocoi", "alba"])

    assert sorted(map(tuple, found.holds.tolist())) == [(True, False, True), (True, True, False)]
    assert (found.bm25 > 0).all()


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text() | st.sampled_from(['"', "* OR *", "c0 : x", "NEAR(a b)", "^ardea", "a AND NOT b", "-", "\0", "ard*", "'"])
)
def test_no_text_is_a_query_in_a_language_of_its_own(words: WordIndex, text: str) -> None:
    """Operators of FTS5 are words like any others: they find what holds them, and nothing fails."""
    terms = words_of(text)
    found = words.matching(terms)

    assert found.holds.shape == (len(found.keys), len(terms))
    assert found.holds.any(axis=1).all()


def by_rows(gallery: Path, terms: list[str]) -> dict[int, tuple[tuple[bool, ...], float]]:
    """What SQLite says row by row: which words each row holds, and its BM25 for all of them."""
    forms = [word_index._either(word) for word in terms]
    with closing(sqlite3.connect(gallery / NAME)) as table:
        question = "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ?"
        scores = dict(table.execute(question, (" OR ".join(forms),)).fetchall())
        held = [{key for key, _ in table.execute(question, (form,))} for form in forms]
    return {key: (tuple(key in its for its in held), score) for key, score in scores.items()}


ASKED = st.lists(
    st.sampled_from(["ardea", "cocoi", "alba", "chile", "trip", "garza", "or", "near", "zzz", "trips", "2"]), min_size=1
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ASKED, st.sampled_from([0, 1_500, 1 << 20]))
def test_lists_at_hand_change_no_answer(gallery: Path, words: WordIndex, terms: list[str], stored: int) -> None:
    """Whatever the store still holds: rows, words and every bit of BM25 are SQLite's own, and sources those read."""
    uncached = WordIndex(gallery, stored=0, listed=0)
    for asking in (words, WordIndex(gallery, stored=stored)):
        found = asking.matching(terms)
        rows = zip(map(tuple, found.holds.tolist()), found.bm25.tolist(), strict=True)

        assert dict(zip(found.keys.tolist(), rows, strict=True)) == by_rows(gallery, terms)
        assert asking.sources(terms, [0, 1, 2, 9]) == uncached.sources(terms, [0, 1, 2, 9])


def test_lists_longer_than_one_text_are_read_in_pieces(words: WordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = words.matching(["trip", "ardea"])
    monkeypatch.setattr(postings, "AT_ONCE", 1)
    pieces = WordIndex(words.gallery).matching(["trip", "ardea"])

    assert all(map(np.array_equal, whole, pieces)) and len(whole.keys) == 3


def test_a_table_that_changes_while_it_is_in_use_answers_as_a_new_one(tmp_path: Path, starter: Encoder) -> None:
    gallery = make(tmp_path, starter)
    in_use = WordIndex(gallery)
    assert len(in_use.matching(["thula", "alba"]).keys) == 1 and in_use.rows == 3
    (tmp_path / "trip" / "metadata.csv").write_text("file_name,species\nc.jpg,Egretta thula\n")
    draw(tmp_path / "trip" / "d.jpg", 7)
    index(gallery, [], [starter])
    new = WordIndex(gallery)

    assert all(map(np.array_equal, new.matching(["thula", "alba"]), in_use.matching(["thula", "alba"])))
    assert in_use.rows == new.rows == 4
    (key,) = new.matching(["thula"]).keys.tolist()
    assert in_use.sources(["thula"], [key]) == new.sources(["thula"], [key]) == {key: ["label species"]}


def test_a_shard_that_is_gone_by_now_hinders_no_reasons(tmp_path: Path, starter: Encoder) -> None:
    words = WordIndex(make(tmp_path, starter))
    keys = words.matching(["ardea"]).keys.tolist()
    shutil.rmtree(disk.shard_path(words.gallery, keys[0] // word_table.ROWS))

    assert words.sources(["ardea"], keys) == {key: ["label species"] for key in keys}


def test_operators_are_words(words: WordIndex) -> None:
    assert len(words.matching(words_of("NEAR(x)")).keys) == 1
    assert len(words.matching(words_of("ardea NOT cocoi")).keys) == 2
    assert len(words.matching(words_of("ard*")).keys) == 0


def test_it_lies_beside_the_gallery_and_is_made_again_when_labels_change(tmp_path: Path, starter: Encoder) -> None:
    gallery = make(tmp_path, starter)
    assert WordIndex(gallery).counts(["thula"]) == [0]
    made = (gallery / NAME).stat().st_mtime_ns

    assert WordIndex(gallery).counts(["thula"]) == [0]
    assert (gallery / NAME).stat().st_mtime_ns == made
    (tmp_path / "trip" / "metadata.csv").write_text("file_name,species\nc.jpg,Egretta thula\n")
    index(gallery, [], [starter])

    assert WordIndex(gallery).counts(["thula", "cocoi"]) == [1, 0]


def test_a_damaged_table_is_made_again(tmp_path: Path, starter: Encoder) -> None:
    gallery = make(tmp_path, starter)
    (gallery / NAME).write_bytes(b"no database at all" * 100)

    assert WordIndex(gallery).counts(["ardea"]) == [2]
    with sqlite3.connect(gallery / NAME) as table:
        assert table.execute("SELECT count(*) FROM sources").fetchone()[0] > 2


def test_a_table_that_is_damaged_behind_its_stamp_or_taken_away_is_made_again(tmp_path: Path, starter: Encoder) -> None:
    gallery = make(tmp_path, starter)
    in_use = WordIndex(gallery)
    assert in_use.counts(["ardea"]) == [2]
    whole = (gallery / NAME).read_bytes()
    with sqlite3.connect(gallery / NAME) as table:
        page = table.execute("SELECT rootpage FROM sqlite_master WHERE name = 'words_data'").fetchone()[0]
        size = table.execute("PRAGMA page_size").fetchone()[0]
    (gallery / NAME).write_bytes(whole[: (page - 1) * size] + bytes(len(whole) - (page - 1) * size))

    assert WordIndex(gallery).matching(["ardea"]).holds.sum() == 2
    (gallery / NAME).unlink()
    assert in_use.counts(["ardea"]) == [2]


def test_the_names_of_columns_are_those_of_the_table_that_is_there(tmp_path: Path, starter: Encoder) -> None:
    gallery = make(tmp_path, starter)
    in_use = WordIndex(gallery)
    (key,) = in_use.matching(["brandenburg"]).keys.tolist()
    before = in_use.columns
    (tmp_path / "trip" / "metadata.csv").write_text(TABLE.replace("species", "alias,species", 1).replace(",A", ",x,A"))
    index(gallery, [], [starter])
    WordIndex(gallery).counts(["brandenburg"])

    assert in_use.columns != before and in_use.sources(["brandenburg"], [key]) == {key: ["file name"]}


def test_many_rows_are_asked_for_at_once(words: WordIndex) -> None:
    (key,) = words.matching(["alba"]).keys.tolist()
    found = words.sources(["alba"], [*range(1_000_000, 1_300_000), key])

    assert len(found) == 300_001 and found[key] == ["label species"]


def test_tens_of_thousands_of_names_are_few_questions_about_the_rows_that_are_shown(gallery: Path) -> None:
    (shard,) = disk.shard_paths(gallery)
    names = ("cocoi", "ardea alba", "cocoi ardea", "cañon", *(f"name{number} alba" for number in range(20_000)))
    questions: list[str] = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
        word_table.fill_some(table, shard, [0, 1, 2, 3], {})
        table.set_trace_callback(questions.append)
        found = set(word_index._sources(table, [word_index.QueryWord("aves", names)]))
        columns = table.execute("SELECT count(*) FROM sources").fetchone()[0]

    assert sorted(name for _, name in found) == ["label species", "label species", "title"]
    assert len([question for question in questions if question.startswith("SELECT rowid")]) == 2 * columns


def test_a_gallery_that_may_not_be_written_has_it_in_the_cache_or_in_memory(
    tmp_path: Path, starter: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in the place of the file cannot be written either, by root neither."""
    gallery = make(tmp_path, starter)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (gallery / NAME / "blocked").mkdir(parents=True)

    assert WordIndex(gallery).counts(["ardea"]) == [2]
    (made,) = (tmp_path / "cache").rglob("*.sqlite")
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("a file, no folder")
    in_memory = WordIndex(gallery)

    assert in_memory.counts(["ardea", "garza"]) == [2, 1]
    assert not os.path.exists(made)


def test_without_a_home_nothing_is_written_where_others_may_write(
    tmp_path: Path, starter: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = make(tmp_path, starter)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "~nobody-of-this-name")  # what is no home is none
    (tmp_path / "passing").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "passing"))
    (gallery / NAME / "blocked").mkdir(parents=True)

    assert WordIndex(gallery).counts(["ardea"]) == [2]
    assert [*(tmp_path / "passing").iterdir()] == []


def test_photos_that_are_gone_have_no_words(tmp_path: Path, starter: Encoder) -> None:
    gallery = make(tmp_path, starter)
    from eyespot.gallery.indexing import Options

    (tmp_path / "trip" / "c.jpg").unlink()
    index(gallery, [str(tmp_path / "trip")], [starter], Options(forget=True))

    assert WordIndex(gallery).counts(["near"]) == [0]
