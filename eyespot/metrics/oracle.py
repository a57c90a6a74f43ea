"""Oracle@k: the share of all relevant images in the first k: what the best re-ranking of them could still find.

ILIAS's name for the bound of a second stage; the same number as R@k.
"""

from typing import ClassVar

from eyespot.metrics.recall import Recall


class Oracle(Recall):
    """Relevant images in the first k over all relevant images, as a bound on re-ranking."""

    name: ClassVar[str] = "Oracle"
    says: ClassVar[str] = "the share of all relevant images in the first k, as ILIAS's bound on re-ranking (equals R@k)"
    aliases: ClassVar[tuple[str, ...]] = ()


load = Oracle
