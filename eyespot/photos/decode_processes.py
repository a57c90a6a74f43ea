"""Processes that read and decode pictures for a model on a card: the threads of one Python cannot feed it.

A process runs `python -m eyespot.photos.decode_processes`. It gets planned pictures through a pipe, answers through
another, and writes pixels into memory that it shares with this process. It ends when its pipe is closed, so also when
this process is killed.
"""

from __future__ import annotations

import mmap
import os
import pickle
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import chain, groupby
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np
from PIL import Image

from eyespot.parallel import batches, ordered_map
from eyespot.photos.decode_workers import Later, OpenKnown, ReadPicture, ThreadedReader, read_one, read_planned
from eyespot.photos.found import PlannedPicture
from eyespot.photos.memory import VARIABLE, as_size, decode_limit, free_memory
from eyespot.photos.places import Root
from eyespot.photos.videos.addresses import VIDEO
from eyespot.storage.systems import usable_cores
from eyespot.types import Encoder, EyespotError, PixelReader, Pixels, ProcessReadable, Vectors

TOGETHER = 8  # pictures that a process reads at once
WORTH = 2000  # pictures for which processes are started: that takes as long as reading hundreds
_AHEAD = 2  # batches that wait for the card
_USUAL = 400 << 20  # bytes that decoding a photo of 24 megapixels takes; larger ones are read here
_LARGE_FILE = 32 << 20  # bytes
_MOST = 64  # processes; each takes three open files and 0.3 GB with torch and transformers


Shapes = Mapping[str, tuple[tuple[int, ...], str]]  # of one picture's pixels in each space, and their type


def local_reader(known: OpenKnown, encoders: Mapping[str, Encoder], workers: int, count: int) -> ThreadedReader:
    """Processes for many pictures where the processors are free while a model embeds; else threads."""
    free = bool(encoders) and all(map(_on_accelerator, encoders.values()))
    apart = free and workers > 1 and count >= WORTH and all(map(_can_be_sent, encoders.values()))
    return (ProcessReader if apart else ThreadedReader)(known, encoders, workers)


def least_rows(encoders: Mapping[str, Encoder]) -> int:
    """The fewest rows of a shard: four batches where an accelerator embeds, which waits while a shard is written."""
    return max((4 * one.batch for one in encoders.values() if _on_accelerator(one)), default=64)


def _is_usual(one: PlannedPicture) -> bool:
    """Whether a process reads it: no video, and no file of a size that all processes together must not hold."""
    return one.seen.offset > VIDEO and one.seen.size <= _LARGE_FILE


def _on_accelerator(encoder: Encoder) -> bool:
    return isinstance(encoder, ProcessReadable) and encoder.on_accelerator


def _can_be_sent(encoder: Encoder) -> bool:
    """Whether its preprocessing can be pickled: a library may hold it in a function without a name."""
    try:
        pickle.dumps(encoder.reader if isinstance(encoder, ProcessReadable) else None)
    except Exception:  # what a library's object raises is its own
        return False
    return True


class ProcessReader(ThreadedReader):
    """Reads in processes, videos aside, and embeds in a thread of its own while more is read.

    known: opens what is known already, and can be pickled. `EyespotError` if a process ends before its time.
    """

    def __init__(self, known: OpenKnown, encoders: Mapping[str, Encoder], workers: int) -> None:
        super().__init__(known, encoders, workers)
        readers = {stem: one.reader for stem, one in encoders.items() if isinstance(one, ProcessReadable)}
        self.card = ThreadPoolExecutor(1, thread_name_prefix="eyespot-embed")
        self.open: deque[Future[Vectors]] = deque()
        self.processes: list[_DecodeProcess] = []
        self.free: SimpleQueue[_DecodeProcess] = SimpleQueue()
        # As many processes as there are cores, if the memory decodes a usual photo in each; half of it is for here
        room = decode_limit() if VARIABLE in os.environ else max(decode_limit(), free_memory() // 2)
        count = max(1, min(workers, usable_cores(), _MOST, room // 2 // _USUAL))
        # By one picture; what has another shape is sent through the pipe
        one = Image.new("RGB", (640, 480))
        pixels = {stem: reader.read(one) for stem, reader in readers.items()}
        shapes = {stem: (made.shape, made.dtype.str) for stem, made in pixels.items()}
        try:
            for _ in range(count):
                self.processes.append(_DecodeProcess(known, readers, shapes, limit=room // 2 // count))
                self.free.put(self.processes[-1])
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            self.__exit__()
            raise EyespotError(
                f"no process that reads pictures could be started ({why}); run the same line with fewer --workers"
            ) from error
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            self.card.shutdown(cancel_futures=True)
            super().__exit__(*error)
        finally:
            for process in self.processes:
                process.close()
            for process in self.processes:
                process.process.wait()

    def read_all(self, planned: Iterable[PlannedPicture], roots: Mapping[int, Root]) -> Iterator[ReadPicture]:
        """Every planned picture, read, in the order of the plan; a video when its turn comes, frame by frame."""
        parts = (part for usual, run in groupby(planned, _is_usual) for part in batches(run, TOGETHER if usual else 1))
        ahead = self.window // TOGETHER + len(self.processes)
        return chain.from_iterable(ordered_map(lambda part: self._read(part, roots), parts, self.pool, ahead))

    def embed(self, stem: str, pixels: Sequence[Pixels]) -> Later:
        """The vectors of one batch, made while others are read."""
        while len(self.open) >= _AHEAD:
            self.open.popleft().result()
        future = self.card.submit(lambda: self.encoders[stem].encode_pixels(np.stack(pixels)))
        self.open.append(future)
        return future.result

    def _read(self, part: Sequence[PlannedPicture], roots: Mapping[int, Root]) -> Iterable[ReadPicture]:
        if not _is_usual(part[0]):
            return read_planned(part[0], roots[part[0].root], self.encoders, self.known)
        process = self.free.get()
        try:
            reads = process.read(part, {one.root: roots[one.root] for one in part})
        finally:
            self.free.put(process)
        # What was too large for a process may be read with the memory of all of them
        return [
            read_one(one.planned, roots[one.planned.root], self.encoders, self.known) if one.out_of_reach else one
            for one in reads
        ]


class _DecodeProcess:
    """One process, and the memory that it shares with this one."""

    def __init__(self, known: OpenKnown, readers: Mapping[str, PixelReader], shapes: Shapes, *, limit: int) -> None:
        in_memory = hasattr(os, "memfd_create")
        # Where this process finds its packages: `-P` and a checkout that is not installed would hide some
        places = [os.environ.get("PYTHONPATH"), *(place for place in sys.path if os.path.isabs(place))]
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, places))}
        with os.fdopen(os.memfd_create("eyespot-pixels"), "w+b") if in_memory else tempfile.TemporaryFile() as file:
            size = sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in shapes.values())
            file.truncate(max(1, TOGETHER * size))
            self.memory = mmap.mmap(file.fileno(), 0)
            self.pixels = _pixel_arrays(self.memory, shapes)
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "eyespot.photos.decode_processes"],  # -P: nothing of this folder is run
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[file.fileno()],
                start_new_session=True,  # an interrupt is for this process, which then ends it
                env={**os.environ, **paths, "OMP_NUM_THREADS": "1", VARIABLE: as_size(max(1 << 20, limit))},
            )
            try:
                assert self.process.stdin and self.process.stdout
                with self.process.stdin as to, self.process.stdout as answers:
                    self.to = Connection(os.dup(to.fileno()), readable=False)
                    self.answers = Connection(os.dup(answers.fileno()), writable=False)
                # a pipe that nobody else can write
                self.to.send_bytes(pickle.dumps((known, readers, shapes, file.fileno())))
            except BaseException:
                self.process.kill()
                self.process.wait()
                raise

    def read(self, part: Sequence[PlannedPicture], roots: Mapping[int, Root]) -> list[ReadPicture]:
        """These pictures, as many as fit the memory; raises what reading them raised in the process."""
        try:
            self.to.send((part, roots))
            answer = self.answers.recv()
        except (EOFError, OSError) as error:
            code, remedy = self.process.wait(), "run the same line again with fewer --workers"
            why = "was killed, as is done where memory is short"
            if code != -9:
                why = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
                remedy = "run the same line again; if it ends there again, move these files away"
            files = f"{part[0].seen.path}{f' and {len(part) - 1} more' if len(part) > 1 else ''}"
            raise EyespotError(f"a process that reads pictures {why}, at {files}; {remedy}") from error
        if isinstance(answer, Exception):
            raise answer
        return [
            replace(read, pixels={stem: array[at].copy() for stem, array in self.pixels.items()}) if stored else read
            for at, (read, stored) in enumerate(answer)
        ]

    def close(self) -> None:
        """Let it end."""
        self.to.close()
        self.answers.close()


def _pixel_arrays(memory: mmap.mmap, shapes: Shapes) -> dict[str, Any]:
    """For each space (TOGETHER, ...) in the shared memory, one after the other."""
    arrays: dict[str, Any] = {}
    for stem, (shape, kind) in shapes.items():
        offset = sum(array.nbytes for array in arrays.values())
        arrays[stem] = np.ndarray((TOGETHER, *shape), kind, memory, offset)
    return arrays


# -- in the process ---------------------------------------------------------------------------------------------


def main() -> None:
    """Answer requests until the pipe is closed."""
    requests, answers = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # what libraries print
    work: _Work | Exception
    with suppress(EOFError, OSError):
        words = requests.recv_bytes()
        try:
            work = _Work(*pickle.loads(words))
        except Exception as error:
            work = _portable(error)
        while True:
            part, roots = requests.recv()
            answers.send(work.read(part, roots) if isinstance(work, _Work) else work)
    os._exit(0)  # without taking libraries apart, which takes a second


class _Work:
    """What a process holds while it reads."""

    def __init__(self, known: OpenKnown, readers: Mapping[str, PixelReader], shapes: Shapes, memory: int) -> None:
        self.readers, self.known = readers, known()
        self.arrays = _pixel_arrays(mmap.mmap(memory, 0), shapes)

    def read(self, part: Sequence[PlannedPicture], roots: Mapping[int, Root]) -> Any:
        """Each picture, and whether its pixels are in the shared memory; or an error, to be raised by who asks."""
        reads: list[tuple[ReadPicture, bool]] = []
        try:
            for at, one in enumerate(part):
                read = read_one(one, roots[one.root], self.readers, self.known)
                arrays = {stem: array for stem, array in self.arrays.items() if stem in read.pixels}
                found = [(read.pixels[stem].shape, read.pixels[stem].dtype) for stem in arrays]
                fits = bool(arrays) and found == [(array.shape[1:], array.dtype) for array in arrays.values()]
                for stem, array in arrays.items() if fits else ():
                    array[at] = read.pixels[stem]
                reads.append((replace(read, pixels={}) if fits else read, fits))
            return reads
        except Exception as error:
            return _portable(error)


def _portable(error: Exception) -> Exception:
    """The error, or its words where it cannot be sent."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        return EyespotError(f"{type(error).__name__}: {error}")
    return again if isinstance(again, Exception) else error


if __name__ == "__main__":
    main()
