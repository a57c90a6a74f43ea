"""Indexing again and again: only the difference is embedded and written, nothing is lost or forgotten by accident."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from eyespot.gallery.disk import DamagedHeader, shard_paths
from eyespot.gallery.index_tables import WordNumbers, fact_values, measured_of, packed, split, unpacked
from eyespot.gallery.items_table import read_items
from eyespot.gallery.picture_index import PictureIndex
from eyespot.gallery.view import Gallery
from eyespot.photos.decode_workers import ReadPicture
from eyespot.photos.places import Root
from eyespot.photos.sources import scan
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds import draw, index_gallery
from tests.worlds.galleries import facts_by_name, facts_of, opened


def live_paths(gallery: Path) -> dict[str, list[str]]:
    """{file name of the first path: all paths} of the pictures that can be found."""
    view = opened(gallery)
    facts = view.facts(np.flatnonzero(view.live).tolist())
    return {Path(fact["path"]).name: fact["paths"] for fact in facts}


def vectors(gallery: Path) -> dict[str, np.ndarray]:
    """{id: vector} of the pictures that can be found."""
    view = opened(gallery)
    rows = np.flatnonzero(view.live)
    everything = np.concatenate(view.blocks)
    return {fact["id"]: everything[row] for fact, row in zip(view.facts(rows.tolist()), rows, strict=True)}


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    return tmp_path / "gallery"


def test_the_same_picture_twice_is_stored_once_with_both_paths(gallery: Path, photos: Path) -> None:
    shutil.copy(photos / "photo1.jpg", photos / "photo2-copy-of-1.jpg")
    summary = index_gallery(gallery, photos)
    shutil.copy(photos / "photo4.jpg", photos / "later-copy-of-4.jpg")
    later = index_gallery(gallery, photos)

    assert (summary.pictures, summary.paths, summary.embedded) == (9, 10, 9)
    assert (later.pictures, later.paths, later.embedded) == (9, 11, 0)
    found = live_paths(gallery)
    assert [Path(p).name for p in found["photo1.jpg"]] == ["photo1.jpg", "photo2-copy-of-1.jpg"]
    assert sorted(Path(p).name for p in found["later-copy-of-4.jpg"]) == ["later-copy-of-4.jpg", "photo4.jpg"]


def test_a_moved_picture_keeps_its_vector_and_a_removed_one_goes(gallery: Path, photos: Path, tmp_path: Path) -> None:
    index_gallery(gallery, photos)
    before = vectors(gallery)
    (photos / "photo1.jpg").rename(photos / "moved.jpg")
    (photos / "photo2.jpg").rename(tmp_path / "away.jpg")
    summary = index_gallery(gallery, photos)

    assert (summary.embedded, summary.pictures) == (0, 8)
    assert "moved.jpg" in live_paths(gallery) and "photo2.jpg" not in live_paths(gallery)
    after = vectors(gallery)
    assert all(np.array_equal(before[id], vector) for id, vector in after.items())
    (tmp_path / "away.jpg").rename(photos / "photo2.jpg")
    assert index_gallery(gallery, photos).embedded == 0 and "photo2.jpg" in live_paths(gallery)


def test_more_than_a_fifth_gone_is_kept_until_forget(gallery: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    for seed in (1, 2, 4):
        (photos / f"photo{seed}.jpg").unlink()
    careful = index_gallery(gallery, photos)
    assert (careful.pictures, careful.found.away, careful.found.files, len(live_paths(gallery))) == (9, 3, 6, 9)
    assert "3 of 9" in careful.notes[0] and "--forget" in careful.notes[0]
    forgotten = index_gallery(gallery, photos, forget=True)
    assert (forgotten.pictures, len(live_paths(gallery))) == (6, 6)


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_an_unplugged_root_is_reported_and_kept(gallery: Path, photos: Path, tmp_path: Path, how: str) -> None:
    index_gallery(gallery, photos)
    photos.rename(photos.with_name("unplugged"))
    if how == "empty":
        photos.mkdir()
    (note,) = index_gallery(gallery, photos, forget=True).notes
    never = index_gallery(gallery, tmp_path / "never").notes[-1]

    assert note.startswith(f"{photos} ") and note.endswith(f"eyespot index --remove {photos} -g {gallery}")
    assert never.startswith(f"{tmp_path / 'never'} ") and "--remove" not in never
    assert len(live_paths(gallery)) == 9


@pytest.fixture
def two_roots(gallery: Path, photos: Path, tmp_path: Path) -> Path:
    """The gallery with a second root of three pictures, one of which the first has too; the folder of the second."""
    more = tmp_path / "more"
    draw(more / "a.jpg", 70)
    draw(more / "b.jpg", 71)
    (more / "torn.jpg").write_bytes(b"\xff\xd8 no more")
    (more / "metadata.csv").write_text("file_name,kind\na.jpg,heron\n")
    shutil.copy(photos / "photo1.jpg", more / "same.jpg")
    index_gallery(gallery, photos, more)
    return more


@pytest.mark.parametrize("gone", [False, True])
def test_a_root_is_taken_out_whether_it_is_there_or_not(gallery: Path, two_roots: Path, gone: bool) -> None:
    if gone:
        shutil.rmtree(two_roots)
    summary = index_gallery(gallery, remove=[str(two_roots)])
    again = index_gallery(gallery)

    assert [note.startswith(f"{two_roots} ") and " 2 pictures " in note for note in summary.notes] == [True]
    assert (summary.pictures, summary.embedded, summary.failures) == (9, 0, [])
    assert (again.pictures, again.notes) == (9, [])
    paths = [path for paths in live_paths(gallery).values() for path in paths]
    assert paths and not any(path.startswith(str(two_roots)) for path in paths)
    assert str(two_roots) not in {root.path for root in Gallery(gallery).header.roots.values()}


def test_a_root_comes_back_without_embedding(gallery: Path, two_roots: Path, photos: Path, tmp_path: Path) -> None:
    before = Gallery(gallery).header.roots
    index_gallery(gallery, remove=[str(two_roots)])
    draw(tmp_path / "third" / "c.jpg", 80)
    index_gallery(gallery, tmp_path / "third")
    after = Gallery(gallery).header.roots
    back = index_gallery(gallery, two_roots)

    assert [after[number] for number in after if number in before] == [Root(str(photos), "folder")]
    assert (len(after), back.pictures, back.embedded, [one.path for one in back.failures]) == (2, 12, 0, ["torn.jpg"])
    assert facts_by_name(gallery)["a.jpg"]["kind"] == "heron"


def test_a_run_killed_after_a_root_was_taken_out_leaves_no_table_that_names_it(gallery: Path, two_roots: Path) -> None:
    ledger = PictureIndex(gallery)
    ledger.remove_root(next(number for number, root in ledger.roots().items() if root.path == str(two_roots)))
    ledger.close()  # as a run leaves it that was killed here
    assert len(live_paths(gallery)) == 11
    summary = index_gallery(gallery)
    assert (summary.pictures, len(live_paths(gallery))) == (9, 9)


def test_what_is_no_root_is_not_taken_out(gallery: Path, two_roots: Path) -> None:
    with raises(UsageError):
        index_gallery(gallery, remove=[str(two_roots), str(two_roots / "deep")])
    assert len(live_paths(gallery)) == 11


def test_a_folder_that_cannot_be_entered_now_is_not_forgotten(gallery: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    shutil.rmtree(photos / "deep")
    (photos / "deep").symlink_to(photos)  # stands in for a folder that cannot be listed; root ignores permissions
    summary = index_gallery(gallery, photos, forget=True)
    assert len(live_paths(gallery)) == 9
    assert [failure.path for failure in summary.failures] == ["deep/"]


def test_what_fails_is_told_and_no_longer_found_and_tried_again_when_it_changed(gallery: Path, photos: Path) -> None:
    (photos / "bad.jpg").write_bytes((photos / "photo1.jpg").read_bytes()[:500])
    (photos / "zero.jpg").write_bytes(b"")
    first, second = index_gallery(gallery, photos), index_gallery(gallery, photos)
    draw(photos / "bad.jpg", 70)
    (photos / "photo1.jpg").write_bytes(b"overwritten by mistake")
    third = index_gallery(gallery, photos)

    assert (first.pictures, sorted(f.path for f in first.failures)) == (9, ["bad.jpg", "zero.jpg"])
    assert second.failures == first.failures
    assert (third.pictures, sorted(f.path for f in third.failures)) == (9, ["photo1.jpg", "zero.jpg"])
    assert "bad.jpg" in live_paths(gallery) and "photo1.jpg" not in live_paths(gallery)


def test_labels_follow_their_files_without_embedding_and_widen_when_they_must(gallery: Path, photos: Path) -> None:
    """What a folder and one above it say of a picture is put together; what is said of none is told."""
    head = "file_name,place,species,count\n"
    (photos / "metadata.csv").write_text(f"{head}photo1.jpg,,heron,2\nphoto2.jpg,,gull,3\ndeep/er/photo0.jpg,lake,?,\n")
    (photos / "deep" / "metadata.csv").write_text("file_name,species\ner/photo0.jpg,ibis\n")
    index_gallery(gallery, photos)
    first = facts_by_name(gallery)
    (photos / "metadata.csv").write_text(f"{head}photo1.jpg,,egret,many\nphoto99.jpg,,gull,1\n")
    summary = index_gallery(gallery, photos)
    second = facts_by_name(gallery)

    assert (first["photo1.jpg"]["species"], first["photo1.jpg"]["count"]) == ("heron", 2)
    assert (first["photo0.jpg"]["place"], first["photo0.jpg"]["species"]) == ("lake", "ibis")
    assert first["photo4.jpg"]["species"] is second["photo2.jpg"]["species"] is None
    assert (second["photo1.jpg"]["species"], second["photo1.jpg"]["count"]) == ("egret", "many")
    assert summary.embedded == 0 and [failure.path for failure in summary.failures] == ["photo99.jpg"]


def test_labels_may_say_when_and_where_but_never_overrule_the_file(gallery: Path, photos: Path) -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8769)[36867] = "2020:02:03 04:05:06"
    Image.new("RGB", (40, 30), "red").save(photos / "dated.jpg", exif=exif)
    rows = ["file_name,taken,latitude,longitude,width", "dated.jpg,2011-01-01,,,5", "photo1.jpg,2011-01-01,47.5,7.5,5",
            "photo2.jpg,some day,147.5,x,5"]  # fmt: skip
    (photos / "metadata.csv").write_text("\n".join(rows))
    index_gallery(gallery, photos)
    facts = facts_by_name(gallery)

    assert facts["dated.jpg"]["taken"].isoformat() == "2020-02-03T04:05:06"
    assert (facts["dated.jpg"]["width"], facts["dated.jpg"]["latitude"]) == (40, None)
    assert facts["photo1.jpg"]["taken"].isoformat() == "2011-01-01T00:00:00"
    assert (facts["photo1.jpg"]["latitude"], facts["photo1.jpg"]["longitude"]) == (47.5, 7.5)
    assert (facts["photo2.jpg"]["taken"], facts["photo2.jpg"]["latitude"]) == (None, None)


def test_one_writer_at_a_time(gallery: Path, photos: Path) -> None:
    with locked(gallery), raises(EyespotError):
        index_gallery(gallery, photos)


def test_a_damaged_header_is_written_again_from_the_shards(gallery: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    header = (gallery / "gallery.toml").read_text()
    (gallery / "gallery.toml").write_text("format = 1\nspaces = [")
    with raises(DamagedHeader):
        Gallery(gallery)
    summary = index_gallery(gallery, photos)

    assert summary.embedded == 0
    assert (gallery / "gallery.toml").read_text() == header


def test_a_gallery_of_a_newer_format_is_left_alone(gallery: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    (gallery / "gallery.toml").write_text("format = 99\n")
    with raises(EyespotError):
        index_gallery(gallery, photos)
    assert (gallery / "gallery.toml").read_text() == "format = 99\n"


def test_a_root_that_goes_away_meanwhile_loses_nothing(gallery: Path, photos: Path, tmp_path: Path) -> None:
    ledger = PictureIndex(gallery)
    ledger.visit(ledger.add_root(Root(str(photos), "folder")), Root(str(photos), "folder"))
    ledger.make_plan(None, False)  # as a run leaves it that was killed here
    ledger.close()
    photos.rename(tmp_path / "unplugged")
    away = index_gallery(gallery)
    (tmp_path / "unplugged").rename(photos)
    back = index_gallery(gallery)

    assert (away.pictures, away.failures) == (0, [])
    assert (back.pictures, back.failures) == (9, [])


def test_a_file_out_of_reach_is_tried_again_by_the_next_run(gallery: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    backup = (photos / "photo1.jpg").read_bytes()
    ledger = PictureIndex(gallery)
    root = Root(str(photos), "folder")
    draw(photos / "photo1.jpg", 60)
    ledger.begin_visits()
    ledger.visit(ledger.add_root(root), root)
    ledger.make_plan(None, False)
    ledger.close()
    (photos / "photo1.jpg").unlink()  # between the look and the reading
    away = index_gallery(gallery, photos.parent / "nothing")
    found = "photo1.jpg" in live_paths(gallery)
    (photos / "photo1.jpg").write_bytes(backup)
    back = index_gallery(gallery, photos)

    assert ([f.path for f in away.failures], found) == (["photo1.jpg"], True)
    assert (back.failures, back.embedded, back.pictures) == ([], 0, 9)


def test_a_moved_folder_is_followed_without_asking(gallery: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    (photos / "new place").mkdir()
    for place in list(photos.glob("*.jpg")):
        place.rename(photos / "new place" / place.name)
    summary = index_gallery(gallery, photos)
    (note,) = summary.notes
    assert (summary.embedded, summary.pictures, summary.paths) == (0, 9, 9) and "lie elsewhere (moved" in note
    assert all(Path(path).is_file() for paths in live_paths(gallery).values() for path in paths)


def test_forgetting_is_of_the_folders_that_a_run_visits(gallery: Path, photos: Path, tmp_path: Path) -> None:
    draw(tmp_path / "other" / "one.jpg", 77)
    index_gallery(gallery, photos, tmp_path / "other")
    for place in list(photos.glob("*.jpg"))[:6]:
        place.unlink()
    waits = index_gallery(gallery)
    other = index_gallery(gallery, tmp_path / "other", forget=True)
    left = index_gallery(gallery, photos, forget=True)

    assert any("until you run with --forget" in note for note in waits.notes) and other.notes == []
    assert [run.pictures for run in (waits, other, left)] == [10, 10, 4]


def test_photos_that_moved_to_another_root_are_shown_where_they_are(gallery: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    photos.rename(photos.with_name("a new disk"))
    summary = index_gallery(gallery, photos.with_name("a new disk"))
    assert summary.embedded == 0 and all(Path(fact["path"]).is_file() for fact in facts_of(gallery))
    assert "9 files" in summary.notes[0] and f"--remove {photos}" in summary.notes[0]


def test_a_new_label_column_reaches_earlier_shards(gallery: Path, photos: Path, tmp_path: Path) -> None:
    index_gallery(gallery, photos)
    other = draw(tmp_path / "other" / "x.jpg", 77).parent
    (other / "metadata.csv").write_text("file_name,species\nx.jpg,heron\n")
    index_gallery(gallery, other)
    names = [set(read_items(shard).column_names) for shard in shard_paths(gallery)]
    assert len(names) == 2 and all("species" in columns for columns in names)


def test_a_tar_written_anew_is_read_anew(gallery: Path, photos: Path, tmp_path: Path) -> None:
    one, other = ((photos / f"photo{seed}.jpg").read_bytes() for seed in (1, 2))
    size = max(len(one), len(other))
    for data in (one, other):
        with tarfile.open(tmp_path / "shard.tar", "w") as archive:
            info = tarfile.TarInfo("a.jpg")
            info.size = size
            archive.addfile(info, io.BytesIO(data.ljust(size, b"\0")))
        summary = index_gallery(gallery, tmp_path / "shard.tar")

    assert (summary.embedded, summary.pictures) == (1, 1)


def test_facts_are_written_again_only_where_something_changed(gallery: Path, photos: Path) -> None:
    stages: list[str] = []

    def tell(what: str, _done: int, _total: int) -> None:
        stages.append(what)

    counts = []
    for labels in ("", "file_name,species\nphoto1.jpg,heron\n", ""):
        if labels:
            (photos / "metadata.csv").write_text(labels)
        stages.clear()
        index_gallery(gallery, photos, progress=tell)
        counts.append(stages.count("refreshing facts"))

    assert counts == [0, 1, 0]


def test_a_killed_run_s_shard_goes_with_its_pictures(gallery: Path, photos: Path, tmp_path: Path) -> None:
    """The shard is there and the ledger does not know it yet: so it is where a kill comes between both."""

    def tell(what: str, _done: int, _total: int) -> None:
        if what == "embedding":
            with sqlite3.connect(gallery / "index.sqlite") as now, sqlite3.connect(tmp_path / "planned") as copy:
                now.backup(copy)

    index_gallery(gallery, photos, progress=tell)
    with sqlite3.connect(tmp_path / "planned") as copy, sqlite3.connect(gallery / "index.sqlite") as now:
        copy.backup(now)
    left = (gallery / "shards" / "00000").is_dir()
    for photo in photos.rglob("*.jpg"):
        photo.unlink()
    (photos / "notes.txt").write_text("the disk is there")

    summary = index_gallery(gallery, photos)

    assert left and summary.pictures == 0 and not (gallery / "shards" / "00000").exists()


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
