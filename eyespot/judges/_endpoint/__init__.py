"""Judges behind an address, and the client that asks (`eyespot.models.endpoint`)."""

from eyespot.judges._endpoint.judging import AnswerMode, EndpointJudge, VisionPrompt
from eyespot.judges._endpoint.pictures import JpegEncoder
from eyespot.judges._endpoint.settings import OPTIONS, EndpointSettings
from eyespot.models.endpoint.client import Endpoint, ItemMeter, RetryPolicy
from eyespot.models.endpoint.concurrency import Underway
from eyespot.models.endpoint.errors import BadAnswer, Declined, NoReply, Trouble
from eyespot.models.endpoint.protocols import AnthropicMessages, ChatCompletions, Reply, image_message, text_message
from eyespot.models.endpoint.rate_limit import CancellableSleep, RateLimiter
from eyespot.models.endpoint.transport import Wire, anthropic, openai

__all__ = [
    "OPTIONS",
    "AnswerMode",
    "AnthropicMessages",
    "BadAnswer",
    "CancellableSleep",
    "ChatCompletions",
    "Declined",
    "Endpoint",
    "EndpointJudge",
    "EndpointSettings",
    "ItemMeter",
    "JpegEncoder",
    "NoReply",
    "RateLimiter",
    "Reply",
    "RetryPolicy",
    "Trouble",
    "Underway",
    "VisionPrompt",
    "Wire",
    "anthropic",
    "image_message",
    "openai",
    "text_message",
]
