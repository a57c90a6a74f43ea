"""One HTTP request out, one JSON object back, through a vendor's own SDK.

The SDK knows its keys, headers, proxies and certificates. Its retries are off and redirects are not followed: a call
here is one request that leaves, so that counts are true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eyespot.llms.errors import RetryableError, Unreachable, of_status
from eyespot.types import UsageError

STAY: Any = {"follow_redirects": False}


@dataclass(frozen=True)
class Wire:
    """A client of the `openai` or the `anthropic` SDK (they are made alike), which module that is, and its address."""

    sdk: Any
    client: Any
    timeout: float  # seconds without a byte

    @property
    def address(self) -> str:
        """Where requests go."""
        return str(self.client.base_url).rstrip("/")

    def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The server's answer; `path` is relative to the address, or a whole URL.

        Raises `Again` (an answer is lost, cut or no JSON; the server is busy), `Unreachable` and `Status`.
        """
        return self._answered(lambda: self.client.post(path, body=body, cast_to=str, options=STAY))

    def get(self, path: str) -> Mapping[str, Any]:
        """What lies there; raises what `post` raises."""
        return self._answered(lambda: self.client.get(path, cast_to=str, options=STAY))

    def _answered(self, exchange: Callable[[], str]) -> Mapping[str, Any]:
        try:
            text = exchange()
        except self.sdk.APITimeoutError:
            raise RetryableError(f"no answer within {self.timeout:g} seconds") from None
        except self.sdk.APIConnectionError as error:
            broken: RetryableError
            cause = error.__cause__
            if cause is None or "Connect" in type(cause).__name__:
                broken = Unreachable(f"{self.address} cannot be reached ({cause or error})")
            else:
                broken = RetryableError(f"the answer broke off ({cause})")
            raise broken from None
        except self.sdk.APIStatusError as error:
            raise of_status(error.status_code, error.response.text, error.response.headers) from None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise RetryableError("the answer is no JSON object; perhaps it was cut")
        return found


def openai(url: str | None, key: str | None, timeout: float) -> Wire:
    """OpenAI, or whoever speaks its protocol at `url`; `UsageError` without an address and without a key."""
    import openai as sdk

    if url is None and key is None:
        raise UsageError("set OPENAI_API_KEY, or OPENAI_BASE_URL to a local server's address, http://localhost:8000/v1")
    client = sdk.OpenAI(base_url=url and _versioned(url), api_key=key or "none", max_retries=0, timeout=timeout)
    return Wire(sdk, client, timeout)


def anthropic(url: str | None, key: str | None, timeout: float) -> Wire:
    """Anthropic, or whoever speaks its protocol at `url`; `UsageError` without a key."""
    import anthropic as sdk

    if url is None and key is None:
        raise UsageError("set ANTHROPIC_API_KEY to your key for Anthropic's models")
    return Wire(sdk, sdk.Anthropic(base_url=url, api_key=key or "none", max_retries=0, timeout=timeout), timeout)


def _versioned(url: str) -> str:
    """People paste a local server's address without the /v1 that all of them have."""
    bare = url.rstrip("/")
    return bare if bare.count("/") > 2 else f"{bare}/v1"
