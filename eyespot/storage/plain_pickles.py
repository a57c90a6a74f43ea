"""Plain values out of a pickle, without unpickling: no name in it is looked up and nothing in it is called.

The opcodes are read by `pickletools`, and only those that make dicts, lists, tuples, texts, bytes, numbers, and numpy's
arrays and scalars of them are followed. Anything else is refused by its name.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

NUMBERS = re.compile(r"[<>=|]?[biuf][1248]")
NUMPY = re.compile(r"numpy\.(?:_?core\.)?(?:multiarray)?\.?")
MARK = object()


class NotPlain(ValueError):
    """What stands in a pickle and is no plain value."""


class _Name(NamedTuple):
    """What the pickle would look up."""

    name: str


class _Array:
    """An array that is being read."""

    def __init__(self) -> None:
        self.value: Any = None


class _NumberKind:
    """The kind of an array's numbers; its byte order comes later."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "<"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype; `NotPlain` for one that is no number."""
        code = self.code if self.code[:1] in "<>=|" else (self.order if self.order in "<>" else "|") + self.code
        if not NUMBERS.fullmatch(code):
            raise NotPlain(f"an array of {self.code}")
        return np.dtype(code)


def read(data: bytes) -> Any:
    """The value that a pickle describes; `NotPlain` names what it holds besides plain values, or that it is damaged."""
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            machine.follow(opcode.name, argument)
        (value,) = machine.stack
    except NotPlain:
        raise
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, RecursionError) as error:
        raise NotPlain(f"damaged data ({error})") from None
    return value.value if isinstance(value, _Array) else value


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def follow(self, name: str, argument: Any) -> None:
        if name in CONSTANTS:
            self.stack.append(argument)
        elif name in VALUES:
            self.stack.append(VALUES[name]())
        elif name in STEPS:
            STEPS[name](self, argument)
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise NotPlain(f"the opcode {name}")

    def pop_to_mark(self) -> list[Any]:
        """What lies above the last mark, which goes too."""
        mark = next((place for place in range(len(self.stack) - 1, -1, -1) if self.stack[place] is MARK), None)
        if mark is None:
            raise NotPlain("damaged data (no mark)")
        values = self.stack[mark + 1 :]
        del self.stack[mark:]
        return values

    def pop(self, count: int) -> list[Any]:
        """The last values."""
        values = self.stack[-count:]
        if len(values) < count:
            raise NotPlain("damaged data (too few values)")
        del self.stack[-count:]
        return values

    # -- steps ----------------------------------------------------------------------------------------------

    def put(self, number: Any) -> None:
        self.memo[len(self.memo) if number is None else int(number)] = self.stack[-1]

    def get(self, number: Any) -> None:
        self.stack.append(self.memo[int(number)])

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise NotPlain("entries for what is not a list")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise NotPlain("items for what is not a dict")
        target.update(_pairs(values))

    def global_name(self, argument: Any) -> None:
        words = self.pop(2) if argument is None else str(argument).split(" ")
        name = ".".join(map(_text, words))
        short = NUMPY.sub("", name)
        if name != "_codecs.encode" and (short == name or short not in CALLS):
            raise NotPlain(name)
        self.stack.append(_Name(short))

    def reduce(self, _: Any) -> None:
        function, arguments = self.pop(2)
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise NotPlain("a call of what is no name")
        self.stack.append(CALLS[function.name](*arguments))

    def build(self, _: Any) -> None:
        state = self.pop(1)[0]
        target = self.stack[-1]
        if isinstance(target, _NumberKind):
            target.order = _text(state[1])
        elif isinstance(target, _Array):
            _, shape, kind, fortran, data = state
            if kind.code.lstrip("|") in ("O", "O8"):
                target.value = data[0] if shape == () else list(data)
            else:
                target.value = np.frombuffer(data, kind.numpy).reshape(shape, order="F" if fortran else "C")
        else:
            raise NotPlain("an object with a state")


def _pairs(values: list[Any]) -> dict[Any, Any]:
    """A dict of keys and values in turn; a key of nested tuples could break Python while it is hashed."""
    keys = values[::2]
    if not all(isinstance(key, str | int | float | bytes) for key in keys):
        raise NotPlain("a dict with a key that is neither a text nor a number")
    return dict(zip(keys, values[1::2], strict=True))


def _text(value: Any) -> str:
    """A text; tuples of tuples of one tuple take a few bytes of a pickle, and gigabytes as a text."""
    if not isinstance(value, str):
        raise NotPlain("a name that is not text")
    return value


def _number(kind: _NumberKind, data: bytes) -> Any:
    """A scalar of numpy as a number of Python."""
    (value,) = np.frombuffer(data, kind.numpy).tolist()
    return value


CALLS: dict[str, Callable[..., Any]] = {
    "_reconstruct": lambda *_: _Array(),
    "scalar": _number,
    "dtype": lambda code, *_: _NumberKind(_text(code)),
    "ndarray": lambda *_: _Array(),
    "_codecs.encode": lambda text, encoding: _text(text).encode("latin1"),
}
CONSTANTS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
VALUES: dict[str, Callable[[], Any]] = {
    **{"NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False},
    **{"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "MARK": lambda: MARK},
}
STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    "APPEND": lambda machine, _: machine.append(machine.pop(1)),
    "APPENDS": lambda machine, _: machine.append(machine.pop_to_mark()),
    "SETITEM": lambda machine, _: machine.set_items(machine.pop(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_to_mark()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_to_mark())),
    "TUPLE1": lambda machine, _: machine.stack.append(tuple(machine.pop(1))),
    "TUPLE2": lambda machine, _: machine.stack.append(tuple(machine.pop(2))),
    "TUPLE3": lambda machine, _: machine.stack.append(tuple(machine.pop(3))),
    "LIST": lambda machine, _: machine.stack.append(machine.pop_to_mark()),
    "DICT": lambda machine, _: machine.stack.append(_pairs(machine.pop_to_mark())),
    **{"GLOBAL": _Machine.global_name, "STACK_GLOBAL": _Machine.global_name},
    **{"REDUCE": _Machine.reduce, "BUILD": _Machine.build},
}
