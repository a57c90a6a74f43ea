"""Language models behind endpoints: each request is counted by a budget, rate-limited and retried where that helps.

`load("openai:MODEL")` gives an `eyespot.types.LanguageModel`: `chat` sends messages and gives the `Reply`, `answer`
gives an answer of a form. `Underway` does many requests at once.
"""

from eyespot.llms.budget import Budget, BudgetSpent
from eyespot.llms.client import Endpoint
from eyespot.llms.errors import BadAnswer, Declined, NoReply, Refused, ServerDown, Trouble, Unknown
from eyespot.llms.flow_control import CancellableSleep, CircuitBreaker, RateLimiter, RetryPolicy, Underway
from eyespot.llms.protocols import ChatCompletions, JpegEncoder, image_message, text_message
from eyespot.llms.settings import EndpointSettings, is_language_model, load
from eyespot.types.kinds import checked_names

__all__ = [
    "BadAnswer",
    "Budget",
    "BudgetSpent",
    "CancellableSleep",
    "ChatCompletions",
    "CircuitBreaker",
    "Declined",
    "Endpoint",
    "EndpointSettings",
    "JpegEncoder",
    "NoReply",
    "RateLimiter",
    "Refused",
    "RetryPolicy",
    "ServerDown",
    "Trouble",
    "Underway",
    "Unknown",
    "image_message",
    "is_language_model",
    "load",
    "text_message",
]

globals().update(checked_names(globals(), __all__))
