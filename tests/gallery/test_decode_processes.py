"""Pictures that processes read for a card: the gallery is that of threads, and nothing outlives the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from PIL import Image

from eyespot import rooms
from eyespot.gallery.decode_processes import WORTH, ProcessReader, least_rows, local_reader
from eyespot.gallery.decode_workers import ThreadedReader
from eyespot.gallery.index_file import INDEX
from eyespot.gallery.indexing import Options, Summary, index
from eyespot.gallery.view import Gallery
from eyespot.types import Encoder, EyespotError
from tests.lazy_import import requires
from tests.worlds import draw

pytestmark = [requires("torch", "transformers", "open_clip"), pytest.mark.long]  # a process takes seconds to begin


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return rooms.load("encoders", f"hf:{tiny_models.hf_clip(tmp_path_factory.mktemp('clip'))}", device="cpu")


@pytest.fixture(autouse=True)
def stubbed(monkeypatch: pytest.MonkeyPatch, child_env: dict[str, str]) -> None:
    monkeypatch.setenv("PYTHONPATH", child_env["PYTHONPATH"])


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Forty photos, one of them large, and two files that are none."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(40):
        draw(folder / f"{number:02}.jpg", number)
    noise = np.random.default_rng(0).integers(0, 256, (3000, 4000, 3), np.uint8)
    Image.fromarray(noise).save(folder / "large.png")
    (folder / "broken.jpg").write_bytes((folder / "00.jpg").read_bytes()[:300])
    (folder / "empty.png").touch()
    return folder


def run(gallery: Path, photos: Path, encoder: Encoder, *, apart: bool) -> Summary:
    def hands(encoders: Mapping[str, Encoder]) -> ProcessReader:
        return ProcessReader(gallery if (gallery / INDEX).exists() else None, encoders, 2)

    return index(gallery, [str(photos)], [encoder], Options(workers=2, hands=hands if apart else None))


def content(gallery: Path) -> dict[str, tuple[dict[str, Any], bytes]]:
    view = Gallery(gallery).view(Gallery(gallery).stem())
    rows = np.flatnonzero(view.live).tolist()
    vectors = np.concatenate(view.blocks)
    return {fact["id"]: (fact, vectors[row].tobytes()) for fact, row in zip(view.facts(rows), rows, strict=True)}


def test_the_gallery_is_that_of_threads(tmp_path: Path, photos: Path, clip: Encoder) -> None:
    threads, processes = (run(tmp_path / name, photos, clip, apart=name == "apart") for name in ("here", "apart"))

    assert processes.pictures == threads.pictures == 41
    assert [(one.path, one.reason) for one in processes.failures] == [(o.path, o.reason) for o in threads.failures]
    assert len(processes.failures) == 2
    assert content(tmp_path / "apart") == content(tmp_path / "here")


def test_a_second_run_reads_only_what_is_new(tmp_path: Path, photos: Path, clip: Encoder) -> None:
    run(tmp_path / "gallery", photos, clip, apart=True)
    draw(photos / "new.jpg", 77)

    assert run(tmp_path / "gallery", photos, clip, apart=True).embedded == 1


def test_what_one_process_has_no_memory_for_is_read_with_all_of_it(
    tmp_path: Path, photos: Path, clip: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The large photo takes 192 MB in full; a process has 150 MB."""
    monkeypatch.setenv("EYESPOT_DECODE_MEMORY", "300M")  # half is for processes, and one usual photo takes all of it

    assert run(tmp_path / "gallery", photos, clip, apart=True).pictures == 41


def test_an_open_clip_model_is_read_apart_too(tmp_path: Path, photos: Path) -> None:
    weights = tiny_models.tiny_clip_weights(tmp_path)
    encoder = rooms.load("encoders", f"open_clip:tiny-clip/{weights}", device="cpu")

    run(tmp_path / "here", photos, encoder, apart=False)
    run(tmp_path / "apart", photos, encoder, apart=True)

    assert content(tmp_path / "apart") == content(tmp_path / "here")


class OnCard:
    """The encoder, as if it ran on a card."""

    on_accelerator = True

    def __init__(self, encoder: Encoder, reader: Any = None) -> None:
        self._encoder, self.reader = encoder, reader or getattr(encoder, "reader", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def test_processes_read_where_a_card_embeds_many_pictures(clip: Any, starter: Encoder) -> None:
    card: Any = OnCard(clip)
    kinds = []
    for encoders, workers, count in (
        ({"a": card}, 2, WORTH),
        ({"a": card}, 2, WORTH - 1),
        ({"a": card}, 1, WORTH),
        ({"a": card, "b": starter}, 2, WORTH),
        ({"a": clip}, 2, WORTH),
        ({}, 2, WORTH),
        ({"a": OnCard(clip, reader=lambda: None)}, 2, WORTH),  # which cannot be pickled
    ):
        with local_reader(None, encoders, workers, count) as reader:
            kinds.append(type(reader))

    assert kinds == [ProcessReader, *[ThreadedReader] * 6]


def test_a_shard_of_a_card_has_some_batches(clip: Any, starter: Encoder) -> None:
    assert least_rows({"a": clip, "b": starter}) == 64 and least_rows({"a": OnCard(clip)}) == 4 * clip.batch


def test_a_process_that_is_killed_ends_the_run_with_a_sentence_and_the_next_goes_on(
    tmp_path: Path, photos: Path, clip: Encoder
) -> None:
    with ProcessReader(None, {"clip": clip}, 2) as reader:
        for process in reader.processes:
            process.process.kill()
            process.process.wait()
        with pytest.raises(EyespotError, match=r"was killed, .* at .*\.jpg and 7 more; .* fewer"):
            index(tmp_path / "gallery", [str(photos)], [clip], Options(hands=lambda _: reader))

    assert run(tmp_path / "gallery", photos, clip, apart=True).pictures == 41


def test_what_a_library_raises_is_raised_here(tmp_path: Path, photos: Path, clip: Encoder, monkeypatch: Any) -> None:
    """And not only that a process ended."""
    monkeypatch.setenv("EYESPOT_MAX_PIXELS", "many")

    sentences = []
    for name in ("here", "apart"):
        with pytest.raises(EyespotError, match="EYESPOT_MAX_PIXELS") as raised:
            run(tmp_path / name, photos, clip, apart=name == "apart")
        sentences.append(str(raised.value))
    assert sentences[0] == sentences[1]


HANGS = """
import sys, time
from eyespot import rooms
from eyespot.gallery.decode_processes import ProcessReader
reader = ProcessReader(None, {"clip": rooms.load("encoders", sys.argv[1], device="cpu")}, 2)
print(*[process.process.pid for process in reader.processes], flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_the_run(kill: int, clip: Encoder) -> None:
    line = [sys.executable, "-c", HANGS, clip.space.encoder]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        children = [int(word) for word in parent.stdout.readline().split()]
        assert len(children) == 2
        parent.send_signal(kill)

    until = time.monotonic() + 60
    while any(_runs(child) for child in children):
        assert time.monotonic() < until, f"still running: {children}"
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()  # nobody here reaps orphans
