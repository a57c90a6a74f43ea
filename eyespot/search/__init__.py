"""Searching a gallery: stages that rank and re-rank, chains of them, and what feeds them.

collection = eyespot.open(".eyespot")
run = Chain(Nearest.of(collection), LocalRerank.of(collection, "spatial"))([Query.picture("bridge.jpg")])
"""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.search.adapted import Adapted as Adapted, paired_gain as paired_gain
    from eyespot.search.chain import Chain as Chain, TopK as TopK, chain_of as chain_of
    from eyespot.search.collection import Collection as Collection
    from eyespot.search.fused import Fused as Fused, Fusion as Fusion
    from eyespot.search.hits import Hit as Hit, Hits as Hits
    from eyespot.search.judge_rerank import JudgeRerank as JudgeRerank
    from eyespot.search.local_rerank import LocalRerank as LocalRerank
    from eyespot.search.nearest import Nearest as Nearest
    from eyespot.search.query_expansion import QueryExpansion as QueryExpansion
else:  # so that type checkers refuse a name that is not there
    __getattr__, __all__ = lazy(
        __name__,
        {
            "adapted": "Adapted paired_gain",
            "chain": "Chain TopK chain_of",
            "collection": "Collection",
            "fused": "Fused Fusion",
            "hits": "Hit Hits",
            "judge_rerank": "JudgeRerank",
            "local_rerank": "LocalRerank",
            "nearest": "Nearest",
            "query_expansion": "QueryExpansion",
        },
    )
