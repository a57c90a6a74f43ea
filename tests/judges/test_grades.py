"""A grade from 0 to 10 is taken from an answer that has one reading, and from no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from eyespot.judges import PLAIN, JudgePrompt, wording
from eyespot.judges._answers import grade_of
from eyespot.judges._prompt import described, examples
from eyespot.llms import BadAnswer, Declined
from eyespot.llms.fences import DATA, fenced
from eyespot.types import Query, Term, UsageError
from tests.wording import raises
from tests.worlds.judging import draw_colours, judge_of, only_answer
from tests.worlds.servers import Double, chat

FORMS = [
    "{}",
    " {}.\n",
    "**{}**",
    "`{}`",
    '"{}"',
    "({})",
    "{}/10",
    "**{}**/10",
    "{} / 10.",
    "{} out of 10",
    "{} out of ten.",
    "Score: {}",
    "**Score:** {}",
    "Grade = {}/10",
    "Rating: {}. The photo shows 2 herons.",
    "The score is {}.",
    "I give it a {}.",
    "The photo shows 2 herons, so {}",
    "There are 2 herons, so I'd say {}.",
    "It shows 2 of the 3 herons; {}/10",
    "{}\n\nThe heron is in flight.",
    "{}, a heron in flight.",
    "{} (very confident)",
    "{} - clear match",
    "Score: {} because of the heron",
]


@pytest.mark.parametrize("form", FORMS)
@given(half=st.integers(0, 20))
def test_a_grade_is_read_where_it_can_only_be_that(form: str, half: int) -> None:
    number = f"{half / 2:g}"

    assert grade_of(form.format(number)) == grade_of(number.replace(".", ",")) == half / 2


@pytest.mark.parametrize(
    "text",
    [
        "2 herons are in the water.",
        "Answer: 3 herons",
        "Answer: 10 herons",
        "nine herons",
        "one or two",
        "The photo shows 2 herons",
        "The photo shows 2 herons in the water.",
        "between 3 and 4",
        "3-4",
        "3 – 4",
        "7 or 8 out of 10",
        "7/10 or 8/10",
        "8/10, no, 6/10",
        "Score: 3 to 4",
        "Score: 8. Score: 3.",
        "1. The photo shows a heron",
        "2 out of 10 birds are herons",
        "11",
        "12/10",
        "-3",
        "85/100",
        "85%",
        "on 10/10/2024",
        "2024-05-09",
        "9.9.9",
        "lovely",
        "",
    ],
)
def test_what_has_several_readings_or_none_is_no_grade(text: str) -> None:
    with pytest.raises(BadAnswer):
        grade_of(text)


@pytest.mark.parametrize(
    ("text", "grade"), [("nine", 9), ("**Ten**.", 10), ("Score: zero", 0), ("Seven out of ten", 7), ("Two (of ten)", 2)]
)
def test_a_grade_in_letters_is_one(text: str, grade: int) -> None:
    assert grade_of(text) == grade


def test_an_excuse_is_a_refusal_whatever_numbers_it_has() -> None:
    with pytest.raises(Declined):
        grade_of("I'm sorry, I can't compare 2 people.")


def test_a_number_that_may_go_on_is_no_grade(tmp_path: Path) -> None:
    """The limit of tokens cut "10" after its first digit; the next answer is whole."""
    with Double([chat("1", finish="length")], then=chat("10")) as server:
        answer = only_answer(judge_of(server, answer="grades"), draw_colours(tmp_path / "photos", 1))

    assert answer.verdict is not None and answer.verdict.probability == 1 and len(server.seen) == 2


MINE = 'question = "Is {query} in it? Say ja or nein."\nyes = "ja"\nno = "nein"\n'


@given(st.text())
def test_the_query_stands_in_the_question_as_data(text: str) -> None:
    question = JudgePrompt("w", "", "<{query}> {json} <{query}>").ask(Query.words(text))

    assert question == f"{DATA}\n<{fenced(text)}> {{json}} <{fenced(text)}>"


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
