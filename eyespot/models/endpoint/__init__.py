"""Models behind an address: each request is counted before it leaves, paced, and sent again where that helps.

`Endpoint.chat` is a question and its reply, `Endpoint.answer` one whose reply has a form; `Underway` asks many at once.
"""

from eyespot.models.endpoint.client import Endpoint, ItemMeter, RetryPolicy, UnlimitedBudget
from eyespot.models.endpoint.concurrency import Underway
from eyespot.models.endpoint.errors import BadAnswer, Declined, NoReply, Refused, Trouble, Unknown
from eyespot.models.endpoint.protocols import AnthropicMessages, ChatCompletions, Reply, image_message, text_message
from eyespot.models.endpoint.rate_limit import CancellableSleep, RateLimiter
from eyespot.models.endpoint.transport import Wire, anthropic, openai

__all__ = [
    "AnthropicMessages",
    "BadAnswer",
    "CancellableSleep",
    "ChatCompletions",
    "Declined",
    "Endpoint",
    "ItemMeter",
    "NoReply",
    "RateLimiter",
    "Refused",
    "Reply",
    "RetryPolicy",
    "Trouble",
    "Underway",
    "Unknown",
    "UnlimitedBudget",
    "Wire",
    "anthropic",
    "image_message",
    "openai",
    "text_message",
]
