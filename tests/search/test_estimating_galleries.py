"""Answers of a gallery: planted truth by group, blind looks, runs that end early, files that give the answer again."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import sys
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import ExifTags, Image

import eyespot
from eyespot import sample
from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.llms.budget import BudgetSpent
from eyespot.search.estimates.study import again
from eyespot.types import Judgement, UsageError, Verdict
from tests.command import environment, refuses, run_eyespot
from tests.wording import raises
from tests.worlds import copy_of_sample_gallery, draw_photos, index_gallery
from tests.worlds.batches import BatchServer
from tests.worlds.servers import YES, Double

RENEWABLE, WINDMILLS = "categorization/renewable", 14
ENDS = ("median", "low", "high")
GROUP_COLUMNS = [
    *("group", "units", "photos", "looked_at", "yes", "basis", "effort", *(f"relevant_{end}" for end in ENDS)),
    *("share", "share_low", "share_high", "together_low", "together_high", "rate", "rate_low", "rate_high"),
]
PAIR_COLUMNS = [
    *("first", "second", *(f"difference_{end}" for end in ENDS), *(f"ratio_{end}" for end in ENDS)),
    *("apart", "apart_together", "more_looks_low", "more_looks_high"),
]


@pytest.fixture
def photos(tmp_path: Path) -> eyespot.Collection:
    return eyespot.open(copy_of_sample_gallery(tmp_path / "gallery"))


def figure_size(drawing: str) -> tuple[int, ...]:
    return tuple(int(side) for side in re.findall(r'(?:width|height)="(\d+)"', drawing)[:2])


def is_windmill(_text: str, path: Path) -> float:
    return float("windmill" in str(path))


def test_an_answer_holds_the_planted_truth_and_copies_count_once(photos: eyespot.Collection) -> None:
    found = photos.estimate("a windmill", by="category", looks=120, judge=is_windmill)

    ours = found.groups[RENEWABLE]
    assert "." not in ours.sentence  # photos are counted whole
    assert (ours.units, ours.basis) == (28, "own") and ours.relevant.low <= WINDMILLS <= ours.relevant.high
    assert all(one.relevant.low == 0 for label, one in found.groups.items() if label != RENEWABLE)
    assert sum(row["photos"] for row in found.table) == 208 > sum(row["units"] for row in found.table)
    assert found.compare(RENEWABLE, "categorization/tools").apart == 1
    assert "120 were drawn" in found.methods and "208 photos (205 after" in found.methods


SEEN: list[str] = []  # a function with memory of its own would be another judge each time


def remembered(text: str, path: Path) -> float:
    SEEN.append(str(path))
    return is_windmill(text, path)


def test_more_looks_begin_with_those_that_are_there_and_nobody_is_asked_twice(photos: eyespot.Collection) -> None:
    SEEN.clear()
    first, same, more = (photos.estimate("a windmill", by="category", looks=n, judge=remembered) for n in (60, 60, 120))

    assert len(SEEN) == len({*SEEN}) == 120 and first.table == same.table
    assert more.plan.units[:60].tolist() == first.plan.units.tolist() and not more.waiting


def test_a_burst_of_thirty_frames_is_one_unit_of_the_month_of_its_first(tmp_path: Path) -> None:
    place, begun = sorted(sample.photos().glob("explore_world*.jpg"))[0], datetime(2024, 7, 31, 23, 59, 45)
    bird, exif = Image.open(place).convert("RGB"), Image.Exif()
    draw_photos(tmp_path / "photos", 6)
    for place, wrong in zip(sorted((tmp_path / "photos").iterdir()), ("1970:01:01", "2099:05:01"), strict=False):
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = f"{wrong} 00:00:00"
        Image.open(place).convert("RGB").save(place.with_suffix(".jpg"), exif=exif)
        place.with_suffix(".png").unlink(missing_ok=True)
    for at in range(30):
        exif[ExifTags.Base.Model] = "Trap 1"
        taken = (begun + timedelta(seconds=at)).strftime("%Y:%m:%d %H:%M:%S")
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = taken
        (left, top), (width, height) = (at % 3, at % 2), bird.size
        bird.crop((left, top, width - 9, height - 9)).save(tmp_path / f"photos/burst{at:02}.jpg", exif=exif)
    index_gallery(tmp_path / "gallery", tmp_path / "photos")
    indexed = json.loads(run_eyespot("index", "-g", tmp_path / "gallery", "--json").stdout)

    found = eyespot.open(tmp_path / "gallery").estimate(
        "a bird", by="month", judge=lambda _text, path: Path(path).name.startswith("burst")
    )

    july = found.table[6]
    assert (july["group"], july["units"], july["photos"], july["relevant_median"]) == (7, 1, 30, 1)
    assert found.groups[8].units == 0 and found.groups["unknown"].relevant.high == 0
    assert found.groups["unknown"].units == 6  # a clock that nobody set, and the future, are no dates
    assert (indexed["looked"]["misdated"], indexed["codes"]) == (2, ["misdated"])
    answer = found.as_json()
    assert (answer["misdated"], answer["codes"]) == (2, ["misdated"]) and answer["advice"][0].startswith("2 dates")
    assert "36 photos (7 after joining copies and bursts)" in found.methods


class Killed(BaseException):
    """An end that nothing catches."""


def test_a_kill_between_looks_loses_none_and_the_answer_is_of_the_gallery_that_was_ranked(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    seen: list[Path] = []

    class Judge:
        """The same for every run: what it has seen is not part of its code."""

        def __call__(self, _text: str, path: Path) -> bool:
            if len(seen) == 25:
                seen.append(path)
                raise Killed
            seen.append(path)
            return "windmill" in str(path)

    with pytest.raises(Killed):
        eyespot.open(gallery).estimate("a windmill", looks=60, judge=Judge())
    index_gallery(gallery, draw_photos(tmp_path / "more", 5))
    found, anew = (
        eyespot.open(gallery).estimate("a windmill", looks=60, judge=Judge(), fresh=f) for f in (False, True)
    )

    assert len(seen[:61]) == len({*seen[:61]}) + 1  # only the photo that was shown when it ended
    assert found.groups["all"].units == 205 and not found.waiting and anew.groups["all"].units == 210
    assert any("had 208 photos" in note and "has 213 now" in note for note in found.notes) and anew.notes == ()


def test_people_who_judge_the_same_photos_are_compared(photos: eyespot.Collection) -> None:
    first = photos.estimate("a windmill", looks=40, judge=is_windmill)
    ids = [first.frame.ids[at] for at in first.plan.units]
    query = query_digest(photos.query("a windmill"))
    with Judgements(photos.gallery.path / "ledger.sqlite") as ledger:
        for at, id in enumerate(ids[:10]):  # of ten photos bo doubts one, and says no to all others
            doubt = Verdict(grade=0, reason="doubt") if at == 0 else Verdict(grade=0)
            ledger.record([Judgement(query, id, "person:bo", "p", doubt, at=1.0)])

    found = photos.estimate("a windmill", looks=40, judge=is_windmill)

    same = int((found.verdicts[1:10] == 0).sum())
    assert f"person:bo judged 9 of these photos too, and agreed in {same}." in found.methods


def test_shares_may_be_of_more_photos_than_are_ranked(photos: eyespot.Collection) -> None:
    how: dict[str, Any] = {"judge": is_windmill, "looks": 60, "label": (f"category={RENEWABLE}",)}
    alone, of_all = (photos.estimate("a windmill", **how, of=of).groups["all"] for of in (None, "width > 0"))

    assert (alone.units, alone.effort) == (of_all.units, 28) and of_all.effort == 205
    assert of_all.relevant == alone.relevant and of_all.share.median == pytest.approx(WINDMILLS / 205)
    assert of_all.rate.high < alone.rate.low


@pytest.mark.parametrize(("judged", "used", "basis"), [(5, 0, "comes after 60"), (70, 60, "is of the first 60")])
def test_an_estimate_that_stops_early_rests_on_whole_rounds(
    judged: int, used: int, basis: str, photos: eyespot.Collection
) -> None:
    seen: list[Path] = []

    def until_tired(_text: str, path: Path) -> float:
        if len(seen) == judged:
            raise BudgetSpent("nobody goes on")
        seen.append(path)
        return is_windmill("", path)

    found = photos.estimate("a windmill", looks=120, judge=until_tired)

    assert found.groups["all"].judged == used and len(found.waiting) == 120 - judged
    assert f"after {judged} of 120 looks nobody goes on" in found.notes[0] and basis in found.notes[0]
    assert bool(found.methods) is (used > 0) and found.as_json()["methods"] == (found.methods or None)


@pytest.mark.long
@pytest.mark.parametrize("batch", [False, True])
def test_a_budget_ends_a_run_and_the_same_line_goes_on(batch: bool, tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")
    line = ("estimate", "a windmill", "--judge", "openai:tiny", "--accuracy", "0.9,0.9", "--looks", "60", "--json")
    batches = BatchServer(lambda _seen: YES)
    with Double(offers=batches if batch else {}) as server:
        line += ("--batch",) * batch
        server_of = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k", "cwd": tmp_path}
        begun = run_eyespot(*line, "--budget-calls", "7", **server_of)
        first = batches.sent.total() if batch else len(server.answered)
        whole = run_eyespot(*line, *("--recheck", 5) * batch, **server_of)

    assert (begun.returncode, first, json.loads(begun.stdout)["methods"]) == (3, 7, None)
    assert "after 7 of 60 looks the budget of 7 calls is spent" in begun.stderr
    assert whole.returncode == 0 and json.loads(whole.stdout)["methods"]
    assert (batches.sent.total() == 65 and len(batches.sent) == 60) if batch else len(server.answered) == 60


def at_a_terminal(line: list[str], keys: bytes, end: signal.Signals | None, **env: str) -> tuple[int, str]:
    """The exit code of this line and what its terminal shows, after keys or a signal at the third question."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "eyespot", *line], environment(**env))
    shown = b""
    with suppress(OSError):  # as a terminal ends on Linux
        while part := os.read(terminal, 1 << 16):
            shown += part
            if part.rstrip().endswith(b"Enter:"):
                third = shown.count(b"Enter:") == 3
                if third and end:
                    os.kill(pid, end)
                os.write(terminal, keys if third and not end else b"y\n")
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "end", "code"),
    [(b"q\n", None, 3), (b"\x03", None, 3), (b"\x04", None, 3), (b"", signal.SIGHUP, 129), (b"", signal.SIGTERM, 143)],
    ids=["q", "Ctrl-C", "end of input", "closed terminal", "kill"],
)
def test_whoever_leaves_finds_no_answer_and_no_copies_of_photos(
    keys: bytes, end: signal.Signals | None, code: int, tmp_path: Path
) -> None:
    gallery, copies = copy_of_sample_gallery(tmp_path / "gallery"), tmp_path / "copies"
    copies.mkdir()
    files = ["--csv", str(tmp_path / "groups.csv"), "--html", str(tmp_path / "page.html")]
    line = ["estimate", "a windmill", "-g", str(gallery), "--judge", "person:ada", "--looks", "20", *files]

    ended, shown = at_a_terminal(line, keys, end, TMPDIR=str(copies))

    assert ended == code and not [*copies.iterdir()] and not [*tmp_path.glob("*.*")]
    assert "We ranked" not in shown and "not looked at" not in shown
    assert end or "after 2 of 20 looks person:ada stopped; run the same line again" in shown


def test_verdicts_are_stored_without_a_rank(photos: eyespot.Collection) -> None:
    photos.estimate("a windmill", by="category", looks=60, judge=is_windmill)

    with Judgements(photos.gallery.path / "ledger.sqlite") as ledger:
        rows = [row.judgement for row in ledger.rows()]
    assert len(rows) == 60 and {row.rank for row in rows} == {None}


def test_the_command_writes_files_that_give_the_answer_again_to_the_digit(tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")
    line = ("estimate", "a", "windmill", "--by", "category", "--judge", "encoder:starter", "--accuracy", "0.9,0.9")
    files = ("--csv", "out/groups.csv", "--html", "out/page.html", "--figure", "out/figure.png")
    run_eyespot(*line, "--looks", "60", "--csv", "out/groups.parquet", cwd=tmp_path)
    done = [run_eyespot(*line, "--looks", "60", *files, "--json", cwd=tmp_path) for _ in range(2)]

    assert [one.returncode for one in done] == [0, 0] and done[0].stdout == done[1].stdout
    made, told = again(tmp_path / "out" / "page.html"), json.loads(done[0].stdout)
    assert again(str(tmp_path / "out" / "groups.csv")).table == made.table  # each file has data of its own
    with raises(UsageError):
        again(tmp_path / "out")
    assert json.loads(json.dumps(made.table)) == told["groups"] and made.methods == told["methods"]
    rows = list(csv.DictReader((tmp_path / "out" / "groups.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["group"] for row in rows] == [row["group"] for row in told["groups"]]
    assert pq.read_table(tmp_path / "out" / "groups.parquet").to_pylist() == told["groups"]
    assert [*told] == ["groups", "pairs", "advice", "methods", "codes", "misdated", "missing", "design"]
    assert [*rows[0]] == GROUP_COLUMNS and [*told["pairs"][0]] == PAIR_COLUMNS
    assert made.compare(*(told["pairs"][0][name] for name in ("first", "second"))) == made.pairs[0]
    assert made.plot().startswith("<svg") and len(made.table) == len(made.groups)
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "<svg" in page and "<script" not in page and made.methods[:60] in page
    with Image.open(tmp_path / "out" / "figure.png") as figure:
        assert figure.size == tuple(3 * side for side in figure_size(made.plot()))
    made.write_figure(tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text(encoding="utf-8") == made.plot()
    with raises(UsageError):
        made.write_figure(tmp_path / "figure.pdf")
    assert "We ranked 208 photos" in run_eyespot(*line, "--looks", "60", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("--by", "category", "--judge", "encoder:starter"),
        ("--by", "nothing", "--judge", "encoder:starter", "--accuracy", "0.9,0.9"),
        ("--by", "cell:0.01", "--judge", "encoder:starter", "--accuracy", "0.9,0.9"),
        ("--by", "category"),
        ("--by", "category", "--compare", "a,b", "--judge", "encoder:starter", "--accuracy", "0.9,0.9"),
    ],
    ids=["no accuracy", "no column", "a cell too fine", "no terminal", "no such groups"],
)
def test_what_cannot_be_estimated_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")

    refuses("estimate", "a windmill", *words, cwd=tmp_path)


def test_photos_without_a_value_are_a_group_of_their_own_and_a_gallery_that_grew_is_said(photos: Any) -> None:
    found = photos.estimate("a windmill", by="month", looks=60, judge=is_windmill)

    assert list(found.groups) == [*range(1, 13), "unknown"] and found.pairs == ()
    assert found.groups["unknown"].units == 205 and found.groups[1].sentence == "no photos"
    with raises(UsageError):
        photos.estimate("a windmill", by="category", unit="nothing", judge=is_windmill)


def estimated(tmp_path: Path, *words: object) -> dict[str, Any]:
    line = ("estimate", "a windmill", "--judge", "encoder:starter", "--accuracy", "0.9,0.9", "--looks", "40", "--json")
    done = run_eyespot(*line, *words, cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("words", "units"),
    [
        ((), 205),
        (("--where", "width > 330"), None),
        (("--undated",), 205),
        (("--unit", "category"), 9),
        (("--label", "category=categorization/renewable"), 28),
        (("--label", "category=categorization/renewable", "--of", "width > 0"), 28),
    ],
    ids=["all", "where", "undated", "unit", "label", "of"],
)
def test_a_filter_and_the_unit_decide_what_is_counted(
    words: tuple[str, ...], units: int | None, tmp_path: Path
) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")

    (all_of_them,) = estimated(tmp_path, *words)["groups"]
    assert all_of_them["units"] == units or (units is None and 0 < all_of_them["units"] < 205)
    assert all_of_them["effort"] == (205 if "--of" in words else all_of_them["units"])


@pytest.mark.parametrize("words", [("--after", "2000"), ("--before", "2000"), ("--near", "0,0,1")], ids=str)
def test_a_filter_that_leaves_nothing_is_said(words: tuple[str, ...], tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")

    refuses(
        "estimate", "a windmill", *words, "--judge", "encoder:starter", "--accuracy", "0.9,0.9", code=4, cwd=tmp_path
    )


def test_options_change_the_answer_as_they_say(tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")
    grouped = ("--by", "category", "--looks", "100")
    own = estimated(tmp_path, *grouped)
    borrowed = estimated(tmp_path, *grouped, "--borrow")
    deep = estimated(tmp_path, "--depth", "50")
    again_seen = estimated(tmp_path, "--recheck", "10", "--ledger", tmp_path / "other.sqlite")

    assert {row["basis"] for row in own["groups"]} <= {"own", "whole", ""}
    assert "borrowed" in {row["basis"] for row in borrowed["groups"]}
    assert "Only the first 50 ranks" in deep["methods"] and "nobody looked below rank 50" in " ".join(deep["advice"])
    assert "agreed with the first in 10" in again_seen["methods"]
    assert "Holm" in estimated(tmp_path, *grouped, "--strict")["methods"] and (tmp_path / "other.sqlite").exists()
    estimated(tmp_path, *grouped[:2], "--together", "--html", "bands.html", "--fresh")
    assert "hold for all groups at once" in (tmp_path / "bands.html").read_text(encoding="utf-8")


def test_a_judge_with_prices_and_a_wording_of_its_own_is_checked_before_it_costs(tmp_path: Path) -> None:
    copy_of_sample_gallery(tmp_path / ".eyespot")
    (tmp_path / "prices.toml").write_text("nothing")
    line = ("estimate", "a windmill", "--judge", "openai:tiny", "--accuracy", "0.9,0.9")

    refuses(*line, "--prices", "prices.toml", "--budget-money", "1", cwd=tmp_path, OPENAI_API_KEY="x")
    refuses(*line, "--wording", "nowhere.toml", cwd=tmp_path, OPENAI_API_KEY="x")
