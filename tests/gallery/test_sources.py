"""What the walk finds in folders, tars and lists, and what it says of the rest."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.gallery.photos.sources import (
    Labels,
    Record,
    Root,
    Seen,
    Unreadable,
    full_path,
    is_there,
    read_again,
    read_bytes,
    root_of,
    scan,
)
from eyespot.types import UsageError


def pictures(records: list[Record]) -> list[str]:
    return [record.path for record in records if isinstance(record, Seen)]


def problems(records: list[Record]) -> dict[str, str]:
    return {record.path: record.reason for record in records if isinstance(record, Unreadable)}


def labels(records: list[Record]) -> dict[str, dict[str, object]]:
    return {record.path: record.facts for record in records if isinstance(record, Labels)}


def walk(place: Path) -> list[Record]:
    return list(scan(root_of(str(place))))


def test_a_folder_is_walked_in_order_and_hidden_things_are_left_alone(photos: Path) -> None:
    (photos / ".trash").mkdir()
    (photos / ".trash" / "old.jpg").write_bytes(b"x")
    (photos / "._photo1.jpg").write_bytes(b"resource fork")
    (photos / "notes.txt").write_text("no picture")

    found = pictures(walk(photos))

    assert found == sorted(found)
    assert len(found) == 9 and "deep/er/photo0.jpg" in found


def test_another_gallery_inside_the_folder_is_not_indexed(photos: Path) -> None:
    (photos / "gallery").mkdir()
    (photos / "gallery" / "gallery.toml").write_text("format = 1")
    (photos / "gallery" / "thumbnail.jpg").write_bytes(b"x")

    assert "gallery/thumbnail.jpg" not in pictures(walk(photos))


def test_links_that_lead_nowhere_or_back_are_named_and_the_walk_ends(photos: Path) -> None:
    (photos / "round").symlink_to(photos)
    (photos / "lost.jpg").symlink_to(photos / "nothing.jpg")
    (photos / "ouroboros.jpg").symlink_to("ouroboros.jpg")

    found = walk(photos)

    assert len(pictures(found)) == 9
    assert "leads back" in problems(found)["round/"]
    assert "no such file" in problems(found)["lost.jpg"]
    assert "symbolic links" in problems(found)["ouroboros.jpg"]


def test_a_linked_folder_is_followed(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "linked").symlink_to(photos)

    assert len(pictures(walk(tmp_path / "other"))) == 9


def test_a_pipe_named_jpg_does_not_hang_the_walk(photos: Path) -> None:
    os.mkfifo(photos / "pipe.jpg")

    assert problems(walk(photos))["pipe.jpg"] == "not a regular file"


def test_a_name_that_is_no_utf8_is_told_and_not_lost(photos: Path) -> None:
    with open(os.fsencode(photos) + b"/caf\xe9.jpg", "wb") as file:
        file.write(b"x")

    assert problems(walk(photos)) == {"caf\\xe9.jpg": "its name is not valid UTF-8"}


def test_metadata_csv_gives_labels_and_names_its_bad_rows(photos: Path) -> None:
    rows = [
        "file_name,species,count",
        "photo1.jpg,heron,2",
        "photo2.jpg,gull",
        ",egret,1",
        'photo4.jpg,"stork, white",1',
    ]
    (photos / "metadata.csv").write_text("\n".join(rows))

    found = walk(photos)

    assert labels(found) == {
        "photo1.jpg": {"species": "heron", "count": "2"},
        "photo4.jpg": {"species": "stork, white", "count": "1"},
    }
    assert problems(found) == {
        "metadata.csv:3": "has 2 fields where the header has 3",
        "metadata.csv:4": "has an empty file_name",
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"species\nheron\n", "has no column file_name"),
        (b"file_name,species\nphoto1.jpg,\xe9\n", "not UTF-8"),
        (b"", "has no column file_name"),
    ],
)
def test_a_label_file_that_cannot_be_used_is_told(photos: Path, content: bytes, reason: str) -> None:
    (photos / "metadata.csv").write_bytes(content)

    (told,) = problems(walk(photos)).values()

    assert reason in told


def test_a_label_file_of_a_sub_folder_speaks_of_that_folder(photos: Path) -> None:
    (photos / "deep" / "metadata.csv").write_text("file;species\ner/photo0.jpg;ibis\n")

    assert labels(walk(photos)) == {"deep/er/photo0.jpg": {"species": "ibis"}}


def test_jsonl_and_parquet_labels_work_alike(photos: Path) -> None:
    (photos / "metadata.jsonl").write_text('{"file_name": "photo1.jpg", "n": 3}\nnot json\n')
    pq.write_table(pa.table({"file_name": ["er/photo0.jpg"], "n": [4]}), photos / "deep" / "metadata.parquet")

    found = walk(photos)

    assert labels(found) == {"photo1.jpg": {"n": 3}, "deep/er/photo0.jpg": {"n": 4}}
    assert problems(found) == {"metadata.jsonl:2": "is no JSON object"}


def make_tar(place: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(place, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            archive.addfile(info, io.BytesIO(data))
    return place


def test_a_webdataset_tar_gives_pictures_with_their_sidecars(photos: Path, tmp_path: Path) -> None:
    one, two = (photos / "photo1.jpg").read_bytes(), (photos / "photo2.jpg").read_bytes()
    members = {
        "a.txt": b"a heron",
        "a.jpg": one,
        "a.json": json.dumps({"year": 2024, "nested": {"no": 1}}).encode(),
        "b.jpg": two,
        "b.cls": b"7",
        "c.jpg": one,
    }
    root = root_of(str(make_tar(tmp_path / "shard.tar", members)))

    found = list(scan(root))

    assert pictures(found) == ["a.jpg", "b.jpg", "c.jpg"]
    assert labels(found) == {"a.jpg": {"text": "a heron", "year": 2024}, "b.jpg": {"cls": "7"}}
    seen = {record.path: record for record in found if isinstance(record, Seen)}
    assert read_bytes(root, seen["b.jpg"]) == two
    assert read_again(full_path(root, "b.jpg")) == two


def test_a_tar_cut_short_gives_what_it_has_and_says_so(photos: Path, tmp_path: Path) -> None:
    data = (photos / "photo1.jpg").read_bytes()
    whole = make_tar(tmp_path / "whole.tar", {f"{n}.jpg": data for n in range(5)}).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: 3 * (512 + -(-len(data) // 512) * 512) + 100])

    found = walk(tmp_path / "cut.tar")

    assert pictures(found) == ["0.jpg", "1.jpg", "2.jpg"]
    assert "cannot be read to its end" in problems(found)[""]


def test_a_list_names_pictures_anywhere_with_their_labels(photos: Path, tmp_path: Path) -> None:
    rows = [
        "path,species",
        "photos/photo1.jpg,heron",
        f"{photos}/photo2.jpg,gull",
        "https://x.org/a.jpg,tern",
        "gone.jpg,x",
    ]
    (tmp_path / "list.csv").write_text("\n".join(rows))

    found = walk(tmp_path / "list.csv")

    assert pictures(found) == ["photos/photo1.jpg", f"{photos}/photo2.jpg"]
    assert labels(found)["photos/photo1.jpg"] == {"species": "heron"}
    assert "fetches no addresses" in problems(found)["https://x.org/a.jpg"]
    assert "no such file" in problems(found)["gone.jpg"]


@pytest.mark.parametrize(
    ("name", "kind"), [("a.tar", "tar"), ("a.csv", "list"), ("a.parquet", "list"), ("a.JPG", "file")]
)
def test_a_path_says_what_kind_of_root_it_is(tmp_path: Path, name: str, kind: str) -> None:
    assert root_of(str(tmp_path / name)) == Root(str(tmp_path / name), kind)


def test_what_cannot_be_indexed_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "letter.doc").write_text("dear")

    with pytest.raises(UsageError, match="no folder, tar, list"):
        root_of(str(tmp_path / "letter.doc"))
    with pytest.raises(UsageError, match="unpack it"):
        root_of(str(tmp_path / "photos.tar.gz"))


def test_an_empty_or_missing_root_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert not is_there(root_of(str(tmp_path / "empty")))
    assert not is_there(root_of(str(tmp_path / "missing")))
    assert is_there(root_of(str(tmp_path)))
