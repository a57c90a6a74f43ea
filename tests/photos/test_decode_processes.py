"""Pictures that processes read for a card: the gallery is that of threads, and nothing outlives the run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from PIL import Image

from eyespot import rooms
from eyespot.encoders.starter import Starter
from eyespot.gallery.indexing import Summary
from eyespot.gallery.reading import KnownInIndex
from eyespot.photos.decode_processes import WORTH, ProcessReader, least_rows, local_reader
from eyespot.photos.decode_workers import ThreadedReader
from eyespot.photos.found import KnownPictures
from eyespot.storage.copies import INDEX
from eyespot.types import Encoder, EyespotError
from tests.lazy_import import requires
from tests.worlds import draw, draw_photos, index_gallery
from tests.worlds.galleries import facts_of, opened

NAMES = ("here", "apart")
pytestmark = pytest.mark.long  # a process takes seconds to begin


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return rooms.load("encoders", f"hf:{tiny_models.hf_clip(tmp_path_factory.mktemp('clip'))}", device="cpu")


@pytest.fixture(autouse=True)
def stubbed(monkeypatch: pytest.MonkeyPatch, child_env: dict[str, str]) -> None:
    monkeypatch.setenv("PYTHONPATH", child_env["PYTHONPATH"])


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight photos, one that is large in memory and not on the disk, and two files that are none."""
    folder = draw_photos(tmp_path_factory.mktemp("photos"), 8)
    noise = np.random.default_rng(0).integers(0, 16, (3000, 4000, 3), np.uint8)
    Image.fromarray(noise).save(folder / "large.png", compress_level=1)
    (folder / "broken.jpg").write_bytes((folder / "0.jpg").read_bytes()[:300])
    (folder / "empty.png").touch()
    return folder


def run(gallery: Path, photos: Path, encoder: Encoder, *, apart: bool) -> Summary:
    def reader_factory(encoders: Mapping[str, Encoder]) -> ProcessReader:
        return ProcessReader(
            partial(KnownInIndex, gallery) if (gallery / INDEX).exists() else KnownPictures, encoders, 2
        )

    summary: Summary = index_gallery(
        gallery, photos, encoders=[encoder], workers=2, reader_factory=reader_factory if apart else None
    )
    return summary


@requires("torch", "transformers", "open_clip")
@pytest.mark.parametrize("model", ["hf", "open_clip"])
def test_the_gallery_is_that_of_threads(tmp_path: Path, photos: Path, clip: Any, model: str) -> None:
    if model == "open_clip":
        weights = tiny_models.tiny_clip_weights(tmp_path)
        clip = rooms.load("encoders", f"open_clip:tiny-clip/{weights}", device="cpu")
    threads, processes = (run(tmp_path / name, photos, clip, apart=name == "apart") for name in NAMES)

    assert processes.pictures == threads.pictures == 9
    assert [(one.path, one.reason) for one in processes.failures] == [(o.path, o.reason) for o in threads.failures]
    assert len(processes.failures) == 2 and facts_of(tmp_path / "apart") == facts_of(tmp_path / "here")
    assert np.array_equal(*(np.concatenate(opened(tmp_path / name).blocks) for name in NAMES))


def test_all_memory_for_one_photo(tmp_path: Path, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The large photo takes 192 MB in full; a process has 150 MB."""
    monkeypatch.setenv("EYESPOT_DECODE_MEMORY", "300M")  # half is for processes, and one usual photo takes all of it
    assert run(tmp_path / "gallery", photos, card(), apart=True).pictures == 9


def card(reader: Any = None, *, on_accelerator: bool = True) -> Any:
    """The built-in encoder as if it ran on a card: a process that reads for it begins without torch."""
    encoder: Any = Starter()
    encoder.on_accelerator, encoder.reader, encoder.batch = on_accelerator, reader or Starter(), 50
    encoder.min_side = None
    return encoder


def test_processes_read_where_a_card_embeds_many_pictures(starter: Encoder) -> None:
    cases: list[tuple[dict[str, Any], int, int]] = [
        ({"a": card()}, 2, WORTH),
        ({"a": card()}, 2, WORTH - 1),
        ({"a": card()}, 1, WORTH),
        ({"a": card(), "b": starter}, 2, WORTH),
        ({"a": card(on_accelerator=False)}, 2, WORTH),
        ({}, 2, WORTH),
        ({"a": card(reader=lambda: None)}, 2, WORTH),  # which cannot be pickled
    ]
    kinds = []
    for encoders, workers, count in cases:
        with local_reader(KnownPictures, encoders, workers, count) as reader:
            kinds.append(type(reader))

    assert kinds == [ProcessReader, *[ThreadedReader] * 6]
    assert least_rows({"a": card(on_accelerator=False), "b": starter}) == 64 and least_rows({"a": card()}) == 200


def test_a_killed_process_ends_the_run_and_the_next_goes_on(tmp_path: Path, photos: Path) -> None:
    shutil.copytree(photos, folder := tmp_path / "photos")
    with ProcessReader(KnownPictures, {"starter": card()}, 2) as reader:
        for process in reader.processes:
            process.process.kill()
            process.process.wait()
        with pytest.raises(EyespotError, match="was killed"):
            index_gallery(tmp_path / "gallery", folder, encoders=[card()], reader_factory=lambda _: reader)
    assert run(tmp_path / "gallery", folder, card(), apart=True).pictures == 9
    draw(folder / "new.jpg", 77)
    assert run(tmp_path / "gallery", folder, card(), apart=True).embedded == 1


def test_what_a_library_raises_is_raised_here(tmp_path: Path, photos: Path, monkeypatch: Any) -> None:
    """And not only that a process ended."""
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", "many")

    sentences = []
    for name in ("here", "apart"):
        with pytest.raises(EyespotError, match="EYESPOT_MAX_PIXELS") as raised:
            run(tmp_path / name, photos, card(), apart=name == "apart")
        sentences.append(str(raised.value))
    assert sentences[0] == sentences[1]


HANGS = """
import sys
from eyespot.encoders.starter import Starter
from eyespot.photos.decode_processes import ProcessReader
from eyespot.photos.found import KnownPictures
card = Starter()
card.on_accelerator, card.reader = True, Starter()
reader = ProcessReader(KnownPictures, {"starter": card}, 2)
print(*[process.process.poll() for process in reader.processes], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_the_run(kill: int) -> None:
    """Its children complain where it does: that ends when the last of them has ended."""
    line, pipe = [sys.executable, "-c", HANGS], subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as parent:
        assert parent.stdout and parent.stderr and parent.stdout.readline() == "None None\n"
        parent.send_signal(kill)
        parent.stderr.read()
