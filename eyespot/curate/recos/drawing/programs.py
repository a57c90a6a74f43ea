"""Small programs as an editor shows them, and their output, interpreted and never run by Python.

Numbers, texts and lists; + - * // %, comparisons, and/or/not, indices; assignment, if, for over a range or a list,
while, print, and the functions len, sum, max, min, sorted, str, int, abs, range.
"""

from __future__ import annotations

import ast
import io
import keyword
import operator
import tokenize
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from eyespot.curate.recos.drawing import FINER, SIZE, Colour, Paper, face, faces, fitting, photographed, sheet, spacing
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

Values = TypeVar("Values", bound=Sized)

MOST_STEPS, MOST_LENGTH = 10_000, 10_000
_OPERATIONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "len": len,
    "sum": sum,
    "max": max,
    "min": min,
    "sorted": sorted,
    "str": str,
    "int": int,
    "abs": abs,
    "range": lambda *bounds: list(_limited(range(*bounds))),
}


def printed(program: str) -> str:
    """The lines that it prints, joined by line ends; `UsageError` if it does not end or uses something else."""
    try:
        interpreter = _Interpreter()
        interpreter.run(ast.parse(program).body)
    except UsageError:
        raise
    except RecursionError:
        raise UsageError("the program is nested too deeply; write it flatter") from None
    except Exception as error:  # a program may go wrong in any way that Python knows
        raise UsageError(f"the program stops with {type(error).__name__} ({error}); fix it") from None
    return "\n".join(interpreter.lines)


class _Interpreter:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self.steps = 0

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise UsageError(f"the program does not end within {MOST_STEPS:,} steps; let it do less")

    def run(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.count_step()
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = self.value(value)
                case ast.AugAssign(target=ast.Name(id=name) as before, op=operation, value=value):
                    self.names[name] = _apply(operation, self.value(before), self.value(value))
                case ast.If(test=test, body=body, orelse=orelse):
                    self.run(body if self.value(test) else orelse)
                case ast.For() | ast.While():
                    self.run_loop(statement)
                case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=args)):
                    self.lines.append(" ".join(str(self.value(argument)) for argument in args))
                case _:
                    raise _unknown(statement)

    def run_loop(self, loop: ast.For | ast.While) -> None:
        if isinstance(loop, ast.While):
            while self.value(loop.test):
                self.count_step()
                self.run(loop.body)
        elif isinstance(loop.target, ast.Name):
            for value in self.value(loop.iter):
                self.names[loop.target.id] = value
                self.run(loop.body)
        else:
            raise _unknown(loop.target)

    def value(self, node: ast.expr) -> Any:
        self.count_step()
        match node:
            case ast.Constant(value=int() | str() as constant):
                return constant
            case ast.Name(id=name):
                if name not in self.names:
                    raise UsageError(f"the program uses {name!r} before it has a value; give it one first")
                return self.names[name]
            case ast.List(elts=items):
                return [self.value(item) for item in items]
            case ast.Subscript(value=items, slice=ast.Slice(lower=lower, upper=upper, step=step)):
                whole = self.value(items)
                return whole[slice(*(None if bound is None else self.value(bound) for bound in (lower, upper, step)))]
            case ast.Subscript(value=items, slice=place):
                return self.value(items)[self.value(place)]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(self.value(argument) for argument in args))
            case _:
                return self.result(node)

    def result(self, node: ast.expr) -> Any:
        """The value of an operation."""
        match node:
            case ast.BinOp(left=left, op=operation, right=right):
                return _apply(operation, self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[operation], comparators=[right]):
                return bool(_apply(operation, self.value(left), self.value(right)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.value(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.BoolOp(op=operation, values=parts):
                value: Any = None
                for part in parts:
                    value = self.value(part)
                    if bool(value) == isinstance(operation, ast.Or):
                        break
                return value
            case _:
                raise _unknown(node)


def _apply(operation: ast.operator | ast.cmpop, left: Any, right: Any) -> Any:
    if type(operation) not in _OPERATIONS:
        raise _unknown(operation)
    if isinstance(operation, ast.Mult):
        # Refuse beforehand what would fill the memory: long texts and lists, numbers of hundreds of digits
        many, times = (left, right) if isinstance(left, list | str) else (right, left)
        if isinstance(many, list | str) and isinstance(times, int) and len(many) * times > MOST_LENGTH:
            raise _too_much()
        if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 1024:
            raise UsageError("the program reaches numbers beyond all measure; let it do less")
    if isinstance(operation, ast.Mod) and isinstance(left, str):
        raise UsageError("the program formats a text with %; join its parts with + instead")
    result = _OPERATIONS[type(operation)](left, right)
    return _limited(result) if isinstance(result, list | str) else result


def _limited(values: Values) -> Values:
    if len(values) > MOST_LENGTH:
        raise _too_much()
    return values


def _too_much() -> UsageError:
    return UsageError(f"the program makes more than {MOST_LENGTH:,} of one thing; let it do less")


def _unknown(node: ast.AST) -> UsageError:
    return UsageError(f"the program uses {type(node).__name__}, which is not among what a small program may do")


@dataclass(frozen=True)
class Theme:
    """The colours of a listing, by what they are for."""

    page: Colour
    plain: Colour
    word: Colour
    number: Colour
    text: Colour
    margin: Colour


MARGIN = "00  "  # the room of a line number
THEMES: Mapping[str, Theme] = {
    "dark": Theme((33, 36, 46), (222, 224, 230), (224, 128, 190), (240, 188, 112), (150, 208, 128), (104, 110, 126)),
    "light": Theme((253, 253, 251), (36, 40, 46), (150, 32, 120), (28, 92, 190), (26, 122, 60), (168, 172, 178)),
    "printed": Theme((248, 247, 242), (26, 26, 28), (26, 26, 28), (26, 26, 28), (26, 26, 28), (140, 140, 140)),
    "blue": Theme((10, 40, 92), (240, 240, 236), (255, 214, 92), (146, 226, 240), (168, 240, 168), (110, 140, 190)),
}


def invent(chance: Random) -> dict[str, Any]:
    """How a listing might look."""
    theme, font = chance.choice(list(THEMES)), chance.choice(faces("code")).name
    return {"theme": theme, "font": font, "numbered": chance.random() < 0.5}


def paint(program: str, how: Mapping[str, Any], chance: Random) -> Image:
    """The listing; `UsageError` for a font that this machine does not have."""
    from PIL import ImageDraw

    theme = THEMES[how["theme"]]
    made = sheet(Paper("a screen", theme.page), chance)
    draw = ImageDraw.Draw(made)
    lines = program.splitlines()
    room = (SIZE[0] * 0.8 * FINER, SIZE[1] * 0.88 * FINER)
    font = fitting(face("code", how["font"]), [f"{MARGIN}{line}" for line in lines], room, 34 * FINER)
    left, top = 40 * FINER, max(30 * FINER, (made.height - len(lines) * spacing(font)) / 2)
    margin = font.getlength(MARGIN) if how["numbered"] else 0.0
    for number in range(1, len(lines) + 1 if how["numbered"] else 0):
        draw.text((left, top + (number - 1) * spacing(font)), f"{number:2d}", fill=theme.margin, font=font)
    kinds = {tokenize.NUMBER: theme.number, tokenize.STRING: theme.text}
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        if token.string.strip():
            colour = theme.word if keyword.iskeyword(token.string) else kinds.get(token.type, theme.plain)
            row, column = token.start  # the row from 1, the column from 0
            x = left + margin + font.getlength(lines[row - 1][:column])
            draw.text((x, top + (row - 1) * spacing(font)), token.string, fill=colour, font=font)
    return photographed(made, chance)
