"""The page of what moved: run above run, marks that need no colour, pictures from where they lie, harmless texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from eyespot.benchmarks import Evaluation, Task, scored
from eyespot.html import checked_address
from eyespot.metrics import Resampling, compare, evaluate, parse
from eyespot.photos.pictures import id_of
from eyespot.reports.examples import Examples, examples_of, uncertainty
from eyespot.reports.folder import Pictured, page_of
from eyespot.reports.moved import (
    ALIKE,
    Picture,
    RunPair,
    Section,
    as_html,
    from_folder,
    from_gallery,
    linked,
    missed_of,
    sections,
    shown_images,
    sides_of,
    summary,
)
from eyespot.runs.judged import JudgedQueries
from eyespot.types import Qrels, Run, UsageError
from tests.examples import examples
from tests.search.test_contact_sheet import HOSTILE, Page
from tests.wording import raises
from tests.worlds import make_gallery
from tests.worlds.benchmarks import heron

QRELS = Qrels({"up": {"a": 1, "b": 0}, "down": {"a": 2, "z": 1}, "same": {"a": 1}})
PLAIN = Run.from_orders({"up": ["b", "c", "a"], "down": ["a", "b"], "same": ["a"]})
ADAPTED = Run.from_orders({"up": ["a", "b", "d"], "down": ["b", "c", "a"], "same": ["a"]})
PAIR = RunPair(("plain", "adapted"), (PLAIN, ADAPTED), QRELS)


def picture(place: Path, colour: str = "red") -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), colour).save(place)
    return place


def test_losses_come_first_then_gains_under_what_they_ask() -> None:
    scores = {"plain": evaluate(PLAIN, QRELS, ["RR"]), "adapted": evaluate(ADAPTED, QRELS, ["RR"])}
    pair = compare(scores, Resampling(100)).of("adapted", "RR")

    chosen = sections(PAIR, pair, 6, {"up": "what rises"})

    assert [(section.query, section.heading) for section in chosen] == [("down", "down"), ("up", "what rises")]
    assert [section.note for section in chosen] == ["▼ RR 1.0000 → 0.3333 (−0.6667)", "▲ RR 0.3333 → 1.0000 (+0.6667)"]
    assert summary(pair).startswith("RR of adapted: 0.7778 → 0.7778 (+0.0000")
    assert Page(as_html("nothing", [])).texts["p"][-1] == ALIKE


def test_the_baseline_stands_above_the_other_run_with_ranks_and_their_changes() -> None:
    page = Page(as_html("up", [Section(PAIR, "up", "up")]))

    assert page.texts["bdi"] == ["plain", "adapted"]
    assert page.texts["small"] == ["1 of 1 relevant in the first 10"] * 2
    assert page.texts["b"] == ["1", "2", "3", "1", "2", "3"]
    assert facts(page) == ["▼ 1", "gone", "▲ 2", "▲ 2", "▼ 1", "new"]
    assert page.all("figure")[0]["title"] == "b: rank 1 in plain, rank 2 in adapted"


def facts(page: Page) -> list[str]:
    return [text for text in page.texts["span"] if re.fullmatch(r"new|gone|=|[▲▼] \d+", text)]


def test_marks_differ_by_sign_and_frame_and_show_grades_above_one() -> None:
    html = as_html("down", [Section(PAIR, "up", "up"), Section(PAIR, "down", "down")])
    page = Page(html)

    assert [item["class"] for item in page.all("li")[:6]] == [
        *("wrong", "unjudged", "relevant"),
        *("relevant", "wrong", "unjudged"),
    ]
    assert [text for text in page.texts["span"] if text in ("✓", "×", "✓ 2")] == [
        *("×", "✓", "✓", "×"),
        *("✓ 2", "✓ 2", "✓"),  # the last one was missed
    ]
    assert ".relevant figure { border: 3px solid" in html and ".wrong figure { border: 3px dashed" in html


def test_what_is_relevant_and_beyond_the_first_images_is_shown_as_missed_with_its_ranks() -> None:
    qrels = Qrels({"q": {"a": 1, "b": 1, "x": 1, "y": 1, "c": 0}})
    runs = Run.from_orders({"q": ["a", "c", "b"]}), Run.from_orders({"q": ["c", "a", "d", "b", "y"]})
    section = Section(RunPair(("one", "two"), runs, qrels, depth=2), "q", "q")

    page = Page(as_html("q", [section]))

    assert [tile.image for tile in missed_of(section).tiles] == ["x", "y"]
    assert [text for text in page.texts["b"] if not text.isdecimal()] == ["rank –, –", "rank –, 5"]
    assert set(shown_images(iter([section]))) == {"a", "c", "x", "y"}
    assert page.texts["small"][-1] == "3 relevant beyond the first 2; the last 2; ranks in one, two"


def test_queries_and_pictures_link_into_a_running_page_and_only_there(tmp_path: Path) -> None:
    pictures = {"a": Picture(str(picture(tmp_path / "a.png")), "an apple", "f" * 32)}
    section = Section(PAIR, "up", "what rises", words="what rises")

    html = as_html("up", *linked("http://here:8000", [section], pictures))
    calm = as_html("up", *linked("", [section], pictures))

    photo = f"http://here:8000/photo/{'f' * 32}?q=what+rises"
    assert [link["href"] for link in Page(html).all("a")] == ["http://here:8000/?q=what+rises", photo, photo]
    assert Page(calm).all("a") == []


@pytest.mark.parametrize("address", ["here:8000", "javascript:alert(1)", "http://", "http://a/?q=1", "/photos"])
def test_what_is_no_address_of_a_page_is_refused(address: str) -> None:
    with raises(UsageError):
        checked_address(address)
    assert checked_address("https://photos.example/herons/") == "https://photos.example/herons"


def test_only_the_first_images_are_shown_and_a_run_may_lack_the_query() -> None:
    runs = Run.from_orders({"q": [f"i{number}" for number in range(30)]}), Run.from_orders({})
    section = Section(RunPair(("long", "none"), runs, Qrels({}), depth=4), "q", "q")

    assert shown_images([section]) == ["i0", "i1", "i2", "i3"]
    assert len(Page(as_html("long", [section])).all("li")) == 4


def test_an_image_without_a_picture_is_shown_by_its_id(tmp_path: Path) -> None:
    pictures = {"a": Picture(str(picture(tmp_path / "a.png")), "an apple"), "b": Picture(str(tmp_path / "gone"), "b!")}
    page = Page(as_html("up", [Section(PAIR, "up", "up")], pictures))

    assert [image["alt"] for image in page.all("img")] == ["an apple", "an apple"]
    assert {"b", "c", "d"} < set(page.texts["span"]) and "a" not in page.texts["span"]


@settings(deadline=None, max_examples=examples(60))
@given(st.text(st.characters() | st.sampled_from("<>&\"'/={}\udcff\u202e\0\n"), min_size=1) | st.just(HOSTILE))
def test_no_text_breaks_the_page(text: str) -> None:
    run = Run.from_orders({text: [text]})
    section = Section(RunPair((text, text), (run, run), Qrels({text: {text: 1}})), text, text, text)
    calm = Section(RunPair(("x", "x"), (run, run), Qrels({text: {text: 1}})), text, "x", "x")

    page, plain = Page(as_html(text, [section], intro=[text])), Page(as_html("x", [calm], intro=["x"]))

    assert page.open == []
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]


def test_the_page_needs_and_runs_nothing() -> None:
    page = Page(as_html("up", [Section(PAIR, "down", "down"), Section(PAIR, "up", "what rises")]))
    policies = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]

    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    assert not {"script", "link", "a"} & {tag for tag, _ in page.elements}
    assert not any(word in page.texts["style"][0] for word in ("url(", "@import"))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with raises(UsageError):
        from_folder(tmp_path / "none", ["a"])


def test_a_folder_tells_images_by_path_name_and_stem_and_takes_none_from_outside(tmp_path: Path) -> None:
    outside, photos = picture(tmp_path / "secret.png"), tmp_path / "photos"
    for place in ("x/one.png", "x/two.png", "three.png", "x/four.png", "y/four.png"):
        picture(photos / place)
    asked = ["x/one.png", "x/two", "three", "one.png", "none", "../secret.png", str(outside), "../secret"]

    found = from_folder(photos, [*asked, "four", "y/four"])  # two files are called four

    assert {image: Path(each.path or "").relative_to(photos).as_posix() for image, each in found.items()} == {
        "x/one.png": "x/one.png",
        "x/two": "x/two.png",
        "three": "three.png",
        "one.png": "x/one.png",
        "y/four": "y/four.png",
    }


def test_a_gallery_tells_images_by_stem_and_by_its_ids_also_in_runs_of_evaluations(tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path, 2)
    id = id_of((tmp_path / "photos" / "1.jpg").read_bytes())

    found = from_gallery(gallery, ["0", "1", "unknown"])

    assert {image: Path(one.path or "").name for image, one in found.items()} == {"0": "0.jpg", "1": "1.jpg"}
    assert set(from_gallery(gallery, [id])) == {id}
    assert set(from_gallery(gallery, ["0", f"gallery:{id}"])) == {"0", f"gallery:{id}"}


# -- the queries of a report to look at ---------------------------------------------------------------------------


EXAMPLES_QRELS = {
    "good": {"a": 1, "b": 1},
    "fair": {"a": 1, "b": 0, "c": 0},
    "open": {"a": 1},  # two of the first three have no judgement
    "middle": {"a": 1, "b": 0, "c": 0},
    "bad": {"a": 1, "b": 0},
    "lost": {"a": 1, "b": 0, "c": 0},
}
ORDERS = {"good": "abc", "fair": "acb", "open": "bca", "middle": "bac", "bad": "bca", "lost": "bc"}


def made(orders: dict[str, str], way: str = "t2i", measures: Sequence[str] = ("AP",)) -> Evaluation:
    queries = {query: {"text": f"find {query}"} for query in EXAMPLES_QRELS}
    task = Task(way, JudgedQueries(queries, Qrels(EXAMPLES_QRELS)), [*map(parse, measures)], way=way)
    run = Run.from_orders({query: list(images) for query, images in orders.items()})
    return Evaluation(heron(), "test", "ours", [scored(task, run)], {"eyespot": "0"})


def queries(group: object) -> list[str]:
    return [section.query for section in group.sections]  # type: ignore[attr-defined]


def test_the_best_the_worst_and_of_the_rest_the_most_uncertain_are_shown_once() -> None:
    """Uncertainty is how far the number moves if the unjudged are relevant."""
    best, worst, uncertain = examples_of(made(ORDERS))

    assert (queries(best), queries(worst)) == (["good", "fair"], ["lost", "bad"])
    assert queries(uncertain) == ["open"]  # of `middle` everything is judged
    assert uncertain.sections[0].note == "open · AP 33.33, uncertain by 66.67; 1 judged, 1 of the first 10"
    assert best.title == "The best queries of t2i" and best.about == "by AP"
    widths = dict(zip(EXAMPLES_QRELS, uncertainty(made(ORDERS).results[0]).tolist(), strict=True))
    assert widths["open"] == pytest.approx(1 - 1 / 3)
    assert widths["fair"] == widths["middle"] == widths["lost"] == 0
    twice = made(ORDERS, measures=("AP", "AP(norm='min-k')"))  # neither has its short name
    assert uncertainty(twice.results[0]).tolist() == list(widths.values())


def test_a_measure_that_cannot_reach_a_hundred_says_its_ceiling() -> None:
    """The first image is at most one of two that are relevant; what was not ranked has no image among the first."""
    groups = examples_of(made({"good": "abc"}, measures=("R@1",)))
    notes = {section.query: section.note for group in groups for section in group.sections}
    assert notes["good"] == "good · R@1 50.00 of at most 50.00; 2 judged, 2 of the first 10"
    assert "lost · R@1 0.00; 3 judged, 0 of the first 10" in notes.values()


def test_another_system_stands_below_with_what_moved_and_captions_show_no_pictures() -> None:
    ours, theirs = made(ORDERS), made({**ORDERS, "good": "cba"})
    groups = examples_of(ours, {"theirs": {"t2i": theirs.results[0].run}})

    page = Page(page_of(ours, Pictured(), examples=Examples(groups)))

    assert page.texts["bdi"][:2] == ["ours", "theirs"]
    assert "▲ 2" in page.texts["span"] and "▼ 2" in page.texts["span"]
    assert examples_of(made(ORDERS, "i2t")) == []


def test_captions_whose_picture_falls_back_in_a_larger_pool_are_shown_with_the_nearest_in_both() -> None:
    """`far` keeps its picture first in v0 and finds it at place 4 in v1; the picture of `other` is not in v0."""
    versions = {"a": "v0", "b": "v0", "c": "v0", "x": "v1", "y": "v1", "z": "v1"}
    texts = {query: {"text": f"find {query}"} for query in ("far", "stays", "wrong", "other")}
    qrels = Qrels({"far": {"a": 1}, "stays": {"b": 1}, "wrong": {"c": 1}, "other": {"x": 1}})
    pool = {image: {"version": version} for image, version in versions.items()}
    task = Task("t2i", JudgedQueries(texts, qrels), [parse("RR")], pool=pool)
    orders = {"far": "xyzabc", "stays": "bxyzac", "wrong": "abxcyz", "other": "xabcyz"}
    run = Run.from_orders({query: list(images) for query, images in orders.items()})
    two = Evaluation(heron(), "v1", "ours", [scored(task, run)], {"eyespot": "0"})

    group = examples_of(two)[-1]

    assert group.title == "The 5 nearest pictures in two pools" and queries(group) == ["far", "stays", "wrong"]
    assert "of 3 captions of v0, 2 find" in group.about and "and 1 among those of v1" in group.about
    strips = [[(side.name, [tile.image for tile in side.tiles]) for side in sides_of(one)] for one in group.sections]
    assert strips[0] == [("v0, 3 pictures", [*"abc"]), ("v1, 6 pictures", [*"xyzab"])]
    one_pool = replace(task, pool={image: {"version": "v0"} for image in versions})
    alone = replace(two, results=[scored(one_pool, run)])
    assert "two pools" not in " ".join(each.title for each in examples_of(alone))


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
