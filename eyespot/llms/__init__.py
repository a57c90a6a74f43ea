"""Language models behind endpoints: each request is counted by a budget, rate-limited and retried where that helps.

`load("openai:MODEL")` gives an `eyespot.types.LanguageModel`: `chat` sends messages and gives the `Reply`, `answer`
gives an answer of a form. `Underway` does many requests at once.
"""

from eyespot.llms.budget import Budget, BudgetSpent, BudgetStore
from eyespot.llms.client import Endpoint
from eyespot.llms.errors import BadAnswer, Declined, NoReply, Refused, ServerDown, Trouble, Unknown
from eyespot.llms.flow_control import CancellableSleep, CircuitBreaker, RateLimiter, Underway
from eyespot.llms.images import JpegEncoder
from eyespot.llms.prices import read_prices
from eyespot.llms.protocols import ChatCompletions, image_message, text_message
from eyespot.llms.retry import RetryPolicy
from eyespot.llms.settings import EndpointSettings, is_language_model, load
from eyespot.types import LanguageModel, Reply
from eyespot.types.kinds import checked_names

__all__ = [
    "BadAnswer",
    "Budget",
    "BudgetSpent",
    "BudgetStore",
    "CancellableSleep",
    "ChatCompletions",
    "CircuitBreaker",
    "Declined",
    "Endpoint",
    "EndpointSettings",
    "JpegEncoder",
    "LanguageModel",
    "NoReply",
    "RateLimiter",
    "Refused",
    "Reply",
    "RetryPolicy",
    "ServerDown",
    "Trouble",
    "Underway",
    "Unknown",
    "image_message",
    "is_language_model",
    "load",
    "read_prices",
    "text_message",
]

globals().update(checked_names(globals(), __all__))
