"""Language models behind endpoints: each request is counted by a budget, rate-limited and retried where that helps.

`load("openai:MODEL")` gives an `eyespot.types.LanguageModel`: `chat` sends messages and gives the `Reply`, `answer`
gives an answer of a form. `Underway` does many requests at once.
"""

# ruff: noqa: F403 - a type checker reads all names of these modules, a program those that are listed

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.llms.budget import *
    from eyespot.llms.client import Endpoint as Endpoint
    from eyespot.llms.errors import *
    from eyespot.llms.flow_control import *
    from eyespot.llms.protocols import *
    from eyespot.llms.settings import *
else:
    __getattr__, __all__ = lazy(
        __name__,
        {
            "budget": "Budget BudgetSpent",
            "client": "Endpoint",
            "errors": "BadAnswer Declined NoReply Refused ServerDown Trouble Unknown",
            "flow_control": "CancellableSleep CircuitBreaker RateLimiter RetryPolicy Underway",
            "protocols": "ChatCompletions JpegEncoder image_message text_message",
            "settings": "EndpointSettings is_language_model load",
        },
    )
