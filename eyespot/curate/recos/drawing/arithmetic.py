"""Arithmetic as people write it, and its exact value: numbers, + − × ÷ and brackets."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from fractions import Fraction

from eyespot.types import UsageError

_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|[-+−×÷*/()])")
_SAME = {"−": "-", "×": "*", "÷": "/"}
_OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
DEEPEST = 50  # brackets within brackets


def evaluate(expression: str) -> Fraction:
    """The value: products before sums, from left to right; `UsageError` for an expression without one.

    `evaluate("(7 + 5) × 3 ÷ 4")` is 9.
    """
    tokens, end = [], 0
    while end < len(expression.rstrip()):
        token = _TOKEN.match(expression, end)
        if token is None:
            raise UsageError(f"{expression!r} is not arithmetic from {expression[end:]!r} on; use numbers, + − × ÷ ( )")
        tokens.append(_SAME.get(token[1], token[1]))
        end = token.end()
    reading = _Reading(tokens, expression)
    try:
        value = reading.sum()
    except ZeroDivisionError:
        raise UsageError(f"{expression!r} divides by zero; change the divisor") from None
    if reading.next is not None:
        raise reading.error()
    return value


def plain(value: Fraction) -> str:
    """A value in digits: "12", "2.5"; as a fraction where its decimals never end."""
    if value.denominator == 1:
        return str(value.numerator)
    decimals = f"{float(value):.6f}".rstrip("0")
    return decimals if Fraction(decimals) == value else f"{value.numerator}/{value.denominator}"


class _Reading:
    """A sum is products between + and −, a product is values between × and ÷, a value is a number or in brackets."""

    def __init__(self, tokens: list[str], written: str) -> None:
        self.tokens, self.written = list(reversed(tokens)), written
        self.depth = 0

    @property
    def next(self) -> str | None:
        return self.tokens[-1] if self.tokens else None

    def sum(self) -> Fraction:
        return self._chain("+-", self.product)

    def product(self) -> Fraction:
        return self._chain("*/", self.value)

    def _chain(self, signs: str, part: Callable[[], Fraction]) -> Fraction:
        value = part()
        while self.next is not None and self.next in signs:
            value = _OPERATIONS[self.tokens.pop()](value, part())
        return value

    def value(self) -> Fraction:
        token = self.tokens.pop() if self.tokens else ""
        if token == "-":
            return -self.value()
        if token[:1].isdigit():
            return Fraction(token)
        if token != "(" or self.depth == DEEPEST:
            raise self.error()
        self.depth += 1
        value = self.sum()
        self.depth -= 1
        if not self.tokens or self.tokens.pop() != ")":
            raise self.error()
        return value

    def error(self) -> UsageError:
        return UsageError(f"{self.written!r} is not arithmetic; write numbers, + − × ÷ and brackets in pairs")
