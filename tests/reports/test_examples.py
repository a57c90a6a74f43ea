"""The queries of a report to look at: which ones, what was found, what was missed, and pictures of bounded size."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from eyespot.benchmarks import Evaluation, Task, scored
from eyespot.metrics import parse
from eyespot.reports.examples import Examples, examples_of, uncertainty
from eyespot.reports.folder import Pictured, page_of
from eyespot.reports.moved import Picture
from eyespot.runs.judged import JudgedQueries
from eyespot.types import Qrels, Run
from tests.search.test_contact_sheet import Page
from tests.worlds.evaluations import benchmark

QRELS = {
    "good": {"a": 1, "b": 1},
    "fair": {"a": 1, "b": 0, "c": 0},
    "open": {"a": 1},  # two of the first three have no judgement
    "middle": {"a": 1, "b": 0, "c": 0},
    "bad": {"a": 1, "b": 0},
    "lost": {"a": 1, "b": 0, "c": 0},
}
ORDERS = {"good": "abc", "fair": "acb", "open": "bca", "middle": "bac", "bad": "bca", "lost": "bc"}


def made(orders: dict[str, str], way: str = "t2i") -> Evaluation:
    queries = {query: {"text": f"find {query}"} for query in QRELS}
    task = Task(way, JudgedQueries(queries, Qrels(QRELS)), [parse("AP")], way=way)
    run = Run.from_orders({query: list(images) for query, images in orders.items()})
    return Evaluation(benchmark(), "test", "ours", [scored(task, run)], {"eyespot": "0"})


def queries(group: object) -> list[str]:
    return [section.query for section in group.sections]  # type: ignore[attr-defined]


def test_the_best_the_worst_and_of_the_rest_the_most_uncertain_are_shown_once() -> None:
    """Uncertainty is how far the number moves if the unjudged are relevant."""
    best, worst, uncertain = examples_of(made(ORDERS))

    assert (queries(best), queries(worst)) == (["good", "fair"], ["lost", "bad"])
    assert queries(uncertain) == ["open"]  # of `middle` everything is judged
    assert uncertain.sections[0].note == "open · AP 33.33, uncertain by 66.67"
    assert best.title == "The best queries of t2i" and best.about == "by AP"
    widths = dict(zip(QRELS, uncertainty(made(ORDERS).results[0]).tolist(), strict=True))
    assert widths["open"] == pytest.approx(1 - 1 / 3)
    assert widths["fair"] == widths["middle"] == widths["lost"] == 0


def test_another_system_stands_below_with_what_moved_and_captions_show_no_pictures() -> None:
    ours, theirs = made(ORDERS), made({**ORDERS, "good": "cba"})
    groups = examples_of(ours, {"theirs": {"t2i": theirs.results[0].run}})

    page = Page(page_of(ours, Pictured(), examples=Examples(groups)))

    assert page.texts["bdi"][:2] == ["ours", "theirs"]
    assert "▲ 2" in page.texts["span"] and "▼ 2" in page.texts["span"]
    assert examples_of(made(ORDERS, "i2t")) == []


def test_the_page_shows_pictures_and_says_how_many_are_not_here(tmp_path: Path) -> None:
    Image.new("RGB", (900, 600), "red").save(tmp_path / "a.png")
    pictures = {"a": Picture(str(tmp_path / "a.png"), "an apple", "f" * 32), "b": Picture(str(tmp_path / "no"), "b")}
    groups = examples_of(made(ORDERS))

    html = page_of(made(ORDERS), Pictured(), examples=Examples(groups, pictures, "http://127.0.0.1:8000"))
    page = Page(html)

    assert {image["alt"] for image in page.all("img")} == {"an apple"}
    assert "2 of the 3 pictures" in html and "--images" in html
    assert "http://127.0.0.1:8000/?q=find+good" in {link["href"] for link in page.all("a")}
    assert f"http://127.0.0.1:8000/photo/{'f' * 32}?q=find+good" in {link["href"] for link in page.all("a")}
    assert page.open == []


def test_pictures_stop_where_the_page_would_grow_too_large(tmp_path: Path) -> None:
    from eyespot.reports.moved import shown_pictures

    for name in "abc":
        Image.effect_noise((900, 600), 80).convert("RGB").save(tmp_path / f"{name}.png")
    pictures = {name: Picture(str(tmp_path / f"{name}.png"), name) for name in "abc"}

    assert list(shown_pictures(pictures, 100, 1)) == ["a"]
    assert list(shown_pictures(pictures, 100)) == ["a", "b", "c"]
