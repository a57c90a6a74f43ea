"""Small faults that may be put into Python source, one at a time: what `mutants.py` draws from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

COMPARE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.Mult(),
    ast.Pow: ast.Mult(),
    ast.LShift: ast.RShift(),
    ast.RShift: ast.LShift(),
    ast.BitAnd: ast.BitOr(),
    ast.BitOr: ast.BitAnd(),
}
LOGS = {"log", "logger", "logging", "warnings"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Mutation(NamedTuple):
    """One fault; `first` to `last` are the lines of its statement, of which one runs whenever the fault can matter."""

    line: int
    first: int
    last: int
    function: str  # the innermost one that it is in; empty outside of all
    before: str
    after: str
    span: tuple[int, int]  # the bytes that it replaces
    text: str  # what it puts there

    def apply(self, source: str) -> str:
        """The file with the fault in it; empty where that is no Python, as of a sum in a pattern."""
        data, (begin, end) = source.encode(), self.span
        changed = (data[:begin] + self.text.encode() + data[end:]).decode()
        try:
            ast.parse(changed)
        except SyntaxError:
            return ""
        return changed


def mutations(source: str) -> list[Mutation]:
    """Every fault that may be put into a file, in order.

    None in annotations, decorators, assertions, log lines, docstrings, f-strings, `__all__`, or texts with a space.
    """
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, other, statement, function in _faults(ast.parse(source).body, ""):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        after = ast.unparse(other)
        text = f"({after})" if isinstance(other, ast.expr) else after
        lines = (node.lineno, statement.lineno, _last_line(statement))
        found.append(Mutation(*lines, function, ast.unparse(node), after, (begin, end), text))
    return found


def _last_line(statement: ast.stmt) -> int:
    """Where a statement ends; of one with a body its head."""
    body = getattr(statement, "body", None)
    return max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno


Fault = tuple[ast.stmt | ast.expr, ast.stmt | ast.expr, ast.stmt, str]  # node, what replaces it, statement, function


def _faults(body: list[ast.stmt], function: str) -> Iterator[Fault]:
    for statement in body:
        if _is_left_out(statement):
            continue
        for other in _other_statements(statement):
            yield statement, other, statement, function
        if isinstance(statement, ast.If | ast.While) and not isinstance(statement.test, ast.Compare | ast.Constant):
            yield statement.test, ast.UnaryOp(ast.Not(), statement.test), statement, function
        for expression in _expressions(statement):
            for node, changed in _in_expression(expression):
                yield node, changed, statement, function
        inner = statement.name if isinstance(statement, Function) else function
        for block in _blocks(statement):
            yield from _faults(block, inner)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Those that stand in a statement itself, not in its body."""
    for field, value in ast.iter_fields(statement):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr) and field not in ("decorator_list", "annotation", "returns"):
                yield child
            elif isinstance(child, ast.arguments):
                yield from [*child.defaults, *filter(None, child.kw_defaults)]
            elif isinstance(child, ast.withitem):
                yield child.context_expr


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
        yield part.body


def _is_left_out(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert | ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Expr):
        value = statement.value
        call = value.func if isinstance(value, ast.Call) else None
        is_log = isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name) and call.value.id in LOGS
        return isinstance(value, ast.Constant) or is_log
    if isinstance(statement, ast.If):
        return ast.unparse(statement.test) in ("TYPE_CHECKING", "__name__ == '__main__'")
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"


def _other_statements(statement: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(statement, ast.AugAssign):
        yield ast.AugAssign(statement.target, ARITHMETIC.get(type(statement.op), ast.Add()), statement.value)
    calls = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    if calls or isinstance(statement, ast.AugAssign | ast.Raise | ast.Delete):
        yield ast.Pass()
    if isinstance(statement, ast.Return) and statement.value and ast.unparse(statement.value) != "None":
        yield ast.Return(ast.Constant(None))
    if isinstance(statement, ast.Continue | ast.Break):
        yield ast.Break() if isinstance(statement, ast.Continue) else ast.Continue()


def _in_expression(expression: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(expression, ast.JoinedStr):  # 3.11 does not know where its parts stand
        return
    for other in _other_expressions(expression):
        yield expression, other
    for node in ast.iter_child_nodes(expression):
        if isinstance(node, ast.expr):
            yield from _in_expression(node)
        elif isinstance(node, ast.keyword | ast.comprehension):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr):
                    yield from _in_expression(part)


def _other_expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left, ops, comparators):
            for place, op in enumerate(ops):
                yield ast.Compare(left, [*ops[:place], COMPARE[type(op)], *ops[place + 1 :]], comparators)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
            yield ast.BinOp(left, ARITHMETIC[type(op)], right)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Constant(value):
            yield from map(ast.Constant, _other_values(value))


def _other_values(value: object) -> list[bool | float | str]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1]
    # texts without a space are names, modes and keys; others are for people
    return [f"{value}_"] if isinstance(value, str) and value and not any(map(str.isspace, value)) else []
