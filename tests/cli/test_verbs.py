"""The other verbs, the settings they share, what they log, and how they end."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import eyespot
from eyespot import sample
from eyespot.cli import app
from eyespot.cli._verbs import PANELS, VERBS
from eyespot.storage.digests import file_blake2b, rewriting
from tests.cli.conftest import done, run_json
from tests.command import environment, refuses, run_process
from tests.pages import ROOT
from tests.worlds import draw, draw_photos, make_gallery
from tests.worlds.adapters import checkpoint
from tests.worlds.servers import Double, error

HEAVY = {"numpy", "pyarrow", "onnxruntime", "duckdb", "PIL", "numba", "torch"}
OTHERS = {"eyespot.cli.build", "eyespot.cli.eval", "eyespot.llms"}


@pytest.mark.parametrize(
    ("words", "shown", "absent"),
    [
        (["--help"], ["\n  demo ", "\n  index ", "\n  search ", "\n  doctor ", "\n  encoders "], HEAVY),
        (["--verbose", "failures", "-h"], ["Usage: eyespot failures [OPTIONS]"], OTHERS),
    ],
)
def test_help_loads_nothing_heavy(words: list[str], shown: list[str], absent: set[str], tmp_path: Path) -> None:
    script = (
        f"import sys\nfrom eyespot.cli import main\nsys.argv = ['eyespot', *{words}]\n"
        f"try: main()\nexcept SystemExit: pass\nprint(sorted({absent} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path).stdout

    assert all(text in printed for text in shown)
    assert printed.splitlines()[-1] == "[]"


@pytest.mark.long
def test_every_verb_of_the_table_is_there_and_its_line_is_whole() -> None:
    shown = CliRunner().invoke(app, ["--help"], prog_name="eyespot").stdout
    for verb in VERBS:
        assert CliRunner().invoke(app, [verb, "--help"], prog_name="eyespot").exit_code == 0, verb
    lines = [f"  {name:<{max(map(len, verbs))}}  {about}" for verbs in PANELS.values() for name, about in verbs.items()]
    assert set(lines) <= set(shown.splitlines())


def test_settings_go_from_option_to_environment_to_file_to_default(tmp_path: Path) -> None:
    """And a tilde is the home folder."""
    photos, env = draw_photos(tmp_path / "photos"), {"EYESPOT_GALLERY": "~/from-environment", "HOME": str(tmp_path)}
    (tmp_path / "eyespot.toml").write_text(
        'gallery = "~/from-file"\n[search]\nk = 1\n[compare-encoders]\nsamples = 9\n'
    )

    done("index", photos, cwd=tmp_path, HOME=str(tmp_path))
    done("index", photos, cwd=tmp_path, **env)
    done("index", photos, "-g", "from-option", cwd=tmp_path, **env)
    found = done("search", "stripes", "--paths", cwd=tmp_path, HOME=str(tmp_path))

    assert {place.name for place in tmp_path.glob("from-*")} == {"from-file", "from-environment", "from-option"}
    assert len(found.stdout.splitlines()) == 1 and "unknown key" not in found.stderr


@pytest.mark.parametrize(
    "text",
    [
        "gallery = ",
        'galery = "x"',
        "[search]\nkk = 2",
        "search = 5",
        "[[search]]",
        "import = 3",
        "[search]\nk = [1]",
        "[search.k]\na = 1",
        "[search]\nk = 'x'",
    ],
)
def test_settings_that_cannot_be_meant_are_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "eyespot.toml").write_text(text)

    refuses("search", "stripes", cwd=tmp_path)


def test_alone_it_says_what_is_here_and_how_to_begin_and_a_gallery_at_home_is_found_from_anywhere(
    tmp_path: Path,
) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    draw_photos(home / "Pictures", 3)
    away.mkdir()
    env = {"HOME": str(home)}
    begun = [done(cwd=place, **env).stdout for place in (home / "Pictures", away)]
    assert "has 3 pictures" in begun[0] and "has no pictures" in begun[1]

    refuses("index", cwd=away, **env)
    refuses("index", cwd=home / "Pictures", **env)  # nobody at a terminal can be asked
    done("index", ".", cwd=home / "Pictures", **env)

    found = done("search", "stripes", "--paths", "-k", "1", cwd=away, **env)
    assert str(home / "Pictures" / ".eyespot") in found.stderr and found.stdout.startswith(str(home / "Pictures"))
    assert str(home / "Pictures" / ".eyespot") in done(cwd=away, **env).stdout
    refuses("index", cwd=away, **env)  # a line that writes names its gallery


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of Unix")
@pytest.mark.parametrize(("answer", "code", "made"), [("\n", 0, True), ("n\n", 1, False)])
def test_at_a_terminal_index_offers_this_folder(answer: str, code: int, made: bool, tmp_path: Path) -> None:
    import pty

    draw_photos(tmp_path, 2)
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "eyespot.cli", "index"]
    with subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment()) as process:
        os.write(ours, answer.encode())
        shown = b""
        while b"Index 2 pictures" not in shown:
            shown += os.read(ours, 4096)
        assert process.wait(120) == code
    assert (tmp_path / ".eyespot").exists() is made


OFFERS = ["--remove disk", "-g my\\ own", "-g x --remove disk"]  # the folder with the gallery that was named


@pytest.mark.parametrize("words", ["photos letter.doc", "photos nope", "photos nope --dry-run", *OFFERS])
def test_what_cannot_be_indexed_leaves_nothing_behind(words: str, tmp_path: Path) -> None:
    (tmp_path / "letter.doc").write_text("dear")
    draw_photos(tmp_path / "photos", 1)

    refuses("index", *shlex.split(words), cwd=tmp_path)

    assert not (tmp_path / ".eyespot").exists()


def test_a_newer_gallery_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "gallery.toml").write_text("format = 99\n")

    refuses("search", "a lion", "-g", tmp_path, code=1)


def test_failures_are_listed_with_their_reason_and_exit_code_three(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos")
    (photos / "zero.jpg").write_bytes(b"")

    indexed, again = done("index", photos, cwd=tmp_path, code=3), done("index", cwd=tmp_path, code=3)
    table = done("failures", cwd=tmp_path)
    (photos / "torn.jpg").write_bytes(b"\xff\xd8 no more")
    more = done("index", cwd=tmp_path, code=3)
    (photos / "torn.jpg").unlink()
    done("index", cwd=tmp_path, code=3)

    assert "1 could not be read; the rest is indexed; see them with: eyespot failures" in indexed.stderr
    assert "0 of them new" in again.stderr and "2 could not be read, 1 of them new" in more.stderr
    assert run_json("failures", cwd=tmp_path) == [{"path": str(photos / "zero.jpg"), "reason": "empty file"}]
    assert table.stdout == f"{photos / 'zero.jpg'}\tempty file\n"


def test_a_setting_for_indexing_does_not_say_who_made_imported_vectors(tmp_path: Path) -> None:
    done("export", "npy", "out", "-g", make_gallery(tmp_path), cwd=tmp_path)
    (tmp_path / "eyespot.toml").write_text('encoder = "starter"')
    refuses("import", "npy", "out", "-g", "one", cwd=tmp_path)
    (tmp_path / "eyespot.toml").write_text('[import]\nencoder = "starter"')

    done("import", "npy", "out", "-g", "two", cwd=tmp_path)


def test_the_photos_of_a_folder_that_is_away_are_kept_until_it_is_taken_out(tmp_path: Path) -> None:
    first, second = draw_photos(tmp_path / "first"), tmp_path / "my disk"
    draw(second / "other.jpg", 20)
    done("index", first, second, cwd=tmp_path)
    second.rename(tmp_path / "away")

    away = done("index", second, cwd=tmp_path)
    refuses("index", "--remove", second, "--dry-run", cwd=tmp_path)
    taken = run_json("index", "--remove", second, cwd=tmp_path)

    assert "its pictures are kept" in away.stderr and f"--remove '{second}'" in away.stderr
    assert taken["pictures"] == 4


def test_a_dry_run_tells_what_is_new_or_changed_and_writes_nothing(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos")
    (line,) = done("index", photos, "--dry-run", cwd=tmp_path).stdout.splitlines()
    assert "4 pictures (" in line and "4 of them new" in line and not (tmp_path / ".eyespot").exists()
    done("index", photos, cwd=tmp_path)
    draw(photos / "0.jpg", 17)
    draw(photos / "new.jpg", 18)
    (photos / "away").symlink_to("nowhere")

    report = run_json("index", "--dry-run", cwd=tmp_path)

    assert report.pop("bytes") == sum(place.stat().st_size for place in photos.glob("*.jpg"))
    assert report.items() >= {"pictures": 5, "new": 1, "changed": 1, "unreadable": 1, "files": 6}.items()


@pytest.mark.long
def test_what_nobody_foresaw_is_one_sentence_too(tmp_path: Path) -> None:
    script = (
        "import sys; from eyespot import cli\n"
        "def stumble(): raise ZeroDivisionError('one\\ntwo')\n"
        "cli.app.command('stumble')(stumble)\n"
        "sys.argv = ['eyespot', *sys.argv[1:], 'stumble']\ncli.main()"
    )
    plain, debug = (
        subprocess.run([sys.executable, "-c", script, *more], capture_output=True, text=True)
        for more in ([], ["--debug"])
    )

    assert (plain.returncode, debug.returncode) == (1, 1)
    assert plain.stderr.startswith("eyespot: eyespot stumbled over ZeroDivisionError: one two; run the same line with")
    assert len(plain.stderr.splitlines()) == 1 and "Traceback" in debug.stderr


def test_doctor_knows_versions_encoders_and_a_pinned_blas(sample_gallery: Path) -> None:
    report = run_json("doctor", "-g", sample_gallery, OPENBLAS_CORETYPE="Haswell")
    assert f'next: eyespot search "a heron" -g "{sample_gallery}"' in done("doctor", "-g", sample_gallery).stdout

    assert {"eyespot", "python", "numpy", "onnxruntime", "torch"} <= report["versions"].keys()
    assert {"starter", "open_clip", "hf", "onnx"} <= report["encoders"].keys()
    assert "OPENBLAS_CORETYPE=Haswell" in report["warnings"][0] and report["advice"] == []
    spaces = [(space["encoder"], space["rows"], space["status"]) for space in report["spaces"]]
    assert spaces == [("starter", 208, "agrees")]


@pytest.mark.parametrize(("width", "more"), [(16, 0.2), (8, 0)])
def test_doctor_finds_vectors_that_no_longer_fit_their_encoder(width: int, more: float, tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path)
    (note,) = (gallery / "shards" / "00000").glob("starter-*.toml")
    lines = note.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("fingerprints"))
    moved = [[value + more for value in row[:width]] for row in json.loads(lines[at].partition("=")[2])]
    with rewriting(note.parent, [note.name]) as digests:  # else it would count as damaged
        note.write_text("\n".join([*lines[:at], f"fingerprints = {moved}", *lines[at + 1 :]]))
        digests[note.name] = file_blake2b(note)

    said = done("doctor", "-g", gallery, code=4).stdout
    assert ("differs: the encoder's vectors have another length" in said) is (width == 8) and "differs" in said
    assert "next: index with starter into a new gallery" in said


@pytest.mark.long
def test_the_demo_writes_a_page_to_look_at_and_prints_five_searches(tmp_path: Path) -> None:
    searches = run_json("demo", "--out", tmp_path / "there", cwd=tmp_path)
    assert done("demo", "--photos").stdout == f"{sample.photos()}\n"

    assert len(searches) == 5 and all(len(one["items"]) == 5 for one in searches)
    page = (tmp_path / "there" / "demo.html").read_text()
    assert page.count("data:image/jpeg") >= 25 and "CC0" in page
    assert [place.name for place in tmp_path.iterdir()] == ["there"]


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error(sample_gallery: Path) -> None:
    line = f"{sys.executable} -m eyespot.cli search cat -k 200 --by look -g {sample_gallery} | head -n 1"

    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True)

    # Whether the search still says what its scores mean depends on which of the two ends first
    assert len(ran.stdout.splitlines()) == 1 and not re.search("rror|pipe|stumbled|Traceback", ran.stderr)


INTERRUPTED = """
import os, signal, sys
def hear(event, values):
    if event == "os.mkdir" and ".00001.part" in str(values):  # the second of two shards begins
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hear)
from eyespot.cli import main
main()
"""


@pytest.mark.long
def test_interrupted_means_130_and_the_next_run_goes_on(tmp_path: Path) -> None:
    photos, gallery = tmp_path / "photos", tmp_path / "gallery"
    photos.mkdir()
    for place in sorted(sample.photos().glob("*.jpg"))[::3]:
        shutil.copy(place, photos)
    # a suite started in a shell's background inherits an ignored SIGINT; a user's terminal does not
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    line = [sys.executable, "-c", INTERRUPTED, "index", str(photos), "-g", str(gallery)]
    ran = subprocess.run(line, env=environment(), capture_output=True, text=True, preexec_fn=heeding)
    report = run_json("index", "-g", gallery)

    assert ran.returncode == 130
    assert ran.stderr == "eyespot: interrupted; what is done is kept: run the same line again and it goes on there\n"
    assert report["pictures"] == 70 and 0 < report["embedded"] < 70


@pytest.mark.long
def test_a_hub_that_cannot_be_reached_points_to_starter(tmp_path: Path, child_env: dict[str, str]) -> None:
    photos, stub = draw_photos(tmp_path / "photos"), child_env["PYTHONPATH"]

    result = run_process("index", photos, "-e", "hf:openai/clip-vit-base-patch32", cwd=tmp_path, PYTHONPATH=stub)

    assert result.returncode == 1
    assert "starter" in result.stderr and len(result.stderr.splitlines()) == 1


def test_photos_indexed_into_an_imported_gallery_leave_the_imported_space_searched(tmp_path: Path) -> None:
    done("export", "npy", "out", "-g", make_gallery(tmp_path), cwd=tmp_path)
    (tmp_path / "out" / "space.toml").unlink()  # as of another program
    done("import", "npy", "out", "-e", "starter", "-g", "imported", cwd=tmp_path)
    done("index", draw_photos(tmp_path / "more", 2), "-g", "imported", cwd=tmp_path)
    done("index", "-g", "imported", cwd=tmp_path)
    found = done("search", "stripes", "-g", "imported", "--json", cwd=tmp_path)

    assert len(json.loads(found.stdout)["items"]) == 4
    assert "imported" in found.stderr and "not searched: 2" in found.stderr


def test_codes_are_made_for_imported_vectors_alone(tmp_path: Path) -> None:
    done("export", "npy", "out", "-g", make_gallery(tmp_path), cwd=tmp_path)
    done("import", "npy", "out", "-e", "starter", "-g", "imported", "--copy", cwd=tmp_path)
    done("index", "--codes", "-g", "imported", cwd=tmp_path)

    assert list(tmp_path.glob("imported/shards/*/*.codes.npy"))


def test_the_package_runs_as_a_module() -> None:
    """For those whose shell does not find the command."""
    line = [sys.executable, "-m", "eyespot"]
    version, wrong = (subprocess.run([*line, word], capture_output=True, text=True) for word in ("--version", "serch"))

    assert version.returncode == 0 and version.stdout == f"eyespot {eyespot.__version__}\n"
    assert wrong.returncode == 2 and "Did you mean 'search'" in wrong.stderr


KEY, QUERY = "key-that-nobody-may-see", "a heron by the reeds"


@pytest.fixture(scope="module")
def one_photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("openai")
    home = tmp_path_factory.mktemp("verbose")
    return make_gallery(home, 1)


def stderr_of(one_photo: Path, ledger: Path, *options: str) -> str:
    """Of a search whose first request is turned away for no time."""
    search = ("search", QUERY, "-g", one_photo, "--rerank", "openai:tiny", "--depth", 1, "--ledger", ledger)
    with Double([error(429, f"{QUERY} {KEY}", Retry_After="0")]) as server:
        return done(*options, *search, OPENAI_BASE_URL=server.url, OPENAI_API_KEY=KEY).stderr


def test_retries_are_shown_and_neither_the_prompt_nor_the_key(one_photo: Path, tmp_path: Path) -> None:
    lines = stderr_of(one_photo, tmp_path / "l.sqlite", "--verbose")

    assert "eyespot.llms.flow_control: tiny: the server answers 429; retry 1 of 5 in 0.0 s" in lines
    assert "eyespot.llms.client: tiny /chat/completions: 100 tokens in, 1 tokens out" in lines
    assert KEY not in lines and QUERY not in lines


def test_a_search_is_in_the_query_log_without_its_words(one_photo: Path) -> None:
    lines = done("--verbose", "search", QUERY, "-g", one_photo).stderr

    assert "eyespot.search.query_log: search by 1 terms took " in lines and QUERY not in lines


def test_nothing_is_logged_without_the_option(one_photo: Path, tmp_path: Path) -> None:
    lines = stderr_of(one_photo, tmp_path / "l.sqlite")

    assert "eyespot.llms" not in lines and "429" not in lines and "2 calls" in lines


# -- what the default install does --------------------------------------------------------------------------------


WITH, WITHOUT = "with", "without"


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The environment of a process with numba, and of one whose Python refuses to import it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['numba'] = sys.modules['llvmlite'] = None\n")
    return {WITH: {}, WITHOUT: {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}}


def python(env: dict[str, str], script: str, *words: object) -> Any:
    line = [sys.executable, "-c", script, *map(str, words)]
    return json.loads(subprocess.run(line, env=os.environ | env, capture_output=True, text=True, check=True).stdout)


@pytest.mark.long
def test_numba_is_really_missing(blocked: dict[str, dict[str, str]]) -> None:
    """Else the other tests would compare a thing with itself."""
    script = "from eyespot.kernels import compiled; print(str(compiled()).lower())"
    assert [python(env, script) for env in blocked.values()] == [True, False]
    (line,) = (line for line in run_process("doctor", **blocked[WITHOUT]).stdout.splitlines() if "[fast]" in line)
    assert line.startswith("advice: the extra [fast] brings compiled kernels") and line.endswith("[fast]'")


@pytest.mark.long
def test_a_gallery_is_indexed_and_searched_alike(tmp_path: Path, blocked: dict[str, dict[str, str]]) -> None:
    """Words, a QuARI adapter, and the codes that are written beside the vectors."""
    photos, adapter = draw_photos(tmp_path / "photos"), checkpoint(tmp_path / "quari", 512, "starter")
    for name, env in blocked.items():
        run_process("index", photos, "-g", tmp_path / name, "--codes", **env)
    vectors, codes = ([next((tmp_path / name).rglob(f"starter-*{end}")) for name in blocked]
                      for end in (".npy", ".codes.npy"))  # fmt: skip

    for words in (["search", "a heron"], ["search", "a heron", "--adapt", adapter]):
        items = []
        for name, env in blocked.items():
            text = run_process(*words, "-g", tmp_path / name, "--json", "-k", 5, **env).stdout
            items.append([(item["id"], round(item["score"], 12)) for item in json.loads(text)["items"]])
        assert items[0] and items[0] == items[1]

    assert codes[0].read_bytes() == codes[1].read_bytes()
    assert np.array_equal(*(np.load(next(file.parent.glob("starter-*.match.npy"))) for file in vectors))


@pytest.mark.long
def test_a_search_of_many_names_the_fast_extra(tmp_path: Path, blocked: dict[str, dict[str, str]]) -> None:
    script = """if True:
        import json, sys
        from eyespot.search import collection
        collection.MANY_ROWS = int(sys.argv[2])
        print(json.dumps(collection.Collection(sys.argv[1]).search("a heron", k=1).notes))
    """
    gallery = tmp_path / "gallery"
    run_process("index", draw_photos(tmp_path / "photos"), "-g", gallery)

    (compiled, many), (_, few) = ([python(env, script, gallery, most) for env in blocked.values()] for most in (2, 99))

    assert not any("[fast]" in note for note in [*compiled, *few])
    assert sum("compiled kernels search" in note and note.endswith("[fast]'") for note in many) == 1
