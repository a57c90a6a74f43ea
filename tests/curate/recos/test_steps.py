"""Single steps: what is accepted, checked, paired and dropped, in numbers that can be checked by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eyespot.curate.recos import captions, checking, confusing
from eyespot.curate.recos.captions import EVERYDAY, Captions, CaptionWriter, Rewriting
from eyespot.curate.recos.checking import CaptionVerdict, confirm
from eyespot.curate.recos.making import notes
from eyespot.curate.recos.pictures import Sources, labels_of, writing_of
from eyespot.curate.recos.subtasks import Collecting, SubtaskPictures, token_edits
from eyespot.pipelines import BatchStep, Drop, Keep, MapStep, Prompt, Record, RunOptions, Step, drops, run
from eyespot.pipelines.human_review import Queue
from eyespot.pipelines.outcomes import Added
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds import index_gallery
from tests.worlds.bar_texts import BarReader, draw_bars
from tests.worlds.recos import STEPS, made, photos, ran, recipe


def caption(id: str, text: str, **more: Any) -> dict[str, Any]:
    image = id.partition("/")[0]
    return {"id": id, "image": image, "text": text, "version": "v0", "subtask": "colour", "source": "own", **more}


def through(
    records: Iterable[Record], step: Step, out: Path, options: RunOptions = RunOptions()
) -> list[tuple[str, str]]:
    """The ids that come out of a step with "", and those it drops with the reason."""
    render = Step("render", BatchStep(lambda _records, _context: []))
    source = Step("source", BatchStep(lambda _records, _context: map(Added, records)))
    done = run([render, source, step], out, options)[-1]
    survivors = [(record["id"], "") for record in done.records]
    return survivors + [(one.record["id"], one.reason) for one in drops(done.folder)]


def test_what_would_be_accepted_is_counted_by_temperature_and_band() -> None:
    """Two captions: four equal cosines (always log 4, in no band), and one far above three (0 when it is cold)."""
    table = captions.choices([[0.3, 0.3, 0.3, 0.3], [0.9, 0.1, 0.1, 0.1]], 4)
    rows = {row[0]: row[1:] for row in table.rows}

    assert rows["1"][1:] == ["0%", "0%", "0%", "0%", "50%"]  # 1.312 of the second; η = 0.9 accepts up to 1.317
    assert rows["0.005"][1:] == ["0%"] * 5
    weight = math.exp(-8)  # at temperature 0.1 the three weigh e^-8 each
    total = 1 + 3 * weight
    cold = math.log(total) + 3 * weight * 8 / total
    assert rows["0.1"][0] == f"{(cold + math.log(4)) / 2:.3f}"


def test_the_histogram_counts_captions_before_and_after() -> None:
    table = captions.histogram([0.1, 1.0, 1.0, 2.3], [1.0, 1.0], Rewriting(10, 0.01, 0.5))
    filled = {row[0]: row[1:] for row in table.rows if any(row[1:])}
    assert filled == {"0.00 to 0.12": [1, 0], "0.92 to 1.04": [2, 2], "2.19 to 2.30": [1, 0]}
    assert "0.58 to 1.73 is accepted" in table.note


@pytest.mark.parametrize(
    "wrong", [lambda: Rewriting(k=1), lambda: Rewriting(temperature=0.0), lambda: Rewriting(eta=1.5)]
)
def test_settings_without_sense_are_refused(wrong: Callable[[], object]) -> None:
    with raises(UsageError):
        wrong()


@pytest.mark.parametrize(("limit", "counts"), [(7, [3, 2, 2]), (3, [1, 1, 1]), (2, [1, 1, 0])])
def test_a_trial_gives_every_sub_task_its_share_and_of_few_the_first(limit: int, counts: list[int]) -> None:
    wanted = {"colour": SubtaskPictures(6), "count": SubtaskPictures(2), "scene": SubtaskPictures()}
    how = Collecting(subtasks=wanted).shared(limit)
    assert {name: one.count for name, one in how.wanted().items()} == dict(zip(wanted, counts, strict=True))


def test_celebrities_are_collected_only_if_they_are_named() -> None:
    assert "celebrity" not in Collecting().wanted()
    assert list(Collecting(subtasks={"celebrity": SubtaskPictures()}).wanted()) == ["celebrity"]


def test_words_are_looked_for_in_what_labels_say_of_the_picture_alone(tmp_path: Path) -> None:
    """G-Man took the photo and is not in it; a licence under which it is had tells no place."""
    place = photos(tmp_path, ("windmill1", "fish1"))
    table = tmp_path / "pictures" / "metadata.csv"
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    more = ",G-Man,https://man.example/,under the terms of the man"
    table.write_text("\n".join([f"{head},author,source,licence", *(row + more for row in rows)]), encoding="utf-8")
    index_gallery(place, tmp_path / "pictures")
    sources = Sources(tmp_path / "work", {"own": place})
    found = sources.photos("own", sorted(sources.rows("own").values()))

    assert [labels_of(one) for one in found] and not any("man" in labels_of(one).casefold() for one in found)
    assert {one["facts"]["title"] for one in found} == {"windmill a", "fish b"}


def test_captions_are_of_one_picture_each_and_every_picture_has_enough(tmp_path: Path) -> None:
    texts = {"a/1": "Red.", "a/2": "Very red.", "a/3": "Rather red.", "b/2": "Blue.", "c/1": "Green."}
    texts |= {"b/1": "red"}  # said of a as well
    texts |= {"c/2": "green.", "c/3": "Light green."}  # its own, twice
    how = checking.Completing(2)
    work = BatchStep(lambda found, context: checking.completed(found, context, how, {}))
    records = [caption(id, text) for id, text in sorted(texts.items())]

    assert sorted(through(records, Step("complete", work, needs=("render",)), tmp_path)) == [
        ("a/1", "caption of two pictures"),
        ("a/2", ""),
        ("a/3", ""),
        ("b/1", "caption of two pictures"),
        ("b/2", "its picture has too few captions"),
        ("c/1", ""),
        ("c/2", "repeated caption"),
        ("c/3", ""),
    ]


def test_a_picture_has_five_captions_and_a_sub_task_no_more_pictures_than_it_wants(tmp_path: Path) -> None:
    """The first ones; captions of v1 follow from those of v0, and are not counted by sub-task."""
    texts = {f"{image}/{number}": f"{image} {number}." for image in "abc" for number in range(1, 8)}
    records = [{**caption(id, text), "subtask": "colour"} for id, text in texts.items()]
    work = BatchStep(lambda found, context: checking.completed(found, context, checking.Completing(), {"colour": 2}))
    found = dict(through(records, Step("complete", work, needs=("render",)), tmp_path))

    assert [id for id, why in found.items() if not why] == [
        f"{image}/{number}" for image in "ab" for number in range(1, 6)
    ]
    assert {why for why in found.values() if why} == {checking.SURPLUS}


def test_a_sub_task_of_a_recipe_has_what_it_depends_on_and_what_may_change() -> None:
    lesion = SubtaskPictures(want=3, about="Says where it lies.", attributes=("place",))
    colour = SubtaskPictures(about="Names the shade.")
    how = Collecting(subtasks={"lesion": lesion, "colour": colour, "scene": SubtaskPictures(4, want=2)})

    assert how.counts() == {"lesion": 3, "colour": 50, "scene": 4}
    assert how.goals() == {"lesion": 3, "colour": 50, "scene": 2}
    assert how.taking({"lesion": 9}).counts()["lesion"] == 9 and how.taking({"lesion": 9}).goals() == how.goals()
    assert (how.described("lesion").about, how.described("lesion").attributes) == (lesion.about, ("place",))
    assert (how.described("colour").about, how.described("colour").attributes) == ("Names the shade.", ("colour",))
    with raises(UsageError):
        Collecting(subtasks={"lesion": SubtaskPictures(about="Says where it lies.")}).wanted()


@pytest.mark.parametrize(
    ("text", "fault"),
    [("A red bus stands near a tree.", ""), ("A red bus stands near the the tree.", "the the"), ("An bus.", "An")],
)
def test_faults_of_grammar_are_found_offline(text: str, fault: str) -> None:
    pytest.importorskip("harper")
    how = checking.Grammar()
    found = checking.checked(caption("a/1", text), None, checking.Checker(how), how)  # type: ignore[arg-type]
    assert isinstance(found, Keep)
    assert fault in " ".join(found.record.get("doubts", [])) and bool(fault) == ("doubts" in found.record)


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("A photo of the Louvre and of Machu Picchu.", ""),  # names
        ("A photo of the louvre.", "louvre"),
        ("Skiiers on a hill.", "Skiiers"),  # a capital because the sentence begins
        ("A hill. Skiiers go up.", "Skiiers"),
    ],
)
def test_a_name_is_no_fault_of_spelling(text: str, doubted: str) -> None:
    pytest.importorskip("harper")
    found = checking.Checker(checking.Grammar())(text)
    assert len(found) == bool(doubted) and doubted in " ".join(found)


def test_a_version_is_checked_apart_from_the_others_and_nothing_of_drawn_pictures() -> None:
    how, checker = checking.Grammar(at_fault="drop", version="v1"), lambda _text: ["Spelling: 'x'"]
    records = [caption("a/1", "x", version=version) for version in ("v0", "v1")]
    records.append(caption("a/1", "Code that prints noreh.", version="v1", source="drawn"))
    found = [checking.checked(record, None, checker, how) for record in records]  # type: ignore[arg-type]
    assert [type(one) for one in found] == [Keep, Drop, Keep]


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [
        ("a red bus near a tree", "a blue bus near a tree", 1),
        ("a red bus", "a big blue bus", 2),
        ("", "two words", 2),
        ("a b c", "c b a", 2),
    ],
)
def test_words_that_are_changed_are_counted(one: str, other: str, edits: int) -> None:
    assert token_edits(one.split(), other.split()) == edits


@pytest.mark.parametrize(
    ("number", "text", "attribute", "reason"),
    [
        (1, "A blue bus near a tree.", "colour", ""),
        (2, "A blue bus near a tree.", "colour", "caption of no original"),
        (1, " ", "colour", "empty caption"),
        (1, "A blue bus near a tree.", "weather", "no attribute of the sub-task"),
        (1, "a red BUS near a tree.", "colour", "nothing is changed"),
        (1, "A red bus, near a tree", "colour", "nothing is changed"),
        (1, "Two dogs play on green grass.", "colour", "too much is changed"),
    ],
)
def test_a_confusing_caption_changes_little_and_says_what(number: int, text: str, attribute: str, reason: str) -> None:
    original = {1: "A red bus near a tree."}.get(number, "")
    fields = {"text": text.strip(), "attribute": attribute, "edits": confusing.changed(original, text)}
    assert (
        confusing.fault_of({**fields, "original": original, "subtask": "colour"}, confusing.Confusing(), ["colour"])
        == reason
    )


@pytest.mark.long
def test_the_pair_is_the_most_similar_of_the_source_that_is_no_copy(tmp_path: Path) -> None:
    """A copy of a photo, recompressed, lies in the gallery: it is no picture to be confused with."""
    place = photos(tmp_path, ("windmill1", "windmill2", "windmill3", "fish1", "fish2", "fish3"))
    first = next((tmp_path / "pictures").glob("*windmill1*"))
    Image.open(first).save(tmp_path / "pictures" / "copy.jpg", quality=40)
    index_gallery(place, tmp_path / "pictures")
    collect = f'galleries = {{ own = "{place}" }}\n[steps.subtasks.object]\ncount = 1\nwords = ["windmill a"]'
    settings = {"draw": "subtasks = {}", "collect": collect, "complete": "least = 1"}
    settings |= {"discriminate": 'model = "writer"\nk = 2\nat_limit = "keep"', "pair": "cosine = 2.0"}
    file = recipe(tmp_path, place, **settings)
    # dis(t) wants other pictures to compare with, and v0 is one photo here
    lines = file.read_text(encoding="utf-8").partition('[[steps]]\nstep = "discriminate"')
    file.write_text(lines[0] + '[[steps]]\nstep = "pair"\n[[steps]]\nstep = "confuse"\nmodel = "writer"\n')

    making, done = ran(file, tmp_path / "out")

    (pair,) = [one for one in done[-3].records if "originals" in one]
    sources = making.sources
    everyone = sources.rows("own")
    mask = np.ones(len(everyone), bool)
    mask[everyone[pair["of"]]] = False
    rows = [row for row, _ in sources.nearest(pair | {"image": pair["of"]}, 2, mask)]
    copy, nearest = (sources.photos("own", [row])[0] for row in rows)
    assert Path(copy["path"]).name == "copy.jpg" and pair["image"] == nearest["image"]


def test_the_model_is_told_no_labels_unless_it_works_from_them_and_a_prompt_may_show_json(tmp_path: Path) -> None:
    record = {"image": "x", "path": "x.jpg", "source": "own", "subtask": "colour", "facts": {"title": "heron"}}
    mine = 'Write {count}, as in {"captions": ["A {colour} bus."]}'

    def prompt(use: str, words: str) -> Any:
        return CaptionWriter({"use": use}, words, Sources(tmp_path, {})).prompt("caption", record, Captions, count=5)

    usual = prompt("openai:m", EVERYDAY["caption"]["prompt"])
    assert ["heron" in str(one) for one in (usual, prompt("demonstration", EVERYDAY["caption"]["prompt"]))] == [
        False,
        True,
    ]
    assert "Write 5 captions" in usual["words"] and "about colour" in usual["words"]
    assert prompt("openai:m", mine)["words"] == 'Write 5, as in {"captions": ["A {colour} bus."]}'


def judge_by_truth(prompt: Prompt, _meter: object) -> dict[str, Any]:
    """A caption names its picture; each answer errs in 5 %."""
    text = prompt["words"].rpartition("Caption: ")[2].strip()
    errs = Random(text + str(prompt["pictures"]))
    first, *second = (f"{id}." in text for id in prompt["pictures"])
    found = {"true_of_first": first, "true_of_second": any(second), "searchable": "Tower" not in text}
    answer = {name: yes ^ (errs.random() < 0.05) for name, yes in (found | {"fits": "odd" not in text}).items()}
    return {"reasoning": "compared", **answer}


@pytest.mark.parametrize("version", ["v0", "v1"])
def test_a_judge_leaves_at_most_three_of_a_hundred_planted_faults(tmp_path: Path, version: str) -> None:
    """Of 600 captions 60 are of another picture (in v1 the similar one), 30 name a tower, 30 are of an odd picture."""
    records = []
    for at in range(600):
        fault = {0: "false", 1: "Tower" if at % 20 == 1 else "odd"}.get(at % 10, "")
        named = f"p{at + (1000 if version == 'v1' else 1)}" if fault == "false" else f"p{at}"
        lookalike = {"of": f"p{at + 1000}", "of_path": "y.jpg"} if version == "v1" else {}
        more = {"path": "x.jpg", "version": version, **lookalike}
        records.append(caption(f"p{at}/1", f"{fault} bird {named}.", **more))
    drawn = caption("drawn/1", "A sum of p3.", path="d.jpg", source="drawn", version=version)
    other = caption("other/1", "false bird", version="v1" if version == "v0" else "v0")
    judge = CaptionWriter({"use": "script"}, EVERYDAY["verify"]["prompt"], Sources(tmp_path, {}))
    work = MapStep(lambda record, context: checking.verified(record, context, judge, checking.Verifying(version)))

    options = RunOptions(client=judge_by_truth)
    came = dict(through([*records, drawn, other], Step("verify", work), tmp_path / "out", options))

    planted = {one["id"] for one in records if not one["text"].startswith(" ")}
    left = {id for id, reason in came.items() if not reason}
    assert len(planted) == 120 and len(planted & left) <= 0.03 * len(left)
    assert {"drawn/1", "other/1"} <= left and len(left) > 0.75 * 480
    assert {checking.UNTRUE, checking.UNFIT, checking.UNSEARCHABLE} <= set(came.values())
    assert (
        checking.fault_found(
            CaptionVerdict(reasoning="", true_of_first=True, true_of_second=True, searchable=True, fits=True), 2
        )
        == checking.NOT_UNIQUE
    )


# -- recipes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        ("draw", "subtasks = { colour = 3 }"),
        ("collect", "[steps.subtasks.chart]\ncount = 3"),
        ("collect", "[steps.subtasks.colour]\nquery = 3"),
        ("collect", 'galleries = { drawn = "x" }'),
        ("caption", ""),
        ("caption", 'model = "writer"\n[[steps]]\nstep = "verify"\nmodel = "writer"'),  # rules see no picture
        ("caption", 'model = "writer"\nprompts = { cap = "recipe.toml" }'),
        ("discriminate", 'model = "writer"\nat_limit = "maybe"'),
        ("discriminate", 'model = "writer"\nk = 1'),
        ("render", "size = 3"),
        ("render", '[[steps]]\nstep = "caption"'),  # a recipe begins with its sources
    ],
)
def test_what_is_wrong_in_a_recipe_is_said(tmp_path: Path, gallery: Path, step: str, lines: str) -> None:
    with raises(UsageError):
        ran(recipe(tmp_path, gallery, **{step: lines}), tmp_path / "out")


# -- captions that a person decided on ----------------------------------------------------------------------------


def test_a_decision_stands_after_the_folder_was_moved(copied: Path, tmp_path: Path, gallery: Path) -> None:
    """The set was copied, so that drawn pictures lie elsewhere than where they were decided on."""
    queue = Queue(copied / "review" / "review.jsonl")
    drawn = next(case for case in queue.open() if "drawn" in case.pictures[0])
    queue.decide(drawn, "drop", "ada")

    _, done = ran(recipe(tmp_path, gallery), copied)

    review = next(one for one in done if one.step.name == "review")
    assert review.counts.dropped == {"dropped in review": 1} and drawn.id not in {one["id"] for one in review.records}
    assert str(copied) in Queue(queue.path).cases[drawn.id].pictures[0]
    assert not next(one for one in done if one.step.name == "caption").ran


def test_every_caption_tells_whether_a_person_looked(copied: Path, tmp_path: Path, gallery: Path) -> None:
    """Words that were mended have no numbers of the old ones."""
    queue = Queue(copied / "review" / "review.jsonl")
    accepted, mended_one, *others = queue.open()
    queue.decide(accepted, "accept", "ada")
    queue.decide(mended_one, "mend", "ada", texts={"text": "A quite different caption of it."})

    found = made(recipe(tmp_path, gallery, complete="least = 1"), copied)

    rows = {row["id"]: row for row in pq.read_table(copied / "set" / "captions.parquet").to_pylist()}
    put = {accepted.id: "confirmed", mended_one.id: "changed"}
    assert {id: row["review"] for id, row in rows.items()} == {id: put.get(id, "unseen") for id in rows}
    assert [rows[mended_one.id][name] for name in ("text", "dis", "rounds")] == [
        *("A quite different caption of it.", None, None)
    ]
    assert {one["id"] for one in found.captions("v0") if rows[one["id"]]["dis"] is None} == {mended_one.id}
    case_ids = {case.id for case in others}
    told_of = {id: "undecided" if id in case_ids else row["review"] for id, row in rows.items()}
    counts = {v: Counter(told_of[id] for id, row in rows.items() if row["version"] == v) for v in ("v0", "v1")}
    assert counts["v0"]["undecided"] > 1 and counts["v0"]["unseen"] > 1 and set(counts["v1"]) == {"unseen"}
    card = (copied / "set" / "README.md").read_text(encoding="utf-8")
    for version, tally in counts.items():
        cells = [tally.total(), tally["confirmed"], tally["changed"], tally["undecided"], tally["unseen"], 0]
        assert f"| {version} | {' | '.join(map(str, cells))} |" in card
    assert "50% (9% to 91%)" in card  # one of two was accepted as it was
    unseen = sum(row["review"] == "unseen" for row in rows.values())
    assert any(f" {unseen} of {len(rows)} captions" in note for note in notes(found))


@pytest.mark.long
def test_a_person_confirms_the_words_they_saw_alone(tmp_path: Path, gallery: Path) -> None:
    """Captions are reviewed before some are written again, and put to a person a second time who has not decided."""
    place = recipe(tmp_path, gallery, review='undecided = "keep"', complete="least = 1")
    parts = dict(zip(STEPS, place.read_text(encoding="utf-8").split("[[steps]]\n")[1:], strict=True))
    again = parts["review"] + 'name = "again"\n'
    order = ["draw", "render", "collect", "caption", "review", "discriminate", again, "complete"]
    head = place.read_text(encoding="utf-8").partition("[[steps]]")[0]
    place.write_text(head + "".join(f"[[steps]]\n{parts.get(name, name)}" for name in order), encoding="utf-8")
    ran(place, tmp_path / "out")
    queue = Queue(tmp_path / "out" / "review" / "review.jsonl")
    for case in queue.open():
        queue.decide(case, "accept", "ada")

    found = made(place, tmp_path / "out")

    reviews = {(bool(one["rounds"]), one["review"]) for one in found.captions("v0")}
    assert reviews == {(False, "confirmed"), (True, "undecided")}


def test_what_a_mended_caption_changes_is_counted_anew() -> None:
    caption = {"text": "A blue bus.", "original": "A red bus.", "edits": 1}

    assert confirm(caption, {"text": "A big blue bus."}) == {
        "text": "A big blue bus.",
        "original": "A red bus.",
        "edits": 2,
        "review": "changed",
    }


# -- the sub-task `ocr` takes photos in which OCR read something, and the card says what read them ---------------


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, of which six have writing that was read; one of these shows a windmill according to its sign only."""
    folder = tmp_path_factory.mktemp("signs")
    gallery = photos(folder, ("windmill1", "windmill2", "fish1", "dam1"))
    for number, sign in enumerate(("Bakery", "Fresh fish", "No parking", "Platform 9", "Town hall", "Exit")):
        draw_bars(folder / "pictures" / f"sign{number}.png", sign, seed=number)
    draw_bars(folder / "pictures" / "mill.png", "windmill", seed=9)
    index_gallery(gallery, folder / "pictures", workers=1, text_reader=BarReader())
    return gallery


def collect(gallery: Path, subtask: str) -> str:
    return f'galleries = {{ own = "{gallery}" }}\n{subtask}'


@pytest.mark.long
def test_photos_with_writing_are_chosen_and_quoted(signs: Path, tmp_path: Path) -> None:
    wanted = collect(signs, "[steps.subtasks.ocr]\ncount = 4\n[steps.subtasks.numerical]\ncount = 2")
    done = made(recipe(tmp_path, signs, collect=wanted, draw="subtasks = { numerical = 5 }"), tmp_path / "out")

    captions = [record for record in done.captions("v0") if record["subtask"] == "ocr"]
    swapped = [record for record in done.captions("v1") if record["subtask"] == "ocr"]
    assert len({record["image"] for record in captions}) == 4
    assert all(f'"{record["writing"]}"' in record["text"] for record in captions if record["number"] == 1)
    assert swapped and all(record["writing"] in record["text"] != record["original"] for record in swapped)
    assert {record["stand_in"] for record in captions} == {""}
    assert any("ocr: the text of 4 photos" in note and "(bars 1)" in note for note in notes(done))


def test_words_are_looked_for_in_writing_by_the_sub_task_of_text_alone(signs: Path, tmp_path: Path) -> None:
    """A sign that says "windmill" shows no windmill."""
    words = 'words = ["windmill", "bakery"]\ncount = 3'
    wanted = collect(signs, f"[steps.subtasks.object]\n{words}\n[steps.subtasks.ocr]\n{words}")
    near = 'model = "writer"\nk = 2\nat_limit = "keep"'
    place = recipe(tmp_path, signs, collect=wanted, draw="subtasks = { numerical = 5 }", discriminate=near)
    done = made(place, tmp_path / "out")

    chosen = {
        (record["subtask"], Path(record["path"]).stem.rpartition("__")[2]) for record in done.result("collect").records
    }
    assert chosen - {("ocr", "sign0"), ("ocr", "mill")} == {("object", "windmill1"), ("object", "windmill2")}
    assert len(chosen) == 4


def test_writing_is_what_a_caption_can_quote() -> None:
    """Sure, and of three letters or digits at least."""
    boxes = [
        ["Bakery", 0.99, 0, 0, 1, 1],
        ["no", 0.99, 0, 0, 1, 1],
        ["Bahnhof", 0.6, 0, 0, 1, 1],
        ["A12", 0.9, 0, 0, 1, 1],
    ]

    assert writing_of({"text_boxes": json.dumps(boxes), "text_read_by": "bars 1"}) == {
        "writing": "Bakery\nA12",
        "read_by": "bars 1",
    }
    assert writing_of({"text_boxes": "a label of a person"}) == writing_of({}) == {"writing": "", "read_by": ""}
