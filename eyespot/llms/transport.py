"""One HTTP request out, one JSON object back, through a vendor's own SDK.

The SDK knows its keys, headers, proxies and certificates. Its retries are off and redirects are not followed: a call
here sends one request, so that counts are true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eyespot.llms.errors import RetryableError, Unreachable, of_status
from eyespot.types import UsageError

NO_REDIRECTS: Any = {"follow_redirects": False}


@dataclass(frozen=True)
class Transport:
    """A client of the `openai` or the `anthropic` SDK, which have the same interface, and the SDK's module."""

    sdk: Any
    client: Any
    timeout: float  # seconds without a byte

    @property
    def address(self) -> str:
        """Where requests go."""
        return str(self.client.base_url).rstrip("/")

    def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The server's answer; `path` is relative to the address, or a whole URL.

        Raises `RetryableError` (an answer is lost, cut or not JSON; the server is busy), `Unreachable`, `StatusError`.
        """
        return self._exchanged(lambda: self.client.post(path, body=body, cast_to=str, options=NO_REDIRECTS))

    def get(self, path: str) -> Mapping[str, Any]:
        """What the server has under this path; raises what `post` raises."""
        return self._exchanged(lambda: self.client.get(path, cast_to=str, options=NO_REDIRECTS))

    def _exchanged(self, exchange: Callable[[], str]) -> Mapping[str, Any]:
        try:
            text = exchange()
        except self.sdk.APITimeoutError:
            raise RetryableError(f"no answer within {self.timeout:g} seconds") from None
        except self.sdk.APIConnectionError as error:
            cause = error.__cause__
            if cause is None or "Connect" in type(cause).__name__:
                raise Unreachable(f"{self.address} cannot be reached ({cause or error})") from None
            raise RetryableError(f"the answer broke off ({cause})") from None
        except self.sdk.APIStatusError as error:
            raise of_status(error.status_code, error.response.text, error.response.headers) from None
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise RetryableError("the answer is no JSON object; perhaps it was cut")
        return answer


def openai(url: str | None, key: str | None, timeout: float) -> Transport:
    """OpenAI, or a server with its protocol at `url`; `UsageError` if there is neither an address nor a key."""
    import openai as sdk

    if url is None and key is None:
        raise UsageError("set OPENAI_API_KEY, or OPENAI_BASE_URL to a local server's address, http://localhost:8000/v1")
    if url:  # people leave out /v1, and every local server has it
        bare = url.rstrip("/")
        url = bare if bare.count("/") > 2 else f"{bare}/v1"
    client = sdk.OpenAI(base_url=url, api_key=key or "none", max_retries=0, timeout=timeout)
    return Transport(sdk, client, timeout)


def anthropic(url: str | None, key: str | None, timeout: float) -> Transport:
    """Anthropic, or a server with its protocol at `url`; `UsageError` if there is neither an address nor a key."""
    import anthropic as sdk

    if url is None and key is None:
        raise UsageError("set ANTHROPIC_API_KEY to your key for Anthropic's models")
    return Transport(sdk, sdk.Anthropic(base_url=url, api_key=key or "none", max_retries=0, timeout=timeout), timeout)
