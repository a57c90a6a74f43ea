"""The other verbs, the settings they share, and how they end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eyespot import sample
from eyespot.cli import app
from eyespot.cli._verbs import VERBS, app_of
from eyespot.storage.digests import file_blake2b, rewriting
from tests.command import run_eyespot
from tests.worlds import draw


def some_photos(folder: Path, count: int = 4) -> Path:
    for seed in range(count):
        draw(folder / f"{seed}.jpg", seed)
    return folder


def test_help_names_every_verb_and_loads_nothing_heavy() -> None:
    script = (
        "import sys\nfrom eyespot.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'pyarrow', 'onnxruntime', 'duckdb', 'PIL', 'numba', 'torch'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout

    for verb in ("demo", "index", "failures", "search", "doctor", "import", "export", "encoders"):
        assert f"\n  {verb} " in shown
    assert shown.splitlines()[-1] == "[]"


def test_a_verb_is_loaded_alone(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom eyespot.cli import main\n"
        "sys.argv = ['eyespot', '--verbose', 'failures', '-h']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'eyespot.cli.build', 'eyespot.cli.eval', 'eyespot.llms'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path).stdout

    assert "Usage: eyespot failures [OPTIONS]" in shown
    assert shown.splitlines()[-1] == "[]"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_alone_is_the_verb_among_all(verb: str) -> None:
    alone, among = (CliRunner().invoke(each, [verb, "--help"], prog_name="eyespot") for each in (app_of([verb]), app))

    assert alone.exit_code == 0
    assert alone.stdout == among.stdout


@pytest.mark.long
def test_two_lines_from_a_folder_of_photos_to_a_picture(tmp_path: Path) -> None:
    some_photos(tmp_path / "photos")

    indexed = run_eyespot("index", "photos", cwd=tmp_path)
    found = run_eyespot("search", "stripes", "--paths", cwd=tmp_path / "photos")

    assert (indexed.returncode, indexed.stdout) == (0, "")
    assert len(found.stdout.splitlines()) == 4
    assert (tmp_path / ".eyespot" / "gallery.toml").is_file()


@pytest.mark.long
def test_settings_go_from_option_to_environment_to_file_to_default(tmp_path: Path) -> None:
    photos = some_photos(tmp_path / "photos")
    (tmp_path / "eyespot.toml").write_text('gallery = "from-file"\n\n[search]\nk = 1\n')

    run_eyespot("index", photos, cwd=tmp_path)
    run_eyespot("index", photos, cwd=tmp_path, EYESPOT_GALLERY="from-environment")
    run_eyespot("index", photos, "-g", "from-option", cwd=tmp_path, EYESPOT_GALLERY="from-environment")
    found = run_eyespot("search", "stripes", "--paths", cwd=tmp_path)

    assert {place.name for place in tmp_path.glob("from-*")} == {"from-file", "from-environment", "from-option"}
    assert len(found.stdout.splitlines()) == 1


def test_a_broken_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "eyespot.toml").write_text("gallery = ")

    result = run_eyespot("doctor", cwd=tmp_path)

    assert (result.returncode, "eyespot.toml cannot be read" in result.stderr) == (2, True)


@pytest.mark.long
def test_failures_are_listed_with_their_reason_and_exit_code_three(tmp_path: Path) -> None:
    photos = some_photos(tmp_path / "photos")
    (photos / "zero.jpg").write_bytes(b"")

    indexed = run_eyespot("index", photos, cwd=tmp_path)
    again = run_eyespot("index", cwd=tmp_path)
    table = run_eyespot("failures", cwd=tmp_path)
    (photos / "torn.jpg").write_bytes(b"\xff\xd8 no more")
    more = run_eyespot("index", cwd=tmp_path)
    (photos / "torn.jpg").unlink()
    run_eyespot("index", cwd=tmp_path)
    rows = json.loads(run_eyespot("failures", "--json", cwd=tmp_path).stdout)

    assert (indexed.returncode, again.returncode, table.returncode) == (3, 3, 0)
    assert "1 could not be read; see them with: eyespot failures" in indexed.stderr
    assert "1 could not be read, 0 of them new; see" in again.stderr
    assert "2 could not be read, 1 of them new; see" in more.stderr
    assert rows == [{"path": str(photos / "zero.jpg"), "reason": "empty file"}]
    assert table.stdout == f"{photos / 'zero.jpg'}\tempty file\n"


@pytest.mark.long
def test_settings_that_cannot_be_meant_are_told(tmp_path: Path) -> None:
    lines = ["[search]", "kk = 2"]
    (tmp_path / "eyespot.toml").write_text("\n".join(['galery = "x"', *lines]))
    misspelt = run_eyespot("search", "stripes", cwd=tmp_path)

    assert "unknown key galery; known are: accumulate, " in misspelt.stderr
    assert "unknown key kk in [search]; known are: accuracy, adapt, " in misspelt.stderr
    for text in (
        "search = 5",
        "[[search]]",
        "import = 3",
        "[search]\nk = [1]",
        "[search.k]\na = 1",
        "[search]\nk = 'x'",
    ):
        (tmp_path / "eyespot.toml").write_text(text)
        result = run_eyespot("search", "stripes", cwd=tmp_path)
        assert (result.returncode, "Traceback" in result.stderr) == (2, False), result.stderr


@pytest.mark.long
def test_a_setting_for_indexing_does_not_say_who_made_imported_vectors(tmp_path: Path) -> None:
    run_eyespot("index", some_photos(tmp_path / "photos"), cwd=tmp_path)
    run_eyespot("export", "npy", "out", cwd=tmp_path)
    (tmp_path / "eyespot.toml").write_text('encoder = "starter"')
    unsaid = run_eyespot("import", "npy", "out", "-g", "one", cwd=tmp_path)
    (tmp_path / "eyespot.toml").write_text('[import]\nencoder = "starter"')
    result = run_eyespot("import", "npy", "out", "-g", "two", cwd=tmp_path)

    assert (unsaid.returncode, result.returncode) == (2, 0), result.stderr
    assert "say which encoder made the vectors" in unsaid.stderr


@pytest.mark.long
def test_a_tilde_in_a_gallery_path_is_the_home_folder(tmp_path: Path) -> None:
    photos, home = some_photos(tmp_path / "photos", 1), str(tmp_path / "home")
    (tmp_path / "eyespot.toml").write_text('gallery = "~/from-file"')

    run_eyespot("index", photos, cwd=tmp_path, HOME=home)
    run_eyespot("index", photos, cwd=tmp_path, HOME=home, EYESPOT_GALLERY="~/from-environment")

    assert {place.name for place in (tmp_path / "home").glob("from-*")} == {"from-file", "from-environment"}


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    photos = some_photos(tmp_path / "photos")

    result = run_eyespot("index", photos, "--dry-run", cwd=tmp_path)

    (line,) = result.stdout.splitlines()
    assert "4 pictures (" in line and "4 of them new" in line
    assert not (tmp_path / ".eyespot").exists()


@pytest.mark.long
def test_a_folder_is_taken_out_and_the_way_to_it_is_said(tmp_path: Path) -> None:
    first, second = some_photos(tmp_path / "first"), tmp_path / "my disk"
    draw(second / "other.jpg", 20)
    run_eyespot("index", first, second, cwd=tmp_path)
    second.rename(tmp_path / "away")

    away = run_eyespot("index", cwd=tmp_path)
    trial = run_eyespot("index", "--remove", second, "--dry-run", cwd=tmp_path)
    taken = run_eyespot("index", "--remove", second, "--json", cwd=tmp_path)

    assert f"--remove '{second}'" in away.stderr
    assert (trial.returncode, taken.returncode) == (2, 0)
    assert json.loads(taken.stdout)["pictures"] == 4


@pytest.mark.long
def test_a_dry_run_tells_what_is_new_or_changed(tmp_path: Path) -> None:
    photos = some_photos(tmp_path / "photos")
    run_eyespot("index", photos, cwd=tmp_path)
    draw(photos / "0.jpg", 17)
    draw(photos / "new.jpg", 18)
    (photos / "away").symlink_to("nowhere")

    report = json.loads(run_eyespot("index", "--dry-run", "--json", cwd=tmp_path).stdout)

    assert report.pop("bytes") == sum(place.stat().st_size for place in photos.glob("*.jpg"))
    assert report.items() >= {"pictures": 5, "new": 1, "changed": 1, "unreadable": 1, "files": 6}.items()


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_path_that_cannot_be_indexed_leaves_nothing_behind(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "letter.doc").write_text("dear")
    some_photos(tmp_path / "photos", 1)

    letter = run_eyespot("index", "photos", "letter.doc", *more, cwd=tmp_path)
    nothing = run_eyespot("index", "photos", "nope", *more, cwd=tmp_path)

    assert (letter.returncode, nothing.returncode) == (2, 2)
    assert "no folder, tar, list" in letter.stderr
    assert f"there is nothing at {tmp_path / 'nope'}" in nothing.stderr
    assert not (tmp_path / ".eyespot").exists()


@pytest.mark.long
def test_a_known_root_that_is_away_is_no_error(tmp_path: Path) -> None:
    photos = some_photos(tmp_path / "photos")
    run_eyespot("index", photos, cwd=tmp_path)
    photos.rename(tmp_path / "away")

    again = run_eyespot("index", photos, cwd=tmp_path)

    assert (again.returncode, "its pictures are kept" in again.stderr) == (0, True)


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


@pytest.mark.long
def test_doctor_knows_versions_encoders_and_a_pinned_blas(sample_gallery: Path) -> None:
    report = json.loads(run_eyespot("doctor", "-g", sample_gallery, "--json", OPENBLAS_CORETYPE="Haswell").stdout)

    assert {"eyespot", "python", "numpy", "onnxruntime", "torch"} <= report["versions"].keys()
    assert {"starter", "open_clip", "hf", "onnx"} <= report["encoders"].keys()
    assert "OPENBLAS_CORETYPE=Haswell" in report["warnings"][0] and report["advice"] == []
    assert [(space["encoder"], space["rows"], space["status"]) for space in report["spaces"]] == [
        ("starter", 208, "agrees")
    ]


@pytest.mark.long
def test_doctor_finds_vectors_that_no_longer_fit_their_encoder(tmp_path: Path) -> None:
    run_eyespot("index", some_photos(tmp_path / "photos"), cwd=tmp_path)
    (note,) = (tmp_path / ".eyespot" / "shards" / "00000").glob("starter-*.toml")
    lines = note.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("fingerprints"))
    moved = [[value + 0.2 for value in row] for row in json.loads(lines[at].partition("=")[2])]
    with rewriting(note.parent, [note.name]) as digests:  # else it would count as damaged
        note.write_text("\n".join([*lines[:at], f"fingerprints = {moved}", *lines[at + 1 :]]))
        digests[note.name] = file_blake2b(note)

    checked = run_eyespot("doctor", cwd=tmp_path)

    assert checked.returncode == 4
    assert "differs" in checked.stdout


@pytest.mark.long
def test_the_demo_writes_pictures_to_look_at_and_prints_five_searches(tmp_path: Path) -> None:
    shown = run_eyespot("demo", "--json", cwd=tmp_path)

    searches = json.loads(shown.stdout)
    assert len(searches) == 5 and all(len(one["items"]) == 5 for one in searches)
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "demo.html").read_text()
    assert page.count("data:image/jpeg") >= 25 and "CC0" in page
    assert not list(tmp_path.glob(".eyespot*"))


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error(sample_gallery: Path) -> None:
    line = f"{sys.executable} -m eyespot.cli search windmill -k 200 --by look -g {sample_gallery} | head -n 1"

    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True)

    assert (len(ran.stdout.splitlines()), ran.stderr) == (1, "")


@pytest.mark.long
def test_interrupted_means_130_and_the_next_run_goes_on(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for number, place in enumerate([*sample.photos().glob("*.jpg")] * 2):
        (photos / f"{number}.jpg").write_bytes(place.read_bytes() + bytes([number // 208]))  # a trailer: its own bytes
    line = [sys.executable, "-m", "eyespot.cli", "index", str(photos), "-g", str(tmp_path / "gallery")]
    # a suite started in a shell's background inherits an ignored SIGINT; a user's terminal does not
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, preexec_fn=heeding)
    while not (tmp_path / "gallery" / "shards" / "00001").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=60)
    rest = run_eyespot("index", "-g", tmp_path / "gallery", "--json")

    assert process.returncode == 130
    assert complaints == "eyespot: interrupted; what is done is kept: run the same line again and it goes on there\n"
    report = json.loads(rest.stdout)
    assert report["pictures"] == 416 and 0 < report["embedded"] < 416


def test_a_newer_gallery_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "gallery.toml").write_text("format = 99\n")

    result = run_eyespot("search", "a lion", "-g", tmp_path)

    assert (result.returncode, "upgrade eyespot" in result.stderr) == (1, True)


@pytest.mark.long
def test_a_hub_that_cannot_be_reached_points_to_starter(tmp_path: Path, child_env: dict[str, str]) -> None:
    photos, stub = some_photos(tmp_path / "photos"), child_env["PYTHONPATH"]

    result = run_eyespot("index", photos, "-e", "hf:openai/clip-vit-base-patch32", cwd=tmp_path, PYTHONPATH=stub)

    assert result.returncode == 1
    assert "starter" in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.long
def test_photos_indexed_into_an_imported_gallery_leave_the_imported_space_searched(tmp_path: Path) -> None:
    run_eyespot("index", some_photos(tmp_path / "photos"), cwd=tmp_path)
    run_eyespot("export", "clip-retrieval", "out", cwd=tmp_path)
    run_eyespot("import", "clip-retrieval", "out", "-e", "starter", "-g", "imported", cwd=tmp_path)
    indexed = run_eyespot("index", some_photos(tmp_path / "more", 2), "-g", "imported", cwd=tmp_path)
    idle = run_eyespot("index", "-g", "imported", cwd=tmp_path)
    found = run_eyespot("search", "stripes", "-g", "imported", "--json", cwd=tmp_path)

    assert (indexed.returncode, idle.returncode) == (0, 0)
    assert len(json.loads(found.stdout)["items"]) == 4
    assert "imported" in found.stderr and "not searched: 2" in found.stderr
