"""One HTTP request out, one JSON object back, in the protocols of OpenAI and Anthropic.

Answers come through `eyespot.models.web`: of bounded length, in bounded time, without the credentials that were sent. A
call here sends one request, and redirects are not followed, so that counts are true.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException
from secrets import token_hex
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit

from eyespot.llms.errors import RetryableError, Unreachable, of_status
from eyespot.models import web
from eyespot.types import UsageError

JSON = "application/json"
MOST = 1 << 24  # bytes of an answer; probabilities of all tokens of long thoughts reach 12 MB
MOST_OF_FILE = 1 << 30  # bytes of the results of a batch
PLACEHOLDERS = ("none", "EMPTY", "ollama", "lm-studio")  # what people write where a server needs no key
SHORTEST = 6  # characters of a secret: shorter ones stand in any text


@dataclass(frozen=True)
class Transport:
    """The way to a server: its address, perhaps with a user, a password and a query, and what each request says."""

    url: str
    headers: Mapping[str, str]
    timeout: float  # seconds without a byte; an answer may take `web.PATIENCE` times that

    @property
    def address(self) -> str:
        """Where requests go, for sentences: without credentials."""
        return web.public(self.url).rstrip("/")

    def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The server's answer; `path` is relative to the address, or a whole URL.

        Raises `RetryableError` (an answer is lost, cut, too long or not JSON; the server is busy), `Unreachable`,
        `StatusError`.
        """
        return self._object(self._text(path, json.dumps(body).encode()))

    def get(self, path: str) -> Mapping[str, Any]:
        """What the server has under this path; raises what `post` raises."""
        return self._object(self._text(path))

    def lines(self, path: str) -> list[Mapping[str, Any]]:
        """The rows of a JSONL file that the server has under this path; raises what `post` raises."""
        return [self._object(line) for line in self._text(path, most=MOST_OF_FILE).splitlines() if line.strip()]

    def upload(self, path: str, fields: Mapping[str, str], name: str, content: bytes) -> Mapping[str, Any]:
        """The server's answer to a form with a file (RFC 7578); raises what `post` raises."""
        mark = token_hex(16)
        part = f'--{mark}\r\nContent-Disposition: form-data; name="'
        rows = "".join(f'{part}{field}"\r\n\r\n{value}\r\n' for field, value in fields.items())
        head = f'{rows}{part}file"; filename="{name}"\r\nContent-Type: application/jsonl\r\n\r\n'
        data = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        return self._object(self._text(path, data, kind=f"multipart/form-data; boundary={mark}"))

    @cached_property
    def _sent(self) -> re.Pattern[str]:
        keys = {self.headers.get(name, "").removeprefix("Bearer ") for name in ("Authorization", "X-Api-Key")}
        return web.secrets(self.url, *keys.difference(PLACEHOLDERS), least=SHORTEST)

    def _text(self, path: str, data: bytes | None = None, *, kind: str = JSON, most: int = MOST) -> str:
        address, mark, query = self.url.partition("?")
        url = path if "://" in path else f"{address.rstrip('/')}/{path.lstrip('/')}{mark}{query}"
        try:
            status, headers, found = web.exchange(
                url, {**self.headers, "Content-Type": kind}, data, silence=self.timeout, most=most
            )
        except (OSError, HTTPException, ValueError, web.HostBusy, web.TooMuch) as error:
            raise self._lost(error) from None
        text = found.decode("utf-8-sig", "replace")
        if not 200 <= status < 300:
            raise of_status(status, self._sent.sub("***", text), headers)
        return text

    def _object(self, text: str) -> Mapping[str, Any]:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise RetryableError("the answer is not a JSON object; perhaps it was cut")
        clean: Mapping[str, Any] = self._redacted(answer) if self._sent.search(text) else answer
        return clean

    def _lost(self, error: Exception) -> RetryableError:
        """What it means that no whole answer came."""
        cause = getattr(error, "reason", error)
        why = self._sent.sub("***", str(cause) or type(cause).__name__)
        if isinstance(cause, TimeoutError):
            return RetryableError(f"no answer within {self.timeout:g} seconds")
        if isinstance(error, web.TooMuch):
            return RetryableError(f"the answer is packed or longer than {MOST >> 20} MB ({why})")
        if isinstance(error, URLError | ValueError) and not isinstance(cause, BrokenPipeError | ConnectionResetError):
            return Unreachable(f"{self.address} cannot be reached ({why})")
        return RetryableError(f"the answer broke off ({why})")

    def _redacted(self, value: Any) -> Any:
        """The value without the credentials, in all of its texts."""
        if isinstance(value, dict):
            return {self._redacted(name): self._redacted(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._redacted(one) for one in value]
        return self._sent.sub("***", value) if isinstance(value, str) else value


def openai(url: str | None, key: str | None, timeout: float) -> Transport:
    """OpenAI, or a server with its protocol at `url`; `UsageError` for neither address nor key, and an odd port."""
    if url is None and key is None:
        raise UsageError("set OPENAI_API_KEY, or OPENAI_BASE_URL to a local server's address, http://localhost:8000/v1")
    address, mark, query = (url or "https://api.openai.com").partition("?")
    bare = address.rstrip("/")  # people leave out /v1, and every local server has it
    address = bare if bare.count("/") > 2 else f"{bare}/v1"
    headers = {"Authorization": f"Bearer {key or PLACEHOLDERS[0]}"}
    if url is None:  # who pays, where a key is of several
        who = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        headers |= {name: os.environ[variable] for name, variable in who.items() if os.environ.get(variable)}
    return _transport(address + mark + query, headers, timeout)


def anthropic(url: str | None, key: str | None, timeout: float) -> Transport:
    """Anthropic, or a server with its protocol at `url`; `UsageError` if there is neither an address nor a key."""
    if url is None and key is None:
        raise UsageError("set ANTHROPIC_API_KEY to your key for Anthropic's models")
    headers = {"X-Api-Key": key or PLACEHOLDERS[0], "Anthropic-Version": "2023-06-01"}
    return _transport(url or "https://api.anthropic.com", headers, timeout)


def _transport(url: str, headers: Mapping[str, str], timeout: float) -> Transport:
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise UsageError(f"{web.public(url)} has no such port; write it as in http://localhost:8000/v1") from None
    clean = {name: value.strip() for name, value in headers.items()}  # as of a key in a file, which has a last line end
    return Transport(url, clean, timeout)
