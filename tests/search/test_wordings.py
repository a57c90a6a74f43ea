"""Wordings of a query: what a model's reply is taken for, that it is asked once, and how they are searched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from eyespot.search.query_rewriting import Glossary, RewritingModel, in_one, phrases, read_glossary
from eyespot.types import Query, Term, UsageError
from tests.examples import examples

AXANTHISM = Glossary({"axanthism": ["a blue frog", "a frog without yellow"]})


def test_lines_are_wordings_without_their_bullets() -> None:
    reply = 'Here are some phrases:\n1. a blue frog\n- "a frog without yellow"\n\n* A blue frog\nAxanthism\n• 2 frogs\n'

    assert phrases(reply, "axanthism") == ["A blue frog", "a frog without yellow", "2 frogs"]
    assert phrases("I cannot help with that. " * 20 + "\na blue frog") == ["a blue frog"]


def test_a_model_is_asked_with_the_words_and_gives_so_many(tmp_path: Path) -> None:
    prompts = []
    chat = lambda prompt: prompts.append(prompt) or "a\nb\nc"  # noqa: E731
    model = RewritingModel("chat:x", chat, tmp_path / "ledger.sqlite", count=2)

    assert model("axanthism in\na frog") == ["a", "b"]
    assert "axanthism in a frog" in prompts[0] and "2 other ways" in prompts[0]


def test_a_text_is_asked_for_once_also_where_nothing_was_told(tmp_path: Path) -> None:
    replies = iter(["a blue frog", ""])
    remembered = RewritingModel("chat:x", lambda _: next(replies), tmp_path / "ledger.sqlite")

    assert remembered("axanthism") == remembered("axanthism") == ["a blue frog"]
    assert remembered("eft") == remembered("eft") == []


def test_another_model_or_another_prompt_is_asked_anew(tmp_path: Path) -> None:
    replies = iter(["one", "two", "three"])
    remembered = RewritingModel("chat:x", lambda _: next(replies), tmp_path / "ledger.sqlite")
    remembered("axanthism")

    assert replace(remembered, name="chat:y")("axanthism") == ["two"]
    assert replace(remembered, count=9)("axanthism") == ["three"]


def test_a_term_of_a_glossary_is_replaced_where_it_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "terms.json").write_text(json.dumps({"molt": ["shedding"], "eclipse molt": [r"a \1 duck"]}))

    assert AXANTHISM("Axanthism by a pond") == ["a blue frog by a pond", "a frog without yellow by a pond"]
    assert AXANTHISM("axanthisms") == []
    assert read_glossary(tmp_path / "terms.json")("eclipse molt") == [r"a \1 duck"]


@pytest.mark.parametrize("wrong", ["[]", '{"a": "b"}', '{"a": []}', '{"a": [1]}', '{"": ["b"]}', '{"a": [" "]}'])
def test_what_is_no_glossary_is_one_sentence(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "terms.json"
    path.write_text(wrong)

    with pytest.raises(UsageError, match=r"terms.json: .*axanthism"):
        read_glossary(path)


def test_in_one_query_wordings_share_the_weight() -> None:
    query = Query("q", (Term(3.0, text="axanthism"), Term(-1.0, image=Path("pool.jpg")), Term(1.0, text="a pond")))

    assert in_one(query, AXANTHISM).terms == (
        *(Term(1.0, text=text) for text in ("axanthism", "a blue frog", "a frog without yellow")),
        Term(-1.0, image=Path("pool.jpg")),
        Term(1.0, text="a pond"),
    )


def test_a_picture_has_no_wordings() -> None:
    picture = Query.picture("pool.jpg")

    assert in_one(picture, AXANTHISM) == picture


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.sampled_from(["axanthism", "a pond"]), min_size=1, max_size=4), st.floats(0.1, 9))
def test_sharing_keeps_the_whole_weight(texts: list[str], weight: float) -> None:
    query = Query("q", tuple(Term(weight, text=text) for text in texts))

    assert sum(t.weight for t in in_one(query, AXANTHISM).terms) == pytest.approx(weight * len(texts))
