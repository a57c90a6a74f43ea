"""What a small program prints: a few kinds of statement of Python, walked one by one and never handed to Python itself.

Numbers, texts and lists; + - * // %, comparisons, and/or/not, indices; assignment, if, for over a range or a list,
while, print, and the functions len, sum, max, min, sorted, str, int, abs, range.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from eyespot.types import UsageError

MOST_STEPS, MOST_LENGTH = 10_000, 10_000
_ACTS: Mapping[type, Callable[[Any, Any], Any]] = {
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
    "range": lambda *bounds: list(_bounded(range(*bounds))),
}


def printed(program: str) -> str:
    """The lines that it prints, joined by line ends; `UsageError` for what it cannot do, and if it does not end."""
    try:
        walked = _Walk()
        walked.block(ast.parse(program).body)
    except UsageError:
        raise
    except RecursionError:
        raise UsageError("the program is nested too deeply; write it flatter") from None
    except Exception as error:  # a program may go wrong in any way that Python knows
        raise UsageError(f"the program stops with {type(error).__name__} ({error}); fix it") from None
    return "\n".join(walked.lines)


class _Walk:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self.steps = 0

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._count()
            act = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if act is None:
                raise _unknown(statement)
            act(statement)

    def _count(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise UsageError(f"the program does not end within {MOST_STEPS:,} steps; let it do less")

    # -- statements -------------------------------------------------------------------------------------------

    def _assign(self, statement: ast.Assign) -> None:
        (target,) = statement.targets
        self._set(target, self.value(statement.value))

    def _augassign(self, statement: ast.AugAssign) -> None:
        before = self.value(ast.Name(_target_name(statement.target)))
        self._set(statement.target, _done(statement.op, before, self.value(statement.value)))

    def _set(self, target: ast.expr, value: Any) -> None:
        self.names[_target_name(target)] = value

    def _if(self, statement: ast.If) -> None:
        self.block(statement.body if self.value(statement.test) else statement.orelse)

    def _for(self, statement: ast.For) -> None:
        for value in self.value(statement.iter):
            self._set(statement.target, value)
            self.block(statement.body)

    def _while(self, statement: ast.While) -> None:
        while self.value(statement.test):
            self._count()
            self.block(statement.body)

    def _expr(self, statement: ast.Expr) -> None:
        call = statement.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "print":
            raise _unknown(statement)
        self.lines.append(" ".join(str(self.value(one)) for one in call.args))

    # -- values -----------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        self._count()
        act = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if act is None:
            raise _unknown(node)
        return act(node)

    def _of_constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, int | str):
            raise _unknown(node)
        return node.value

    def _of_name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            raise UsageError(f"the program uses {node.id!r} before it has a value; give it one first")
        return self.names[node.id]

    def _of_list(self, node: ast.List) -> list[Any]:
        return [self.value(one) for one in node.elts]

    def _of_binop(self, node: ast.BinOp) -> Any:
        return _done(node.op, self.value(node.left), self.value(node.right))

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if not isinstance(node.op, ast.USub):
            raise _unknown(node)
        return -value

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        stops = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.value(part)
            if bool(value) == stops:
                return value
        return value

    def _of_compare(self, node: ast.Compare) -> bool:
        (act,), (right,) = node.ops, node.comparators
        return bool(_done(act, self.value(node.left), self.value(right)))

    def _of_subscript(self, node: ast.Subscript) -> Any:
        held, place = self.value(node.value), node.slice
        if not isinstance(place, ast.Slice):
            return held[self.value(place)]
        bounds = (None if one is None else self.value(one) for one in (place.lower, place.upper, place.step))
        return held[slice(*bounds)]

    def _of_call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
            raise _unknown(node)
        return _FUNCTIONS[node.func.id](*(self.value(one) for one in node.args))


def _target_name(target: ast.expr) -> str:
    if not isinstance(target, ast.Name):
        raise _unknown(target)
    return target.id


def _done(act: ast.operator | ast.cmpop, left: Any, right: Any) -> Any:
    if type(act) not in _ACTS:
        raise _unknown(act)
    if isinstance(act, ast.Mult):
        # Refuse, before it is made, what would fill the memory: long texts and lists, numbers of hundreds of
        # digits
        many, times = (left, right) if isinstance(left, list | str) else (right, left)
        if isinstance(many, list | str) and isinstance(times, int) and len(many) * times > MOST_LENGTH:
            raise _too_much(MOST_LENGTH)
        if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 1024:
            raise UsageError("the program reaches numbers beyond all measure; let it do less")
    if isinstance(act, ast.Mod) and isinstance(left, str):
        raise UsageError("the program formats a text with %; join its parts with + instead")
    found = _ACTS[type(act)](left, right)
    if isinstance(found, list | str) and len(found) > MOST_LENGTH:
        raise _too_much(MOST_LENGTH)
    return found


def _too_much(limit: int) -> UsageError:
    return UsageError(f"the program makes more than {limit:,} of one thing; let it do less")


def _bounded(numbers: range) -> range:
    if len(numbers) > MOST_LENGTH:
        raise _too_much(MOST_LENGTH)
    return numbers


def _unknown(node: ast.AST) -> UsageError:
    return UsageError(f"the program uses {type(node).__name__}, which is not among what a small program may do")
