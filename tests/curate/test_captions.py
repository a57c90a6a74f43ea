"""Captions of a gallery: one for each picture that is there, written whole; what cannot be captioned is listed."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from eyespot.curate.captions import Caption, Uncaptioned, captioned, columns, count, sentence_of, write
from eyespot.curate.templates import COARSE, SENTENCES, Templates, parsed, with_article
from eyespot.photos.provenance import Attribution, attribution_of
from eyespot.storage.tables import rows_of
from eyespot.types import NothingFound, UsageError
from tests.command import run_eyespot
from tests.pages import ROOT, blocks, run_code, run_lines, run_page
from tests.wording import raises
from tests.worlds import draw, draw_photos, index_gallery
from tests.worlds.servers import Double, chat, error

NAMES = ["grey heron", "osprey", None, "barn owl", "grey heron"]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five photos in shards of two; the third has no name."""
    folder = tmp_path_factory.mktemp("labelled")
    photos = draw_photos(folder / "photos", len(NAMES), name="photo{}.jpg")
    rows = [f"photo{at}.jpg,{name or ''}\n" for at, name in enumerate(NAMES)]
    (photos / "metadata.csv").write_text("file_name,common_name\n" + "".join(rows))
    index_gallery(folder / "gallery", photos, shard_rows=2)
    return folder / "gallery"


@dataclass
class Looking:
    """A captioner that looks: it says how large the picture is."""

    name: str = "looking"
    settings: dict[str, Any] = field(default_factory=dict)

    def caption(self, facts: dict[str, Any], picture: Callable[[], Image.Image]) -> str:
        return f"a picture \n of {picture().width} by {picture().height}, {facts['common_name']}"


def plain(seed: int = 0) -> Templates:
    return Templates.over(["common_name"], {}, ["{a common}", "a photo of {a common}"], seed=seed)


def test_each_picture_with_labels_gets_a_sentence_of_its_own(gallery: Path) -> None:
    found = list(captioned(gallery, plain()))

    captions = [one for one in found if isinstance(one, Caption)]
    (without,) = [one for one in found if isinstance(one, Uncaptioned)]
    assert len(found) == len({one.id for one in found}) == 5
    assert sorted(one.caption.removeprefix("a photo of ") for one in captions) == [
        "a barn owl", "a grey heron", "a grey heron", "an osprey",
    ]  # fmt: skip
    assert (Path(without.path).name, without.reason) == ("photo2.jpg", "no label to speak of")


@pytest.mark.parametrize("name", ["captions.parquet", "captions.csv"])
def test_what_is_written_is_read_again_and_counted_the_same(gallery: Path, tmp_path: Path, name: str) -> None:
    written = write(captioned(gallery, plain()), tmp_path / name, plain())
    wanted = [one._asdict() for one in captioned(gallery, plain()) if isinstance(one, Caption)]
    assert [row for _, row in rows_of(tmp_path / name)] == wanted
    assert (written.captions, dict(written.without), written.failures) == (4, {"no label to speak of": 1}, [])
    assert written.different == {row["caption"] for row in wanted} and count(captioned(gallery, plain())) == written


def test_parquet_says_how_it_was_made_and_is_the_same_every_time(gallery: Path, tmp_path: Path) -> None:
    for name in ("one.parquet", "two.parquet"):
        write(captioned(gallery, plain(3)), tmp_path / name, plain(3))
    made = json.loads(pq.read_schema(tmp_path / "one.parquet").metadata[b"eyespot"])
    assert (made["by"], made["seed"], made["columns"]) == ("templates", 3, {"common": "common_name"})
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_a_captioner_may_look_at_the_picture(gallery: Path, tmp_path: Path) -> None:
    found = [one for one in captioned(gallery, Looking()) if isinstance(one, Caption)]
    lost, broken = (gallery.parent / "photos" / f"photo{at}.jpg" for at in (0, 1))
    backups = lost.read_bytes(), broken.read_bytes()
    lost.unlink()
    broken.write_bytes(b"no picture")

    written = write(captioned(gallery, Looking()), tmp_path / "captions.csv", Looking())
    lost.write_bytes(backups[0])
    broken.write_bytes(backups[1])

    assert len(found) == 5 and min(one.caption for one in found) == "a picture of 120 by 90, None"
    assert written.captions == 3 and "no such file or directory" in written.without
    assert {Path(one.path).name for one in written.failures} == {"photo0.jpg", "photo1.jpg"}


def test_without_a_single_caption_or_a_known_kind_of_file_nothing_is_written(gallery: Path, tmp_path: Path) -> None:
    mute = Templates({"common": "nothing"}, ["{common}"])

    with raises(NothingFound):
        write(captioned(gallery, mute), tmp_path / "captions.csv", mute)
    with raises(UsageError):
        write(captioned(gallery, plain()), tmp_path / "c.txt", plain())
    assert list(tmp_path.iterdir()) == []


def test_the_columns_of_all_shards_are_told_once(gallery: Path) -> None:
    names = columns(gallery)
    assert "common_name" in names and len(names) == len(set(names))
    assert not {"live", "roots", "paths"} & set(names)


# -- sentences made of labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "facts", "caption"),
    [
        ("{a common} here", {"common_name": "grey heron"}, "a grey heron here"),
        ("{a common} here", {"vernacularName": "osprey"}, "an osprey here"),
        ("{common} ({species})", {"Common Name": "osprey", "species": "Pandion"}, "osprey (Pandion)"),
        ("of {species}", {"genus": "Ardea", "species": "cocoi"}, "of Ardea cocoi"),
        ("of {species}", {"genus": "Ardea", "species": "Ardea cocoi"}, "of Ardea cocoi"),
        ("of {species}", {"species": "Ardea cocoi; Egretta  thula; Ardea cocoi"}, "of Ardea cocoi and Egretta thula"),
        ("{a common}", {"common": "owl;mouse;tree"}, "an owl, a mouse and a tree"),
        ("in {year} by {author}", {"year": 2021, "author": "Ann"}, "in 2021 by Ann"),
        ("of {habitat}", {"habitat": "{year} \\1", "year": 1}, "of {year} \\1"),  # a label with braces
        *(("of {habitat}", {"habitat": value}, None) for value in (None, "", "  ", ";", float("nan"))),
    ],
)
def test_gaps_are_filled_by_their_columns(sentence: str, facts: dict[str, Any], caption: str | None) -> None:
    assert Templates.over(list(facts), {}, [sentence]).caption({"id": "p", **facts}) == caption


@pytest.mark.parametrize(
    "phrase",
    [
        *("an Arctic tern", "a European robin", "a unicorn fish", "an uninhabited island", "a ewe", "an umbrella bird"),
        *("an hourglass dolphin", "a house sparrow", "a one-horned rhinoceros"),
    ],
)
def test_the_article_follows_the_sound(phrase: str) -> None:
    assert with_article(phrase.partition(" ")[2]) == phrase


def test_only_sentences_whose_gaps_are_all_filled_are_drawn() -> None:
    templates = Templates.over(["common_name", "scientific_name"], {})
    drawn = {templates.caption({"id": str(at), "scientific_name": "Ardea alba"}) for at in range(200)}
    wanted = [s for s in SENTENCES if "common" not in s and "family" not in s]
    assert drawn == {sentence.replace("{species}", "Ardea alba") for sentence in wanted}


def test_coarse_labels_are_named_only_where_no_finer_is_known_and_a_named_column_before_the_usual() -> None:
    templates = Templates.over(["species", "genus", "family"], {})
    named = Templates.over(["common_name", "title"], {"common": "title"})
    assert templates.caption({"id": "1", "genus": "Ardea"}) in {s.replace("{genus}", "Ardea") for s in COARSE}
    assert "Ardea alba" in str(templates.caption({"id": "2", "genus": "Ardea", "species": "alba"}))
    assert "owl" in str(named.caption({"id": "p", "common_name": "heron", "title": "owl"}))


@given(st.text(), st.integers(0, 99))
def test_the_draw_hangs_on_seed_and_id_alone(id: str, seed: int) -> None:
    one = Templates.over(["common"], {}, seed=seed)
    other = Templates.over(["size", "common", "title"], {}, seed=seed)
    assert one.caption({"id": id, "common": "owl"}) == other.caption({"common": "owl", "title": "x", "id": id})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Templates.over(["title", "author"], {}),
        lambda: Templates.over(["title"], {"species": "taxon"}),
        lambda: Templates.over(["title"], {}, ["{title}", "in {habitat}"]),
        *(partial(parsed, text) for text in ("", "# nothing\n", "a bird\n", "{common} and {\n", "{{common}}\n")),
    ],
)
def test_columns_and_templates_that_do_not_fit_are_refused(wrong: Callable[[], object]) -> None:
    with raises(UsageError):
        wrong()


def test_a_file_of_templates_is_a_sentence_a_line() -> None:
    assert parsed("# ours\r\n {a common} \n\n{species}\n{species}\n") == ("{a common}", "{species}")


# -- what a gallery's columns say of a photo's licence and author, however they are spelled ----------------------


@pytest.mark.parametrize(
    ("facts", "attribution"),
    [
        ({"licence": "CC0", "author": "Ada", "source": "https://a"}, Attribution("CC0", "Ada", "https://a")),
        ({"license": "CC BY 4.0", "rightsHolder": "Ada", "recordedBy": "Bo"}, Attribution("CC BY 4.0", "Ada", None)),
        (
            {"License": "CC BY 4.0", "owner_name": " Ada ", "URL": "https://a"},
            Attribution("CC BY 4.0", "Ada", "https://a"),
        ),
        ({"licence": "", "license": "CC0", "rights_holder": None}, Attribution("CC0", None, None)),
        ({"author": "Ada", "source": "https://ada.example"}, Attribution()),  # a private photo names nobody
        ({"licence": "CC0", "latitude": 1.0, "title": "Ada"}, Attribution("CC0", None, None)),
    ],
)
def test_attribution_is_found_by_the_names_of_columns(facts: dict[str, Any], attribution: Attribution) -> None:
    assert attribution_of(facts) == attribution


# -- a model that looks and writes captions -----------------------------------------------------------------------


SEEING_NAMES = ("dam1", "cup", "chair")


@pytest.fixture(scope="module")
def seeing_gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photos with names, one a species."""
    place = tmp_path_factory.mktemp("seen")
    for at, name in enumerate(SEEING_NAMES):
        draw(place / f"{name}.jpg", at)
    rows = [f"{name}.jpg,{name},Species {name}" for name in SEEING_NAMES]
    (place / "metadata.csv").write_text("\n".join(["file_name,common_name,species", *rows, ""]))
    index_gallery(place / "g", place)
    return place / "g"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    with Double(then=chat('"A cup on a table."\n')) as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        yield double


def written(gallery: Path, ledger: Path, out: Path, *more: object) -> tuple[int, list[dict[str, str]]]:
    """The exit code and the rows of the file."""
    line = ["build", "captions", "-g", gallery, "--by", "openai:tiny", "--ledger", ledger, "--out", out, *more]
    code = run_eyespot(*line).returncode
    return code, list(csv.DictReader(out.read_text("utf-8").splitlines())) if out.exists() else []


def test_each_picture_is_shown_with_its_name_once(seeing_gallery: Path, server: Double, tmp_path: Path) -> None:
    first = written(seeing_gallery, tmp_path / "l.sqlite", tmp_path / "a.csv")
    again = written(seeing_gallery, tmp_path / "l.sqlite", tmp_path / "b.csv")

    assert first == again and first[0] == 0 and len(server.seen) == 3
    assert {row["caption"] for row in first[1]} == {"A cup on a table."} and len(first[1]) == 3
    bodies = json.dumps([seen.body for seen in server.seen])
    assert all(f"Species {name}" in bodies for name in SEEING_NAMES) and bodies.count("data:image/jpeg;base64,") == 3


def test_a_budget_stops_it_and_the_next_run_goes_on(seeing_gallery: Path, server: Double, tmp_path: Path) -> None:
    stopped = written(seeing_gallery, tmp_path / "l.sqlite", tmp_path / "a.csv", "--budget-calls", 2)
    whole = written(seeing_gallery, tmp_path / "l.sqlite", tmp_path / "a.csv")
    assert stopped == (3, []) and (whole[0], len(whole[1])) == (0, 3) and len(server.seen) == 3


def test_a_picture_without_an_answer_is_listed(seeing_gallery: Path, server: Double, tmp_path: Path) -> None:
    server.then = lambda seen: chat("A chair.") if "chair" in json.dumps(seen.body) else error(400, "odd")
    code, rows = written(seeing_gallery, tmp_path / "l.sqlite", tmp_path / "a.csv")
    assert code == 3 and [row["caption"] for row in rows] == ["A chair."]


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [("A heron.", "A heron."), ('\n  "A heron."  \nIt stands.', "A heron."), ("", ""), ("“Two owls”", "Two owls")],
)
def test_of_a_reply_the_first_line_counts(reply: str, sentence: str) -> None:
    assert sentence_of(reply) == sentence


# -- pages of the documentation on building sets ------------------------------------------------------------------


PRINTED = {  # what the Python of a page prints, and a file that its commands leave
    "inat": (r"", "birds/card.html"),
    "recipes": (r"\[False, False\]\n5 What is it made of\?\n", "work/card.html"),
    "recos": (r"[1-9]\d+ [1-9]\d* \w+\n", "made/set/captions.parquet"),
    "rerank": (r".+\n.+\n", "rerank/card.md"),
    "rmir": (r"(functional|temporal|causal) .+\n", "made/set/queries.jsonl"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PRINTED)
def test_the_page_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    page = ROOT / "docs" / "research" / f"{name}.md"
    printed, file = PRINTED[name]

    run_page(page, tmp_path)

    assert re.fullmatch(printed, run_code("\n".join(blocks(page, "python")), tmp_path))
    assert (tmp_path / file).is_file()


@pytest.mark.long
def test_the_page_on_labelling_runs_up_to_the_server_that_it_starts(tmp_path: Path) -> None:
    page = ROOT / "docs" / "research" / "annotate.md"
    (script,) = blocks(page, "sh")
    *lines, last = script.splitlines(keepends=True)
    *_, listed = run_lines("".join(lines), tmp_path)
    assert last == "eyespot serve\n" and "50 new photos on the list, 50 in all" in listed.stdout
    assert run_code("\n".join(blocks(page, "python")), tmp_path) == "3 of 60\n"
    assert (tmp_path / "labelled" / "qrels.json").is_file()
