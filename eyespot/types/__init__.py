"""The data that flows between the rooms, and the roles that move it."""

from eyespot.types.arrays import Mask, Pixels, Vectors
from eyespot.types.costs import Spent
from eyespot.types.descriptors import Extractor, LocalFeatures, LocalReranker
from eyespot.types.encoders import (
    Composer,
    Encoder,
    EncoderWithNotes,
    Heat,
    Localizer,
    PixelReader,
    ProcessReadable,
    Space,
)
from eyespot.types.errors import EyespotError, NothingFound, UsageError
from eyespot.types.judging import Answer, AnswerStream, Judge, Judgement, Pair, SequentialAnswers, Verdict
from eyespot.types.language_models import (
    Adjustment,
    BudgetMeter,
    Exchange,
    LanguageModel,
    Message,
    Price,
    Reply,
    Token,
)
from eyespot.types.notes import Note, codes_of, prefixed, without_code
from eyespot.types.progress import Progress, no_progress
from eyespot.types.queries import Query, Term
from eyespot.types.rankings import IdColumn, Qrels, RankedImage, Run, repeated_row
from eyespot.types.search import AdaptedQuery, Adapter, BatchSearch, Index, NearestRows, ScanRequest
from eyespot.types.stages import Stage
from eyespot.types.text_reading import TextBox, TextReader

__all__ = [
    "AdaptedQuery",
    "Adapter",
    "Adjustment",
    "Answer",
    "AnswerStream",
    "BatchSearch",
    "BudgetMeter",
    "Composer",
    "Encoder",
    "EncoderWithNotes",
    "Exchange",
    "Extractor",
    "EyespotError",
    "Heat",
    "IdColumn",
    "Index",
    "Judge",
    "Judgement",
    "LanguageModel",
    "LocalFeatures",
    "LocalReranker",
    "Localizer",
    "Mask",
    "Message",
    "NearestRows",
    "Note",
    "NothingFound",
    "Pair",
    "PixelReader",
    "Pixels",
    "Price",
    "ProcessReadable",
    "Progress",
    "Qrels",
    "Query",
    "RankedImage",
    "Reply",
    "Run",
    "ScanRequest",
    "SequentialAnswers",
    "Space",
    "Spent",
    "Stage",
    "Term",
    "TextBox",
    "TextReader",
    "Token",
    "UsageError",
    "Vectors",
    "Verdict",
    "codes_of",
    "no_progress",
    "prefixed",
    "repeated_row",
    "without_code",
]
