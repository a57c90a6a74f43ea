"""Where torch cannot be imported: each layout from the hub to a search, on the page, and away again; refusals.

The towers are those of `plain_exports`, behind a mirror of the hub's protocol.
"""

from __future__ import annotations

import json
import os
import pty
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot import rooms
from eyespot.encoders import bring, model_here
from eyespot.models import installed, table
from eyespot.models.table import entries, entry
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError
from tests.command import environment, refuses, run_eyespot
from tests.lazy_import import requires, without
from tests.models import exports
from tests.wording import raises
from tests.worlds import draw_photos, plain_exports
from tests.worlds.hub_mirror import HubMirror, hub

pytestmark = requires("onnx")


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """No torch, a hub of all layouts, a home of the test's own, in which it works."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.chdir(tmp_path)
    made = {name: str(tmp_path / name) for name in ("EYESPOT_MODELS", "HF_HOME", "HOME", "XDG_CACHE_HOME")}
    repos = {}
    for layout in plain_exports.LAYOUTS:
        name = layout.replace(" ", "-")
        repos[f"org/{name}"] = exports.files_of(plain_exports.save(tmp_path / "hub" / name, layout))
    with without("torch"), hub(HubMirror(repos)) as served:
        made["HF_ENDPOINT"] = served.url
        for name, value in made.items():
            monkeypatch.setenv(name, value)
        yield made


def run(*words: object, **env: str) -> Any:
    done = run_eyespot(*words, "--json", **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("layout", [layout.replace(" ", "-") for layout in plain_exports.LAYOUTS])
def test_a_model_comes_is_searched_with_served_and_goes(layout: str, env: dict[str, str], tmp_path: Path) -> None:
    name, photos = f"org/{layout}", draw_photos(tmp_path / "photos")
    got = run("models", "get", name, **env)
    run("index", photos, "-e", name, "-g", "g", **env)
    found = run("search", "a heron", "-g", "g", **env)["items"]
    wanted = rooms.load("encoders", name).encode_texts(["a heron"])[0]
    record = toml_of(Path(got["place"]) / installed.RECORD)

    assert [record["sizes"][file] for file in record["files"]] == [
        (Path(got["place"]) / file).stat().st_size for file in record["files"]
    ]
    assert len(found) == 4 and np.isfinite(wanted).all()
    assert [hit.id for hit in eyespot.open("g").search("a heron")] == [hit["id"] for hit in found]
    if requires("fastapi").args == (False,):
        from fastapi.testclient import TestClient

        from eyespot.web import ServerSettings, application

        site = application(ServerSettings(Path("g")))
        with TestClient(site, "http://127.0.0.1", client=("127.0.0.1", 1)) as client:
            answer = client.post("/v1/search", json={"queries": ["a heron"]}).json()
        assert [hit["id"] for hit in answer["results"][0]["hits"]] == [hit["id"] for hit in found]
    refuses("models", "remove", name, **env)  # the gallery needs it
    assert run("models", "remove", name, "--force", **env)["freed"] > 0 and installed.find(name) is None
    with raises(UsageError):
        eyespot.load_encoder(name)


@pytest.mark.parametrize("fault", ["busy", "expired", "cut"])
def test_a_line_that_breaks_is_asked_again(fault: str, env: dict[str, str], tmp_path: Path) -> None:
    """Also where a signed address of the storage has expired; then the hub gives another."""
    files = exports.files_of(tmp_path / "hub" / "clip")
    with hub(HubMirror({"org/clip": files}, **{fault: 2_000 if fault == "cut" else 2})) as broken:
        got = run("models", "get", "org/clip", "--from", broken.url, **env)
    found = installed.find("org/clip")

    assert found is not None and not found.damaged() and got["revision"] == broken.commit("org/clip")


def test_a_gallery_and_its_export_move_and_grow(env: dict[str, str], tmp_path: Path) -> None:
    """What is indexed with the folder's new place joins the same space; from then on nobody has to name it."""
    folder, photos = (tmp_path / "hub" / "clip").rename(tmp_path / "here"), draw_photos(tmp_path / "photos", 2)
    run("index", photos, "-g", "g", "-e", f"onnx:{folder}", **env)
    before = run("search", "a heron", "-g", "g", **env)["items"]
    gallery, moved = Path("g").rename(tmp_path / "stick"), folder.rename(tmp_path / "there")
    refuses("search", "a heron", "-g", gallery, **env)
    refuses("search", "a heron", "-g", gallery, "-e", f"onnx:{tmp_path / 'hub' / 'siglip'}", **env)
    more = draw_photos(tmp_path / "more", 3)
    run("index", more, "-g", gallery, "-e", f"onnx:{moved}", **env)
    found = run("search", "a heron", "-g", gallery, **env)["items"]

    assert len(toml_of(gallery / "gallery.toml")["spaces"]) == 1
    assert {one["id"] for one in before} <= {one["id"] for one in found} and len(found) >= 3
    run("index", draw_photos(tmp_path / "last", 4), "-g", gallery, **env)
    assert len(run("search", "a heron", "-g", gallery, "-e", f"onnx:{moved}", **env)["items"]) >= 4


def test_a_model_that_a_gallery_needs_stays(env: dict[str, str], tmp_path: Path) -> None:
    """One made here, at or above this folder, at home, or a copy of a published one; which were looked at is said."""
    run("models", "get", "org/siglip", **env)
    photos, noted = draw_photos(tmp_path / "photos", 1), Path(env["EYESPOT_MODELS"]) / installed.GALLERIES
    places = [tmp_path / "a" / ".eyespot", tmp_path / "HOME" / "Pictures" / ".eyespot"]
    for place in (*places, places[0]):
        run("index", photos, "-e", "org/siglip", "-g", place, **env)
    assert noted.read_text().splitlines() == [str(place) for place in places]
    assert str(places[0]) in refuses("models", "remove", "org/siglip", **env | {"HOME": "nowhere"})
    noted.unlink()
    (tmp_path / "a" / "b").mkdir()
    refuses("models", "remove", "org/siglip", cwd=tmp_path / "a" / "b", **env)
    refuses("models", "remove", "org/siglip", **env)
    refuses("models", "remove", "org/siglip", **env | {"HOME": "nowhere", "EYESPOT_GALLERY": str(places[0])})
    gone = run_eyespot("models", "remove", "org/siglip", **env | {"HOME": "nowhere"})

    assert gone.returncode == 0 and "looked at no gallery: another" in gone.stdout


def test_auto_is_the_gallery_s_encoder_then_the_best_one_here(env: dict[str, str], tmp_path: Path) -> None:
    """In Python as on the command line; of a model in several variants the one that ranks best."""
    photos = draw_photos(tmp_path / "photos", 1)
    assert eyespot.index(photos, "old").view.space.encoder == "starter"
    for variant in ("fp16", "fp32", "int8"):
        suffix = {"fp32": "", "fp16": "_fp16", "int8": "_int8"}[variant]
        for tower in (tmp_path / "hub" / "clip" / "onnx").glob("*_model.onnx"):
            tower.with_stem(tower.stem + suffix).write_bytes(tower.read_bytes())
        bring(entry("org/clip"), variant, tmp_path / "hub" / "clip")
    bring(entry("org/siglip"), "fp32", tmp_path / "hub" / "siglip")
    for place in ("by python", "by command"):
        if place == "by python":
            eyespot.index(photos, place, encoder="auto")
        else:
            run("index", photos, "-e", "auto", "-g", place, **env)
        assert eyespot.open(place).view.space.encoder == "model:org/clip"
    assert eyespot.index(photos, "old", encoder="auto").view.space.encoder == "starter"
    run("index", photos, "-e", "auto", "-g", "old", **env)

    assert eyespot.open("old").gallery.encoders == ["starter"]
    assert eyespot.load_encoder("auto").space.encoder == "model:org/clip"
    assert eyespot.load_encoder("org/clip:int8").space.encoder == "model:org/clip:int8"
    assert model_here("org/clip:int8", "fp32") == model_here("org/clip", "int8")  # as where and remove take it


def test_an_encoder_that_is_gone_waits(env: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos = draw_photos(tmp_path / "photos", 1)
    model = bring(entry("org/clip"), "fp32", tmp_path / "hub" / "clip")
    for name in ("starter", "org/clip"):
        eyespot.index(photos, "g", encoder=name)
    model.remove()
    eyespot.index(photos, "g")

    assert "model:org/clip gets no vectors for now: org/clip is not on this machine" in capsys.readouterr().out


@pytest.mark.parametrize(("key", "code"), [("y", 0), ("n", 1)])
def test_a_licence_against_commerce_is_agreed_to(key: str, code: int, env: dict[str, str], tmp_path: Path) -> None:
    """At a terminal by a key; elsewhere by an option."""
    name, folder = "nllb-siglip-large", tmp_path / "hub" / "immich"
    words = ["models", "get", name, "--from", str(folder)]
    refuses(*words, **env)
    ours, theirs = pty.openpty()
    asking = subprocess.Popen([sys.executable, "-m", "eyespot.cli", *words], stdin=theirs, stdout=subprocess.PIPE,
                              stderr=theirs, env=environment(**env), cwd=tmp_path)  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"Fetch it?" not in shown:
        shown += os.read(ours, 1024)
    os.write(ours, f"{key}\n".encode())
    asking.communicate()
    os.close(ours)

    assert asking.returncode == code and b"is not for commercial use (CC-BY-NC-4.0)" in shown
    assert (installed.find(name) is not None) == (code == 0)


def test_a_provider_that_is_not_here_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = f"onnx:{plain_exports.save(tmp_path, 'clip')}"
    monkeypatch.setenv("EYESPOT_PROVIDERS", "cpu, CPUExecutionProvider")
    assert rooms.load("encoders", encoder).encode_texts("a heron").shape == (1, 16)
    monkeypatch.setenv("EYESPOT_PROVIDERS", "Abacus,CPU")
    with pytest.raises(UsageError, match=r"EYESPOT_PROVIDERS names Abacus, which .* it has: .*CPU"):
        rooms.load("encoders", encoder).encode_texts("a heron")


@pytest.mark.parametrize(
    ("layout", "size", "line"),
    [
        ("clip", "9", r"of \[3, 8, 8\], not \[3, 9, 9\]; set \[image\] size in eyespot\.toml$"),
        ("immich next", "[8, 9]", r"of \[8, 8, 3\], not \[8, 9, 3\]; set \[image\] size in eyespot\.toml$"),
    ],
)
def test_a_size_that_the_tower_does_not_take_names_the_line(layout: str, size: str, line: str, tmp_path: Path) -> None:
    from eyespot.encoders._layouts import described
    from eyespot.storage.text_files import toml_text

    folder = plain_exports.save(tmp_path, layout)
    values = described(folder)
    values["image"]["size"] = json.loads(size)
    (folder / "eyespot.toml").write_text(toml_text(values))
    with pytest.raises(UsageError, match=line):
        rooms.load("encoders", f"onnx:{folder}").encode(str(draw_photos(tmp_path / "photos", 1) / "0.jpg"))


@pytest.mark.parametrize(("scale", "bias", "floor"), [(4.75, -12.9, 0.0518), (115.6, -12.9, 0.0518), (4.6, None, None)])
def test_the_weakest_match_follows_from_scale_and_bias(scale: float, bias: Any, floor: Any, tmp_path: Path) -> None:
    """Where a file or the table states both: the cosine of one chance in a thousand; else nothing is said."""
    folder = plain_exports.save(tmp_path, "siglip")
    assert rooms.load("encoders", f"onnx:{folder}").weakest_match("a heron") is None
    (folder / "export_meta.json").write_text(json.dumps({"logit_scale": scale, "logit_bias": bias}))

    assert rooms.load("encoders", f"onnx:{folder}").weakest_match("a heron") == (
        floor and pytest.approx(floor, abs=1e-3)
    )


# -- the table ----------------------------------------------------------------------------------------------


def test_a_model_of_the_table_without_a_pin_is_fetched_and_pinned(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the hub's newest commit, which its record and its space name; what the script prints is then compared."""
    bare = entry("siglip2-base")
    files = exports.files_of(tmp_path / "hub" / "siglip2")
    script = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "pin_models.py"))
    with hub(HubMirror({bare.repo: files})) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        listed = run_eyespot("models", "list", **env).stdout
        got = run_eyespot("models", "get", bare.name, **env | {"HF_ENDPOINT": served.url})
        run("index", draw_photos(tmp_path / "photos", 1), "-e", bare.name, "-g", "g", **env)
        monkeypatch.setattr(sys, "argv", ["pin_models.py", bare.name, "siglip-base"])
        with pytest.raises(SystemExit, match="True"):  # the mirror has no siglip-base
            script["main"]()
        commit = served.commit(bare.repo)
    printed = tomllib.loads(capsys.readouterr().out)[bare.name]
    pinned = bare.model_copy(update=printed)

    assert "fetched at the hub's newest: siglip2-base, " in listed and commit[:12] in got.stderr
    record = installed.find(bare.name)
    assert (
        record is not None and record.revision == commit == toml_of(Path("g") / "gallery.toml")["spaces"][0]["revision"]
    )
    assert bare.unpinned == "commit, digests, vectors" and pinned.unpinned == "" and pinned.revision == commit
    monkeypatch.setattr("eyespot.encoders._installing.entries", lambda: {bare.name: pinned})
    assert run("models", "check", bare.name, **env)["compared"]


def test_what_is_called_released_is_pinned() -> None:
    """By commit, the digests of both towers, and vectors; `scripts/pin_models.py` writes all of them."""
    assert [f"{name} lacks {one.unpinned}" for name, one in entries().items() if one.released and one.unpinned] == []


def test_the_list_says_which_models_are_not_pinned_yet() -> None:
    whole = entries()["clip-b32"].model_copy(update={"sha256": {"a.onnx": "0", "b.onnx": "1"}, "golden": {}})
    assert table.entry("clip-b32").unpinned == "digests, vectors" and whole.unpinned == "vectors"
    lines = run_eyespot("models", "list", "--all").stdout.splitlines()
    rows = json.loads(run_eyespot("models", "list", "--all", "--json").stdout)
    unpinned = [one.unpinned for one in entries().values() if one.unpinned]

    assert [line.partition("not pinned yet: ")[2] for line in lines if "not pinned yet" in line] == unpinned
    assert [row["unpinned"] for row in rows if row.get("unpinned")] == unpinned
