"""Vectors as signed bytes, with a proven bound on what was lost: a quarter of the size, for fast first passes.

A row x is stored as x = centre + scale · codes + rest, where only the length of `rest` is stored. For any query q the
inner product is therefore known to within |q| · |rest| (Cauchy and Schwarz), whatever the data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels import compiled
from eyespot.kernels.prefetch import prefetch_rows
from eyespot.storage.arrays import distinct
from eyespot.storage.atomic import new_file
from eyespot.storage.systems import usable_cores, write_at
from eyespot.types import EyespotError, UsageError

Block = NDArray[Any]  # (rows, dim) of float32 or float16, often memory-mapped
Span = tuple[int, int]
Reals = NDArray[np.float64]
T = TypeVar("T")

NOT_FINITE = "some vectors hold NaN or infinity; embed these pictures again"
WIDEST = 65_536  # dimensions; beyond this 255 · 127 · dim does not fit the 32 bits the products are summed in
_PARTS = ("codes", "bounds", "lengths", "centre", "match")  # the last one says that the others are whole
MAPPED = 3  # of them, those with a row for each vector; each is an open file as long as the codes are used
_MODES: dict[str, Any] = dict.fromkeys(_PARTS[:MAPPED], "r")
_CHUNK = 1 << 22  # numbers converted at once
_CACHED = 1 << 16  # numbers coded at once
_MANY = 1 << 25  # numbers of a block in float16 that repay compiled conversion
_WIDTH = 64  # codes are padded to whole vector registers


class NotFiniteVectors(UsageError):
    """A vector that was to be ranked holds NaN or infinity."""


def default_threads() -> int:
    """OMP_NUM_THREADS if it is a sensible number, else the processors this process may use."""
    usable = usable_cores()
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and 0 < int(wanted) <= 4 * usable else usable


def spread(task: Callable[[T], object], over: Iterable[T], threads: int) -> None:
    """The task for each item, on so many threads at once."""
    if threads == 1:
        for item in over:
            task(item)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(task, item) for item in over]:
            done.result()


def chunks(block: Block, numbers: int = _CHUNK) -> Iterator[Span]:
    """Starts and stops of row ranges of about so many numbers each."""
    step = max(1, numbers // max(1, block.shape[1]))
    return ((start, min(start + step, len(block))) for start in range(0, len(block), step))


def floats(block: Block, rows: Any) -> NDArray[np.float32]:
    """Some rows as contiguous float32 (n, dim); a slice of a float32 block is not copied."""
    if block.dtype == np.float16 and block.size >= _MANY and compiled():
        from eyespot.kernels.halves import widened

        return widened(block[rows])
    return np.ascontiguousarray(block[rows], np.float32)


@dataclass(frozen=True, eq=False)
class Codes:
    """One block of vectors in int8, 1 + 20/dim bytes a number (dim counted up to a multiple of 64).

    Per row four float32 bounds: scale, |rest| (never too small), |scale · codes| (never too small), sum of codes.
    A row that holds NaN or infinity has |rest| and length infinite: no search rules it out, but a mask may.
    """

    codes: NDArray[np.int8]  # (rows, width), zero beyond dim
    bounds: NDArray[np.float32]  # (rows, 4)
    lengths: NDArray[np.float32]  # (rows,), of the vectors, never too short
    centre: NDArray[np.float32]  # (dim,)
    match: NDArray[np.uint8]  # (16,), names the vectors these codes were made from
    written: int = 0  # when the files were last changed, in ns; 0: never on disk
    prefix: str = ""  # of the files they were loaded from

    @property
    def nbytes(self) -> int:
        return sum(int(getattr(self, part).nbytes) for part in _PARTS)

    def save(self, prefix: Path | str) -> None:
        """Five plain .npy files, PREFIX.codes.npy and so on; each appears whole or not at all."""
        _file(prefix, "match").unlink(missing_ok=True)
        for part in _PARTS:
            with new_file(_file(prefix, part)) as out:
                np.save(out, getattr(self, part), allow_pickle=False)

    @classmethod
    def load(cls, prefix: Path | str) -> Codes:
        """What `save` wrote, the parts of each row memory-mapped; EyespotError if a file is missing or damaged."""
        try:
            parts = {part: np.load(_file(prefix, part), _MODES.get(part), allow_pickle=False) for part in _PARTS}
            written = min(_file(prefix, part).stat().st_mtime_ns for part in _PARTS)
        except (OSError, ValueError, EOFError) as error:
            way_out = "delete them to have them made again"
            raise EyespotError(f"the codes {prefix}.*.npy cannot be read ({error}); {way_out}") from error
        return cls(**parts, written=written, prefix=str(prefix))

    def part(self, block: Block, rows: slice) -> Codes:
        """The codes of some rows, a slice, of the block that these are of."""
        own = {part: getattr(self, part)[rows] for part in _PARTS[:MAPPED]}
        return replace(self, **own, match=_digest(block[rows]))

    def fit(self, block: Block) -> bool:
        """Whether these codes are of these vectors.

        Shape, type and 64 rows are compared. If the file of the vectors is newer than the codes, every row's bound
        is proven again, at the cost of one scan.
        """
        rows, dim = block.shape
        parts = (self.codes, self.bounds, self.lengths, self.centre)
        shapes = [part.shape for part in parts] == [(rows, padded(dim)), (rows, 4), (rows,), (dim,)]
        types = "".join(part.dtype.str for part in parts) == "|i1<f4<f4<f4"
        if not (shapes and types and np.array_equal(self.match, _digest(block))):
            return False
        return not self.older_than(block) or self.proven(block)

    def older_than(self, block: Block) -> bool:
        """Whether the file of the vectors was changed after these codes were written."""
        base: Any = block
        while base is not None and not isinstance(base, np.memmap):
            base = getattr(base, "base", None)
        name = getattr(base, "filename", None)  # None for vectors in memory
        return bool(self.written and name and Path(name).exists() and Path(name).stat().st_mtime_ns > self.written)

    def proven(self, block: Block) -> bool:
        """Whether every row of the block lies within its bounds: all that an exact search relies on."""
        for start, stop in chunks(block):
            part, bounds = slice(start, stop), self.bounds[start:stop].astype(np.float64)
            codes = self.codes[part].astype(np.float64)
            coded = bounds[:, :1] * codes[:, : block.shape[1]]  # (n, dim)
            vectors = block[part].astype(np.float64)
            lost = ~np.isfinite(vectors).all(axis=1)
            vectors[lost] = np.where(np.isinf(bounds[lost, 1:2]), 0, np.inf)
            near = np.linalg.norm(vectors - self.centre - coded, axis=1) <= bounds[:, 1] * (1 + 1e-9)
            long = np.linalg.norm(coded, axis=1) <= bounds[:, 2] * (1 + 1e-9)
            whole = np.linalg.norm(vectors, axis=1) <= self.lengths[part].astype(np.float64) * (1 + 1e-9)
            summed = (codes.sum(axis=1) == bounds[:, 3]) & ~codes[:, block.shape[1] :].any(axis=1)
            if not (near & long & whole & summed).all():
                return False
        return True


def padded(dim: int) -> int:
    return -(-dim // _WIDTH) * _WIDTH


def quantise(block: Block, threads: int | None = None) -> Codes:
    """The codes of a block of float32 or float16 vectors, made in parallel and in bounded memory."""
    rows, dim = block.shape
    raw = np.zeros(rows * padded(dim) + 64, np.int8)  # loads across two cache lines cost a tenth of the speed
    start, centre = -raw.ctypes.data % 64, _centre(block)
    codes = raw[start : start + rows * padded(dim)].reshape(rows, padded(dim))
    bounds, long = np.empty((rows, 4), np.float32), np.empty(rows, np.float32)

    def code(span: Span) -> None:
        part = slice(*span)
        _code(floats(block, part), centre, codes[part], bounds[part], long[part])

    spread(code, chunks(block), threads or default_threads())
    return Codes(codes, bounds, long, centre, _digest(block))


def write_codes(block: Block, prefix: Path | str, threads: int | None = None) -> None:
    """The files that `quantise(block).save(prefix)` would leave, in memory that does not grow with the block.

    Killed half way, or where something cannot be written, there are no codes.
    """
    _file(prefix, "match").unlink(missing_ok=True)
    centre, width = _centre(block), padded(block.shape[1])
    with ExitStack() as files:
        outs, heads = [files.enter_context(new_file(_file(prefix, part))) for part in _PARTS[:MAPPED]], []
        for out, kind, shape in zip(outs, ("|i1", "<f4", "<f4"), ((width,), (4,), ()), strict=True):
            head = {"descr": kind, "fortran_order": False, "shape": (len(block), *shape)}
            np.lib.format.write_array_header_1_0(out, head)
            out.flush()
            heads.append(out.tell())

        def code(span: Span) -> None:
            count = span[1] - span[0]
            codes, bounds = np.zeros((count, width), np.int8), np.empty((count, 4), np.float32)
            long = np.empty(count, np.float32)
            _code(floats(block, slice(*span)), centre, codes, bounds, long)
            piece: list[NDArray[Any]] = [codes, bounds, long]
            for out, head, rows in zip(outs, heads, piece, strict=True):
                write_at(out, memoryview(rows.data).cast("B"), head + span[0] * (rows.nbytes // len(rows)))

        spread(code, chunks(block), threads or default_threads())
    for part, array in (("centre", centre), ("match", _digest(block))):
        with new_file(_file(prefix, part)) as out:
            np.save(out, array, allow_pickle=False)


def code_files(stem: str) -> list[str]:
    """The names of the files that codes lie in, beside vectors `STEM.npy`."""
    return [_file(stem, part).name for part in _PARTS]


def has_codes(prefix: Path | str) -> bool:
    """Whether codes lie there, and whole."""
    return _file(prefix, "match").exists()


def current_codes(prefix: Path | str, block: Block) -> Codes | None:
    """The codes that lie there, mapped; None if there are none, or they are of other or older vectors."""
    try:
        codes = Codes.load(prefix) if has_codes(prefix) else None
    except EyespotError:
        return None
    return codes if codes and not codes.older_than(block) and codes.fit(block) else None


def delete_codes(prefix: Path | str) -> None:
    """Remove what `save` or `write_codes` wrote, if anything."""
    for part in reversed(_PARTS):
        _file(prefix, part).unlink(missing_ok=True)


def lengths(vectors: NDArray[np.float32]) -> Reals:
    """Lengths (n,), too long by at most 2 dim 2⁻²² of themselves; double precision only where float32 overflows.

    UsageError if a vector holds NaN or infinity.
    """
    long = _lengths(vectors)
    if np.isinf(long).any():
        raise NotFiniteVectors(NOT_FINITE)
    return long


def short_lengths(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same in float32, and still never too short: infinite where float32 ends, and of what is not finite."""
    with np.errstate(over="ignore"):
        return np.asarray(_lengths(vectors) * (1 + 2.0**-23) + 2.0**-140, np.float32)


def _lengths(vectors: NDArray[np.float32]) -> Reals:
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors).astype(np.float64)
        if not np.isfinite(squares).all():
            squares = np.square(vectors.astype(np.float64)).sum(axis=1)
    squares[np.isnan(squares)] = np.inf
    long: Reals = np.sqrt(squares * (1 + vectors.shape[1] * 2.0**-22) + vectors.shape[1] * 2.0**-120)
    return long


def _code(
    vectors: NDArray[np.float32],
    centre: NDArray[np.float32],
    codes: NDArray[np.int8],
    bounds: NDArray[np.float32],
    long: NDArray[np.float32],
) -> None:
    """Fill in the codes (n, width ≥ dim, zeroed), bounds (n, 4) and lengths (n,) of some vectors (n, dim).

    In pieces that the cache holds: compiled loops are hardly faster.
    """
    long[:] = short_lengths(vectors)
    endless = np.flatnonzero(np.isinf(long))
    lost = endless[~np.isfinite(vectors[endless]).all(axis=1)]
    if len(lost):
        vectors = vectors.copy()
        vectors[lost] = 0
    dim = vectors.shape[1]
    step = max(1, _CACHED // max(1, dim))
    differences, rounded = np.empty((step, dim)), np.empty((step, dim))
    for start in range(0, len(vectors), step):
        part = slice(start, min(start + step, len(vectors)))
        rest, whole = differences[: part.stop - start], rounded[: part.stop - start]
        np.subtract(vectors[part], centre, out=rest, dtype=np.float64)
        largest = np.maximum(rest.max(axis=1, initial=0), -rest.min(axis=1, initial=0))  # (n,)
        scale = _above(largest / 127).astype(np.float64)
        inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        np.rint(np.multiply(rest, inverse[:, None], out=whole), out=whole)
        codes[part, :dim] = whole
        bounds[part, 0], bounds[part, 3] = scale, whole.sum(axis=1)
        bounds[part, 2] = _above(scale * np.sqrt(np.einsum("ij,ij->i", whole, whole)))
        rest -= np.multiply(whole, scale[:, None], out=whole)
        rounding = 1e-15 * largest * np.sqrt(dim)  # of the subtractions in double precision
        bounds[part, 1] = _above(np.sqrt(np.einsum("ij,ij->i", rest, rest)) + rounding)
    bounds[lost, 1] = np.inf


def _above(values: Reals) -> NDArray[np.float32]:
    """Float32 that are not less than the values."""
    near = (values * (1 + 1e-6)).astype(np.float32)
    return np.where(near >= values, near, near + np.float32(1.5e-45)).astype(np.float32)


def _file(prefix: Path | str, part: str) -> Path:
    return Path(f"{prefix}.{part}.npy")


def evenly(rows: int, most: int) -> NDArray[np.int64]:
    """The numbers of at most so many of the rows, from the first to the last: enough to know vectors by."""
    return distinct(np.linspace(0, max(0, rows - 1), most).astype(np.int64))[:rows]


def _centre(block: Block) -> NDArray[np.float32]:
    """About the mean; any vector would be right, this one leaves short rows."""
    sample = np.asarray(block[evenly(len(block), 4096)], np.float64)
    sample = sample[np.isfinite(sample).all(axis=1)]
    return np.asarray(sample.mean(axis=0) if len(sample) else np.zeros(block.shape[1]), np.float32)  # (dim,)


def _digest(block: Block) -> NDArray[np.uint8]:
    digest = blake2b(f"{block.shape} {block.dtype.str}".encode(), digest_size=16)
    rows = evenly(len(block), 64)
    prefetch_rows(block, rows)
    digest.update(np.ascontiguousarray(block[rows]).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
