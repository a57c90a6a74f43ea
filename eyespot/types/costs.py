"""What requests cost."""

from __future__ import annotations

from typing import NamedTuple


class Spent(NamedTuple):
    """What answers cost: requests sent (retries included), tokens, and money in US dollars."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens in and out together."""
        return self.tokens_in + self.tokens_out

    def plus(self, more: Spent) -> Spent:
        """Both together."""
        calls, tokens_in, tokens_out, money = more
        return Spent(self.calls + calls, self.tokens_in + tokens_in, self.tokens_out + tokens_out, self.money + money)

    def times(self, count: int) -> Spent:
        """This cost `count` times."""
        return Spent(self.calls * count, self.tokens_in * count, self.tokens_out * count, self.money * count)
