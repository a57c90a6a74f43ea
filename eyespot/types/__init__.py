"""The data that flows between the rooms, and the roles that move it."""

from eyespot.types import kinds as _kinds
from eyespot.types.descriptors import (
    Extractor as Extractor,
    LocalFeatures as LocalFeatures,
    LocalReranker as LocalReranker,
    TextBox as TextBox,
    TextReader as TextReader,
)
from eyespot.types.encoders import (
    Composer as Composer,
    Encoder as Encoder,
    EncoderWithNotes as EncoderWithNotes,
    Heat as Heat,
    Localizer as Localizer,
    Mask as Mask,
    PixelReader as PixelReader,
    Pixels as Pixels,
    ProcessReadable as ProcessReadable,
    Space as Space,
    TextLimited as TextLimited,
    Vectors as Vectors,
)
from eyespot.types.judging import (
    Answer as Answer,
    AnswerStream as AnswerStream,
    Judge as Judge,
    Judgement as Judgement,
    Pair as Pair,
    SequentialAnswers as SequentialAnswers,
    Verdict as Verdict,
)
from eyespot.types.language_models import (
    Adjustment as Adjustment,
    BudgetMeter as BudgetMeter,
    Exchange as Exchange,
    LanguageModel as LanguageModel,
    Message as Message,
    Price as Price,
    Reply as Reply,
    Spent as Spent,
    Token as Token,
    Tokens as Tokens,
)
from eyespot.types.messages import (
    EyespotError as EyespotError,
    Note as Note,
    NothingFound as NothingFound,
    Progress as Progress,
    UsageError as UsageError,
    codes_of as codes_of,
    kind_text as kind_text,
    no_progress as no_progress,
    prefixed as prefixed,
    refusing as refusing,
    without_code as without_code,
)
from eyespot.types.rankings import IdColumn as IdColumn, Qrels as Qrels, RankedImage as RankedImage, Run as Run
from eyespot.types.search import (
    AdaptedQuery as AdaptedQuery,
    Adapter as Adapter,
    BatchSearch as BatchSearch,
    Index as Index,
    NearestRows as NearestRows,
    Query as Query,
    ScanRequest as ScanRequest,
    Stage as Stage,
    Term as Term,
)

__all__ = [name for name, one in globals().items() if not name.startswith("_") and type(one) is not type(_kinds)]
globals().update(_kinds.checked_names(globals(), __all__))
