"""Words beside the photos: what is found by them, whatever is typed, and when the table is made again."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from eyespot.gallery import disk, postings, word_table, word_texts
from eyespot.gallery.postings import ENTRY, ArrayStore, KeyList
from eyespot.gallery.segments import compact
from eyespot.gallery.word_index import QueryWord, WordIndex, words_of
from eyespot.gallery.word_table import complete
from tests.examples import examples
from tests.made_once import made_once
from tests.worlds import draw, index_gallery

TABLE = """file_name,species,title,licence,source,count
Chile/brandenburgGate2.jpg,Ardea cocoi,Garza en el cañón,CC0,https://example.org/heron,3
Chile/b.jpg,Ardea alba,,CC0,https://example.org/b,4
c.jpg,,the OR of "NEAR",CC0,,5
"""
HOSTILE = ['"', "* OR *", "c0 : x", "NEAR(a b)", "^ardea", "a AND NOT b", "-", "\0", "ard*", "'"]


def make(folder: Path) -> None:
    for seed, name in enumerate(("Chile/brandenburgGate2.jpg", "Chile/b.jpg", "c.jpg")):
        draw(folder / "trip" / name, seed)
    (folder / "trip" / "metadata.csv").write_text(TABLE, encoding="utf-8")
    index_gallery(folder / "gallery", folder / "trip", shard_rows=2)


def count(gallery: Path, word: str) -> int:
    """How many rows hold a word, from a table that the gallery has."""
    words = WordIndex(gallery)
    found = len(words.matching([word]).keys)
    assert not words.notes
    return found


def table_at(gallery: Path) -> Path:
    """The table of the first shard."""
    return disk.shard_paths(gallery)[0] / disk.WORDS


def own(folder: Path) -> Path:
    """A gallery whose photos are those of the folder."""
    make(folder)
    return folder / "gallery"


@pytest.fixture(scope="module")
def gallery() -> Path:
    return made_once("words", make) / "gallery"


@pytest.fixture
def copied(gallery: Path, tmp_path: Path) -> Path:
    """One whose table may be damaged."""
    return Path(shutil.copytree(gallery, tmp_path / "gallery"))


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
        ("NEAR(x)", 1, {"title"}),
        ("ardea NOT cocoi", 2, {"label species"}),
        ("ard*", 0, set()),
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

    assert len(found.keys) == rows
    assert {name for its in words.sources(words_of(text), found.keys.tolist()).values() for name in its} == sources


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text() | st.sampled_from(HOSTILE))
def test_no_text_is_a_query_in_a_language_of_its_own(words: WordIndex, text: str) -> None:
    """Operators of FTS5 are words like any others: they find what holds them, and nothing fails."""
    terms = words_of(text)
    found = words.matching(terms)

    assert found.holds.shape == (len(found.keys), len(terms))
    assert found.holds.any(axis=1).all()


def by_rows(gallery: Path, terms: list[str]) -> dict[int, tuple[tuple[bool, ...], float]]:
    """What SQLite says row by row of one table of all rows: which words each row holds, and its BM25 for all."""
    forms = [sorted({word, *([f"{word}s", f"{word}es"] if len(word) > 2 else [])}) for word in terms]
    forms = [["trip", *each] if word == "trips" else each for word, each in zip(terms, forms, strict=True)]
    either = ["(" + " OR ".join(f'"{form}"' for form in each) + ")" for each in forms]
    numbers = {int(shard.name.partition("-")[0]): shard for shard in disk.shard_paths(gallery)}
    roots = disk.read_header(gallery).roots
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as table:
        every = dict.fromkeys(one for shard in numbers.values() for one in word_table.sources_of(shard))
        sources = sorted(every, key=lambda one: one[0] is None)  # files and folders last
        insert = word_texts.make_tables(table, sources)
        for number, shard in numbers.items():
            lines = word_table._texts(shard, sources, roots, None)
            table.executemany(insert, ((number * postings.ROWS + row, *texts) for row, texts in lines))
        question = "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ?"
        scores = dict(table.execute(question, (" OR ".join(either),)).fetchall())
        held = [{key for key, _ in table.execute(question, (form,))} for form in either]
    return {key: (tuple(key in its for its in held), score) for key, score in scores.items()}


ASKED = st.lists(
    st.sampled_from(["ardea", "cocoi", "alba", "chile", "trip", "garza", "or", "near", "zzz", "trips", "2"]), min_size=1
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ASKED, st.sampled_from([0, 1_500, 1 << 20]))
def test_lists_at_hand_change_no_answer(gallery: Path, words: WordIndex, terms: list[str], stored: int) -> None:
    """Whatever the store still holds: rows, words and every bit of BM25 are those of one table of all shards."""
    for asking in (words, WordIndex(gallery, stored=stored)):
        found = asking.matching(terms)
        rows = zip(map(tuple, found.holds.tolist()), found.bm25.tolist(), strict=True)

        assert dict(zip(found.keys.tolist(), rows, strict=True)) == by_rows(gallery, terms)


def test_lists_longer_than_one_text_are_read_in_pieces(words: WordIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = words.matching(["trip", "ardea"])
    monkeypatch.setattr(postings, "AT_ONCE", 1)
    pieces = WordIndex(words.gallery).matching(["trip", "ardea"])

    assert all(map(np.array_equal, whole, pieces)) and len(whole.keys) == 3


def test_a_table_that_changes_while_it_is_in_use_answers_as_a_new_one(tmp_path: Path) -> None:
    gallery = own(tmp_path)
    in_use, made = WordIndex(gallery), table_at(gallery).stat().st_mtime_ns
    assert len(in_use.matching(["thula", "alba"]).keys) == 1 and in_use.rows == 3
    (key,) = in_use.matching(["brandenburg"]).keys.tolist()
    draw(tmp_path / "trip" / "d.jpg", 7)
    index_gallery(gallery)
    assert table_at(gallery).stat().st_mtime_ns == made  # one more photo leaves the tables of other shards
    (tmp_path / "trip" / "metadata.csv").write_text("file_name,alias,species\nc.jpg,x,Egretta thula\n")
    index_gallery(gallery)
    new = WordIndex(gallery)

    assert all(map(np.array_equal, new.matching(["thula", "alba"]), in_use.matching(["thula", "alba"])))
    assert in_use.rows == new.rows == 4 and [count(gallery, word) for word in ("thula", "cocoi")] == [1, 0]
    assert in_use.sources(["brandenburg"], [key]) == new.sources(["brandenburg"], [key]) == {key: ["file name"]}
    assert not in_use.notes and not new.notes


def test_merged_shards_answer_alike_from_a_table_that_merging_made(copied: Path) -> None:
    before = WordIndex(copied).matching(["ardea", "trip", "garza"])
    compact(copied, grace=0)
    after = WordIndex(copied).matching(["ardea", "trip", "garza"])

    assert len(disk.shard_paths(copied)) == 1 and count(copied, "ardea") == 2
    assert np.array_equal(before.bm25, after.bm25) and np.array_equal(before.holds, after.holds)


def test_rows_of_a_segment_have_reasons_while_the_shards_that_it_was_made_of_are_still_there(copied: Path) -> None:
    first = disk.shard_paths(copied)[0]
    shutil.copytree(first, copied / "before")
    compact(copied, grace=0)
    shutil.move(copied / "before", first)
    words = WordIndex(copied)

    keys = words.matching(["near"]).keys.tolist()

    assert keys == [2] and words.sources(["near"], keys) == {2: ["title"]}


def test_a_shard_that_is_gone_by_now_hinders_no_reasons(copied: Path) -> None:
    words = WordIndex(copied)
    keys = words.matching(["ardea"]).keys.tolist()
    shutil.rmtree(disk.shard_path(copied, keys[0] // postings.ROWS))

    assert set(words.sources(["ardea"], keys)) == set(keys) and words.rows < 3


def test_a_table_that_is_damaged_behind_its_stamp_or_taken_away_is_made_again(copied: Path) -> None:
    place, in_use = table_at(copied), WordIndex(copied)
    assert len(in_use.matching(["ardea"]).keys) == 2
    whole = place.read_bytes()
    with closing(sqlite3.connect(place)) as table:
        page = table.execute("SELECT rootpage FROM sqlite_master WHERE name = 'words_data'").fetchone()[0]
        size = table.execute("PRAGMA page_size").fetchone()[0]
    cut = whole[: (page - 1) * size] + bytes(len(whole) - (page - 1) * size)
    for damage in (b"no database at all" * 100, cut, None):
        place.unlink()
        if damage is not None:
            place.write_bytes(damage)
        words = WordIndex(copied)

        assert [one.matching(["ardea"]).holds.sum() for one in (words, in_use)] == [2, 2]
    assert place.exists() is False and words.made == 1
    complete(copied)
    assert count(copied, "ardea") == 2


def test_many_rows_are_asked_for_at_once(words: WordIndex) -> None:
    (key,) = words.matching(["alba"]).keys.tolist()
    found = words.sources(["alba"], [*range(1_000_000, 1_300_000), key])

    assert len(found) == 300_001 and found[key] == ["label species"]


def test_tens_of_thousands_of_names_are_few_questions_about_the_rows_that_are_shown(
    words: WordIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("cocoi", "ardea alba", "cocoi ardea", "cañon", *(f"name{number} alba" for number in range(20_000)))
    connect, questions = sqlite3.connect, list[str]()

    def traced(*where: Any, **options: Any) -> sqlite3.Connection:
        table = connect(*where, **options)
        table.set_trace_callback(questions.append)
        return table

    monkeypatch.setattr(sqlite3, "connect", traced)
    found = words.sources([QueryWord("aves", names)], [0, 1, 2])

    assert sorted(name for names in found.values() for name in names) == ["label species", "label species", "title"]
    asked = [question for question in questions if question.startswith("SELECT rowid")]
    assert len(asked) % 2 == 0 and 0 < len(asked) <= 2 * 5 * 2  # shards, columns, and questions of each


def test_a_gallery_without_tables_has_them_in_memory(copied: Path) -> None:
    for shard in disk.shard_paths(copied):
        (shard / disk.WORDS).unlink()
    in_memory = WordIndex(copied)

    assert [len(in_memory.matching([word]).keys) for word in ("ardea", "garza")] == [2, 1]
    assert "eyespot index -g" in in_memory.notes[0] and not [*copied.rglob(disk.WORDS)]


def test_photos_that_are_gone_have_no_words(tmp_path: Path) -> None:
    gallery = own(tmp_path)
    (tmp_path / "trip" / "c.jpg").unlink()
    index_gallery(gallery, tmp_path / "trip", forget=True)

    assert count(gallery, "near") == 0


# -- what is stored of posting lists ------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=30), st.integers(0, 4 * ENTRY))
def test_a_store_never_holds_more_than_its_limit_and_gives_what_was_made(batches: list[list[int]], limit: int) -> None:
    store = ArrayStore(limit)
    for keys in batches:
        found = store.get(keys, lambda lacking: [KeyList(np.full(key, key)) for key in lacking])

        assert [one.keys.tolist() for one in found] == [[key] * key for key in keys]
        assert store.size == sum(ENTRY + array.nbytes for array in store.arrays) <= limit


def test_what_is_needed_again_is_not_made_again_and_what_was_not_needed_for_longest_goes() -> None:
    store, made = ArrayStore(2 * (ENTRY + 8)), list[int]()

    def make(lacking: list[int]) -> list[KeyList]:
        made.extend(lacking)
        return [KeyList(np.array([key])) for key in lacking]

    for key in (1, 2, 1, 3, 1, 2):
        store.get([key], make)

    assert made == [1, 2, 3, 2]


def test_nobody_writes_into_what_others_read() -> None:
    (found,) = ArrayStore(1 << 20).get(["a"], lambda _: [KeyList(np.arange(3))])

    with pytest.raises(ValueError, match="read-only"):
        found.keys[0] = 9
