"""Sentences made of labels: which are drawn, how gaps are filled, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.templates import COARSE, SENTENCES, Templates, parsed, with_article
from eyespot.types import UsageError


def caption_of(sentence: str, **facts: Any) -> str | None:
    """One sentence of the user's, for a picture of these facts."""
    return Templates.own(list(facts), {}, [sentence]).caption({"id": "p", **facts})


@pytest.mark.parametrize(
    ("sentence", "facts", "caption"),
    [
        ("{a common} here", {"common_name": "grey heron"}, "a grey heron here"),
        ("{a common} here", {"vernacularName": "osprey"}, "an osprey here"),
        (
            "{common} ({species})",
            {"Common Name": "osprey", "species": "Pandion haliaetus"},
            "osprey (Pandion haliaetus)",
        ),
        ("of {species}", {"genus": "Ardea", "species": "cocoi"}, "of Ardea cocoi"),
        ("of {species}", {"genus": "Ardea", "species": "Ardea cocoi"}, "of Ardea cocoi"),
        ("of {species}", {"species": "Ardea cocoi; Egretta  thula; Ardea cocoi"}, "of Ardea cocoi and Egretta thula"),
        ("{a common}", {"common": "owl;mouse;tree"}, "an owl, a mouse and a tree"),
        ("in {year} by {author}", {"year": 2021, "author": "Ann"}, "in 2021 by Ann"),
    ],
)
def test_gaps_are_filled_by_columns_of_their_own_or_a_usual_name(
    sentence: str, facts: dict[str, Any], caption: str
) -> None:
    assert caption_of(sentence, **facts) == caption


@pytest.mark.parametrize("value", [None, "", "  ", ";", float("nan")])
def test_a_label_that_says_nothing_fills_no_gap(value: object) -> None:
    assert caption_of("of {habitat}", habitat=value) is None


def test_a_label_with_braces_stays_as_it_is() -> None:
    assert caption_of("of {habitat}", habitat="{year} \\1", year=1) == "of {year} \\1"


@pytest.mark.parametrize(
    ("noun", "phrase"),
    [
        ("Arctic tern", "an Arctic tern"),
        ("European robin", "a European robin"),
        ("unicorn fish", "a unicorn fish"),
        ("uninhabited island", "an uninhabited island"),
        ("ewe", "a ewe"),
        ("umbrella bird", "an umbrella bird"),
        ("hourglass dolphin", "an hourglass dolphin"),
        ("house sparrow", "a house sparrow"),
        ("one-horned rhinoceros", "a one-horned rhinoceros"),
    ],
)
def test_the_article_follows_the_sound(noun: str, phrase: str) -> None:
    assert with_article(noun) == phrase


def test_only_sentences_whose_gaps_are_all_filled_are_drawn() -> None:
    templates = Templates.over(["common_name", "scientific_name"], {})

    drawn = {templates.caption({"id": str(at), "scientific_name": "Ardea alba"}) for at in range(200)}

    wanted = [s for s in SENTENCES if "common" not in s and "family" not in s]
    assert drawn == {sentence.replace("{species}", "Ardea alba") for sentence in wanted}


def test_coarse_labels_are_named_only_where_no_finer_is_known() -> None:
    templates = Templates.over(["species", "genus", "family"], {})
    coarse, fine = (
        {"id": str(at), "genus": "Ardea", "species": s} for at in (1, 2) for s in (None, "alba")[at - 1 : at]
    )

    assert templates.caption(coarse) in {s.replace("{genus}", "Ardea") for s in COARSE}
    assert "Ardea alba" in str(templates.caption(fine))


def test_every_sentence_is_drawn_about_as_often_as_any_other() -> None:
    templates = Templates.own(["x"], {}, ["one {x}", "two {x}", "three {x}", "four {x}"])

    counts = Counter(templates.caption({"id": str(at), "x": "y"}) for at in range(4000))

    assert sorted(counts.values())[0] > 850


@given(st.text(), st.integers(0, 99))
def test_the_draw_hangs_on_seed_and_id_alone(id: str, seed: int) -> None:
    one = Templates.over(["common"], {}, seed)
    other = Templates.over(["size", "common", "title"], {}, seed)

    assert one.caption({"id": id, "common": "owl"}) == other.caption({"common": "owl", "title": "x", "id": id})


def test_another_seed_draws_others() -> None:
    facts = [{"id": str(at), "common": "owl"} for at in range(50)]

    first, second = ([Templates.over(["common"], {}, seed).caption(one) for one in facts] for seed in (0, 1))

    assert first != second


def test_a_column_that_is_named_comes_before_the_usual() -> None:
    templates = Templates.over(["common_name", "title"], {"common": "title"})

    assert "owl" in str(templates.caption({"id": "p", "common_name": "heron", "title": "owl"}))


@pytest.mark.parametrize(
    ("columns", "named", "way"),
    [
        (["title", "author"], {}, "name one with --species or --common; there are: title, author"),
        (["title"], {"species": "taxon"}, "no column 'taxon'; there are: title"),
    ],
)
def test_a_gallery_without_such_columns_is_told_which_it_has(
    columns: list[str], named: dict[str, str], way: str
) -> None:
    with pytest.raises(UsageError, match=way):
        Templates.over(columns, named)


def test_a_gap_that_no_column_fills_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"no column fills \{habitat\} of the template 'in \{habitat\}'; there are: title"
    ):
        Templates.own(["title"], {}, ["{title}", "in {habitat}"])


def test_a_file_of_templates_is_a_sentence_a_line() -> None:
    assert parsed("# ours\r\n {a common} \n\n{species}\n{species}\n") == ("{a common}", "{species}")


@pytest.mark.parametrize("text", ["", "# nothing\n", "a bird\n", "{common} and {\n", "{{common}}\n"])
def test_a_file_without_good_templates_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"\{a common\}|in one pair of braces"):
        parsed(text)
