"""Models behind an address: each request is counted before it leaves, paced, and sent again where that helps.

`Endpoint.chat` is a question and its reply, `Endpoint.answer` one whose reply has a form; `Underway` asks many at once.
"""

from eyespot.llms.budget import Budget, BudgetSpent
from eyespot.llms.client import Endpoint, ItemMeter, RetryPolicy, UnlimitedBudget
from eyespot.llms.concurrency import Underway
from eyespot.llms.errors import BadAnswer, Declined, NoReply, Refused, Trouble, Unknown
from eyespot.llms.images import JpegEncoder
from eyespot.llms.prices import Price, Prices, Tokens, estimate, own_table, read_prices
from eyespot.llms.protocols import AnthropicMessages, ChatCompletions, Reply, image_message, text_message
from eyespot.llms.rate_limit import CancellableSleep, RateLimiter
from eyespot.llms.transport import Wire, anthropic, openai

__all__ = [
    "AnthropicMessages",
    "BadAnswer",
    "Budget",
    "BudgetSpent",
    "CancellableSleep",
    "ChatCompletions",
    "Declined",
    "Endpoint",
    "ItemMeter",
    "JpegEncoder",
    "NoReply",
    "Price",
    "Prices",
    "RateLimiter",
    "Refused",
    "Reply",
    "RetryPolicy",
    "Tokens",
    "Trouble",
    "Underway",
    "Unknown",
    "UnlimitedBudget",
    "Wire",
    "anthropic",
    "estimate",
    "image_message",
    "openai",
    "own_table",
    "read_prices",
    "text_message",
]
