"""What the walk finds in folders, tars and lists, and what it says of the rest."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

from eyespot.gallery.facts import table_of
from eyespot.gallery.picture_index import StoredRow
from eyespot.photos import found
from eyespot.photos.found import Excluded, Labels, Record, Seen, Unreadable
from eyespot.photos.kinds import LINKED, SkippedFiles
from eyespot.photos.labels import LABELS_LOST
from eyespot.photos.names import real_name, shown_name, stored_name
from eyespot.photos.places import Root, full_path, read_again, read_bytes
from eyespot.photos.sources import is_there, root_of, scan, scan_counting
from eyespot.storage.parquet_bytes import read_row
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds import tar

IMAGES = pa.schema([("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("n", pa.int64())])


def pictures(records: list[Record]) -> list[str]:
    return [record.path for record in records if isinstance(record, Seen)]


def problems(records: list[Record]) -> dict[str, str]:
    return {record.path: record.reason for record in records if isinstance(record, Unreadable)}


def labels(records: list[Record]) -> dict[str, dict[str, object]]:
    return {record.path: record.facts for record in records if isinstance(record, Labels)}


def walk(place: Path) -> list[Record]:
    return list(scan(root_of(str(place))))


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def test_a_folder_is_walked_in_order_and_hidden_things_and_galleries_are_left_alone(photos: Path) -> None:
    write(photos, ".trash/old.jpg", "._photo1.jpg", "notes.txt", "gallery/gallery.toml", "gallery/thumbnail.jpg")

    found = pictures(walk(photos))

    assert found == sorted(found)
    assert len(found) == 9 and "deep/er/photo0.jpg" in found


def test_what_leads_nowhere_or_back_or_is_no_file_is_named_and_the_walk_ends(photos: Path) -> None:
    links = {"round": photos, "lost.jpg": photos / "nothing.jpg", "ouroboros.jpg": "ouroboros.jpg", "disk": "/mnt/off"}
    for name, target in links.items():
        (photos / name).symlink_to(target)
    (photos / "metadata.csv").symlink_to(photos / "gone.csv")
    for name in ("pipe.jpg", "deep/metadata.jsonl"):
        os.mkfifo(photos / name)

    found = walk(photos)
    told = problems(found)

    assert len(pictures(found)) == 9
    assert "leads back" in told.pop("round/") and "symbolic links" in told.pop("ouroboros.jpg")
    assert "no such file" in told.pop("lost.jpg") and told.pop("disk/").startswith("a link")
    assert told == {
        "pipe.jpg": "not a regular file",
        "metadata.csv": LABELS_LOST + "no such file or directory",
        "deep/metadata.jsonl": LABELS_LOST + "not a regular file",
    }


def test_a_link_to_a_folder_that_is_walked_anyway_is_not_entered_and_its_labels_find_the_pictures(photos: Path) -> None:
    (photos / "alink").symlink_to(photos / "deep")
    (photos / "metadata.csv").write_text("file_name,species\nalink/er/photo0.jpg,heron\n")

    found = walk(photos)

    assert len(pictures(found)) == 9 and "deep/er/photo0.jpg" in pictures(found)
    assert [(left.path, left.reason) for left in found if isinstance(left, Excluded)] == [("alink", LINKED)]
    assert (labels(found), problems(found)) == ({"deep/er/photo0.jpg": {"species": "heron"}}, {})


def test_of_two_links_to_a_folder_elsewhere_the_first_is_followed(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for name in ("one", "two"):
        (tmp_path / "other" / name).symlink_to(photos)
    (tmp_path / "other" / "zdeep").symlink_to(photos / "deep")

    found = pictures(walk(tmp_path / "other"))

    assert len(found) == 9 and all(path.startswith("one/") for path in found)


def test_a_link_to_what_is_left_out_elsewhere_is_followed(tmp_path: Path) -> None:
    write(tmp_path, ".annex/photo1.jpg")
    (tmp_path / "shown").symlink_to(tmp_path / ".annex")

    assert pictures(walk(tmp_path)) == ["shown/photo1.jpg"]


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("__MACOSX", "resource forks"),
        ("@eaDir/photo1.jpg", "thumbnails"),
        ("My.photoslibrary/resources/derivatives/0", "thumbnails"),
        ("Lightroom Catalog Previews.lrdata/A", "thumbnails"),
        ("site/node_modules/logo", "program files"),
        ("$RECYCLE.BIN", "deleted files"),
    ],
)
def test_caches_are_left_out_and_counted(tmp_path: Path, folder: str, reason: str) -> None:
    names = (f"{folder}/small.jpg", f"{folder}/index.db", "photo.jpg")
    write(tmp_path / "photos", *names)
    tar(tmp_path / "photos.tar", dict.fromkeys(names, b"x"))

    for place in (tmp_path / "photos", tmp_path / "photos.tar"):
        skipped = SkippedFiles()
        found = list(scan_counting(root_of(str(place)), skipped))

        assert pictures(list(found)) == ["photo.jpg"]
        assert skipped.left_out == {reason: 2}


def test_originals_and_edits_of_a_photo_library_and_a_cache_that_is_named_itself_are_read(tmp_path: Path) -> None:
    library = tmp_path / "My.photoslibrary"
    write(library, "originals/0/a.jpg", "resources/renders/b.jpg", "resources/derivatives/c.jpg")

    assert pictures(walk(library)) == ["originals/0/a.jpg", "resources/renders/b.jpg"]
    assert pictures(walk(library / "resources" / "derivatives")) == ["c.jpg"]


def test_names_that_are_no_utf8_are_read_like_any_other(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    write(odd, "a\udce9.jpg")
    (odd / "metadata.csv").write_text("file_name,species\na.jpg,heron\n")
    write(odd, "a.jpg")

    found = walk(tmp_path)
    name = stored_name(odd.name)
    paths = [f"{name}/a.jpg", f"{name}/{stored_name('a' + chr(0xDCE9))}.jpg"]
    seen = {record.path: record for record in found if isinstance(record, Seen)}

    assert (problems(found), labels(found)) == ({}, {f"{name}/a.jpg": {"species": "heron"}})
    assert sorted(seen) == sorted(paths) and shown_name(paths[1]) == "caf\\xe9/a\\xe9.jpg"
    assert read_bytes(root_of(str(tmp_path)), seen[paths[1]]) == b"x"
    assert (len(pictures(walk(odd))), root_of(str(odd)).place) == (2, str(odd))


@given(st.binary(max_size=12).filter(lambda name: b"\0" not in name))
@example(b"caf\xe9.jpg")
@example("a \U0010dce9".encode() + b"\xf4\x8d")  # a name that really has the character of a stored byte
def test_every_name_can_be_stored_and_is_the_same_name_again(name: bytes) -> None:
    stored = stored_name(os.fsdecode(name))

    assert stored.encode().decode() == stored
    assert os.fsencode(real_name(stored)) == name
    assert shown_name(stored).isascii() or shown_name(stored).encode()


@given(st.text(max_size=12).filter(lambda name: not any("\U0010dc80" <= char <= "\U0010dcff" for char in name)))
def test_a_name_that_is_utf8_is_stored_as_it_is(name: str) -> None:
    assert (stored_name(name), real_name(name), shown_name(name)) == (name, name, name)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A photo under fifteen hundred folders; Python's own `rmtree` cannot remove them."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(os.open("a.jpg", os.O_CREAT, dir_fd=here))
    os.close(here)
    yield tmp_path
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


def test_folders_nest_deeper_than_calls_can(deep: Path) -> None:
    assert pictures(walk(deep)) == ["d/" * 1500 + "a.jpg"]


@pytest.mark.parametrize("seconds", [2**62, -(2**62)])
def test_a_time_beyond_all_clocks_is_brought_within_64_bits(seconds: int) -> None:
    assert -(2**63) < found.clamped(seconds * 10**9) < 2**63


HALF, NO_OBJECT = "holds half a character (a lone surrogate) or a NUL", "is not a JSON object"
PARQUET = io.BytesIO()
pq.write_table(pa.table({"file_name": ["er/photo0.jpg"], "n": [4]}), PARQUET)
CSV = """file_name,species,count,score,Rank,id
photo1.jpg,heron,2,9,1,x
photo2.jpg,gull
,egret,1,9,1,x
photo4.jpg,"stork, white",1,9,1,x
"""
ROWS = r"""
{"file_name": "photo1.jpg", "species": "\ud800"}
{"file_name": "photo1\ud800.jpg", "species": "heron"}
{"file_name": "photo\u0000.jpg", "species": "heron"}
{"file_name": "photo2.jpg", "Ärt": "gull", "ärt": "tern", "n": NaN, "m": 1e999, "wild": true}
not json
"""
LABEL_FILES: list[tuple[str, str | bytes, dict[str, object], dict[int, str]]] = [
    (
        "metadata.csv",
        CSV,
        {"photo1.jpg": {"species": "heron", "count": "2"}, "photo4.jpg": {"species": "stork, white", "count": "1"}},
        {3: "has 2 fields where the header has 6", 4: "has an empty file_name"},
    ),
    ("deep/metadata.csv", "file;n\ner/photo0.jpg;ibis\n", {"deep/er/photo0.jpg": {"n": "ibis"}}, {}),
    ("deep/metadata.parquet", PARQUET.getvalue(), {"deep/er/photo0.jpg": {"n": 4}}, {}),
    (
        "metadata.jsonl",
        ROWS[1:] + "[" * 100_000,
        {"photo2.jpg": {"Ärt": "gull", "wild": "true"}},
        {1: HALF, 2: HALF, 3: HALF, 5: NO_OBJECT, 6: NO_OBJECT},
    ),
]


@pytest.mark.parametrize(("name", "content", "known", "bad"), LABEL_FILES)
def test_label_files_give_labels_and_name_their_bad_rows(
    photos: Path, name: str, content: str | bytes, known: dict[str, object], bad: dict[int, str]
) -> None:
    """Names that eyespot gives itself are no label columns."""
    (photos / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    found = walk(photos)

    assert labels(found) == known
    assert problems(found) == {f"{name}:{row}": reason for row, reason in bad.items()}


@pytest.mark.parametrize("content", [b"species\nheron\n", b"file_name,species\nphoto1.jpg,\xe9\n", b""])
def test_a_label_file_that_cannot_be_used_is_told(photos: Path, content: bytes) -> None:
    (photos / "metadata.csv").write_bytes(content)

    ((path, message),) = problems(walk(photos)).items()

    assert path == "metadata.csv" and message.startswith(LABELS_LOST)
    assert ("UTF-8" if b"\xe9" in content else "no column file_name") in message


def test_numbers_beyond_their_column_leave_it_empty() -> None:
    record = StoredRow("a", {}, [1], ["a.jpg"], 1, 1, {"LATITUDE": 10**400, "longitude": "7.5", "ÄRT": "gull"})

    (row,) = table_of([record], {"ärt": "text", "latitude": "float"}).to_pylist()

    assert (row["latitude"], row["longitude"], row["ärt"]) == (None, 7.5, "gull")


def test_parquet_columns_of_every_plain_type_become_labels(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 1, 10, tzinfo=UTC)
    columns: dict[str, tuple[pa.Array, object]] = {
        "file_name": (pa.array(["a.jpg"], pa.large_string()), None),
        "ns": (pa.array([1_714_557_600_000_000_001], pa.timestamp("ns")), "2024-05-01T10:00:00.000000001"),
        "s": (pa.array([moment.replace(tzinfo=None)], pa.timestamp("s")), "2024-05-01T10:00:00"),
        "zoned": (pa.array([moment], pa.timestamp("us", "Europe/Zurich")), "2024-05-01T12:00:00+0200"),
        "day": (pa.array([date(2024, 5, 1)]), "2024-05-01"),
        "price": (pa.array([Decimal("12.50")]), 12.5),
        "wild": (pa.array([True]), "true"),
        "half": (pa.array([0.5], pa.float16()), 0.5),
        "species": (pa.array(["heron"]).dictionary_encode(), "heron"),
        "list": (pa.array([[1, 2]]), None),
        "bytes": (pa.array([b"\xff\xd8"]), None),
    }
    pq.write_table(pa.table({name: column for name, (column, _) in columns.items()}), tmp_path / "metadata.parquet")

    expected = {name: label for name, (_, label) in columns.items() if label is not None}
    assert labels(walk(tmp_path)) == {"a.jpg": expected}


def test_a_hugging_face_image_column_names_its_file_or_is_told(photos: Path) -> None:
    rows = [{"bytes": b"x", "path": "photo1.jpg"}, {"bytes": b"x", "path": None}]
    pq.write_table(pa.table({"image": rows, "species": ["heron", "gull"]}), photos / "metadata.parquet")
    pq.write_table(pa.table({"image": [b"x"]}), photos / "deep" / "metadata.parquet")

    found = walk(photos)

    assert labels(found) == {"photo1.jpg": {"species": "heron"}}
    assert problems(found).keys() == {"metadata.parquet:2", "deep/metadata.parquet"}


@pytest.mark.parametrize("rows_a_group", [7, 1000])
def test_pictures_inside_parquet_are_read_by_their_row_in_any_order(tmp_path: Path, rows_a_group: int) -> None:
    """Two of one name are two; a row without a picture is told; what speaks of a query labels no picture."""
    held = [{"bytes": f"picture {at}".encode(), "path": "a.jpg" if at % 2 else None} for at in range(100)]
    held[9]["bytes"] = None
    facts = {"id": [f"n{at}" for at in range(100)], "query": ["a gull"] * 100, "relevant": [1] * 100, "n": range(100)}
    place = tmp_path / "set.parquet"
    pq.write_table(pa.table({"image": held, **facts}), place, row_group_size=rows_a_group)
    root = root_of(str(place))

    found = walk(place)

    seen = [one for one in found if isinstance(one, Seen)]
    assert root.kind == "parquet" and len(seen) == 99
    assert seen[0][:2] == ("000000/n0", 9) and seen[1].path == "000001/a.jpg"
    assert labels(found)["000001/a.jpg"] == {"n": 1}
    assert problems(found) == {"000009/a.jpg": "holds no picture"}
    order = np.random.default_rng(0).permutation(len(seen)).tolist()
    with ThreadPoolExecutor(4) as pool:
        for one, data in zip(
            (seen[at] for at in order), pool.map(lambda at: read_bytes(root, seen[at]), order), strict=True
        ):
            assert data == f"picture {one.offset}".encode()
    assert read_again(full_path(root, seen[50].path)) == f"picture {seen[50].offset}".encode()
    pq.write_table(pa.table({"image": held[:5]}), place)
    with pytest.raises(OSError, match="gone"):
        read_row(str(place), 50)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_pictures_in_a_plain_column_of_bytes_are_read_too(tmp_path: Path, kind: pa.DataType) -> None:
    """As pandas and polars write them; bytes of another name are no pictures, and structs go first."""
    place, held = str(tmp_path / "set.parquet"), pa.array([b"one", None, b"three"], kind)
    pq.write_table(pa.table({"vector": pa.array([b"x"] * 3), "IMG": held, "id": ["a", "b", "c"]}), place)

    found = walk(Path(place))

    assert pictures(found) == ["000000/a", "000002/c"] and problems(found) == {"000001/b": "holds no picture"}
    assert [bytes(read_bytes(root_of(place), one)) for one in found if isinstance(one, Seen)] == [b"one", b"three"]
    pq.write_table(pa.table({"vector": pa.array([b"x"]), "path": ["a.jpg"]}), place)
    assert root_of(place).kind == "list"


def test_a_list_that_unfolds_to_rows_without_end_is_refused(photos: Path) -> None:
    rows = pa.array(["photo1.jpg"] * 2_000_000).dictionary_encode()
    pq.write_table(pa.table({"file": rows}), photos / "set.parquet", compression="zstd")

    assert (photos / "set.parquet").stat().st_size < 100_000
    (problem,) = problems(walk(photos / "set.parquet")).values()
    assert "2,000,000 rows" in problem


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_list_of_more_columns_than_a_gallery_takes_is_refused(photos: Path, kind: str) -> None:
    row: dict[str, str | int] = {"file": "photo1.jpg", **{f"c{at}": at for at in range(1000)}}
    place = photos / f"set.{kind}"
    if kind == "csv":
        place.write_text("\n".join([",".join(row), ",".join(map(str, row.values()))]))
    elif kind == "jsonl":
        place.write_text(json.dumps(row))
    else:
        pq.write_table(pa.table({name: [value] for name, value in row.items()}), place)

    found = walk(place)

    assert pictures(found) == [] and "1,001 columns" in next(iter(problems(found).values()))


def test_parquet_that_only_names_pictures_is_a_list_of_them(photos: Path) -> None:
    pq.write_table(
        pa.table({"image": [{"bytes": None, "path": "photo1.jpg"}], "n": [1]}, IMAGES), photos / "set.parquet"
    )

    assert root_of(str(photos / "set.parquet")).kind == "list"
    assert pictures(walk(photos / "set.parquet")) == ["photo1.jpg"]


def test_a_list_names_pictures_anywhere_with_their_labels(photos: Path, tmp_path: Path) -> None:
    rows = ["path,species", "photos/photo1.jpg,heron", f"{photos}/photo2.jpg,gull"]
    rows += ["https://x.org/a.jpg,tern", "gone.jpg,x"]
    (tmp_path / "list.csv").write_text("\n".join(rows))

    found = walk(tmp_path / "list.csv")

    assert pictures(found) == ["photos/photo1.jpg", f"{photos}/photo2.jpg"]
    assert labels(found)["photos/photo1.jpg"] == {"species": "heron"}
    assert "fetches no addresses" in problems(found)["https://x.org/a.jpg"]
    assert "no such file" in problems(found)["gone.jpg"]


@pytest.mark.parametrize(
    ("name", "kind"), [("a.tar", "tar"), ("a.csv", "list"), ("a.parquet", "list"), ("a.JPG", "file")]
)
def test_a_name_says_what_kind_of_root_it_is_unless_it_is_a_folder(tmp_path: Path, name: str, kind: str) -> None:
    assert root_of(str(tmp_path / name)) == Root(str(tmp_path / name), kind)
    (tmp_path / name).mkdir()
    assert root_of(str(tmp_path / name)) == Root(str(tmp_path / name), "folder")


@pytest.mark.parametrize("name", ["letter.doc", "photos.tar.gz"])
def test_what_cannot_be_indexed_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    write(tmp_path, name)
    with raises(UsageError):
        root_of(str(tmp_path / name))


def test_an_empty_or_missing_root_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert not is_there(root_of(str(tmp_path / "empty")))
    assert not is_there(root_of(str(tmp_path / "missing")))
    assert is_there(root_of(str(tmp_path)))


def test_a_webdataset_tar_gives_pictures_with_their_sidecars(tmp_path: Path) -> None:
    members = {
        "a.txt": b"a heron",
        "a.jpg": b"one",
        "a.json": json.dumps({"year": 2024, "nested": {"no": 1}}).encode(),
        "b.jpg": b"two",
        "b.cls": b"7",
        "c.jpg": b"one",
    }
    root = root_of(str(tar(tmp_path / "shard.tar", members)))

    found = list(scan(root))

    assert pictures(found) == ["a.jpg", "b.jpg", "c.jpg"]
    assert labels(found) == {"a.jpg": {"text": "a heron", "year": 2024}, "b.jpg": {"cls": "7"}}
    seen = {record.path: record for record in found if isinstance(record, Seen)}
    assert read_bytes(root, seen["b.jpg"]) == read_again(full_path(root, "b.jpg")) == b"two"


def test_a_tar_cut_short_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    whole = tar(tmp_path / "whole.tar", {f"{n}.jpg": bytes(700) for n in range(5)}).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: 3 * (512 + 1024) + 100])

    found = walk(tmp_path / "cut.tar")

    assert pictures(found) == ["0.jpg", "1.jpg", "2.jpg"]
    assert "cannot be read to its end" in problems(found)[""]


def test_odd_tar_members_are_named_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "MAX_FILE_BYTES", 1000)
    with tarfile.open(tmp_path / "odd.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for name, mtime, size in [("far.jpg", "1e12", 10), ("large.jpg", "0", 2000), ("inf.jpg", "inf", 10)]:
            info = tarfile.TarInfo(name)
            info.size, info.pax_headers = size, {"mtime": mtime}
            archive.addfile(info, io.BytesIO(bytes(size)))
    with tarfile.open(tmp_path / "odd.tar", "a", format=tarfile.GNU_FORMAT) as archive:
        for name, data in {"inf.json": b"[" * 100_000, "inf.txt": b"a heron", "caf\udce9.jpg": b"x"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))

    seen = walk(tmp_path / "odd.tar")

    assert sorted(pictures(seen)) == sorted(["far.jpg", "inf.jpg", stored_name("caf\udce9.jpg")])
    assert all(abs(record.mtime) < 2**63 for record in seen if isinstance(record, Seen))
    assert labels(seen) == {"inf.jpg": {"text": "a heron"}}
    reasons = problems(seen)
    assert "over the limit" in reasons.pop("large.jpg") and reasons == {"inf.json": "is not a JSON object"}


def test_sidecars_far_from_their_pictures_are_counted_as_files(tmp_path: Path) -> None:
    root, skipped = (
        root_of(str(tar(tmp_path / "a.tar", dict.fromkeys(("1.jpg", "2.jpg", "1.txt"), b"x")))),
        SkippedFiles(),
    )
    assert len(pictures(list(scan_counting(root, skipped)))) == 2 and skipped.files_of("documents") == 1


def test_a_member_is_found_again_also_in_an_archive_inside_a_folder_called_tar(tmp_path: Path) -> None:
    (tmp_path / "x.tar").mkdir()
    place = tar(tmp_path / "x.tar" / "Y.TAR", {"a.tar/b.jpg": b"one", "/etc/c.jpg": b"two"})

    assert read_again(f"{place}/a.tar/b.jpg") == b"one"
    assert read_again(full_path(root_of(str(place)), "/etc/c.jpg")) == b"two"
    place.write_bytes(b"junk" * 1000)
    with pytest.raises(OSError, match="cannot be read"):
        read_again(f"{place}/a.tar/b.jpg")
