"""Data cards: the counts stand in them and what models wrote does no harm there."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st

from eyespot import sample
from eyespot.curate.recos.captions import (
    FINE,
    OVER_DETAILED,
    UNDER_DETAILED,
    Rewriting,
    entropies,
    histogram,
)
from eyespot.photos.pictures import id_of
from eyespot.pipelines import RunOptions, StepResult, run
from eyespot.pipelines.data_card import (
    Card,
    CardContent,
    CardTable,
    QualityCheck,
    SampleRecord,
    card_of,
    licence_check,
    write_card,
)
from eyespot.pipelines.data_card.content import flesch_kincaid, syllables, wording, words
from eyespot.pipelines.data_card.datasheet import QUESTIONS, datasheet_answers
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds.pipelines import PRICE, ask_step, client, no_two_alike, odd_ones_go, source

GREEN = QualityCheck("Licences", "green", "all")
NASTY = "<script>alert(1)</script> | `x`\n``` end \u202e ## not a heading"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> list[StepResult]:
    steps = [source(12), odd_ones_go(), ask_step(question=f"{NASTY} {{number}}"), no_two_alike()]
    return run(steps, tmp_path_factory.mktemp("work"), RunOptions(client=numbered))


def numbered(prompt: dict[str, str], till: object) -> dict[str, str]:
    """The made-up model, which takes the last number of a question."""
    return client()({"words": prompt["words"].rsplit(maxsplit=1)[-1]}, till)


@pytest.fixture(scope="module")
def card(done: list[StepResult]) -> Card:
    photo = next(Path(sample.photos()).rglob("*.jpg"))
    content = CardContent(
        "A title | with <b>",
        NASTY,
        answers={"motivation": {"purpose": NASTY}, "distribution": {"licence": "CC0"}},
        texts={"answers": [record["said"] for record in done[-1].records], "none": []},
        samples=[SampleRecord(NASTY, [("a picture", photo), ("no ](picture", photo.parent / "gone.jpg")], [NASTY])],
        tables=[CardTable("Kinds", ["kind", "records"], [["good", 5], ["fine", 1], ["together", 6]], drawn=1)],
        checks=[QualityCheck("Size", "amber", "small"), QualityCheck("Judges", "red", "one"), GREEN],
        citation="Ada, 2026",
    )
    return card_of(done, content)


@pytest.fixture(scope="module")
def written(card: Card, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("card")
    write_card(card, folder)
    return folder


def test_pictures_link_into_a_page(card: Card, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo = next(Path(sample.photos()).rglob("*.jpg"))
    monkeypatch.setenv("EYESPOT_PAGE", "http://127.0.0.1:8000/")

    write_card(card, tmp_path)

    link = f'<a href="http://127.0.0.1:8000/photo/{id_of(photo.read_bytes())}" rel="noreferrer">'
    page = (tmp_path / "card.html").read_text()
    assert page.count(link) == 1 and page.count("127.0.0.1") == 1  # the other picture is gone
    assert "/photo/" not in (written / "card.html").read_text()
    monkeypatch.setenv("EYESPOT_PAGE", "javascript:alert(1)")
    with raises(UsageError):
        write_card(card, tmp_path)


def test_the_counts_of_the_steps(card: Card) -> None:
    assert card.balance.rows == [
        ["numbers", "0", "12", "12", "0"],
        ["even", "12", "0", "6", "6"],
        ["asked", "6", "5", "7", "4"],
        ["alike", "7", "0", "6", "1"],
    ]
    assert card.losses.rows[1:3] == [["asked", "bad", "3", "27.3%"], ["asked", "no answer", "1", "9.1%"]]
    assert [row[2:] for row in card.cost.rows[2:]] == [
        ["6", "60", "12", f"{6 * PRICE:.2f}"],
        ["0", "0", "0", "0"],
        ["6", "60", "12", f"{6 * PRICE:.2f}"],
    ]


def test_money_that_nobody_knows_is_no_zero(done: list[StepResult]) -> None:
    models = {"judge": {"use": "openai:nobody-knows"}}
    unpriced = [replace(one, step=replace(one.step, models=models)) for one in done]

    cost = card_of(unpriced, CardContent("title", "")).cost

    assert [row[-1] for row in cost.rows] == ["0", "0", "no price", "0", "no price"]
    assert "nobody-knows" in cost.note


def test_an_answer_of_the_maker_goes_before_the_counted_one(card: Card, done: list[StepResult]) -> None:
    found = datasheet_answers(done, {"composition": {"count": "Six, all told."}})
    questions = sum(map(len, QUESTIONS.values()))
    assert [one.answer for one in found if one.question.startswith("How many records")] == ["Six, all told."]
    assert f"{questions - 7} of the datasheet's {questions} " in card.standing


@pytest.mark.parametrize("answers", [{"motive": {}}, {"uses": {"abuse": "none"}}, {"uses": "many"}])
def test_answers_to_what_nobody_asks_are_refused(answers: dict[str, object]) -> None:
    with raises(UsageError):
        datasheet_answers([], answers)


def test_the_files_that_the_markdown_shows_are_there(written: Path) -> None:
    text = (written / "card.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert shown == ["card/001-1.jpg", "card/001-1.jpg", "card/chart-1.svg"]
    assert all((written / name).is_file() for name in shown) and "unreadable" in text


def test_the_card_opens_with_what_it_is_for_its_pictures_and_its_weakest_point(card: Card, written: Path) -> None:
    text = (written / "card.md").read_text(encoding="utf-8")
    page = (written / "card.html").read_text(encoding="utf-8")
    order = [text.index(part) for part in ("**Purpose:**", "001-1.jpg", "Judges: one", "## Checks", "## Samples")]
    assert order == sorted(order)
    order = [page.index(part) for part in ("Purpose:", "base64,", "Judges: one", "Checks</h2>", "Samples</h2>")]
    assert order == sorted(order)
    good = replace(card, content=replace(card.content, checks=[GREEN]))
    assert (card.weakest, good.weakest) == ("Judges: one", "")


def test_open_questions_are_the_lines_that_answer_them(card: Card, done: list[StepResult], written: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", (written / "card.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    lines = tomllib.loads(block[1])["card"]
    assert "purpose" not in lines["motivation"] and "licence" not in lines["distribution"]
    given = {section: dict.fromkeys(names, "known") for section, names in lines.items()}
    answers = {section: {**card.content.answers.get(section, {}), **of} for section, of in given.items()}
    assert "complete" in card_of(done, replace(card.content, answers=answers)).standing


def test_bars_are_as_long_as_their_numbers(written: Path) -> None:
    drawing = ElementTree.parse(written / "card" / "chart-1.svg").getroot()
    bars = [float(one.attrib["width"]) for one in drawing.iter() if one.attrib.get("fill") == "#0072b2"]
    assert bars == [400, 80]  # without the sum


def test_what_a_model_wrote_makes_no_markup(written: Path) -> None:
    page, text = ((written / name).read_text(encoding="utf-8") for name in ("card.html", "card.md"))
    assert "<script" not in page and page.count("\u202e") == 0
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script" not in outside and not re.search(r"^## not", text, re.MULTILINE)


def test_the_page_needs_nothing_beside_it(written: Path) -> None:
    page = (written / "card.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg;base64,") == 2 and 'src="card' not in page
    assert "http://" not in re.sub(r'xmlns="[^"]*"', "", page)


def test_writing_again_takes_the_place_of_the_first(card: Card, tmp_path: Path) -> None:
    """Numbers with a sign stand to the right as others do."""
    write_card(card, tmp_path)
    (tmp_path / "card" / "old.jpg").write_bytes(b"")
    rows = CardTable("Judges", ["judge", "less the others", "range"], [["one", "-0.2", "2–9"], ["two", "+0.1", "3–4"]])

    write_card(replace(card, content=replace(card.content, tables=[rows])), tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["card", "card.html", "card.md"]
    assert sorted(path.name for path in (tmp_path / "card").iterdir()) == ["001-1.jpg"]
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert all(f'<td class="n">{value}</td>' in page for value in ("-0.2", "+0.1", "2–9"))


@pytest.mark.parametrize(
    ("text", "count", "grade"),
    [  # the examples of Wikipedia's article on the tests
        ("The cat sat on the mat.", (6, 6), -1.4),
        ("This sentence, taken as a reading passage unto itself, is being used to prove a point.", (16, 23), 7.6),
        ("The Australian platypus is seemingly a hybrid of a mammal and reptilian creature.", (13, 24), 11.3),
    ],
)
def test_the_grade_of_published_sentences(text: str, count: tuple[int, int], grade: float) -> None:
    found = wording([text])
    assert (len(words(text)), sum(map(syllables, words(text)))) == count
    assert found is not None and round(found.grade, 1) == grade


def test_the_formula_by_hand() -> None:
    # 100 words in 5 sentences with 150 syllables: 7.8 + 17.7 - 15.59
    assert flesch_kincaid(100, 5, 150) == pytest.approx(9.91)
    found = wording(["One heron. It stands still!", "Why?", "", "..."])
    assert found is not None and (found.texts, found.words, found.middle, found.least, found.most) == (2, 3, 3, 1, 5)
    assert wording(["", "?!"]) is None


@pytest.mark.parametrize(
    ("word", "count"),
    [
        *(("the", 1), ("make", 1), ("makes", 1), ("table", 2), ("whale", 1), ("walked", 1), ("wanted", 2)),
        *(("boxes", 2), ("people", 2), ("cap-and-bells", 3), ("don't", 1), ("hmm", 1), ("42", 1)),
        *(("being", 2), ("radio", 3), ("nation", 2), ("social", 2), ("iguana", 3), ("created", 3), ("visual", 3)),
        *(("queen", 1), ("guard", 1), ("biodiversity", 6), ("religion", 3), ("species", 2), ("heron", 2)),
    ],
)
def test_syllables_are_those_of_dictionaries(word: str, count: int) -> None:
    assert syllables(word) == count


# -- dis(t) is the entropy that ReCoS defines, its band is the paper's, and raw cosines say nothing at temperature 1


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.floats(1e-3, 10))
def test_it_is_the_entropy_of_the_softmax(row: list[float], temperature: float) -> None:
    top = max(row)
    weights = [math.exp((one - top) / temperature) for one in row]
    shares = [weight / sum(weights) for weight in weights]
    expected = -sum(share * math.log(share) for share in shares if share > 0)
    assert entropies(np.array([row]), temperature)[0] == pytest.approx(expected, abs=1e-9)


def test_at_temperature_1_no_caption_passes_the_band_and_at_a_lower_one_they_part() -> None:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((300, 64)).astype(np.float32)
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    nearest = np.sort(images @ images.T, axis=1)[:, -11:-1]  # an image's own caption is left out
    raw, sharp = (entropies(nearest, temperature) for temperature in (1.0, 0.03))

    criterion = Rewriting(10, eta=0.9)
    assert {criterion.verdict(value) for value in raw} == {UNDER_DETAILED}
    assert {criterion.verdict(value) for value in sharp} >= {FINE, UNDER_DETAILED}


def test_the_band_is_the_papers_and_holds_its_ends() -> None:
    how = Rewriting(k=4, eta=0.5)
    low, high = how.band
    assert (low, high) == pytest.approx((math.log(4) / 4, 3 * math.log(4) / 4))
    verdicts = [how.verdict(value) for value in (0.0, low, 0.7, high, math.log(4))]
    assert verdicts == [OVER_DETAILED, FINE, FINE, FINE, UNDER_DETAILED]


@given(st.lists(st.floats(0, math.log(10)), max_size=50))
def test_the_histogram_loses_no_caption(values: list[float]) -> None:
    rows = histogram(values, values[:3], Rewriting(k=10)).rows
    assert [sum(row[at] for row in rows) for at in (1, 2)] == [len(values), len(values[:3])]


def test_what_cannot_be_compared_is_refused() -> None:
    with raises(UsageError):
        entropies(np.array([[0.5, np.nan]]), 1.0)
    for wrong in ({"k": 1}, {"temperature": 0.0}, {"eta": 0.0}, {"eta": 1.5}):
        with pytest.raises(UsageError):
            Rewriting(**wrong)


def test_licences_that_are_unclear_are_none_and_those_that_forbid_something_are_counted() -> None:
    given = [
        "CC BY 4.0",
        "CC BY-NC 4.0",
        "CC BY-NC-ND 2.0",
        "unclear: for non-commercial research",
        "Unknown",
        "",
        None,
        "Public domain",
    ]
    given += [
        "https://creativecommons.org/licenses/by-nd/4.0/",
        "CC_BY_NC",
        "Attribution Non Commercial, No Derivatives",
    ]
    given += ["All rights reserved", "not stated", "?", "N/A", "Nando's licence"]
    check = licence_check(given)
    assert check.level == "amber" and check.text.startswith(
        "8 of 16 photos have a licence; 5 are unclear; 1 is all rights reserved; 4 are NC; 3 are ND"
    )
    assert licence_check(["CC0", "CC BY"]).level == "green"
