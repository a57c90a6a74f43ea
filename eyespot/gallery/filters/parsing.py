"""A filter in SQL, parsed by DuckDB and written again from its harmless parts.

None of the text a user types ever runs. From the parsed tree only comparisons, AND/OR/NOT, IN, BETWEEN, IS NULL, LIKE,
arithmetic, simple casts, known columns and the functions listed here are written out again; the rest is refused.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.storage.systems import usable_cores
from eyespot.types import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LONGEST = 2000  # characters of a condition
_DEEPEST = 50  # brackets inside brackets, and levels of the parsed tree

_Node: TypeAlias = dict[str, Any]

_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}
_CONJUNCTIONS = {"CONJUNCTION_AND": " AND ", "CONJUNCTION_OR": " OR "}
_OPERATORS = {  # written over the texts of their operands
    "OPERATOR_NOT": "(NOT {0})",
    "OPERATOR_IS_NULL": "({0} IS NULL)",
    "OPERATOR_IS_NOT_NULL": "({0} IS NOT NULL)",
    "OPERATOR_COALESCE": "coalesce({all})",
    "COMPARE_IN": "({0} IN ({rest}))",
}
_SYMBOLS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"} | {
    sign: sign for sign in ("+", "-", "*", "/", "//", "%")
}
_FUNCTIONS = {  # the numbers of arguments each may have; none may return more than a small multiple of what it is given
    **dict.fromkeys(("lower", "upper", "length", "abs", "floor", "ceil", "ceiling"), range(1, 2)),
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "week", "quarter"), range(1, 2)),
    **dict.fromkeys(("dayofweek", "isodow", "dayofyear", "dayname", "monthname"), range(1, 2)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "round"), range(1, 3)),
    **dict.fromkeys(("contains", "starts_with", "ends_with", "prefix", "suffix", "instr", "strpos"), range(2, 3)),
    **dict.fromkeys(("left", "right", "date_part", "date_trunc", "nullif"), range(2, 3)),
    **dict.fromkeys(("substring", "substr", "regexp_matches", "regexp_full_match"), range(2, 4)),
    **dict.fromkeys(("like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape"), range(3, 4)),
    **dict.fromkeys(("greatest", "least"), range(2, 20)),
}
_ARGUMENTS = {**_FUNCTIONS, **dict.fromkeys(_SYMBOLS, range(2, 3)), "+": range(1, 3), "-": range(1, 3)}
_TYPES = frozenset(
    ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "TEXT")
) | {"DATE", "TIME", "TIMESTAMP"}
_MAY = "a filter is made of columns, values, comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - * / % and CAST"


def rewritten(expression: str, columns: Sequence[str]) -> tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The condition as SQL made here, its columns, and its bounds (column, SQL); UsageError for what is not allowed."""
    if len(expression) > _LONGEST:
        raise UsageError(f"the filter has {len(expression)} characters; at most {_LONGEST} are allowed")
    if "\0" in expression or any("\ud800" <= letter <= "\udfff" for letter in expression):
        raise UsageError("the filter holds characters that are not text; type it again")
    if max(accumulate((letter == "(") - (letter == ")") for letter in expression), default=0) > _DEEPEST:
        raise UsageError(_TOO_DEEP)
    writer = _Writer(columns)
    try:
        # The parsed condition; whatever else the text adds to the statement around it is refused
        statements = _parsed(f"SELECT 1 FROM items WHERE (\n{expression}\n)")  # the line ends close a `--` comment
        if len(statements) != 1 or _around(statements[0]) != _plain():
            raise UsageError(
                "a filter is one condition, such as label = 'heron', without any other part of a SQL statement"
            )
        node: _Node = statements[0]["node"]["where_clause"]
        return writer.write(node), tuple(writer.used), tuple(writer.bounds(node))
    except RecursionError:
        raise UsageError(_TOO_DEEP) from None


_TOO_DEEP = f"the filter is nested more than {_DEEPEST} levels deep; write it flatter, for example with IN"


@cache
def _plain() -> Any:
    return _around(_parsed("SELECT 1 FROM items WHERE (\ntrue\n)")[0])


def _parsed(sql: str) -> list[_Node]:
    (answer,) = _parser().cursor().execute("SELECT json_serialize_sql(?)", [sql]).fetchone() or ("{}",)
    parsed = json.loads(answer)
    if parsed.get("error"):
        raise UsageError(f"the filter cannot be read: {first_line(parsed['error_message'])}; {QUOTING}")
    statements: list[_Node] = parsed["statements"]
    return statements


# A connection for as long as the process lives: to open one takes longer than to parse
_parser = cache(lambda: _opened([], threads=1))
QUOTING = "text goes in 'single quotes', dates as '2021-05-31', and a column with an odd name in \"double quotes\""


def _around(statement: _Node) -> Any:
    node = {key: value for key, value in statement["node"].items() if key != "where_clause"}
    return _without_places({**statement, "node": node})


def _without_places(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_places(value) for key, value in tree.items() if not key.startswith("query_location")}
    return [_without_places(value) for value in tree] if isinstance(tree, list) else tree


@dataclass
class _Writer:
    """Writes a parsed condition as SQL again, and refuses what is not on its lists."""

    columns: Sequence[str]
    used: dict[str, None] = field(default_factory=dict)
    depth: int = 0

    def write(self, node: _Node) -> str:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UsageError(_TOO_DEEP)
        writes = getattr(self, f"write_{node['class'].lower()}", None)  # for each class of nodes that is allowed
        if writes is None or node.get("alias"):
            raise UsageError(f"{node['class'].lower().replace('_', ' ')} is not allowed in a filter; {_MAY}")
        written: str = writes(node)
        self.depth -= 1
        return written

    def bounds(self, node: _Node) -> Iterator[tuple[str, str]]:
        """The comparisons of a column with values that all have to hold, each with its column."""
        if node["type"] == "CONJUNCTION_AND":
            for child in node["children"]:
                yield from self.bounds(child)
        elif node["type"] == "COMPARE_BETWEEN" or _COMPARISONS.get(node["type"], "I")[0] in "<>=":
            parts = [part for name in ("left", "right", "input", "lower", "upper") if (part := node.get(name))]
            columns = [part for part in parts if part["class"] == "COLUMN_REF"]
            if len(columns) == 1 and {part["class"] for part in parts} == {"COLUMN_REF", "CONSTANT"}:
                yield find_column(".".join(columns[0]["column_names"]), self.columns), self.write(node)

    def write_comparison(self, node: _Node) -> str:
        sign = _listed(_COMPARISONS, node["type"])
        return f"({self.write(node['left'])} {sign} {self.write(node['right'])})"

    def write_conjunction(self, node: _Node) -> str:
        return "(" + _listed(_CONJUNCTIONS, node["type"]).join(map(self.write, node["children"])) + ")"

    def write_between(self, node: _Node) -> str:
        return f"({self.write(node['input'])} BETWEEN {self.write(node['lower'])} AND {self.write(node['upper'])})"

    def write_operator(self, node: _Node) -> str:
        form, parts = _listed(_OPERATORS, node["type"]), [self.write(child) for child in node["children"]]
        return form.format(parts[0], all=", ".join(parts), rest=", ".join(parts[1:]))

    def write_column_ref(self, node: _Node) -> str:
        column = find_column(".".join(node["column_names"]), self.columns)
        self.used[column] = None
        return name_in_sql(column)

    def write_constant(self, node: _Node) -> str:
        kind: str = node["literal"]["kind"]
        text: str = node["literal"]["text"]
        if kind == "STRING":
            return text_in_sql(text)
        if kind in ("INTEGER", "NUMERIC") and re.fullmatch(r"[0-9_.eE+-]{1,40}", text):
            return text
        if kind == "NULL_LITERAL" or (kind == "BOOLEAN" and text in ("true", "false")):
            return text or "NULL"
        raise UsageError(
            f"a value in a filter is a text in 'single quotes', a number, true, false or NULL, not {text[:40]!r}"
        )

    def write_cast(self, node: _Node) -> str:
        kind, wanted = node["type_expr"]["type_name"].upper(), node["type_expr"]
        if kind not in _TYPES or wanted["children"] or len(wanted["qualified_name"]["path"]) != 1:
            raise UsageError(f"a filter casts only to {', '.join(sorted(_TYPES))}")
        return f"{'TRY_CAST' if node['try_cast'] else 'CAST'}({self.write(node['child'])} AS {kind})"

    def write_function(self, node: _Node) -> str:
        name = node["function_name"].lower()
        counts = _ARGUMENTS.get(name)
        if counts is None or len(node["qualified_name"]["path"]) != 1:
            called = ".".join(node["qualified_name"]["path"])
            raise UsageError(f"{called} is not allowed in a filter; there are: {', '.join(sorted(_FUNCTIONS))}")
        if node["filter"] or node["distinct"] or node["order_bys"]["orders"] or node["export_state"]:
            raise UsageError(f"{name} takes plain arguments only, without DISTINCT, ORDER BY or FILTER")
        if len(node["arguments"]) not in counts:
            several = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
            raise UsageError(f"{name} takes {several} arguments, not {len(node['arguments'])}")
        arguments = [argument["expression"] for argument in node["arguments"]]
        if name.startswith("regexp") and any(argument["class"] != "CONSTANT" for argument in arguments[1:]):
            raise UsageError("the pattern of a regular expression is a text in 'single quotes'")
        parts = [self.write(argument) for argument in arguments]
        if name in _SYMBOLS:
            return f"({f' {_SYMBOLS[name]} '.join(parts)})" if len(parts) == 2 else f"({_SYMBOLS[name]} {parts[0]})"
        return f"{name_in_sql(name)}({', '.join(parts)})"


def _listed(forms: Mapping[str, str], kind: str) -> str:
    if kind not in forms:
        raise UsageError(f"{kind.lower().replace('_', ' ')} is not allowed in a filter; {_MAY}")
    return forms[kind]


def find_column(name: str, columns: Sequence[str]) -> str:
    for column in (*(one for one in columns if one == name), *columns):
        if column.casefold() == name.casefold():
            return column
    near = difflib.get_close_matches(name.casefold(), [column.casefold() for column in columns], 1)
    guess = next((f"; did you mean {column!r}?" for column in columns if [column.casefold()] == near), ";")
    raise UsageError(f"no column {name!r}{guess} there are: {', '.join(columns)} (text goes in 'single quotes')")


def name_in_sql(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def text_in_sql(value: str) -> str:
    if "\0" in value or len(value) > _LONGEST:
        raise UsageError(f"a text in a filter has at most {_LONGEST} characters, none of them NUL")
    return "'" + value.replace("'", "''") + "'"


# -- DuckDB, sealed -----------------------------------------------------------------------------------------

_SEAL: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "error_on_division_by_zero": False,  # such a row just does not match
    "preserve_insertion_order": True,
    "memory_limit": "1GB",
    "temp_directory": "",  # nothing is spilled to disk
}


@contextmanager
def sealed(files: Sequence[str] = ()) -> Iterator[DuckDBPyConnection]:
    """A fresh connection that may read these files and nothing else, and cannot be told otherwise."""
    with closing(_opened(files, min(4, usable_cores()))) as connection:
        yield connection


def _opened(files: Sequence[str], threads: int) -> DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(config=_SEAL | {"threads": threads})
    connection.execute("SET enable_progress_bar = true")  # so that the progress can be read
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute("SET allowed_paths = ?", [list(files)])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def first_line(message: str) -> str:
    """DuckDB's message without its kind, its advice for SQL programmers and its picture of the statement."""
    text = message.split("\n")[0].split(" You might need")[0].split(" In order to")[0].split(" Use TRY")[0]
    return re.sub(r"^[A-Z][A-Za-z ]+ Error: ", "", text).strip().rstrip(".")[:200]
