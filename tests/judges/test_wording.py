"""Wordings: what a judge is asked, and when two of them are one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.judges import PLAIN, JudgePrompt, wording
from eyespot.judges._prompt import described, examples
from eyespot.types import Query, Term, UsageError
from tests.wording import raises

MINE = 'question = "Is {query} in it? Say ja or nein."\nyes = "ja"\nno = "nein"\n'


@given(st.text())
def test_the_query_stands_in_the_question_as_it_was_written(text: str) -> None:
    question = JudgePrompt("w", "", "<{query}> {json} <{query}>").ask(Query.words(text))

    assert question == f"<{text}> {{json}} <{text}>"


def test_our_wording_names_the_query_and_both_answers() -> None:
    question = PLAIN.ask(Query.words("a heron"))

    assert '"a heron"' in question and PLAIN.yes in question and PLAIN.no in question
    assert wording("plain") is PLAIN


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
    assert examples(Query("q", tuple(terms))) == [term.image for term in terms if term.image]


@pytest.mark.parametrize("changed", [{"system": "x"}, {"question": "{query}!"}, {"yes": "yes"}, {"no": "Nein"}])
def test_any_other_text_is_another_wording_and_another_name_is_not(changed: dict[str, Any]) -> None:
    """Also text that moves from one field to the next; a digest has sixteen hex digits."""
    digest = replace(PLAIN, name="mine").digest

    assert replace(PLAIN, **changed).digest != PLAIN.digest == digest
    assert len(digest) == 16 and int(digest, 16)
    assert JudgePrompt("w", "a", "b{query}").digest != JudgePrompt("w", "ab", "{query}").digest


def test_a_file_is_read_and_named_after_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)

    assert wording(str(tmp_path / "mine.toml")) == JudgePrompt(
        "mine", "", "Is {query} in it? Say ja or nein.", "ja", "nein"
    )


@pytest.mark.parametrize(
    "text",
    [
        'system = "x"',
        'question = "Is it there?"',
        MINE.replace("nein", "Ja"),
        MINE + 'temperature = "1"',
        MINE + "system = 3",
        "question = ",
    ],
    ids=range(6),
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.toml").write_text(text)

    with raises(UsageError):
        wording(str(tmp_path / "w.toml"))


def test_a_name_that_is_none_lists_ours() -> None:
    with raises(UsageError):
        wording("inqire")
