"""All facts that a server holds open, and the filters over them that it remembers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from eyespot.web.found.facts import Facts, RowGroups, ShardFacts, TableStamp
from eyespot.web.found.masks import MaskStore


class FactStore:
    """All tables of facts that somebody holds open, and the masks of filters over them."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[TableStamp, ShardFacts] = WeakValueDictionary()
        self.groups, self.masks = RowGroups(), MaskStore()

    def open(self, shards: Sequence[Path]) -> Facts:
        """The facts of these shards as they are now; those that somebody holds are not opened again."""
        tables = []
        for shard in shards:
            stamp = TableStamp.of(shard)
            known = self._known.get(stamp) or ShardFacts(stamp, self.groups)
            tables.append(self._known.setdefault(stamp, known))
        return Facts(tables)
