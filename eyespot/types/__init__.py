"""The data that flows between the rooms, and the roles that move it."""

from eyespot.types.arrays import Mask, Pixels, Vectors
from eyespot.types.descriptors import Extractor, LocalFeatures, LocalReranker
from eyespot.types.encoders import Composer, Encoder, Space
from eyespot.types.errors import EyespotError, NothingFound, UsageError
from eyespot.types.judging import Answer, Judge, Judgement, Pair, Spent, Verdict
from eyespot.types.progress import Progress, no_progress
from eyespot.types.queries import Query, Term
from eyespot.types.rankings import IdColumn, Qrels, RankedImage, Run, repeated_row
from eyespot.types.search import AdaptedQuery, Adapter, Index, NearestRows

__all__ = [
    "AdaptedQuery",
    "Adapter",
    "Answer",
    "Composer",
    "Encoder",
    "Extractor",
    "EyespotError",
    "IdColumn",
    "Index",
    "Judge",
    "Judgement",
    "LocalFeatures",
    "LocalReranker",
    "Mask",
    "NearestRows",
    "NothingFound",
    "Pair",
    "Pixels",
    "Progress",
    "Qrels",
    "Query",
    "RankedImage",
    "Run",
    "Space",
    "Spent",
    "Term",
    "UsageError",
    "Vectors",
    "Verdict",
    "no_progress",
    "repeated_row",
]
