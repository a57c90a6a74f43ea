"""Judges that ask a language model (`eyespot.llms`)."""

from eyespot.judges._endpoint.judging import AnswerMode, EndpointJudge, VisionPrompt
from eyespot.judges._endpoint.settings import OPTIONS, EndpointJudgeSettings

__all__ = ["OPTIONS", "AnswerMode", "EndpointJudge", "EndpointJudgeSettings", "VisionPrompt"]
