"""Wordings: what a judge is asked, and when two of them are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.judges._prompt import PLAIN, JudgePrompt, described, examples
from eyespot.judges._wordings import wording
from eyespot.types import Query, Term, UsageError

MINE = 'question = "Is {query} in it? Say ja or nein."\nyes = "ja"\nno = "nein"\n'


@given(st.text())
def test_the_query_stands_in_the_question_as_it_was_written(text: str) -> None:
    question = JudgePrompt("w", "", "<{query}> {json} <{query}>").ask(Query.words(text))

    assert question == f"<{text}> {{json}} <{text}>"


def test_our_wording_names_the_query_and_both_answers() -> None:
    question = PLAIN.ask(Query.words("a heron"))

    assert '"a heron"' in question and PLAIN.yes in question and PLAIN.no in question


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ([Term(1, "a heron")], "a heron"),
        ([Term(2, "a heron"), Term(-1, "people"), Term(0.5, "dusk")], "a heron, dusk, without people"),
        ([Term(1, image=Path("a.jpg")), Term(1, "at night")], "what the example picture shows, at night"),
        (
            [Term(1, image=Path("a.jpg")), Term(-1, image=Path("a.jpg"))],
            "what example picture 1 shows, without what example picture 2 shows",
        ),
    ],
)
def test_a_query_is_said_in_words(terms: list[Term], words: str) -> None:
    assert described(Query("q", tuple(terms))) == words


def test_examples_are_the_pictures_in_their_order() -> None:
    query = Query("q", (Term(1, image=Path("b.jpg")), Term(1, "dusk"), Term(-1, image=Path("a.jpg"))))

    assert examples(query) == [Path("b.jpg"), Path("a.jpg")]


@pytest.mark.parametrize("changed", [{"system": "x"}, {"question": "{query}!"}, {"yes": "yes"}, {"no": "Nein"}])
def test_any_other_text_is_another_wording(changed: dict[str, Any]) -> None:
    assert replace(PLAIN, **changed).digest != PLAIN.digest


def test_a_digest_is_sixteen_hex_digits_and_a_new_name_keeps_it() -> None:
    digest = replace(PLAIN, name="mine").digest

    assert digest == PLAIN.digest and len(digest) == 16 and int(digest, 16)


def test_text_that_moves_from_one_field_to_the_next_is_another_wording() -> None:
    assert JudgePrompt("w", "a", "b{query}").digest != JudgePrompt("w", "ab", "{query}").digest


def test_a_file_is_read_and_named_after_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)

    assert wording(str(tmp_path / "mine.toml")) == JudgePrompt(
        "mine", "", "Is {query} in it? Say ja or nein.", "ja", "nein"
    )


def test_our_own_is_found_by_its_name() -> None:
    assert wording("plain") is PLAIN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('system = "x"', "has no question"),
        ('question = "Is it there?"', "never names what is looked for"),
        (MINE.replace("nein", "Ja"), "two answers that differ"),
        (MINE + 'temperature = "1"', "temperature is no text of a wording"),
        (MINE + "system = 3", "system is no text of a wording"),
        ("question = ", "cannot be read as TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "w.toml").write_text(text)

    with pytest.raises(UsageError, match=message):
        wording(str(tmp_path / "w.toml"))


def test_a_name_that_is_none_lists_ours() -> None:
    with pytest.raises(UsageError, match="one of: plain"):
        wording("inqire")
