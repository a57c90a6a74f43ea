"""Rooms are listed without an import, and load one member."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from jinja2 import UndefinedError
from markupsafe import escape

import eyespot
from eyespot import extras, rooms
from eyespot.html import environment, render, tidy
from eyespot.parallel import ordered_map
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import requires

BLOCKED = """
import sys
sys.modules[{missing!r}] = None
from eyespot import rooms, types
try:
    rooms.load("encoders", {spec!r})
except types.EyespotError as error:
    print(error)
"""


def child(code: str, env: dict[str, str]) -> str:
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout


def test_a_folder_lists_its_files_but_not_private_ones() -> None:
    """Files that start with an underscore are shared code, not members."""
    listed = rooms.names("encoders")

    assert {"hf", "onnx", "open_clip", "wildclip"} <= set(listed)
    assert not [name for name in listed if name.startswith("_")]


def test_listing_imports_no_member(child_env: dict[str, str]) -> None:
    """`eyespot encoders list` must not cost the import of torch."""
    code = "import sys; from eyespot import rooms; rooms.names('encoders'); print('eyespot.encoders.hf' in sys.modules)"

    assert child(code, child_env) == "False\n"


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"^no 'blip' in encoders; there are: .*hf, .*onnx, open_clip"):
        rooms.load("encoders", "blip:large")


def test_a_room_that_does_not_exist_has_no_members() -> None:
    assert rooms.names("cellar") == []


def test_other_packages_add_members_by_entry_points(tmp_path: Path, child_env: dict[str, str]) -> None:
    """A package with an entry point in `eyespot.encoders` is listed and loaded like our own."""
    (tmp_path / "guest_encoder.py").write_text("def load(rest, **options): return rest, options\n")
    info = tmp_path / "guest-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[eyespot.encoders]\nguest = guest_encoder\n")
    env = {**child_env, "PYTHONPATH": f"{tmp_path}:{child_env['PYTHONPATH']}"}

    code = (
        "from eyespot import rooms; print('guest' in rooms.names('encoders'), rooms.load('encoders', 'guest:a', b=1))"
    )

    assert child(code, env) == "True ('a', {'b': 1})\n"


@pytest.mark.parametrize(
    ("missing", "spec", "sentence"),
    [
        ("torch", "open_clip:ViT-B-32/openai", "open_clip needs the extra [torch]: "),
        ("huggingface_hub", "hf:a/b", "hf needs the extra [torch]: "),
    ],
)
def test_a_missing_package_names_its_extra(missing: str, spec: str, sentence: str, child_env: dict[str, str]) -> None:
    code = BLOCKED.format(missing=missing, spec=spec)

    assert child(code, child_env) == f"{sentence}{extras.install_line('torch')}\n"


@requires("torch")
def test_a_torchvision_that_does_not_fit_is_said_wherever_a_package_is_needed() -> None:
    """transformers says only that a module of its own could not be imported."""
    misfit = pytest.raises(EyespotError, match=r"does not fit torch.*--force-reinstall torch torchvision")
    with misfit, rooms.needs("the mteb bridge"):
        raise ModuleNotFoundError("PreTrainedModel") from RuntimeError("operator torchvision::nms does not exist")


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert set(extras.EXTRAS.values()) <= project["optional-dependencies"].keys()


# -- a library that reports its use is silent under eyespot -------------------------------------------------------


SETTINGS = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")
ENCODES = """
import eyespot
assert eyespot.load_encoder("starter").encode_texts(["a heron"]).shape[1] > 0
from huggingface_hub import constants
assert constants.HF_HUB_DISABLE_TELEMETRY
"""


def test_encoding_words_leaves_no_device_id_and_no_events(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / ".cache")}
    own = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    subprocess.run([sys.executable, "-c", ENCODES], env=own | home, check=True)
    assert not [path for path in tmp_path.rglob("*") if "telemetry" in path.name or "Microsoft" in path.parts]


def test_a_setting_of_ones_own_is_left_as_it_is() -> None:
    code = "import os, eyespot; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, env=os.environ | {"ORT_DISABLE_TELEMETRY": "0"}, check=True, capture_output=True)
    assert done.stdout == b"0\n"


PACKAGE = Path(eyespot.__file__).parent
FOLDERS = [PACKAGE / "html" / "templates", PACKAGE / "web" / "templates"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_text_is_escaped_and_reads_as_it_is_written(folder: Path) -> None:
    text = "<script>\u202egpj.exe\udcff\n&"
    page = environment(folder).from_string("<p title='{{ text }}'>{{ text }}</p>").render(text=text)

    assert page == "<p title='{0}'>{0}</p>".format(escape(tidy(text)))
    assert "<script>" not in page and "\u202e" not in page and page.encode()


def test_lines_keep_their_indentation() -> None:
    page = environment().from_string("<pre>{{ text|lines }}</pre>").render(text="a\n  <b>  c\r\n\u202ed")

    assert page == "<pre>a\n  &lt;b&gt; c\nd</pre>"


def test_a_value_that_is_not_given_is_an_error() -> None:
    """Half a page would look like a whole one."""
    with pytest.raises(UndefinedError, match="'panels' is undefined"):
        render("contact_sheet.html", title="", footer="")


def test_a_command_that_writes_no_page_does_not_import_jinja2(child_env: dict[str, str]) -> None:
    code = (
        "import sys, eyespot.html, eyespot.search.contact_sheet, eyespot.pipelines.data_card, eyespot.reports.folder, "
        "eyespot.reports.moved; sys.exit('jinja2' in sys.modules or 'markupsafe' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], env=child_env).returncode == 0


# -- the parallel map gives the results of `map`, and stays within its bounds -------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 6), st.integers(0, 9))
def test_the_results_are_those_of_map_in_the_same_order(items: list[int], workers: int, ahead: int) -> None:
    def work(item: int) -> int:
        time.sleep(item / 5000)  # so that later items are often ready first
        return -item

    assert list(ordered_map(work, items, workers, ahead)) == [-item for item in items]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 30), st.integers(2, 6), st.integers(0, 9), st.integers(0, 10))
def test_no_more_items_are_taken_than_may_be_ahead(count: int, workers: int, ahead: int, wanted: int) -> None:
    taken = 0

    def source() -> Iterator[int]:
        nonlocal taken
        for item in range(count):
            taken += 1
            yield item

    results = ordered_map(lambda item: item, source(), workers, ahead)
    for number, _ in zip(range(wanted), results, strict=False):
        assert taken <= number + max(workers, ahead)
    results.close()  # type: ignore[attr-defined]
    assert taken <= wanted + max(workers, ahead)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 20), st.integers(1, 6), st.integers(0, 9))
def test_an_error_comes_at_its_place_and_ends_the_map(place: int, workers: int, ahead: int) -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == place:
            raise ValueError(item)
        return item

    results = ordered_map(work, range(100), workers, ahead)
    assert [next(results) for _ in range(place)] == list(range(place))
    with pytest.raises(ValueError, match=str(place)):
        next(results)
    assert len(begun) <= place + 1 + max(workers, ahead)


def test_items_are_worked_on_at_the_same_time() -> None:
    both = threading.Barrier(2)  # alone an item would wait until the barrier breaks
    assert len(list(ordered_map(lambda _item: both.wait(60), range(2), 2, 0))) == 2


def test_an_executor_stays_open() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(ordered_map(str, range(3), pool, 2)) == ["0", "1", "2"]
        assert pool.submit(str, 3).result() == "3"
