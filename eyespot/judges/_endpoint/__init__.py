"""Models behind an address: each request is counted before it leaves, paced, and sent again where that helps.

`Endpoint.chat` is a question and its reply, `Endpoint.answer` one whose reply has a form; `Underway` asks many at once.
"""

from eyespot.judges._endpoint.client import Endpoint, Patience, Tab
from eyespot.judges._endpoint.dialects import AnthropicMessages, ChatCompletions, Reply, said, shown
from eyespot.judges._endpoint.judging import EndpointJudge, Sight, Way
from eyespot.judges._endpoint.pace import Pace, Rest
from eyespot.judges._endpoint.pictures import Pictures
from eyespot.judges._endpoint.settings import OPTIONS, Settings
from eyespot.judges._endpoint.troubles import BadAnswer, Declined, NoReply, Trouble
from eyespot.judges._endpoint.underway import Underway
from eyespot.judges._endpoint.wire import Wire, anthropic, openai

__all__ = [
    "OPTIONS",
    "AnthropicMessages",
    "BadAnswer",
    "ChatCompletions",
    "Declined",
    "Endpoint",
    "EndpointJudge",
    "NoReply",
    "Pace",
    "Patience",
    "Pictures",
    "Reply",
    "Rest",
    "Settings",
    "Sight",
    "Tab",
    "Trouble",
    "Underway",
    "Way",
    "Wire",
    "anthropic",
    "openai",
    "said",
    "shown",
]
