"""A setting stands once: what the model says is what the command line, page, API, `eyespot.toml` and Python do."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import eyespot
from eyespot.cli import app
from eyespot.settings.build import InatSettings
from eyespot.settings.search import SearchSettings
from eyespot.types import UsageError
from tests.cli.conftest import done
from tests.command import refuses
from tests.lazy_import import requires
from tests.worlds import draw_photos, index_gallery

CHANGED = """
import json, sys
from eyespot.settings import search as settings

for model in (settings.RankingSettings, settings.StageSettings, settings.SharedSearchSettings, settings.SearchSettings):
    model.model_fields["by"].default = "words"
    model.model_rebuild(force=True)

import io
from contextlib import redirect_stdout
import typer
from fastapi.testclient import TestClient
import eyespot
from eyespot.cli import app, main
from eyespot.web import application
from eyespot.web._settings import ServerSettings
from pathlib import Path

gallery = sys.argv[1]
found = {"python": eyespot.open(gallery).search("heron").run.header["by"]}
command = typer.main.get_command(app).commands["search"]
found["option"] = next(one.default for one in command.params if one.name == "by")
served = application(ServerSettings(Path(gallery)))
with TestClient(served, base_url="http://127.0.0.1", client=("127.0.0.1", 4000)) as client:
    found["api"] = client.get("/v1/search", params={"q": "heron"}).json()["by"]
    parameters = client.get("/openapi.json").json()["paths"]["/v1/search"]["get"]["parameters"]
    found["openapi"] = next(one["schema"]["default"] for one in parameters if one["name"] == "by")
    page = client.get("/", params={"q": "heron"}, headers={"accept": "text/html"}).text
    found["page"] = "words" if '<option value="words" selected' in page else ""
(lines := io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
sys.stdout, out = lines, sys.stdout
try:
    main(["search", "heron", "-g", gallery, "--json", "--no-server"])
except SystemExit:
    pass
sys.stdout = out
lines.flush()
found["line"] = json.loads(lines.buffer.getvalue())["by"]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight drawn photos, two of which bear a word."""
    folder = tmp_path_factory.mktemp("settings")
    photos = draw_photos(folder / "photos", 8, name="{:02}.jpg")
    (photos / "metadata.csv").write_text(
        "file_name,species,latitude,longitude\n00.jpg,heron,47.5,7.6\n01.jpg,heron,2,3\n"
    )
    index_gallery(folder / "gallery", photos)
    return folder / "gallery"


@requires("fastapi")
def test_a_default_that_the_model_changes_changes_in_every_way_to_search(gallery: Path, tmp_path: Path) -> None:
    """And a file sets it by the same name."""
    made = subprocess.run([sys.executable, "-c", CHANGED, gallery], capture_output=True, text=True, cwd=tmp_path)
    (tmp_path / "eyespot.toml").write_text('[search]\nby = "words"\n')
    printed = json.loads(done("search", "heron", "-g", gallery, "--json", cwd=tmp_path).stdout)

    assert made.returncode == 0, made.stderr
    ways = ("python", "option", "api", "openapi", "page", "line")
    assert (json.loads(made.stdout.splitlines()[-1]), printed["by"]) == (dict.fromkeys(ways, "words"), "words")


@requires("fastapi")
def test_what_the_page_does_not_take_says_why() -> None:
    from eyespot.web._search_params import SearchParams

    for name in SearchSettings.model_fields:
        assert (name in SearchParams.model_fields) != bool(SearchSettings.display(name).web), name


def test_the_command_line_has_every_setting_and_its_bounds() -> None:
    import typer

    command: Any = typer.main.get_command(app)
    options = {one.name: one for one in command.commands["search"].params}

    assert set(SearchSettings.model_fields) <= set(options)
    assert all(options[name].help == field.description for name, field in SearchSettings.model_fields.items())
    refuses("search", "a heron", "--blend", "1.5")
    refuses("search", "a heron", "-k", "0")


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"k": 3, "by": "look"}, 3),
        ({"label": "species=heron"}, 2),
        ({"label": ["species=heron", "species=owl"]}, 2),
        ({"near": "47.56,7.59,20"}, 1),
        ({"near": "1,2,3,4"}, 1),
        ({"neighbours": 2, "alpha": 3}, 8),
        ({"grouped": True}, 8),
        ({"where": "species = 'heron'", "near": "1,2,3,4"}, 1),
        ({"rerank": "encoder:starter", "depth": 4, "k": 2, "blend": 0.5}, 2),
    ],
)
def test_python_takes_what_the_command_line_takes(gallery: Path, options: dict[str, Any], first: int) -> None:
    line = [word for name, value in options.items() for word in words(name, value)]

    hits = eyespot.open(gallery).search("a red disc", **options)
    printed = json.loads(done("search", "a red disc", "-g", gallery, "--json", *line).stdout)

    assert len(hits) == first
    if "rerank" not in options:  # whose table lists the judge's own numbers
        assert [item["id"] for item in printed["items"]] == hits.ids


def words(name: str, value: Any) -> list[str]:
    spelled = {"k": "-k"}.get(name, f"--{name.replace('_', '-')}")
    if value is True:
        return [spelled]
    return [word for one in (value if isinstance(value, list) else [value]) for word in (spelled, str(one))]


def test_photos_named_in_python_move_a_search_as_on_the_line(gallery: Path) -> None:
    collection = eyespot.open(gallery)
    last = collection.search("stripes", k=8)[-1].id

    assert collection.search("stripes", k=8, yes=last)[0].id == last


@pytest.mark.parametrize(
    "options",
    [
        {"smell": 1},
        {"by": "smell"},
        {"k": 0},
        {"alpha": 2},
        {"adapt_depth": 3},
        {"depth": 3},
        {"feedback": " "},
        {"calibrate": 3, "rerank": "encoder:starter"},
        {"label": "heron"},
        {"near": "1,2"},
        {"where": " "},
        {"yes": ["nothing"]},
        {"encoder": "starter"},
    ],
    ids=str,
)
def test_what_is_no_setting_is_refused(gallery: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        eyespot.open(gallery).search("a heron", **options)


def test_the_page_of_settings_is_printed_from_the_model() -> None:
    """`python scripts/settings_page.py` writes what belongs under the mark."""
    from scripts import settings_page

    assert settings_page.PAGE.read_text(encoding="utf-8") == settings_page.page()


def test_a_model_is_built_once_by_many_threads() -> None:
    """Validators are built by the first value; threads that ask for it at once all get it."""
    model = type("Fresh", (SearchSettings,), {"__module__": SearchSettings.__module__})
    gate = threading.Barrier(8)

    def read(k: int) -> SearchSettings:
        gate.wait()
        return model.read(k=k, label="species=heron")

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(read, range(1, 9)))

    assert [(one.k, one.label) for one in found] == [(k, ("species=heron",)) for k in range(1, 9)]


def test_an_option_has_the_default_and_bounds_of_its_setting() -> None:
    """Also where a verb has several models, and a positional argument among them."""
    import typer

    command: Any = typer.main.get_command(app)
    inat = {one.name: one for one in command.commands["build"].commands["inat"].params}
    assert inat["cap"].default == InatSettings.model_fields["cap"].default
    assert [one.name for one in inat.values() if one.param_type_name == "argument"] == ["export"]
    refuses("build", "inat", "x", "--cap", "many")
    refuses("serve", "--port", "-1")
