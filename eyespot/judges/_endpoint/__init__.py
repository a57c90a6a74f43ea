"""Judges behind an address, and the client that asks (`eyespot.models.endpoint`)."""

from eyespot.judges._endpoint.judging import EndpointJudge, Sight, Way
from eyespot.judges._endpoint.pictures import Pictures
from eyespot.judges._endpoint.settings import OPTIONS, Settings
from eyespot.models.endpoint.client import Endpoint, Patience, Tab
from eyespot.models.endpoint.dialects import AnthropicMessages, ChatCompletions, Reply, said, shown
from eyespot.models.endpoint.pace import Pace, Rest
from eyespot.models.endpoint.troubles import BadAnswer, Declined, NoReply, Trouble
from eyespot.models.endpoint.underway import Underway
from eyespot.models.endpoint.wire import Wire, anthropic, openai

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
