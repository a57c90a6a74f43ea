"""Plain values out of a pickle: nothing that it names is looked up or called, but for stand-ins of numpy's own.

Python's own reader of pickles (`pickle._Unpickler`) gets only the opcodes that make dicts, lists, tuples, texts, bytes,
numbers, and numpy's arrays and scalars of them. Anything else is refused by its name.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

NUMBERS = re.compile(r"[<>=|]?[biuf][1248]")
NUMPY = re.compile(r"numpy\.(?:_?core\.)?(?:multiarray)?\.?")
OPCODES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "NONE", "NEWTRUE", "NEWFALSE"),
    *("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "MARK", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "LIST", "DICT"),
    *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
    *("APPEND", "APPENDS", "SETITEM", "SETITEMS", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
    *("PROTO", "FRAME", "STOP"),
}


class NotPlain(ValueError):
    """What stands in a pickle and is not a plain value."""


def read(data: bytes) -> Any:
    """The value that a pickle describes; `NotPlain` names what it holds besides plain values, or that it is damaged."""
    reader = _Reader(io.BytesIO(data))
    try:
        value = reader.load()
    except NotPlain:
        raise
    except Exception as error:  # damaged data can end in nearly any of Python's own errors
        raise NotPlain(f"damaged data ({error})") from None
    return value.value if isinstance(value, _Array) else value


class _Array:
    """An array that is being read."""

    value: Any = None

    def build(self, state: Any) -> None:
        _, shape, kind, fortran, data = state
        if kind.code.lstrip("|") in ("O", "O8"):
            self.value = data[0] if shape == () else list(data)
        else:
            self.value = np.frombuffer(data, kind.numpy).reshape(shape, order="F" if fortran else "C")


class _NumberKind:
    """The kind of an array's numbers; its byte order comes later."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "<"

    def build(self, state: Any) -> None:
        self.order = _text(state[1])

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype; `NotPlain` for one that is not a number."""
        code = self.code if self.code[:1] in "<>=|" else (self.order if self.order in "<>" else "|") + self.code
        if not NUMBERS.fullmatch(code):
            raise NotPlain(f"an array of {self.code}")
        return np.dtype(code)


def _text(value: Any) -> str:
    """A text; tuples of tuples of one tuple take a few bytes of a pickle, and gigabytes as a text."""
    if not isinstance(value, str):
        raise NotPlain("a name that is not text")
    return value


CALLS: dict[str, Callable[..., Any]] = {
    "_reconstruct": lambda *_: _Array(),
    "scalar": lambda kind, data: np.frombuffer(data, kind.numpy).item(),
    "dtype": lambda code, *_: _NumberKind(_text(code)),
    "ndarray": lambda *_: _Array(),
    "_codecs.encode": lambda text, encoding: _text(text).encode("latin1"),
}


class _Reader(pickle._Unpickler):
    """It knows OPCODES alone, and of names CALLS."""

    dispatch: ClassVar[dict[int, Any]] = {}
    stack: Any
    pop_mark: Callable[[], list[Any]]

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        """The function of ours that stands for a name."""
        full = f"{module}.{name}"
        short = NUMPY.sub("", full)
        if full != "_codecs.encode" and (short == full or short not in CALLS):
            raise NotPlain(full)
        return CALLS[short]

    def extend(self, values: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise NotPlain("entries for what is not a list")
        self.stack[-1].extend(values)

    def make_dict(self) -> None:
        values = self.pop_mark()
        self.stack.append({})
        self.update(values)

    def update(self, values: list[Any]) -> None:
        """Keys and values in turn; a key of nested tuples could break Python while it is hashed."""
        if not isinstance(self.stack[-1], dict):
            raise NotPlain("items for what is not a dict")
        if not all(isinstance(key, str | int | float | bytes) for key in values[::2]):
            raise NotPlain("a dict with a key that is neither a text nor a number")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], _Array | _NumberKind):
            raise NotPlain("an object with a state")
        self.stack[-1].build(state)


def _refuse(name: str) -> Callable[[Any], None]:
    def step(_: Any) -> None:
        raise NotPlain(f"the opcode {name}")

    return step


_STEPS: dict[str, Callable[[_Reader], None]] = {
    "APPEND": lambda reader: reader.extend([reader.stack.pop()]),
    "APPENDS": lambda reader: reader.extend(reader.pop_mark()),
    "SETITEM": lambda reader: reader.update([reader.stack.pop(-2), reader.stack.pop()]),
    "SETITEMS": lambda reader: reader.update(reader.pop_mark()),
    **{"DICT": _Reader.make_dict, "BUILD": _Reader.build},
}
for one in pickletools.opcodes:
    usual = pickle._Unpickler.dispatch.get(ord(one.code))
    _Reader.dispatch[ord(one.code)] = _STEPS.get(one.name, usual) if one.name in OPCODES else _refuse(one.name)
