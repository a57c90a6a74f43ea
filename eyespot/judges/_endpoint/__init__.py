"""Judges that ask a model behind an endpoint (`eyespot.llms`)."""

from eyespot.judges._endpoint.judging import AnswerMode, EndpointJudge, VisionPrompt
from eyespot.judges._endpoint.settings import OPTIONS, EndpointSettings

__all__ = ["OPTIONS", "AnswerMode", "EndpointJudge", "EndpointSettings", "VisionPrompt"]
