"""`eyespot search` on real photos: by words, pictures, filters, judged photos and titles; its output and its errors."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import eyespot
from eyespot import sample
from eyespot.cli._terminal_pictures import HEIGHT, as_iterm, as_kitty, protocol, strip
from eyespot.judges.person import VERDICTS
from eyespot.ledger.judgements import Judgements
from eyespot.runs import read_run
from eyespot.types import Judgement, Query, Term
from tests.cli.conftest import done, run_json
from tests.command import environment, refuses, run_process
from tests.worlds import copy_of_sample_gallery, draw, draw_photos, index_gallery, make_gallery, second_encoder

Search = Callable[..., list[dict[str, Any]]]


def photo(part: str) -> Path:
    (found,) = [place for place in sample.photos().glob("*.jpg") if part in place.name]
    return found


def test_hits_whose_photos_have_moved_carry_a_note(tmp_path: Path) -> None:
    photos, line = tmp_path / "photos", ("search", "a dot", "-g", tmp_path / "gallery")
    index_gallery(tmp_path / "gallery", draw_photos(photos, 3))
    there = run_json(*line)
    (photos / "more").mkdir()
    (photos / "1.jpg").rename(photos / "more" / "1.jpg")
    moved = run_json(*line)

    (note,) = moved["notes"]
    assert "notes" not in there and note["code"] == "absent" and "1 of 3 photos" in note["sentence"]
    assert f"eyespot index PHOTOS -g {tmp_path / 'gallery'}" in done(*line).stderr


def test_why_says_what_terms_and_words_add_to_the_score(search: Search, sample_gallery: Path) -> None:
    (hit,) = search("2:windmill + grass - people", "-k", 1, "--why", "--by", "look")
    (worded,) = search("a windmill", "-k", 1, "--why")

    sentences = [one["sentence"].split() for one in hit["why"] if one["code"] == "term"]
    added = {words[0]: float(words[2]) for words in sentences}
    assert set(added) == {"windmill", "grass", "people"} and sum(added.values()) == pytest.approx(
        hit["score"], abs=2e-3
    )
    said = {one["code"]: one["sentence"] for one in worded["why"]}
    total, look, rest = (float(part.split()[-1]) for part in re.split("[=+]", said["sum"]))
    assert (total, look + rest) == (pytest.approx(worded["score"], abs=1e-3), pytest.approx(total, abs=1e-9))
    assert "words beside it and photos with the words" in said["sum"] and said["word"].endswith("without windmill")
    lines = done("search", "windmill + grass", "-g", sample_gallery, "-k", 2, "--why").stdout.splitlines()
    assert len(lines) == 4 and "windmill adds +" in lines[1]


def test_json_has_the_promised_shape_and_the_table_and_the_sheet_its_hits(sample_gallery: Path, tmp_path: Path) -> None:
    line = ("search", "a windmill", "-g", sample_gallery, "-k", 2)
    found = run_json(*line)
    paths = done(*line, "--paths").stdout.splitlines()
    table = done(*line, "--html", tmp_path / "sheet.html").stdout.splitlines()

    assert (found["query"], found["exact"]) == ("a windmill", True)
    assert found["took_ms"] > 0 and found["likely_above"] is None  # words beside the photos count too
    by_look = run_json("search", "a flamingo", "-g", sample_gallery, "-k", 2, "--by", "look")
    assert 0 < by_look["likely_above"] < 1
    assert [list(item)[:4] for item in found["items"]] == [["rank", "id", "path", "score"]] * 2
    assert {"title", "category", "author", "licence", "width", "taken", "latitude"} <= found["items"][0].keys()
    assert paths == [item["path"] for item in found["items"]]
    assert all(path in line for path, line in zip(paths, table, strict=True))
    page = (tmp_path / "sheet.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 2 and "<script" not in page


@pytest.mark.long
def test_names_that_would_break_a_line_or_act_on_a_terminal_are_spelled_out(tmp_path: Path) -> None:
    name = "two\nlines \x1b[31mred \u202egpj.jpg"
    draw(tmp_path / "photos" / name, 1)
    (tmp_path / "photos" / "zero\n\x1b[31m.jpg").write_bytes(b"")
    rows = f'{{"file_name": {json.dumps(name)}, "title": "a \\u001b[31mtitle", "score": 9, "rank": "first"}}'
    (tmp_path / "photos" / "metadata.jsonl").write_text(rows)
    done("index", "photos", cwd=tmp_path, code=3)

    (table,) = done("search", "stripes", cwd=tmp_path).stdout.splitlines()
    paths = done("search", "stripes", "--paths", cwd=tmp_path).stdout
    ended = done("search", "stripes", "--print0", cwd=tmp_path).stdout
    (failed,) = done("failures", cwd=tmp_path).stdout.splitlines()
    (item,) = run_json("search", "stripes", cwd=tmp_path)["items"]

    place = str(tmp_path / "photos" / name)
    assert table.endswith(r"two\nlines \x1b[31mred \u202egpj.jpg  a \x1b[31mtitle")
    assert (paths, ended) == (f"{place}\n", f"{place}\0")
    assert failed.endswith("zero\\n\\x1b[31m.jpg\tempty file")
    assert (item["rank"], item["path"], item["score"] < 1) == (1, place, True)


@pytest.mark.long
@pytest.mark.parametrize("form", ["--json", "--paths", "-k3"])
def test_a_full_disk_under_the_output_is_one_sentence(sample_gallery: Path, form: str) -> None:
    line = f"{sys.executable} -m eyespot.cli search windmill -g {sample_gallery} {form} > /dev/full"

    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True)

    assert ran.returncode == 1
    *_, last = ran.stderr.splitlines()
    assert last.startswith("eyespot: what was found or made cannot be written (no space left on device); make room and")


@pytest.mark.long
@pytest.mark.parametrize("streams", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_closed_streams_lead_nowhere(sample_gallery: Path, streams: str) -> None:
    line = f"{sys.executable} -m eyespot.cli search windmill -g {sample_gallery} -k 1 --no-teach --paths {streams}"

    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True)

    assert (ran.returncode, ran.stdout == "", ran.stderr) == (0, ">&- " in f"{streams} ".replace("2>", ""), "")


@pytest.mark.long
def test_names_are_found_in_a_locale_that_is_not_utf_8(tmp_path: Path) -> None:
    draw(tmp_path / "photos" / "Zürich.jpg", 1)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    indexed = run_process("index", "photos", "-g", "g", cwd=tmp_path, **ascii_only)

    assert indexed.returncode == 0
    assert done("search", "stripes", "-g", "g", "--paths", cwd=tmp_path).stdout == f"{tmp_path}/photos/Zürich.jpg\n"


@pytest.mark.parametrize(
    "words",
    [
        "a windmill --where 'categry = 1'",
        "a windmill --where '1=1); DROP TABLE items; --'",
        "a windmill --label category",
        "a windmill --near here",
        "a windmill --after soon",
        "a windmill --json --paths",
        "a windmill --paths --print0",
        "a windmill --where '   '",
        "caf\udce9",
        "a windmill --label title=caf\udce9",
        "a windmill -k 0",
        "",
        "''",
        "--after 2021 --rerank encoder:starter",
        "--after 2000 --why",
        "./not-there.jpg",
        "https://example.org/a.jpg",
        "a windmill -e hf:no/such",
        "a windmill --by both --neighbours 3",
        "a windmill --by both --rerank-local chamfer",
        "a windmill --by both --adapt nowhere",
        "a windmill --index nmslib",
        "--image torn.jpg",
        "a windmill -g nowhere",
    ],
)
def test_what_cannot_be_searched_is_one_sentence(words: str, sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "torn.jpg").write_bytes(photo("IndiaGate").read_bytes()[:2000])

    refuses("search", "-g", sample_gallery, *shlex.split(words), cwd=tmp_path)


def test_a_filter_that_nothing_passes_is_one_sentence(sample_gallery: Path) -> None:
    refuses("search", "a windmill", "--where", "category = 'no such'", "-g", sample_gallery, code=4)


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["a", "windmill"], "a windmill"),
        (["2:a", "windmill", "-", "people"], "2:a windmill - people"),
        (["a", "windmill", "-k", "3", "+", "a", "river"], "a windmill + a river"),
        (["--", "-", "people"], "- people"),
        (["- people"], "- people"),
    ],
)
def test_a_query_needs_no_quotes(sample_gallery: Path, words: list[str], query: str) -> None:
    shown = done("search", "-g", sample_gallery, "--json", *words)

    assert json.loads(shown.stdout)["query"] == query


DATES = {"early.jpg": "2021:04:30 23:59:59", "may.jpg": "2021:05:03 10:00:00", "late.jpg": "2022:07:01 12:00:00"}
ZURICH = {1: "N", 2: (47.0, 22.0, 0.0), 3: "E", 4: (8.0, 32.0, 0.0)}


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photos with dates, the last one taken in Zurich, and one without any."""
    folder = tmp_path_factory.mktemp("dated")
    (folder / "photos").mkdir()
    for seed, (name, when) in enumerate(DATES.items()):
        exif = Image.Exif()
        exif.get_ifd(0x8769)[36867] = when
        exif.get_ifd(0x8825).update(ZURICH if name == "late.jpg" else {})
        Image.new("RGB", (60, 40), (80 * seed, 40, 90)).save(folder / "photos" / name, exif=exif)
    draw(folder / "photos" / "undated.jpg", 9)
    index_gallery(folder / "gallery", folder / "photos")
    return folder / "gallery"


def test_filters_without_words_list_by_date(dated: Path, tmp_path: Path) -> None:
    line = ("search", "--where", "width > 0", "-g", dated)
    items = run_json(*line)["items"]
    table = done(*line, "--html", tmp_path / "sheet.html").stdout.splitlines()
    hits = eyespot.open(dated).search(where="width > 0", k=2)

    assert [(item["rank"], item["score"]) for item in items] == [(n, None) for n in range(1, 5)]
    assert [Path(item["path"]).stem for item in items] == ["late", "may", "early", "undated"]
    assert table[0].startswith("   1  2022-07-01  ") and table[3].startswith("   4           –  ")
    assert "2022-07-01" in (tmp_path / "sheet.html").read_text()
    assert [Path(hit.path).stem for hit in hits] == ["late", "may"]


@pytest.mark.long
def test_no_good_match_is_told_and_a_good_one_is_not_doubted(sample_gallery: Path) -> None:
    bad = ["piano", "a photo of a trumpet", "tomato", "people dancing in a club"]
    good = ["a windmill", "giraffe", "hammer", "a photo of an owl"]

    doubted = [words for words in bad + good if "no good match" in done("search", words, "-g", sample_gallery).stderr]

    assert doubted == bad


def test_a_search_of_a_small_gallery_loads_nothing_heavy(sample_gallery: Path) -> None:
    script = (
        "import sys\nfrom eyespot.cli import app\n"
        f"app(['search', 'a windmill', '-g', {str(sample_gallery)!r}], standalone_mode=False)\n"
        "print(sorted({'numba', 'torch', 'duckdb', 'pandas', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert ran.stderr.splitlines()[-1] == "[]"


# -- pictures in a terminal: which one says that it shows some, and what is sent decodes to the strip ------------------


@pytest.mark.parametrize(
    ("shell", "known"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "xterm-256color"}, None),
        ({}, None),
        ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux-1"}, None),
    ],
)
def test_a_terminal_says_by_its_environment_how_it_shows_pictures(shell: dict[str, str], known: str | None) -> None:
    assert protocol(shell) == known


def size(png: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(png)) as picture:
        return picture.size


def kitty_picture(text: str) -> bytes:
    pieces = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", text)
    assert [head.rsplit("m=", 1)[1] for head, _ in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
    assert all(len(piece) <= 4096 for _, piece in pieces)
    return base64.b64decode("".join(piece for _, piece in pieces))


def test_the_strip_holds_as_many_pictures_as_fit_and_both_protocols_carry_it_whole() -> None:
    paths = sorted(map(str, Path(sample.photos()).glob("*.jpg")))[:6]
    wide, narrow = strip(["nowhere.jpg", *paths], 2000), strip(paths, 10)
    assert wide is not None and narrow is not None and strip(["nowhere.jpg"], 2000) is None

    with Image.open(paths[0]) as first:
        one = (round(first.width * HEIGHT / first.height), HEIGHT)
    assert size(narrow) == one and one[0] < size(wide)[0] <= 2000
    assert kitty_picture(as_kitty(wide)) == wide
    head, _, data = as_iterm(wide).removeprefix("\x1b]1337;File=").removesuffix("\x07").partition(":")
    assert base64.b64decode(data) == wide and f"size={len(wide)}" in head


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of Unix")
@pytest.mark.parametrize(
    ("term", "more", "shown"),
    [("xterm-kitty", (), True), ("xterm-kitty", ("--no-pictures",), False), ("dumb", (), False)],
)
def test_a_search_shows_its_hits_where_the_terminal_can(
    term: str, more: tuple[str, ...], shown: bool, tmp_path: Path
) -> None:
    import pty

    done("index", draw_photos(tmp_path / "photos", 3), cwd=tmp_path)
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "eyespot.cli", "search", "stripes", "-k", "2", *more]
    text = b""
    with subprocess.Popen(
        line, stdout=theirs, cwd=tmp_path, stderr=subprocess.PIPE, env=environment(TERM=term)
    ) as process:
        os.close(theirs)
        try:
            while read := os.read(ours, 65536):
                text += read
        except OSError:  # its end on Linux
            pass
        assert process.wait(120) == 0
    assert (b"\x1b_G" in text) is shown and text.count(b".png") + text.count(b".jpg") == 2


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_gallery(tmp_path_factory.mktemp("feedback"), 24)


@pytest.fixture
def gallery(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "gallery"))


def search(gallery: Path, *words: object) -> Any:
    return run_json("search", "stripes", "-k", 24, "-g", gallery, *words)


def record(gallery: Path, image: str, key: str, who: str, query: Query = Query.words("stripes")) -> None:
    with Judgements(gallery / "ledger.sqlite") as judgements:
        digest = judgements.enter([query])[query]
        judgements.record([Judgement(digest, image, f"person:{who}", "p", VERDICTS[key], at=time.time())])


def test_the_record_moves_the_search_where_it_is_wanted(gallery: Path) -> None:
    first, *_, last = (item["id"] for item in search(gallery)["items"])
    record(gallery, last, "y", "ada")
    record(gallery, first, "n", "bob")

    assert "moved" not in search(gallery)
    assert search(gallery, "--feedback", "everybody")["moved"] == {"yes": 1, "no": 1, "missing": 0, "by": "2 people"}
    assert search(gallery, "--feedback", "ada")["moved"] == {"yes": 1, "no": 0, "missing": 0, "by": "ada"}
    both = search(gallery, "--feedback", "person:ada", "--no", last)
    assert both["moved"] == {"yes": 0, "no": 1, "missing": 0, "by": "ada and this line"}
    assert last not in {item["id"] for item in both["items"]}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("stripes --yes nothing", 2),
        ("stripes --feedback ' '", 2),
        ("--feedback everybody", 2),
        ("stripes --feedback --json", 2),
        ("stripes --feedback everybody --calibrate 30 --rerank encoder:starter", 2),
        ("stripes --feedback everybody --by words", 2),
        ("stripes --feedback eve", 4),
    ],
)
def test_what_cannot_be_moved_is_refused_with_the_way_out(gallery: Path, words: str, code: int) -> None:
    refuses("search", "-g", gallery, *shlex.split(words), code=code)


def test_a_photo_has_a_rank_path_or_name(gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank is that of the search before, whichever words it had."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    refuses("search", "stripes", "-g", gallery, "--yes", "3", code=2)
    items = search(gallery)["items"]

    for name in ("24", items[-1]["path"], Path(items[-1]["path"]).name, items[-1]["id"]):
        search(gallery)
        assert search(gallery, "--yes", name)["items"][0]["id"] == items[-1]["id"]
    refuses("search", "stripes", "-g", gallery, "--yes", "25", code=2)


def test_two_encoders_are_compared_by_the_verdicts_in_their_gallery(made: Path, gallery: Path) -> None:
    """Side by side in one gallery; verdicts in the order of the first make that one right, whatever the other says."""
    other = second_encoder()
    done("compare-encoders", "-e", "starter", "-e", other, "-g", gallery, code=2)
    index_gallery(gallery, made.parent / "photos", encoders=(other,))
    found = {one: [item["id"] for item in search(gallery, "-e", one)["items"]] for one in ("starter", other)}
    order = [item["id"] for item in search(gallery, "-e", "starter", "--by", "look")["items"]]
    search(gallery, "--yes", order[0], "--no", order[-1])
    refuses("compare-encoders", "-e", "starter", "-e", other, "-g", gallery, code=4)
    for place, image in enumerate(order):
        record(gallery, image, "y" if place < 6 else "n", "ada")
    example = Path(shutil.copy(next((made.parent / "photos").iterdir()), gallery / "gone.jpg"))
    record(gallery, order[0], "y", "ada", Query("q", (Term(1.0, image=example),)))
    example.unlink()
    words = ("-g", gallery, "--samples", 100)

    report = run_json("compare-encoders", "-e", "starter", "-e", other, *words)
    (pair,) = [one for one in report["comparisons"] if one["measure"].startswith("AP")]
    assert all(len(one) == 24 for one in found.values())
    assert pair["baseline"] == 1 and 0 < pair["mean"] <= 1 and report["queries"] == 1
    ran = done("compare-encoders", "-e", "starter", "-e", other, *words)
    assert "verdicts" in ran.stdout and ran.stderr.count("gone.jpg") == 1
    assert "no interval" in ran.stdout and "no difference" in ran.stdout  # one query shows none, however large it is
    assert "name two" in refuses("compare-encoders", "-e", "starter", "-e", "starter", "-g", gallery)
    refuses("compare-encoders", "-e", "starter", "-g", gallery)


# -- `--by`: titles and names find photos, each hit says why, and `eval` may read --------------------------------------


def found_in(gallery: Path, *words: object) -> Any:
    return run_json("search", *words, "-g", gallery)


def test_words_alone_find_nothing_else_and_obey_filters(sample_gallery: Path) -> None:
    found = found_in(sample_gallery, "gate", "--by", "words", "-k", 50)
    india = found_in(sample_gallery, "gate", "--by", "words", "--where", "path LIKE '%India%'")

    assert found["by"] == "words" and 0 < len(found["items"]) < 50
    assert all("gate" in json.dumps([item["path"], item.get("title")]).lower() for item in found["items"])
    assert ["India" in item["path"] for item in india["items"]] == [True]
    for options in ((), ("--rerank", "person:ada", "--calibrate", "10")):
        none = done("search", "zyzzyva", "--by", "words", *options, "-g", sample_gallery, code=4)
        assert none.stdout == "" and "--by look" in none.stderr


# -- names that are given ---------------------------------------------------------------------------------------


def test_names_are_given_listed_used_and_removed(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    (tmp_path / "gates.csv").write_text("latin,english\nporta maxima,gate\none\n")
    wanted = ("search", "porta maxima", "--by", "words", "-g", gallery, "-k", 3)
    done(*wanted, code=4)

    given = done("names", tmp_path / "gates.csv", "-g", gallery, code=3)
    found = done(*wanted)

    assert given.stdout == "gates.csv: 2 names of 1 taxa\n"
    assert "gates.csv:3 has 1 fields where the header has 2" in given.stderr
    assert "Gate" in found.stdout and "porta maxima = gate, by gates.csv" in found.stderr
    assert run_json("names", "-g", gallery)["files"] == [{"name": "gates.csv", "taxa": 1, "names": 2}]
    done("names", "--remove", "gates.csv", "-g", gallery)
    done(*wanted, code=4)


@pytest.mark.parametrize("words", ["empty.csv", "--remove other.csv", "empty.csv one/empty.csv"])
def test_what_is_no_table_of_names_is_refused(words: str, sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "empty.csv").write_text("a,b")

    refuses("names", *words.split(), "-g", sample_gallery, cwd=tmp_path)


@pytest.mark.long
def test_eval_reads_words_when_asked(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("id\ttext\nq1\tBrandenburg Gate\n")
    items = found_in(sample_gallery, "Brandenburg Gate", "--by", "words", "-k", 2)["items"]
    (tmp_path / "qrels.txt").write_text("".join(f"q1 0 {item['id']} 1\n" for item in items))
    line = ("eval", "own", "--data", tmp_path, "-g", sample_gallery, "--json")

    look, both = done(*line), done(*line, "--by", "both", "--out", tmp_path / "out")

    assert "words and look" in both.stdout and "words and look" not in look.stdout
    (written,) = (tmp_path / "out").rglob("run*.parquet")
    assert read_run(written).header["by"] == "both"
