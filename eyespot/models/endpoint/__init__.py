"""Models behind an address: each request is counted before it leaves, paced, and sent again where that helps.

`Endpoint.chat` is a question and its reply, `Endpoint.answer` one whose reply has a form; `Underway` asks many at once.
"""

from eyespot.models.endpoint.client import Endpoint, Patience, Tab, Unlimited
from eyespot.models.endpoint.dialects import AnthropicMessages, ChatCompletions, Reply, said, shown
from eyespot.models.endpoint.pace import Pace, Rest
from eyespot.models.endpoint.troubles import BadAnswer, Declined, NoReply, Refused, Trouble, Unknown
from eyespot.models.endpoint.underway import Underway
from eyespot.models.endpoint.wire import Wire, anthropic, openai

__all__ = [
    "AnthropicMessages",
    "BadAnswer",
    "ChatCompletions",
    "Declined",
    "Endpoint",
    "NoReply",
    "Pace",
    "Patience",
    "Refused",
    "Reply",
    "Rest",
    "Tab",
    "Trouble",
    "Underway",
    "Unknown",
    "Unlimited",
    "Wire",
    "anthropic",
    "openai",
    "said",
    "shown",
]
