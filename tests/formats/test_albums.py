"""Hits as files of one's own: copies and links that overwrite nothing, a table, and keywords in sidecars."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import eyespot
from eyespot.formats.albums import copy_hits, link_hits, write_table
from eyespot.formats.exporting import ExportOptions, export
from eyespot.formats.exports import parquet
from eyespot.formats.imports import clip_retrieval, hdf5
from eyespot.formats.imports.registered import take_in
from eyespot.formats.sidecars import add_keyword, sidecar_of, with_keyword
from eyespot.gallery.view import Gallery, View
from eyespot.photos.embedded_facts import read_xmp
from tests.lazy_import import requires
from tests.wording import check_wording
from tests.worlds import copy_of_sample_gallery
from tests.worlds.galleries import opened

OF_DARKTABLE = b"""<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="XMP Core 4.4.0-Exiv2">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:darktable="http://darktable.sf.net/" xmlns:dc="http://purl.org/dc/elements/1.1/"
   darktable:xmp_version="4">
   <!-- hand made -->
   <dc:subject><rdf:Seq><rdf:li>pond</rdf:li></rdf:Seq></dc:subject>
   <darktable:history><rdf:Seq><rdf:li darktable:operation="exposure"/></rdf:Seq></darktable:history>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""


def hits(*paths: Path | str | None, **facts: Any) -> list[dict[str, Any]]:
    return [
        {"rank": rank, "id": f"i{rank}", "path": None if path is None else str(path), **facts}
        for rank, path in enumerate(paths, 1)
    ]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    for name, text in {"a/IMG.jpg": "one", "b/img.JPG": "two", "c/no ending": "three"}.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    return folder


def test_names_that_are_alike_get_numbers_and_nothing_is_written_twice(photos: Path, tmp_path: Path) -> None:
    found = hits(photos / "a/IMG.jpg", photos / "b/img.JPG", photos / "c/no ending")
    first = copy_hits(found, tmp_path / "out")
    times = [file.stat().st_mtime_ns for file in first.files]
    texts = {"IMG.jpg": "one", "img-2.JPG": "two", "no ending": "three"}
    assert {file.name: file.read_text() for file in first.files} == texts
    assert (again := copy_hits(found, tmp_path / "out")).files == first.files == again.known and not first.known
    assert [file.stat().st_mtime_ns for file in first.files] == times


@pytest.mark.parametrize("put", [copy_hits, link_hits])
def test_a_file_of_the_user_is_left_alone(put: Any, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "IMG.jpg").write_text("mine")
    (tmp_path / "out" / "IMG-2.jpg").symlink_to("nowhere")
    (file,) = put(hits(photos / "a/IMG.jpg"), tmp_path / "out").files
    assert (file.name, file.read_text()) == ("IMG-3.jpg", "one")
    assert (tmp_path / "out" / "IMG.jpg").read_text() == "mine"


def test_what_lies_in_a_tar_is_copied_and_cannot_be_linked(photos: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        archive.add(photos / "a/IMG.jpg", "deep/IMG.jpg")
    found = hits(tmp_path / "0.tar" / "deep" / "IMG.jpg")
    copied, linked = copy_hits(found, tmp_path / "copies"), link_hits(found, tmp_path / "links")
    assert [file.read_text() for file in copied.files] == ["one"]
    assert linked.files == [] and len(linked.failed) == 1
    check_wording(linked.failed[0].reason)


@pytest.mark.parametrize("put", [copy_hits, link_hits])
def test_what_is_gone_is_listed_and_the_rest_goes_on(put: Any, photos: Path, tmp_path: Path) -> None:
    report = put(hits(photos / "gone.jpg", None, photos / "a/IMG.jpg"), tmp_path / "out")
    assert len(report.failed) == 2 and [file.name for file in report.files] == ["IMG.jpg"]
    for failure in report.failed:
        check_wording(failure.reason)


def test_links_lead_to_the_originals(photos: Path, tmp_path: Path) -> None:
    found = hits(photos / "a/IMG.jpg", photos / "b/img.JPG")
    files = link_hits(found, tmp_path / "out").files
    assert [file.resolve() for file in files] == [Path(hit["path"]).resolve() for hit in found]
    assert link_hits(found, tmp_path / "out").files == files


def test_a_table_leaves_out_places_and_owners_unless_all_is_wanted(tmp_path: Path) -> None:
    """It names the reasons for a hit as the terminal does."""
    why = [{"code": "label bird", "sentence": "words stand there"}, {"code": "look", "sentence": "it looks so"}]
    found = hits("/p/1.jpg", score=0.5, title="=1+1", latitude=47.5, author="Ada", why=why)

    assert write_table(found, tmp_path / "few.csv") == ["latitude", "author"]
    assert write_table(found, tmp_path / "all.csv", all_columns=True) == []

    few, full = (dict(*csv.DictReader((tmp_path / name).read_text().splitlines())) for name in ("few.csv", "all.csv"))
    assert [few[name] for name in ("rank", "id", "path", "score")] == ["1", "i1", "/p/1.jpg", "0.5"]
    assert (few["title"], few["why"], len(few)) == ("'=1+1", "label bird, look", 6)
    assert (full["latitude"], full["author"]) == ("47.5", "Ada")


def keywords(xmp: bytes) -> list[str]:
    return read_xmp(xmp).get("dc:subject", [])


def test_a_keyword_is_added_once_and_the_rest_of_a_sidecar_stays() -> None:
    once = with_keyword(OF_DARKTABLE, "heron")
    assert once is not None
    assert keywords(once) == ["pond", "heron"]
    assert b'darktable:operation="exposure"' in once
    assert b"hand made" in once
    assert with_keyword(once, "heron") is None


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1).filter(str.strip),
        max_size=4,
    )
)
def test_every_keyword_can_be_read_again(words: list[str]) -> None:
    """Of visible characters, as `--xmp` takes them: blanks between tags are none."""
    xmp: bytes | None = None
    for word in words:
        xmp = with_keyword(xmp, word) or xmp
    assert (keywords(xmp) if xmp else []) == list(dict.fromkeys(words))


@pytest.mark.parametrize("items", ["", "<rdf:Bag><rdf:li>pond</rdf:li></rdf:Bag>"])
def test_a_comment_before_the_keywords_takes_none_in(items: str) -> None:
    subject = f'<dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/"><!-- mine -->{items}</dc:subject>'
    rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    before = f'<rdf:RDF {rdf}><rdf:Description rdf:about="">{subject}</rdf:Description></rdf:RDF>'.encode()
    after = with_keyword(before, "heron")
    assert after is not None and b"<!-- mine -->" in after
    assert keywords(after) == [*keywords(before), "heron"]


def test_the_sidecar_that_is_there_is_used(photos: Path) -> None:
    photo = photos / "a/IMG.jpg"
    assert sidecar_of(str(photo)) == photos / "a/IMG.jpg.xmp"
    (photos / "a/IMG.xmp").write_bytes(OF_DARKTABLE)
    assert sidecar_of(str(photo)) == photos / "a/IMG.xmp"

    before = photo.stat()
    add_keyword(hits(photo), "heron")

    assert keywords((photos / "a/IMG.xmp").read_bytes()) == ["pond", "heron"]
    assert (photo.stat().st_mtime_ns, photo.read_text()) == (before.st_mtime_ns, "one")


BOMB = '<?xml version="1.0"{}?><!DOCTYPE a [<!ENTITY b "c">]><x:xmpmeta xmlns:x="adobe:ns:meta/">&b;</x:xmpmeta>'


@pytest.mark.parametrize(
    "sidecar",
    [b"mine", b"<a/>", BOMB.format("").encode(), BOMB.format(' encoding="utf-16"').encode("utf-16")],
    ids=["text", "other", "bomb", "utf-16"],
)
def test_a_sidecar_that_is_none_stays_and_is_listed(sidecar: bytes, photos: Path) -> None:
    place = photos / "a/IMG.jpg.xmp"
    place.write_bytes(sidecar)
    report = add_keyword(hits(photos / "a/IMG.jpg", photos / "b/img.JPG"), "heron")
    assert place.read_bytes() == sidecar and [file.name for file in report.files] == ["img.JPG.xmp"]
    check_wording(report.failed[0].reason)


@pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool is not installed")
@pytest.mark.parametrize("before", [None, OF_DARKTABLE])
def test_exiftool_reads_the_keywords(before: bytes | None, tmp_path: Path) -> None:
    written = with_keyword(before, "a grey heron & <fish>")
    assert written is not None
    (tmp_path / "photo.jpg.xmp").write_bytes(written)
    line = ["exiftool", "-s3", "-Subject", str(tmp_path / "photo.jpg.xmp")]
    read = subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()
    assert read == ("a grey heron & <fish>" if before is None else "pond, a grey heron & <fish>")


# -- the recipes of docs/how/engines.md run on an export ----------------------------------------------------------


PAGE = Path(__file__).parents[2] / "docs" / "how" / "engines.md"
BLOCKS = [
    re.sub(r"^   ", "", block, flags=re.MULTILINE) if block.startswith("   ") else block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """The sample gallery beside its export in parquet, OUT."""
    folder = tmp_path_factory.mktemp("sample")
    gallery = Gallery(copy_of_sample_gallery(folder / "GALLERY"))
    view = gallery.view(gallery.stem())
    export(view, parquet.write, folder / "OUT", ExportOptions())
    return view


def run(word: str, view: View, monkeypatch: pytest.MonkeyPatch, **names: Any) -> dict[str, Any]:
    """The names that the recipe with this word leaves."""
    monkeypatch.chdir(view.gallery.path.parent)
    (code,) = [block for block in BLOCKS if word in block]
    exec(code.replace("ids = ...", "ids = candidates(query)").replace("a heron", "a windmill"), names)
    return names


@requires("lancedb")
def test_lancedb_finds_a_picture_by_its_own_vector(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    table = run("lancedb", view, monkeypatch)["table"]
    (nearest,) = table.search(view.vectors([5])[0]).limit(1).to_list()

    assert table.count_rows() == 208 and nearest["id"] == view.facts([5])[0]["id"]


def test_milvus_gets_plain_rows_with_vectors_and_facts(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is a stand-in: no Milvus runs here."""
    made: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    client = SimpleNamespace(
        create_collection=lambda name, dim, **options: made.update(options, name=name, dim=dim),
        insert=lambda name, some: rows.extend(some),
    )
    monkeypatch.setitem(sys.modules, "pymilvus", SimpleNamespace(MilvusClient=lambda _: client))  # type: ignore[arg-type]
    run("pymilvus", view, monkeypatch)

    assert made["name"] == "pictures" and made["dim"] == len(rows[0]["vector"]) == 512
    assert len({row["id"] for row in rows}) == 208 and all(len(row["id"]) <= made["max_length"] for row in rows)
    assert rows[0]["title"] == view.facts([0])[0]["title"]


def test_the_feed_of_vespa_has_a_document_a_line(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    run("feed.jsonl", view, monkeypatch)
    lines = (view.gallery.path.parent / "feed.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]

    assert len({document["put"] for document in documents}) == 208
    assert set(documents[5]["fields"]) == {"picture_id", "vector", "width", "height"}
    np.testing.assert_allclose(documents[5]["fields"]["vector"]["values"], view.vectors([5])[0], atol=1e-4)


@pytest.mark.parametrize("place", ["clip", "vectors.hdf5"])
def test_vectors_come_in_again(view: View, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str) -> None:
    inward: Any = clip_retrieval
    if place != "clip":
        pytest.importorskip("h5py")
        inward = hdf5
    run("img_emb" if place == "clip" else "h5py", view, monkeypatch)
    take_in(tmp_path / "again", inward.source([view.gallery.path.parent / place]), "starter")
    again = opened(tmp_path / "again")

    assert [fact["id"].partition(":")[2] for fact in again.facts(range(208))] == [
        fact["id"] for fact in view.facts(range(208))
    ]
    np.testing.assert_array_equal(again.vectors(range(208)), view.vectors(range(208)))


def test_the_answer_among_candidates_is_the_exact_one(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's part is a scan of bits, as the page makes them."""
    rows = np.flatnonzero(view.live).tolist()
    vectors, ids = view.vectors(rows), [fact["id"] for fact in view.facts(rows)]
    codes = np.packbits(vectors > vectors.mean(axis=0), axis=1)

    def candidates(query: Any) -> list[str]:
        distances = np.bitwise_count(codes ^ np.packbits(query > 0)).sum(axis=1)
        return [ids[at] for at in np.argsort(distances, kind="stable")[:150]]

    names = run("candidates", view, monkeypatch, candidates=candidates)
    exact = eyespot.open(view.gallery.path).index.search(names["query"][None], 50)
    found = set(view.rows_of(names["ids"]))
    inside = [row for row in exact.rows[0].tolist() if row in found]

    assert len(found) == 150 and len(inside) >= 36
    assert names["nearest"].rows[0].tolist()[: len(inside)] == inside  # only what the candidates lack differs
