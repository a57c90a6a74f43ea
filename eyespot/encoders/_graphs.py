"""What an ONNX file says of itself, read without loading its weights: inputs, outputs, kinds of nodes, files beside it.

Only the fields that are needed are read, by the numbers of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from eyespot.types import UsageError

FLOAT, UINT8, INT32, INT64, HALF = 1, 2, 6, 7, 10  # TensorProto.DataType
_GRAPH, _NODE, _INITIALIZER, _INPUT, _OUTPUT = 7, 1, 5, 11, 12
_OP_TYPE, _ATTRIBUTE, _ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH = 4, 5, 5, 6
_TENSOR_NAME, _EXTERNAL = 8, 13


class UnreadableGraph(UsageError):
    """The file is no ONNX file, or cut short."""


@dataclass(frozen=True)
class Port:
    """An input or output: its name, its type as TensorProto numbers it, and its shape, None where a side is free."""

    name: str
    dtype: int
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class Graph:
    """A tower: its ports, the kinds of its nodes, and the files that hold weights beside it."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    operators: frozenset[str]
    external: tuple[str, ...]


def read_graph(file: Path) -> Graph:
    """What a file says of itself. Raises: UnreadableGraph, and UsageError if it names weights outside its folder."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            parts = _Parts()
            for number, value in _fields(data, 0, len(data)):
                if number == _GRAPH and isinstance(value, slice):
                    parts.read_graph(data, value)
    except (OSError, ValueError, IndexError, RecursionError) as error:
        raise UnreadableGraph(f"{file} is no ONNX file: {error}") from error
    for name in parts.external:
        if PurePosixPath(name).name != name or name in (".", ".."):
            raise UsageError(f"{file} keeps weights in {name!r}, which is not a file beside it")
    inputs = tuple(port for port in parts.inputs if port.name not in parts.constants)
    return Graph(inputs, tuple(parts.outputs), frozenset(parts.operators), tuple(dict.fromkeys(parts.external)))


class _Parts:
    def __init__(self) -> None:
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.operators: set[str] = set()
        self.constants: set[str] = set()
        self.external: list[str] = []

    def read_graph(self, data: mmap.mmap, span: slice, inner: bool = False) -> None:
        for number, value in _fields(data, span.start, span.stop):
            if not isinstance(value, slice):
                continue
            if number == _NODE:
                self._read_node(data, value)
            elif number == _INITIALIZER:
                self._read_tensor(data, value)
            elif number in (_INPUT, _OUTPUT) and not inner:
                (self.inputs if number == _INPUT else self.outputs).append(_port(data, value))

    def _read_node(self, data: mmap.mmap, span: slice) -> None:
        for number, value in _fields(data, span.start, span.stop):
            if number == _OP_TYPE and isinstance(value, slice):
                self.operators.add(data[value].decode())
            elif number == _ATTRIBUTE and isinstance(value, slice):
                for kind, inner in _fields(data, value.start, value.stop):
                    if kind == _ATTRIBUTE_TENSOR and isinstance(inner, slice):
                        self._read_tensor(data, inner)
                    elif kind == _ATTRIBUTE_GRAPH and isinstance(inner, slice):
                        self.read_graph(data, inner, inner=True)

    def _read_tensor(self, data: mmap.mmap, span: slice) -> None:
        for number, value in _fields(data, span.start, span.stop):
            if number == _TENSOR_NAME and isinstance(value, slice):
                self.constants.add(data[value].decode())
            elif number == _EXTERNAL and isinstance(value, slice):
                entry = {kind: data[text].decode() for kind, text in _texts(data, value)}
                if entry.get(1) == "location":
                    self.external.append(entry.get(2, "").removeprefix("./"))


def _port(data: mmap.mmap, span: slice) -> Port:
    name, dtype, shape = "", 0, []
    for number, value in _texts(data, span):
        if number == 1:
            name = data[value].decode()
        elif number == 2:  # type → tensor_type → elem_type, shape → dim → dim_value
            for _, tensor in _texts(data, value):
                for kind, inner in _fields(data, tensor.start, tensor.stop):
                    if kind == 1 and isinstance(inner, int):
                        dtype = inner
                    elif kind == 2 and isinstance(inner, slice):
                        shape = [_side(data, side) for _, side in _texts(data, inner)]
    return Port(name, dtype, tuple(shape))


def _side(data: mmap.mmap, span: slice) -> int | None:
    sides = [value for number, value in _fields(data, span.start, span.stop) if number == 1 and isinstance(value, int)]
    return sides[0] if sides and sides[0] > 0 else None


def _texts(data: mmap.mmap, span: slice) -> Iterator[tuple[int, slice]]:
    """The fields of a message that have a length."""
    for number, value in _fields(data, span.start, span.stop):
        if isinstance(value, slice):
            yield number, value


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int | slice]]:
    """The fields of a message: a number, and an integer or the place of bytes."""
    while at < end:
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif key & 7 == 2:
            length, at = _varint(data, at)
            if at + length > end:
                raise ValueError("it is cut short")
            yield key >> 3, slice(at, at + length)
            at += length
        elif key & 7 in (1, 5):
            at += 8 if key & 7 == 1 else 4
        else:
            raise ValueError("it has another format")


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at
    raise ValueError("it has another format")
