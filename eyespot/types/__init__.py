"""The data that flows between the rooms, and the roles that move it."""
# ruff: noqa: F403 - a type checker reads all names of these modules, a program those that are listed

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.types.descriptors import *
    from eyespot.types.encoders import *
    from eyespot.types.judging import *
    from eyespot.types.language_models import *
    from eyespot.types.messages import *
    from eyespot.types.rankings import *
    from eyespot.types.search import *
else:
    from eyespot.types.kinds import with_sentence

    _LISTED = {
        "descriptors": "Extractor LocalFeatures LocalReranker TextBox TextReader",
        "encoders": """Composer Encoder EncoderWithNotes Heat Localizer Mask PixelReader Pixels ProcessReadable Space
            TextLimited Vectors""",
        "judging": "Answer AnswerStream Judge Judgement Pair SequentialAnswers Verdict",
        "language_models": "Adjustment BudgetMeter Exchange LanguageModel Message Price Reply Spent Token Tokens",
        "messages": """EyespotError Note NothingFound Progress UsageError codes_of kind_text no_progress prefixed
            quantity refusing without_code""",
        "rankings": "IdColumn Qrels RankedImage Run",
        "search": "AdaptedQuery Adapter BatchSearch Index NearestRows Query ScanRequest Stage Term",
    }
    _PLACES = {name: module for module, names in _LISTED.items() for name in names.split()}
    __all__ = [*_PLACES]

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = with_sentence(getattr(import_module(f"{__name__}.{_PLACES[name]}"), name))
        return found
