"""A second look at a root writes only what differs."""

from __future__ import annotations

import io
import os
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from eyespot.gallery.index_tables import WordNumbers, fact_values, measured_of, packed, split, unpacked
from eyespot.gallery.picture_index import PictureIndex
from eyespot.photos.decode_workers import ReadPicture
from eyespot.photos.places import Root
from eyespot.photos.sources import scan
from tests.examples import examples


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[PictureIndex]:
    with closing(PictureIndex(tmp_path)) as opened:
        yield opened


def write(folder: Path, *names: str) -> Root:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return Root(str(folder), "folder")


def look(ledger: PictureIndex, root: Root) -> list[str]:
    """Look through a root and read what is planned, each file as a picture of its own; the paths that were planned."""
    ledger.begin_visits()
    ledger.visit(ledger.add_root(root), root)
    ledger.make_plan(None, False)
    paths = []
    for shard in dict.fromkeys(shard for shard, _ in ledger.planned()):
        plan = ledger.plan_of(shard)
        outcomes = [ReadPicture(one, f"{one.root}:{one.seen.path}") for one in plan]
        new = {one.id: {"width": 1} for one in outcomes if one.id and not ledger.is_known(one.id)}
        with ledger.transaction():
            ledger.record(shard, outcomes, new)
        paths += [one.seen.path for one in plan]
    return paths


NAMES = ("a.jpg", "b/c/d.jpg", "b/c.jpg", "b.jpg", "b/z/e.jpg", "c.jpg")


def test_only_new_and_changed_files_are_planned(ledger: PictureIndex, tmp_path: Path) -> None:
    root = write(tmp_path / "photos", *NAMES)

    assert look(ledger, root) == sorted(NAMES)
    assert look(ledger, root) == []
    write(tmp_path / "photos", "b/new.jpg", "b/c/d.jpg", "d/e.jpg")
    os.utime(tmp_path / "photos" / "b" / "c" / "d.jpg", (5, 5))
    assert look(ledger, root) == ["b/c/d.jpg", "b/new.jpg", "d/e.jpg"]


def test_a_file_of_the_same_size_and_date_is_read_again_once(ledger: PictureIndex, tmp_path: Path) -> None:
    root = write(tmp_path / "photos", *NAMES)
    look(ledger, root)
    before = (tmp_path / "photos" / "a.jpg").stat()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"A.JPG")
    os.utime(tmp_path / "photos" / "a.jpg", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert [look(ledger, root), look(ledger, root)] == [["a.jpg"], []]


def test_what_was_not_found_is_gone_file_by_file_and_folder_by_folder(ledger: PictureIndex, tmp_path: Path) -> None:
    root = write(tmp_path / "photos", *NAMES)
    look(ledger, root)
    for name in ("b/c/d.jpg", "b/z/e.jpg", "c.jpg"):
        (tmp_path / "photos" / name).unlink()
    look(ledger, root)

    assert ledger.gone(1) == (6, 3, 3)
    ledger.forget_gone(1)
    assert ledger.gone(1)[1:] == (0, 0) and ledger.counts() == (3, 3)
    write(tmp_path / "photos", "b/z/e.jpg")
    assert look(ledger, root) == ["b/z/e.jpg"] and ledger.counts() == (4, 4)


def test_rows_of_labels_are_no_files(ledger: PictureIndex, tmp_path: Path) -> None:
    root = write(tmp_path / "photos", "a.jpg")
    (tmp_path / "photos" / "metadata.csv").write_text("file_name,species\ngone.jpg,heron\nb.jpg\n")
    number = ledger.add_root(root)
    ledger.begin_visits()
    ledger.visit(number, root)
    assert [one.path for one in ledger.failures()] == ["gone.jpg", "metadata.csv:3"]
    assert ledger.failed_files([number]) == 0


def test_a_look_that_finds_nothing_new_changes_no_row(tmp_path: Path) -> None:
    root = write(tmp_path / "photos", *NAMES)
    with closing(PictureIndex(tmp_path)) as first:
        look(first, root)
        first.counts()

    with closing(PictureIndex(tmp_path)) as second:
        before = second.sql.total_changes
        assert look(second, root) == [] and second.counts() == (6, 6) and second.failures() == []
        assert second.sql.total_changes == before


def tar_of(place: Path, *names: str) -> Root:
    with tarfile.open(place, "w") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(name)
            archive.addfile(info, io.BytesIO(name.encode()))
    return Root(str(place), "tar")


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.text("ab/.\u00e9", min_size=1, max_size=6), unique=True), st.data())
def test_names_are_compared(tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject) -> None:
    """Members of a tar may have any names, in any order: a second look finds what was added and what is gone."""
    folder = tmp_path_factory.mktemp("any")
    first, second = (data.draw(st.lists(st.sampled_from([f"{name}.jpg" for name in names] or ["x.jpg"]))) for _ in "12")
    with closing(PictureIndex(folder)) as ledger:
        before = {one.path for one in scan(tar_of(folder / "a.tar", *first)) if hasattr(one, "mtime")}
        planned = look(ledger, Root(str(folder / "a.tar"), "tar"))
        root = tar_of(folder / "a.tar", *second)
        now = {one.path for one in scan(root) if hasattr(one, "mtime")}
        os.utime(folder / "a.tar", (1, 1))
        again = look(ledger, root)
        gone = ledger.gone(1)[1]

    assert set(planned) == before and planned == sorted(planned)
    assert set(again) == now and gone == len(before - now)


@settings(max_examples=examples(200))
@given(st.text(), st.text("0123456789abcdefABCDEF", min_size=31, max_size=33))
def test_paths_and_ids_come_back(path: str, id: str) -> None:
    assert "".join(split(path)) == path and "/" not in split(path)[1]
    assert unpacked(packed(path)) == path and unpacked(packed(id)) == id


@settings(max_examples=examples(200))
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "width": st.integers(0, 2**31),
            "taken": st.datetimes().map(lambda moment: moment.isoformat()) | st.text(max_size=5),
            "latitude": st.floats(-90, 90),
            "camera": st.text(),
            "format": st.sampled_from(["JPEG", "PNG"]),
            "embedded_title": st.text(),
            "video_time": st.floats(0, 1e6),
        },
    )
)
def test_what_was_measured_comes_back(measured: dict[str, object]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sql:
        sql.execute("CREATE TABLE words(number INTEGER PRIMARY KEY, word TEXT UNIQUE)")
        sql.execute(
            "CREATE TABLE facts(width INTEGER, height INTEGER, taken, latitude REAL, longitude REAL,"
            " camera INTEGER, format INTEGER, more TEXT)"
        )
        sql.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", fact_values(measured, WordNumbers(sql)))
        values = sql.execute("SELECT * FROM facts").fetchone()

        assert measured_of(values, WordNumbers(sql)) == measured
