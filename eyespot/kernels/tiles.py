"""Four rows times four queries of bytes, summed in registers: the instructions numba would not choose by itself.

`scans`, `lanes` and `adapted` are the only files that import this one.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

TILE = 4
WIDTH = 64  # codes are padded to whole vector registers

_BYTE, _INT, _INDEX = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _load(builder: Any, pointer: Any, lanes: Any) -> Any:
    loaded = builder.load(builder.bitcast(pointer, lanes.as_pointer()))
    loaded.align = 1
    return loaded


def _vnni(builder: Any, total: Any, query: Any, code: Any) -> Any:
    """64 products in one instruction (AVX-512 VNNI)."""
    lanes = ir.VectorType(_INT, 16)
    kind = ir.FunctionType(lanes, [lanes] * 3)
    add = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
    return builder.call(add, [total, _load(builder, query, lanes), _load(builder, code, lanes)])


def _portable(builder: Any, total: Any, query: Any, code: Any) -> Any:
    """The same on any processor: 255 · 127 fits 16 bits, so products are taken there and added in 32."""
    byte, short, lanes = (ir.VectorType(ir.IntType(bits), 16) for bits in (8, 16, 32))
    for start in range(0, WIDTH, 16):
        at = [builder.gep(pointer, [_INDEX(start)]) for pointer in (query, code)]
        unsigned = builder.zext(_load(builder, at[0], byte), short)
        signed = builder.sext(_load(builder, at[1], byte), short)
        total = builder.add(total, builder.sext(builder.mul(unsigned, signed), lanes))
    return total


def _vnni_half(builder: Any, total: Any, query: Any, code: Any) -> Any:
    """32 products in one instruction (AVX-VNNI)."""
    lanes = ir.VectorType(_INT, 8)
    kind = ir.FunctionType(lanes, [lanes] * 3)
    add = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.256")
    for start in (0, 32):
        at = [builder.gep(pointer, [_INDEX(start)]) for pointer in (query, code)]
        total = builder.call(add, [total, *(_load(builder, pointer, lanes) for pointer in at)])
    return total


def _avx2(builder: Any, total: Any, query: Any, code: Any) -> Any:
    """16 products of 16 bits and the sums of neighbours in one instruction."""
    byte, short, lanes = ir.VectorType(_BYTE, 16), ir.VectorType(ir.IntType(16), 16), ir.VectorType(_INT, 8)
    kind = ir.FunctionType(lanes, [short] * 2)
    multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.pmadd.wd")
    for start in range(0, WIDTH, 16):
        at = [builder.gep(pointer, [_INDEX(start)]) for pointer in (query, code)]
        unsigned = builder.zext(_load(builder, at[0], byte), short)
        signed = builder.sext(_load(builder, at[1], byte), short)
        total = builder.add(total, builder.call(multiply, [unsigned, signed]))
    return total


def ask(builder: Any, pointer: Any) -> None:
    """Fetch a line as far as the second-level cache: the first has too few places to wait in."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(prefetch, [pointer, _INT(0), _INT(2), _INT(1)])


def cpu_features(context: Any) -> set[str]:
    """What the processor can do, in LLVM's names."""
    return set(context.codegen().magic_tuple()[2].split(","))


def _multiplier(context: Any) -> tuple[Callable[..., Any], int]:
    """What adds the products of 64 bytes to sums, and how many sums there are."""
    features = cpu_features(context)
    if {"+avx512f", "+avx512vnni"} <= features:
        return _vnni, 16
    if "+avxvnni" in features:
        return _vnni_half, 8
    return (_avx2, 8) if "+avx2" in features else (_portable, 16)


def fast() -> bool:
    """Whether this processor multiplies bytes faster than a float32 matrix product multiplies floats."""
    return _multiplier(cpu_target.target_context)[0] is not _portable


def arrays_of(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """The four arrays that a call begins with."""
    pairs = zip(signature.args[:4], args[:4], strict=True)
    return [context.make_array(kind)(context, builder, value=array) for kind, array in pairs]


def accumulate(  # noqa: PLR0917
    context: Any, builder: Any, codes: list[Any], queries: list[Any], width: Any, later: Sequence[Any] = ()
) -> list[list[Any]]:
    """The sums of each code and each query; a line of `later` is prefetched whenever a line of the codes is used up."""
    multiply, count = _multiplier(context)
    lanes = ir.VectorType(_INT, count)
    zero = ir.Constant(lanes, [0] * count)
    sums = [[cgutils.alloca_once(builder, lanes) for _ in queries] for _ in codes]
    for total in (total for row in sums for total in row):
        builder.store(zero, total)
    with cgutils.for_range_slice(builder, _INDEX(0), width, _INDEX(WIDTH), _INDEX) as (at, _):
        for code in later:
            ask(builder, builder.gep(code, [at]))
        for code, row in zip(codes, sums, strict=True):
            for query, total in zip(queries, row, strict=True):
                pair = [builder.gep(pointer, [at]) for pointer in (query, code)]
                builder.store(multiply(builder, builder.load(total), *pair), total)
    return sums


def sums_by_four(builder: Any, sums: list[Any]) -> list[Any]:
    """The sum of each of sixteen vectors, four to a vector.

    Two vectors at a time are folded into one, which takes a third of the instructions of sixteen sums one by one.
    """
    vectors = [builder.load(total) for total in sums]
    count = vectors[0].type.count
    folded = [_folded(builder, vectors[start : start + count]) for start in range(0, len(vectors), count)]
    fours = [[ir.Constant(_INT, lane) for lane in range(start, start + TILE)] for start in range(0, count, TILE)]
    kind = ir.VectorType(_INT, TILE)
    return [builder.shuffle_vector(whole, whole, ir.Constant(kind, four)) for whole in folded for four in fours]


def _folded(builder: Any, vectors: list[Any]) -> Any:
    """The sum of each of as many vectors as they have lanes, in that order."""
    count = len(vectors)
    lanes, step = ir.VectorType(_INT, count), count // 2
    while step:
        here = [count | lane ^ step if lane & step else lane for lane in range(count)]
        there = [count | lane if lane & step else lane | step for lane in range(count)]
        pairs = zip(vectors[:step], vectors[step:], strict=True)
        vectors = [
            builder.add(*(builder.shuffle_vector(one, other, ir.Constant(lanes, which)) for which in (here, there)))
            for one, other in pairs
        ]
        step //= 2
    return vectors[0]


def store(builder: Any, place: Any, four: Any) -> None:
    """Four sums to where they belong."""
    builder.store(four, builder.bitcast(place, four.type.as_pointer())).align = 4


@intrinsic  # arrays in a tuple would be counted in and out with atomic instructions at every call
def tile(typing: Any, codes: Any, chosen: Any, queries: Any, dots: Any, at: Any, first: Any) -> Any:  # noqa: PLR0917
    """dots[at:at+4, first:first+4] of codes[chosen] and queries: sixteen sums in registers, loads used four times"""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        codes, chosen, queries, dots = arrays_of(context, builder, signature, args)
        width, across = builder.extract_value(codes.shape, 1), builder.extract_value(dots.shape, 1)
        lines, columns = ([builder.add(start, _INDEX(i)) for i in range(TILE)] for start in args[4:])
        ids = [builder.load(builder.gep(chosen.data, [line])) for line in lines]
        code = [builder.gep(codes.data, [builder.mul(i, width)]) for i in ids]
        query = [builder.gep(queries.data, [builder.mul(column, width)]) for column in columns]
        sums = [total for row in accumulate(context, builder, code, query, width) for total in row]
        for line, four in zip(lines, sums_by_four(builder, sums), strict=True):
            store(builder, builder.gep(dots.data, [builder.add(builder.mul(line, across), args[5])]), four)
        return context.get_dummy_value()

    return types.void(codes, chosen, queries, dots, types.int64, types.int64), emit


@intrinsic
def fetch(typing: Any, codes: Any, row: Any, at: Any) -> Any:
    """Ask for the cache line that holds codes[row, at]."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(codes)(context, builder, value=args[0])
        line = builder.mul(args[1], builder.extract_value(array.shape, 1))
        place = builder.gep(array.data, [builder.add(line, args[2])])
        ask(builder, place)
        return context.get_dummy_value()

    return types.void(codes, types.int64, types.int64), emit
