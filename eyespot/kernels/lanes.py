"""Eight rows of codes times eight columns of bytes, a column to each lane: no sums across lanes, so few columns cost
little. The instructions numba would not choose by itself.

`adapted` multiplies with these; the adapters lay out columns by their sizes.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from eyespot.kernels.tiles import TILE, WIDTH, accumulate, arrays_of, ask, cpu_features, store, sums_by_four

ROWS, LANES, FEW = 8, 8, TILE

_BYTE, _SHORT, _INT, _INDEX = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_SUMS = ir.VectorType(_INT, LANES)
_BYTES = ir.VectorType(_BYTE, 4 * LANES)


def _vnni(builder: Any, total: Any, columns: Any, codes: Any) -> Any:
    kind = ir.FunctionType(_SUMS, [_SUMS] * 3)
    add = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.256")
    return builder.call(add, [total, columns, codes])


def _portable(builder: Any, total: Any, columns: Any, codes: Any) -> Any:
    """The same on any processor: 255 · 127 fits 16 bits; neighbours are added in 32, twice."""
    wide = ir.VectorType(_SHORT, 4 * LANES)
    products = builder.mul(
        builder.zext(builder.bitcast(columns, _BYTES), wide), builder.sext(builder.bitcast(codes, _BYTES), wide)
    )
    sums = builder.sext(products, ir.VectorType(_INT, 4 * LANES))
    for width in (2 * LANES, LANES):
        nothing = ir.Constant(sums.type, ir.Undefined)
        even, odd = (
            ir.Constant(ir.VectorType(_INT, width), [2 * lane + start for lane in range(width)]) for start in (0, 1)
        )
        sums = builder.add(builder.shuffle_vector(sums, nothing, even), builder.shuffle_vector(sums, nothing, odd))
    return builder.add(total, sums)


def _sums(builder: Any, codes: list[Any], columns: Any, width: Any) -> list[Any]:
    """The sums of the first ROWS codes; a line of the others is prefetched whenever a line of these is used up."""
    features = cpu_features(cpu_target.target_context)
    has_vnni = {"+avx512vl", "+avx512vnni"} <= features or "+avxvnni" in features
    multiply: Callable[..., Any] = _vnni if has_vnni else _portable
    now, later, nothing = codes[:ROWS], codes[ROWS:], ir.Constant(_SUMS, ir.Undefined)
    sums = [cgutils.alloca_once(builder, _SUMS) for _ in now]
    for total in sums:
        builder.store(ir.Constant(_SUMS, [0] * LANES), total)
    with cgutils.for_range_slice(builder, _INDEX(0), width, _INDEX(WIDTH), _INDEX) as (line, _):
        for code in later:
            ask(builder, builder.gep(code, [line]))
        end = builder.add(line, _INDEX(WIDTH))
        with cgutils.for_range_slice(builder, line, end, _INDEX(4), _INDEX) as (at, _):
            place = builder.gep(columns, [builder.mul(at, _INDEX(LANES))])
            column = builder.load(builder.bitcast(place, _SUMS.as_pointer()))
            column.align = 1
            for code, total in zip(now, sums, strict=True):
                four = builder.load(builder.bitcast(builder.gep(code, [at]), _INT.as_pointer()))
                four.align = 1
                first = builder.insert_element(nothing, four, ir.Constant(_INT, 0))
                every = builder.shuffle_vector(first, nothing, ir.Constant(_SUMS, [0] * LANES))  # four codes a lane
                builder.store(multiply(builder, builder.load(total), column, every), total)
    return sums


def _transposed(builder: Any, sums: list[Any]) -> list[Any]:
    """Eight vectors of eight: those of rows as those of columns."""
    for step in (1, 2, 4):
        lower = [lane ^ step | LANES if lane & step else lane for lane in range(LANES)]
        upper = [lane | LANES if lane & step else lane | step for lane in range(LANES)]
        turned = list(sums)
        for i in (i for i in range(ROWS) if not i & step):
            for j, which in ((i, lower), (i | step, upper)):
                turned[j] = builder.shuffle_vector(sums[i], sums[i | step], ir.Constant(_SUMS, which))
        sums = turned
    return sums


@intrinsic
def lanes(typing: Any, codes: Any, chosen: Any, columns: Any, dots: Any, at: Any, group: Any) -> Any:  # noqa: PLR0917
    """dots[8 group:8 group+8, at:at+8] of columns (groups, width / 4, 8, 4) and codes[chosen[at:at+8]].

    Behind the rows of all dots `chosen` names those whose turn comes then, as many again.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        codes, chosen, columns, dots = arrays_of(context, builder, signature, args)
        width, across = builder.extract_value(codes.shape, 1), builder.extract_value(dots.shape, 1)
        lines = [builder.add(args[4], _INDEX(i)) for i in range(ROWS)]
        later = [builder.add(line, across) for line in lines]
        rows = [builder.load(builder.gep(chosen.data, [line])) for line in [*lines, *later]]
        code = [builder.gep(codes.data, [builder.mul(row, width)]) for row in rows]
        group = builder.gep(columns.data, [builder.mul(args[5], builder.mul(width, _INDEX(LANES)))])
        sums = [builder.load(total) for total in _sums(builder, code, group, width)]
        for lane, total in enumerate(_transposed(builder, sums)):
            line = builder.add(builder.mul(args[5], _INDEX(LANES)), _INDEX(lane))
            start = builder.add(builder.mul(line, across), args[4])
            place = builder.bitcast(builder.gep(dots.data, [start]), _SUMS.as_pointer())
            builder.store(total, place).align = 4
        return context.get_dummy_value()

    return types.void(codes, chosen, columns, dots, types.int64, types.int64), emit


@intrinsic
def few_lanes(typing: Any, codes: Any, chosen: Any, columns: Any, dots: Any, at: Any, group: Any) -> Any:  # noqa: PLR0917
    """dots[4 group:4 group+4, at:at+4] of columns (groups, 4, width / 4, 4) and codes[chosen[at:at+4]]; see `lanes`.

    Sums across lanes, which few columns repay: half the loads. Of each four rows of the next
    block only three are fetched here: so few columns take less time than memory, which fetches the fourth later.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        codes, chosen, columns, dots = arrays_of(context, builder, signature, args)
        width, across = builder.extract_value(codes.shape, 1), builder.extract_value(dots.shape, 1)
        lines = [builder.add(args[4], _INDEX(i)) for i in range(TILE)]
        rows = [
            builder.load(builder.gep(chosen.data, [builder.add(line, more)]))
            for more in (_INDEX(0), across)
            for line in lines
        ]
        code = [builder.gep(codes.data, [builder.mul(row, width)]) for row in rows]
        lanes = [builder.add(builder.mul(args[5], _INDEX(FEW)), _INDEX(lane)) for lane in range(FEW)]
        column = [builder.gep(columns.data, [builder.mul(lane, width)]) for lane in lanes]
        sums = accumulate(context, builder, code[:TILE], column, width, code[TILE : 2 * TILE - 1])
        by_lane = [row[lane] for lane in range(FEW) for row in sums]
        for lane, four in zip(lanes, sums_by_four(builder, by_lane), strict=True):
            store(builder, builder.gep(dots.data, [builder.add(builder.mul(lane, across), args[4])]), four)
        return context.get_dummy_value()

    return types.void(codes, chosen, columns, dots, types.int64, types.int64), emit
