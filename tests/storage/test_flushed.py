"""Power cuts: whatever was not flushed may be lost, and yet nothing that was promised is, and no name gives a ruin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from eyespot.gallery.disk import shard_paths
from eyespot.gallery.indexing import Options, index
from eyespot.pipelines import RunOptions, run
from eyespot.types import Encoder
from tests.examples import drawn
from tests.worlds import draw
from tests.worlds.pipelines import client, pipeline
from tests.worlds.power_cuts import RETURNED, VERSIONS, Moment, Tree, content, disks, lay_out, moments

ROOT = Path(__file__).resolve().parents[2]
DISKS = 20


class Recording(NamedTuple):
    """A scenario that ran, and where."""

    place: Path
    log: Path
    moments: list[Moment]

    def disks(self) -> Iterator[tuple[int, Tree]]:
        """Every disk that a power cut may leave, with how often the scenario had made a promise by then."""
        promises = 0
        for moment in self.moments:
            promises += moment.event == RETURNED
            for tree in disks(moment):
                yield promises, tree


def recorded(name: str, folder: Path) -> Recording:
    place, log = folder / "place", folder / "log"
    place.mkdir(exist_ok=True)
    log.mkdir()
    line = [sys.executable, "-m", "tests.worlds.power_cuts", name, str(place), str(log)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = Recording(place, log, moments(log))
    assert found.moments[-1].event == RETURNED
    return found


def below(tree: Tree, name: str) -> Tree:
    """What has this name, and what is in it."""
    return {path: data for path, data in tree.items() if path == name or path.startswith(f"{name}/")}


def made_file(version: str) -> Tree:
    return {"made": sha256(version.encode()).hexdigest()}


def made_folder(version: str) -> Tree:
    digest = sha256(version.encode()).hexdigest()
    return {"made": None, "made/a": digest, "made/deep": None, "made/deep/b": digest}


@pytest.mark.parametrize(
    ("name", "made"), [("new_file", made_file), ("new_folder", made_folder), ("put_folder", made_folder)]
)
def test_a_name_gives_the_old_or_the_new_and_lasts(tmp_path: Path, name: str, made: Callable[[str], Tree]) -> None:
    versions: list[Tree] = [{}, *map(made, VERSIONS)]
    found = recorded(name, tmp_path)

    for promises, tree in found.disks():
        # At the moment of a promise the next version has not begun.
        assert below(tree, "made") in versions[promises : promises + 2]
    ends = [below(tree, "made") for tree in disks(found.moments[-1])]
    assert ends == [versions[-1]] * len(ends)
    assert sum(moment.event == RETURNED for moment in found.moments) == len(VERSIONS)


@pytest.mark.parametrize(
    ("name", "folders"), [("make_folder", ["a/b/c", "a/d"]), ("locked", ["a/b"]), ("connect", ["a/b"])]
)
def test_a_folder_lasts_with_those_above_it(tmp_path: Path, name: str, folders: list[str]) -> None:
    for promises, tree in recorded(name, tmp_path).disks():
        assert set(folders[:promises]) <= set(tree)


@pytest.mark.parametrize(
    ("name", "file"), [("write_queue", "a/review/faces.jsonl"), ("save_adapter", "a/run/linear.safetensors")]
)
def test_a_result_in_a_new_folder_lasts_with_the_folder(tmp_path: Path, name: str, file: str) -> None:
    found = recorded(name, tmp_path)
    seen = [(promises, file in tree) for promises, tree in found.disks()]

    assert {there for promises, there in seen if promises} == {True}
    assert (found.place / file).is_file() and (0, False) in seen


# What lies in a folder that is made bare is put in place by the folder above it, or is made again from elsewhere.
BARE = {
    "cache": [*("curate/_world.py", "gallery/remote/fetching.py")],
    "pictures for a page": ["web/pictures.py"],
    "whole folder": [
        *("curate/recos/files.py", "curate/rmir/files.py"),
        *(f"formats/exports/{name}.py" for name in ("camtrap_dp", "coco", "imagefolder", "label_studio")),
        *("formats/exports/parquet.py", "indexes/faiss.py", "runs/beir.py"),
        "search/index_choice.py",
    ],
    "spilled data": ["curate/inat/tables.py"],
    "demonstration": ["cli/demo.py"],
    "what the last search showed": ["cli/_searching.py"],
}


def test_results_lie_in_folders_that_last() -> None:
    package = ROOT / "eyespot"
    bare = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if ".mkdir(" in path.read_text(encoding="utf-8") and path.parent.name != "storage"
    }

    assert bare == {name for names in BARE.values() for name in names}


def test_a_line_of_a_log_lasts(tmp_path: Path) -> None:
    found = recorded("append_line", tmp_path)

    seen = set()
    for promises, tree in found.disks():
        text = content(tree["log"] or "", found.log).decode() if "log" in tree else ""
        assert text.startswith("".join(VERSIONS[:promises])) and "".join(VERSIONS).startswith(text)
        seen.add(text)
    assert len(seen) > len(VERSIONS)


def files(folder: Path) -> dict[str, bytes]:
    """Every file that is not hidden, bit for bit."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {name: path.read_bytes() for path in paths if "/." not in (name := f"/{path.relative_to(folder)}")}


def check_all(found: Recording, folder: Path, again: Callable[[Path], dict[str, bytes]], whole: str) -> int:
    """From every disk `again` ends in the same bytes, and once all was promised they are there before; how many.

    Of disks of many moments `make test-long` tries a sample, `make test-all` each.
    """
    calm = again(found.place)
    left = {frozenset(tree.items()): tree for _, tree in found.disks()}
    for tree in drawn([*left.values()], DISKS):
        lay_out(tree, found.log, folder / "left")
        assert again(folder / "left") == calm
    for tree in disks(found.moments[-1]):
        lay_out(tree, found.log, folder / "left")
        assert files(folder / "left" / whole) == files(found.place / whole)
    return len(left)


@pytest.mark.long
def test_a_pipeline_ends_in_the_same_files_after_any_power_cut(tmp_path: Path) -> None:
    def again(place: Path) -> dict[str, bytes]:
        run(pipeline(), place / "work", RunOptions(3, client=client()))
        return files(place / "work" / "steps")

    count = check_all(recorded("pipeline", tmp_path), tmp_path, again, "work/steps")

    assert count > 30


@pytest.mark.long
@pytest.mark.parametrize("earlier", [0, 2])
def test_a_gallery_ends_in_the_same_bytes_after_any_power_cut(tmp_path: Path, starter: Encoder, earlier: int) -> None:
    """Of a first run, and of one with more photos and new facts of those that are there."""
    photos = tmp_path / "photos"

    def again(place: Path) -> dict[str, bytes]:
        index(place / "gallery", [str(photos)], [starter], Options(workers=1, shard_rows=2))
        return files(place / "gallery" / "shards")

    for seed in range(earlier):
        draw(photos / f"{seed}.jpg", seed)
    if earlier:
        again(tmp_path / "place")
    for seed in range(earlier, 5):
        draw(photos / f"{seed}.jpg", seed)
    (photos / "metadata.csv").write_text("file_name,number\n1.jpg,1\n4.jpg,4\n")

    count = check_all(recorded("index", tmp_path), tmp_path, again, "gallery/shards")

    assert len(shard_paths(tmp_path / "place" / "gallery")) == 3
    assert count > 30
