"""Files of names: what iNaturalist, GBIF and one's own tables say, malformed rows, and which names photos bear."""

from __future__ import annotations

import sqlite3
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from eyespot.gallery.taxonomy import name_index
from eyespot.gallery.taxonomy.name_index import NameIndex, add_names, remove_names
from eyespot.gallery.taxonomy.name_tables import NameFailure, NameRow, TaxonRow, folded, read_names, single_names
from eyespot.gallery.word_index import WordIndex
from eyespot.types import EyespotError, UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds import draw, index_gallery

INAT = {
    "taxa.csv": """id,taxonID,identifier,parentNameUsageID,scientificName,taxonRank
1,https://www.inaturalist.org/taxa/1,x,https://www.inaturalist.org/taxa/48460,Animalia,kingdom
4950,https://www.inaturalist.org/taxa/4950,x,https://www.inaturalist.org/taxa/1,Ardeidae,family
4956,https://www.inaturalist.org/taxa/4956,x,https://www.inaturalist.org/taxa/4950,Ardea cocoi,species
""",
    "VernacularNames-english.csv": """id,vernacularName,language
4950,"Herons, Egrets, and Bitterns",en
4956,Cocoi Heron,en
""",
    "VernacularNames-spanish.csv": "id,vernacularName,language\n4950,Garzas,es\n4956,Garza Cuca,es\n",
    "LICENSE": "none",
}
GBIF = {
    "Taxon.tsv": "taxonID\tparentNameUsageID\tacceptedNameUsageID\tscientificName\tscientificNameAuthorship"
    "\tcanonicalName\n"
    "9\t\t\tArdeidae\t\tArdeidae\n"
    '21\t9\t\tArdea "cocoi Linnaeus, 1766\tLinnaeus, 1766\t\n'
    "22\t9\t21\tArdea plumbea Merrem, 1786\tMerrem, 1786\tArdea plumbea\n"
    "23\t22\t\tArdea cocoi minor\t\tArdea cocoi minor\n",
    "VernacularName.tsv": "taxonID\tvernacularName\tlanguage\n9\therons\ten\n21\tGarza mora\tes\n",
}


def folder_of(place: Path, files: dict[str, str]) -> Path:
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
    return place


def meanings(gallery: Path, name: str) -> list[list[str]]:
    index = NameIndex.of(gallery)
    assert index is not None
    return [taxon.names for taxon in index.taxa(name)]


def test_inaturalist_names_lead_to_each_other_and_to_what_belongs_to_them(tmp_path: Path) -> None:
    summary = add_names(tmp_path / "g", folder_of(tmp_path / "inat", INAT))

    assert summary.file == ("inat", 3, 10) and summary.failed == 0
    herons = ["Ardeidae", "Herons, Egrets, and Bitterns", "Garzas", "Herons", "Egrets", "Bitterns"]
    assert {*meanings(tmp_path / "g", "egret")[0]} == {*herons}
    assert meanings(tmp_path / "g", "GARZA cuca") == [["Ardea cocoi", "Cocoi Heron", "Garza Cuca"]]
    assert meanings(tmp_path / "g", "cuca") == []


def test_a_synonym_of_gbif_names_the_accepted_taxon_and_a_quote_is_a_character(tmp_path: Path) -> None:
    add_names(tmp_path / "g", folder_of(tmp_path / "gbif", GBIF))

    assert meanings(tmp_path / "g", "ardea plumbea") == [['Ardea "cocoi', "Ardea plumbea", "Garza mora"]]
    with sqlite3.connect(tmp_path / "g" / name_index.NAME) as table:
        child, parent = (
            table.execute("SELECT t.parent, t.id FROM taxa t JOIN names n ON n.taxon = t.id WHERE folded = ?", (name,))
            for name in ("ardea cocoi minor", "ardea cocoi")
        )
        assert child.fetchone()[0] == parent.fetchone()[1]


def test_an_archive_is_read_as_its_folder_is(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "gbif", GBIF)
    with zipfile.ZipFile(tmp_path / "gbif.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)

    assert [*read_names(tmp_path / "gbif.zip")] == [*read_names(folder)]


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("garza,heron,Ardeidae\npato,duck\n", ["garza", "heron", "Ardeidae"]),
        ("latin_name;english_name;size\nArdeidae;heron|garza;12\n", ["Ardeidae", "heron", "garza"]),
        ("sp\ten\nx\ty\n", None),
        ("family,name,common_name,image_dir_name\nArdeidae,garza,heron,0_x\n", ["garza", "heron"]),
    ],
)
def test_a_table_of_ones_own(tmp_path: Path, table: str, names: list[str] | None) -> None:
    (tmp_path / "own.csv").write_text(table, encoding="utf-8")
    add_names(tmp_path / "g", tmp_path / "own.csv")

    found = meanings(tmp_path / "g", "heron" if names else "y")
    assert {*found[0]} == {*(names or ["y"])}


def test_malformed_rows_are_listed_and_the_good_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(
        b"latin,english,parent\nArdea alba,great egret,Ardeidae\none,two\n,,\nx,\xff,y\n-,!,\n" + b"a" * 300 + b",z,\n"
    )
    summary = add_names(tmp_path / "g", tmp_path / "own.csv")

    reasons = ["2 fields", "UTF-8", "without letters", "without letters", "more than 200"]
    assert [failure.line for failure in summary.failures] == [3, 5, 6, 6, 7]
    assert all(part in failure.reason for part, failure in zip(reasons, summary.failures, strict=True))
    assert meanings(tmp_path / "g", "ardeidae") == [["Ardeidae"]] and summary.failed == 5


def test_names_are_replaced_by_their_file_and_forgotten(tmp_path: Path) -> None:
    gallery = tmp_path / "g"
    (tmp_path / "a.csv").write_text("heron,garza\n")
    (tmp_path / "b.csv").write_text("heron,Reiher\n")
    add_names(gallery, tmp_path / "a.csv")
    add_names(gallery, tmp_path / "b.csv")
    (tmp_path / "a.csv").write_text("heron,airone\n")
    add_names(gallery, tmp_path / "a.csv")

    assert {name for names in meanings(gallery, "heron") for name in names} == {"heron", "Reiher", "airone"}
    remove_names(gallery, "b.csv")
    assert meanings(gallery, "heron") == [["heron", "airone"]]
    with raises(UsageError):
        remove_names(gallery, "b.csv")


def test_what_holds_no_names_changes_nothing(tmp_path: Path) -> None:
    gallery = tmp_path / "g"
    (tmp_path / "a.csv").write_text("heron,garza\n")
    add_names(gallery, tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "empty").mkdir()

    for place in (tmp_path / "a.csv", tmp_path / "empty", tmp_path / "nowhere"):
        with raises(UsageError):
            add_names(gallery, place)
    assert meanings(gallery, "heron") == [["heron", "garza"]]
    assert [path.name for path in gallery.iterdir() if path.suffix == ".part"] == []


@pytest.mark.parametrize("damage", ["bytes", "password", "method"])
def test_an_archive_that_cannot_be_read_is_one_sentence(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "names.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_LZMA if damage == "bytes" else zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("names.csv", "".join(f"heron{number},garza{number}\n" for number in range(3000)))
    data = bytearray(place.read_bytes())
    central = data.rindex(b"PK\x01\x02")
    if damage == "bytes":
        data[100:400] = bytes(300)
    elif damage == "password":
        data[6] |= 1
        data[central + 8] |= 1
    else:
        data[central + 10] = data[8] = 97
    place.write_bytes(data)

    with pytest.raises(UsageError, match="fetch it again" if damage == "bytes" else "unpack it") as found:
        add_names(tmp_path / "gallery", place)
    assert str(found.value).startswith(str(place)) and "\n" not in str(found.value)


def test_a_damaged_table_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / name_index.NAME).write_bytes(b"no table at all, but long enough to be one" * 9)

    with raises(EyespotError):
        meanings(tmp_path, "heron")


def borne(folder: Path, names: Path, *photos: str) -> list[str]:
    """The names of the herons' family that photos with these file names bear."""
    for seed, name in enumerate(photos):
        draw(folder / "x" / name, seed)
    index_gallery(folder / "g", folder / "x")
    assert WordIndex(folder / "g").names is None
    add_names(folder / "g", names)
    words = WordIndex(folder / "g")
    assert words.names is not None
    return sorted(words.borne([taxon.id for taxon in words.names.taxa("Ardeidae")]))


def test_a_circle_of_parents_ends(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("taxonID,parentNameUsageID,scientificName\n1,2,Ardea cocoi\n2,1,Ardeidae\n")

    assert borne(tmp_path, tmp_path / "t.csv", "ardea cocoi.png") == ["ardea cocoi"]


def test_the_table_of_words_follows_the_names(tmp_path: Path) -> None:
    names = folder_of(tmp_path / "inat", INAT)

    assert borne(tmp_path, names, "Ardea cocoi 1.png", "cañón.png", "herons.png") == ["ardea cocoi", "herons"]


def test_rows_of_a_table() -> None:
    assert single_names("Ducks, Geese, and Swans") == ["Ducks, Geese, and Swans", "Ducks", "Geese", "Swans"]
    assert single_names("Hawks, Kites, and Allies")[1:] == ["Hawks", "Kites"]
    assert folded("  Garza CAÑÓN-cuca ") == "garza canon cuca"


@settings(max_examples=examples(60), deadline=None)
@given(text=st.text(max_size=120))
def test_any_text_is_read_or_listed(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    place = tmp_path_factory.mktemp("any") / "own.csv"
    place.write_bytes(text.encode("utf-8", "surrogatepass"))

    for found in read_names(place):
        assert isinstance(found, TaxonRow | NameRow | NameFailure)
        assert not isinstance(found, NameRow) or folded(found.name)
