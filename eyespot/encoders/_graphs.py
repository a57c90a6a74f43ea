"""What an ONNX file says of itself, read without loading its weights: inputs, outputs, kinds of nodes, files beside it.

Only the fields that are needed are read, by the numbers of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

import mmap
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from eyespot.types import UsageError

FLOAT, UINT8, INT32, INT64, HALF = 1, 2, 6, 7, 10  # TensorProto.DataType
_GRAPH, _NODE, _INITIALIZER, _INPUT, _OUTPUT = 7, 1, 5, 11, 12
_OP_TYPE, _ATTRIBUTE, _ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH = 4, 5, 5, 6
_NAME, _TENSOR_NAME, _RAW, _EXTERNAL, _KEY, _VALUE = 1, 8, 9, 13, 1, 2
_TYPE, _TENSOR_TYPE, _ELEMENT, _SHAPE, _DIM, _SIDE = 2, 1, 1, 2, 1, 1


class UnreadableGraph(UsageError):
    """The file is not an ONNX file, or cut short."""


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
            graphs = list(_Message(data, 0, len(data)).messages(_GRAPH))
            tensors = [tensor for graph in graphs for tensor in _tensors(graph)]
            constants = {tensor.text(_TENSOR_NAME) for tensor in tensors}
            entries = [entry for tensor in tensors for entry in tensor.messages(_EXTERNAL)]
            places = [entry.text(_VALUE).removeprefix("./") for entry in entries if entry.text(_KEY) == "location"]
            operators = frozenset(name for graph in graphs for name in _operators(graph))
            ports = [[_port(one) for graph in graphs for one in graph.messages(kind)] for kind in (_INPUT, _OUTPUT)]
    except (OSError, ValueError, IndexError, RecursionError) as error:
        raise UnreadableGraph(f"{file} is not an ONNX file: {error}") from error
    for name in places:
        if PurePosixPath(name).name != name or name in (".", ".."):
            raise UsageError(f"{file} keeps weights in {name!r}, which is not a file beside it")
    inputs = tuple(port for port in ports[0] if port.name not in constants)
    return Graph(inputs, tuple(ports[1]), operators, tuple(dict.fromkeys(places)))


def raw_constants(file: Path) -> dict[str, memoryview]:
    """The bytes of each constant of a file that needs no check, by its name, mapped."""
    with file.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    constants = _Message(data, 0, len(data)).messages(_GRAPH, _INITIALIZER)
    return {one.text(_TENSOR_NAME): one.bytes(_RAW) for one in constants}


def _tensors(graph: _Message) -> Iterator[_Message]:
    """The constants of a graph and of those within its nodes."""
    yield from graph.messages(_INITIALIZER)
    yield from graph.messages(_NODE, _ATTRIBUTE, _ATTRIBUTE_TENSOR)
    for inner in graph.messages(_NODE, _ATTRIBUTE, _ATTRIBUTE_GRAPH):
        yield from _tensors(inner)


def _operators(graph: _Message) -> Iterator[str]:
    yield from (node.text(_OP_TYPE) for node in graph.messages(_NODE))
    for inner in graph.messages(_NODE, _ATTRIBUTE, _ATTRIBUTE_GRAPH):
        yield from _operators(inner)


def _port(message: _Message) -> Port:
    tensor = next(message.messages(_TYPE, _TENSOR_TYPE), None)
    dtype = tensor.integer(_ELEMENT) if tensor else 0
    shape = [side.integer(_SIDE) or None for side in tensor.messages(_SHAPE, _DIM)] if tensor else []
    return Port(message.text(_NAME), dtype, tuple(shape))


class _Message:
    """The fields of a message by their numbers: integers, and messages or texts as their places."""

    def __init__(self, data: mmap.mmap, at: int, end: int) -> None:
        self._data = data
        self._integers: dict[int, int] = {}
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        while at < end:
            key, at = self._varint(at)
            if key & 7 == 0:
                self._integers[key >> 3], at = self._varint(at)
            elif key & 7 == 2:
                length, at = self._varint(at)
                if at + length > end:
                    raise ValueError("it is cut short")
                self._places[key >> 3].append((at, at + length))
                at += length
            elif key & 7 in (1, 5):
                at += 8 if key & 7 == 1 else 4
            else:
                raise ValueError("it has another format")

    def messages(self, number: int, *path: int) -> Iterator[_Message]:
        """The messages of a field, or those at the end of a path of fields."""
        for place in self._places.get(number, ()):
            inner = _Message(self._data, *place)
            yield from inner.messages(*path) if path else (inner,)

    def text(self, number: int) -> str:
        return str(self.bytes(number), "utf-8")

    def bytes(self, number: int) -> memoryview:
        at, end = self._places.get(number, [(0, 0)])[-1]
        return memoryview(self._data)[at:end]

    def integer(self, number: int) -> int:
        found = self._integers.get(number, 0)
        return found if found < 1 << 63 else 0

    def _varint(self, at: int) -> tuple[int, int]:
        value = shift = 0
        while shift < 70:
            byte = self._data[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value, at
        raise ValueError("it has another format")
