"""Rooms are listed without an import, and load one member."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from eyespot import extras, rooms
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
    """The way out is in the sentence."""
    with pytest.raises(UsageError, match=r"^no 'blip' in encoders; there are: .*hf, .*onnx, open_clip"):
        rooms.load("encoders", "blip:large")


def test_a_room_that_does_not_exist_has_no_members() -> None:
    """No folder and no entry point is an empty room."""
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
        ("open_clip", "open_clip:ViT-B-32/openai", "open_clip needs the extra [torch]: "),
        ("torch", "hf:a/b", "hf needs the extra [torch]: "),
        ("huggingface_hub", "hf:a/b", "hf needs the extra [torch]: "),
        ("torch", f"wildclip:{__file__}", "wildclip needs the extra [torch]: "),
    ],
)
def test_a_missing_package_is_told_as_the_extra_to_install(
    missing: str, spec: str, sentence: str, child_env: dict[str, str]
) -> None:
    """One sentence with the line to type."""
    code = BLOCKED.format(missing=missing, spec=spec)

    assert child(code, child_env) == f"{sentence}{extras.install_line('torch')}\n"


@requires("torch")
def test_a_torchvision_that_does_not_fit_is_said_wherever_a_package_is_needed() -> None:
    """transformers says only that a module of its own could not be imported."""
    misfit = pytest.raises(EyespotError, match=r"does not fit torch.*--force-reinstall torch torchvision")
    with misfit, rooms.needs("the mteb bridge"):
        raise ModuleNotFoundError("PreTrainedModel") from RuntimeError("operator torchvision::nms does not exist")


def test_every_extra_that_is_named_exists() -> None:
    """The line to type must work."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert set(extras.EXTRAS.values()) <= project["optional-dependencies"].keys()
