"""Searching a gallery: stages that rank and re-rank, chains of them, and what feeds them.

collection = eyespot.open(".eyespot")
run = Chain(Nearest.of(collection), LocalRerank.of(collection, "spatial"))([Query.picture("bridge.jpg")])
"""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.search.adapted import Adapted, paired_gain
    from eyespot.search.chain import Chain, TopK, chain_of
    from eyespot.search.collection import Collection
    from eyespot.search.fused import Fused, Fusion
    from eyespot.search.hits import Hit, Hits
    from eyespot.search.judge_rerank import JudgeRerank
    from eyespot.search.local_rerank import LocalRerank
    from eyespot.search.nearest import Nearest
    from eyespot.search.query_expansion import QueryExpansion

__all__ = [
    "Adapted",
    "Chain",
    "Collection",
    "Fused",
    "Fusion",
    "Hit",
    "Hits",
    "JudgeRerank",
    "LocalRerank",
    "Nearest",
    "QueryExpansion",
    "TopK",
    "chain_of",
    "paired_gain",
]

if not TYPE_CHECKING:  # so that type checkers refuse a name that is not there
    __getattr__ = lazy(
        __name__,
        {
            "Adapted": "adapted",
            "Chain": "chain",
            "Collection": "collection",
            "TopK": "chain",
            "Fused": "fused",
            "Fusion": "fused",
            "Hit": "hits",
            "Hits": "hits",
            "JudgeRerank": "judge_rerank",
            "LocalRerank": "local_rerank",
            "Nearest": "nearest",
            "QueryExpansion": "query_expansion",
            "chain_of": "chain",
            "paired_gain": "adapted",
        },
    )
