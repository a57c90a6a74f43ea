"""The query language, which gives a query back unchanged; and wordings of a query, each requested once."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from eyespot.search.query_language import format_query, parse, with_picture
from eyespot.search.query_rewriting import (
    Glossary,
    RewritingModel,
    in_one,
    phrases,
    read_glossary,
)
from eyespot.types import Query, Term, UsageError
from tests.examples import examples

NAMES = ("pool.jpg", "a - b.JPEG", 'say "+ x".png', "'s.webp", "no suffix", "~/home.jpg", "3: x.heic", "C:\\x.jpg")


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with pictures of awkward names; only their names matter here."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def words(*weighted: tuple[float, str]) -> tuple[Term, ...]:
    return tuple(Term(weight, text=text) for weight, text in weighted)


def shown(weight: float, path: str) -> tuple[Term, ...]:
    return (Term(weight, image=Path(path)),)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a heron", words((1, "a heron"))),
        ("  heron\t+  reeds - people ", words((1, "heron"), (1, "reeds"), (-1, "people"))),
        ("black-and-white T-shirt", words((1, "black-and-white T-shirt"))),
        ("C++ book -people +x", words((1, "C++ book +x"), (-1, "people"))),
        ('-cat dog -people - "-red" -x', words((1, "dog"), (-1, '"-red" -x'), (-1, "cat"), (-1, "people"))),
        ("cat -2:dog -2:3 -.5:fox", words((1, "cat -2:3"), (-2, "dog"), (-0.5, "fox"))),
        ("- people", words((-1, "people"))),
        ("+ heron - 2:people", words((1, "heron"), (-2, "people"))),
        ("2:golden retriever + 0.5:ball - .25:fence", words((2, "golden retriever"), (0.5, "ball"), (-0.25, "fence"))),
        ("2.:heron", words((2, "heron"))),
        ("16:9 screen", words((1, "16:9 screen"))),
        ('2:"16:9 screen"', words((2, "16:9 screen"))),
        ("2: heron", words((1, "2: heron"))),
        ("nan:heron", words((1, "nan:heron"))),
        ('"a - b" + c', words((1, "a - b"), (1, "c"))),
        ('"2:heron"', words((1, "2:heron"))),
        ('"say ""hi - there"""', words((1, 'say "hi - there"'))),
        ('a "stop - go" sign - "x + y"', words((1, 'a "stop - go" sign'), (-1, "x + y"))),
        ('a 12" record - 7" single', words((1, 'a 12" record'), (-1, '7" single'))),
        ("the dogs' bowl - the cats' bowl", words((1, "the dogs' bowl"), (-1, "the cats' bowl"))),
        ("'pool.jpg' + './x' + 'https://a.org'", words((1, "pool.jpg"), (1, "./x"), (1, "https://a.org"))),
        ("rock 'n' roll", words((1, "rock 'n' roll"))),
        ("w/o people and/or cars", words((1, "w/o people and/or cars"))),
        ("pool.jpg", shown(1, "pool.jpg")),
        ("./pool.jpg", shown(1, "pool.jpg")),
        ("2:./pool.jpg", shown(2, "pool.jpg")),
        ("- 0.5:pool.jpg", shown(-0.5, "pool.jpg")),
        ('"a - b.JPEG"', shown(1, "a - b.JPEG")),
        ('3:"./a - b.JPEG"', shown(3, "a - b.JPEG")),
        ("./no suffix", shown(1, "no suffix")),
        ("./~/home.jpg", shown(1, "~/home.jpg")),
        ("C:\\x.jpg", shown(1, "C:\\x.jpg")),
        ("2:C:\\x.jpg", shown(2, "C:\\x.jpg")),
    ],
)
def test_words_weights_signs_and_pictures(album: Path, text: str, terms: tuple[Term, ...]) -> None:
    assert parse(text) == Query("q", terms)


def test_pictures_by_absolute_path_and_from_home(album: Path) -> None:
    expected = Query.picture(album / "pool.jpg", id="mine")
    assert parse(f"{album}/pool.jpg", id="mine") == parse("~/pool.jpg", id="mine") == expected


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("heron +", "write words"),
        ("-", "write words"),
        ("2:' '", "write words"),
        ("0:heron", "leave the term"),
        ("9" * 400 + ":heron", "leave the term"),
        ("gone.jpg", "single quotes"),
        ("gone.mp4#t=00:01:23.500", "single quotes"),
        ("./gone", "single quotes"),
        ("../", "single quotes"),
        ("2:gone.HEIC", "single quotes"),
        ("/" + "x" * 5000, "single quotes"),
        ("./nul\0.jpg", "single quotes"),
        ("https://example.org/a.jpg", "save the picture first"),
        ('heron + "http://example.org/a b"', "save the picture first"),
    ],
)
def test_what_cannot_be_asked_says_the_way_out(album: Path, text: str, way_out: str) -> None:
    with pytest.raises(UsageError, match=way_out):
        parse(text)


def test_with_picture_is_the_composed_query(album: Path) -> None:
    pool = Path("pool.jpg")
    assert with_picture(None, pool) == Query.picture(pool)
    assert with_picture(parse("at night", id="7"), pool) == Query.composed(pool, "at night", id="7")


@pytest.mark.parametrize(
    ("place", "way_out"), [("gone.jpg", "check the path$"), ("https://a.org/b.jpg", "save the picture first")]
)
def test_with_picture_wants_a_picture_that_is_there(album: Path, place: str, way_out: str) -> None:
    with pytest.raises(UsageError, match=way_out):
        with_picture(None, Path(place))


@pytest.mark.parametrize(
    "text", ["2:heron + ./pool.jpg - people", "- people", "0.5:'pool.jpg' + \"a - b\"", '2:"3 herons" - "./a - b.JPEG"']
)
def test_plain_queries_are_spoken_as_they_were_written(album: Path, text: str) -> None:
    assert format_query(parse(text)) == text


weights = st.builds(
    math.copysign,
    st.one_of(
        st.just(1.0), st.sampled_from([2.0, 0.5]), st.floats(min_value=0, exclude_min=True, allow_infinity=False)
    ),
    st.sampled_from([1, -1]),
)
PARTS = [*"ab '\"+-:./\\~29\n\t", " + ", " - ", "2:", ".jpg", "http://", "C:\\"]
awkward = st.lists(st.sampled_from(PARTS), max_size=6).map("".join)
texts = st.one_of(awkward, st.text(max_size=9)).filter(str.strip)
terms = st.one_of(
    st.builds(lambda w, text: Term(w, text=text), weights, texts),
    st.builds(lambda w, name: Term(w, image=Path(name)), weights, st.sampled_from(NAMES)),
    st.builds(lambda w, name: Term(w, image=Path.cwd() / name), weights, st.sampled_from(NAMES)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(500), deadline=None)
@given(st.lists(terms, min_size=1, max_size=4))
@example([Term(1.0, text="2:heron")])
@example([Term(1.0, text='"a"')])
@example([Term(1.0, text="a"), Term(-1.0, text='"b'), Term(1.0, text='c"')])
@example([Term(0.1, text="3 herons"), Term(-1e-300, text="./x")])
def test_every_query_can_be_spoken_and_understood(album: Path, terms: list[Term]) -> None:
    query = Query("q", tuple(terms))
    assert parse(format_query(query)) == query


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(300), deadline=None)
@given(awkward)
def test_any_text_is_a_query_or_a_usage_error(album: Path, text: str) -> None:
    try:
        query = parse(text)
    except UsageError as refusal:
        assert str(refusal)
    else:
        assert parse(format_query(query)) == query


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
