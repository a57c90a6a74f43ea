"""Sentences made of labels: which are drawn, how gaps are filled, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.templates import COARSE, SENTENCES, Templates, parsed, with_article
from eyespot.types import UsageError
from tests.wording import raises


@pytest.mark.parametrize(
    ("sentence", "facts", "caption"),
    [
        ("{a common} here", {"common_name": "grey heron"}, "a grey heron here"),
        ("{a common} here", {"vernacularName": "osprey"}, "an osprey here"),
        ("{common} ({species})", {"Common Name": "osprey", "species": "Pandion"}, "osprey (Pandion)"),
        ("of {species}", {"genus": "Ardea", "species": "cocoi"}, "of Ardea cocoi"),
        ("of {species}", {"genus": "Ardea", "species": "Ardea cocoi"}, "of Ardea cocoi"),
        ("of {species}", {"species": "Ardea cocoi; Egretta  thula; Ardea cocoi"}, "of Ardea cocoi and Egretta thula"),
        ("{a common}", {"common": "owl;mouse;tree"}, "an owl, a mouse and a tree"),
        ("in {year} by {author}", {"year": 2021, "author": "Ann"}, "in 2021 by Ann"),
        ("of {habitat}", {"habitat": "{year} \\1", "year": 1}, "of {year} \\1"),  # a label with braces
        *(("of {habitat}", {"habitat": value}, None) for value in (None, "", "  ", ";", float("nan"))),
    ],
)
def test_gaps_are_filled_by_columns_of_their_own_or_a_usual_name(
    sentence: str, facts: dict[str, Any], caption: str | None
) -> None:
    assert Templates.over(list(facts), {}, [sentence]).caption({"id": "p", **facts}) == caption


@pytest.mark.parametrize(
    "phrase",
    [
        *("an Arctic tern", "a European robin", "a unicorn fish", "an uninhabited island", "a ewe", "an umbrella bird"),
        *("an hourglass dolphin", "a house sparrow", "a one-horned rhinoceros"),
    ],
)
def test_the_article_follows_the_sound(phrase: str) -> None:
    assert with_article(phrase.partition(" ")[2]) == phrase


def test_only_sentences_whose_gaps_are_all_filled_are_drawn() -> None:
    templates = Templates.over(["common_name", "scientific_name"], {})
    drawn = {templates.caption({"id": str(at), "scientific_name": "Ardea alba"}) for at in range(200)}
    wanted = [s for s in SENTENCES if "common" not in s and "family" not in s]
    assert drawn == {sentence.replace("{species}", "Ardea alba") for sentence in wanted}


def test_coarse_labels_are_named_only_where_no_finer_is_known_and_a_named_column_before_the_usual() -> None:
    templates = Templates.over(["species", "genus", "family"], {})
    named = Templates.over(["common_name", "title"], {"common": "title"})
    assert templates.caption({"id": "1", "genus": "Ardea"}) in {s.replace("{genus}", "Ardea") for s in COARSE}
    assert "Ardea alba" in str(templates.caption({"id": "2", "genus": "Ardea", "species": "alba"}))
    assert "owl" in str(named.caption({"id": "p", "common_name": "heron", "title": "owl"}))


@given(st.text(), st.integers(0, 99))
def test_the_draw_hangs_on_seed_and_id_alone(id: str, seed: int) -> None:
    one = Templates.over(["common"], {}, seed=seed)
    other = Templates.over(["size", "common", "title"], {}, seed=seed)
    assert one.caption({"id": id, "common": "owl"}) == other.caption({"common": "owl", "title": "x", "id": id})


def test_another_seed_draws_others_and_every_sentence_about_as_often_as_any_other() -> None:
    sentences, facts = [f"{number} {{x}}" for number in range(4)], [{"id": str(at), "x": "y"} for at in range(4000)]
    first, second = ([Templates.over(["x"], {}, sentences, seed=seed).caption(one) for one in facts] for seed in (0, 1))
    assert first != second and min(Counter(first).values()) > 850


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Templates.over(["title", "author"], {}),
        lambda: Templates.over(["title"], {"species": "taxon"}),
        lambda: Templates.over(["title"], {}, ["{title}", "in {habitat}"]),
        *(partial(parsed, text) for text in ("", "# nothing\n", "a bird\n", "{common} and {\n", "{{common}}\n")),
    ],
)
def test_columns_and_templates_that_do_not_fit_are_refused(wrong: Callable[[], object]) -> None:
    with raises(UsageError):
        wrong()


def test_a_file_of_templates_is_a_sentence_a_line() -> None:
    assert parsed("# ours\r\n {a common} \n\n{species}\n{species}\n") == ("{a common}", "{species}")
