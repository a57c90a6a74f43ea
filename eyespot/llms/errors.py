"""What can go wrong between a question and its answer, and which of it is worth another try."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from eyespot.models.web import retry_after
from eyespot.types import EyespotError

UNAVAILABLE = (503, 529)
BUSY = (408, 409, 425, 429)  # "later", not "no"; so is every 5xx but the two that say the server never will
NEVER = (501, 505)
NO_CREDIT = re.compile(r"insufficient_quota|insufficient credit|credit balance", re.IGNORECASE)
DECLINED = re.compile(
    r"content[_ ]?(policy|filter|management)|responsible ?ai|moderation|flagged|safety system", re.IGNORECASE
)
CUT_OFF = re.compile(r"could not finish the message", re.IGNORECASE)  # a limit that thinking used up
NO_ACCESS = re.compile(r"model_not_found|access to (the )?model|not (allowed|permitted|authorized) to .*model", re.I)
NO_PROVIDER = re.compile(r"no endpoints found that", re.IGNORECASE)
MORE_TOKENS = (
    "; let it have more tokens (answer_tokens of a judge, max_tokens of a recipe), or, where the server can, switch "
    """thinking off ({"reasoning_effort": "none"} as extra of a judge or in a recipe)"""
)
SORRY = re.compile(  # how a refusal in words begins
    r"\W*(unfortunately, )?(sorry|i( am|['’]?m) (so |very )?(sorry|afraid|unable|not (able|comfortable))"
    r"|i (can(no|['’])t|won['’]t|will not|(must |have to )?decline|apologi[sz]e))\b",
    re.IGNORECASE,
)
WAIT = re.compile(  # "retryDelay": "34s", "retry_after": 2.5, "Please try again in 6m0s"
    r"(?:retry_?(?:delay|after)\"?\s*:\s*\"?|(?:try again|retry) (?:in|after) )"
    r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)\s?(ms|s|\b))?",
    re.IGNORECASE,
)
LONGEST = 300  # characters of a server's own words that are kept


class Trouble(Exception):
    """Why there is no answer, in one sentence."""


class RetryableError(Trouble):
    """The same request may succeed later; `wait` is how many seconds the server asks for, None: it says nothing."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait

    @property
    def summary(self) -> str:
        """The reason without the server's own words, which may repeat what it was sent."""
        return re.split(r" \(|: ", str(self))[0]


class Busy(RetryableError):
    """The server turned the request away for now; it takes nothing for that."""


class Unreachable(RetryableError):
    """Nobody answers at this address."""


class StatusError(Trouble):
    """The server answered with an HTTP status that is an error, these words, and the field that they are about."""

    def __init__(self, status: int, text: str, param: str = "") -> None:
        super().__init__(f"the server answers {status}: {text}" if text else f"the server answers {status}")
        self.status, self.text, self.param = status, text, param

    @property
    def declined(self) -> bool:
        """Whether the model, or what guards it, does not want to look."""
        return self.status in (400, 403, 422, 451) and DECLINED.search(self.text) is not None

    @property
    def cut_off(self) -> bool:
        """Whether the limit of tokens ended the answer before it began."""
        return CUT_OFF.search(self.text) is not None


class Declined(Trouble):
    """The model, or what guards it, does not want to look."""


class BadAnswer(Trouble):
    """An answer came and is none of those that were asked for."""


class NoReply(Trouble):
    """There is no answer and no point in another try."""


class Refused(NoReply):
    """The server does not take this request; it may take another."""


class Unknown(EyespotError):
    """The server knows no such model, or nothing at all under this path."""


class ServerDown(EyespotError):
    """The server failed so often in a row that the run ends; what was answered before is kept."""


class Halted(Trouble):
    """The run is being stopped; nobody waits for this answer any more."""


def of_status(status: int, body: str, headers: Mapping[str, str]) -> Trouble:
    """`RetryableError` if the server asks for patience, otherwise the `StatusError` itself."""
    # The message of an error body in any of the usual forms, with its code, on one line; and what it names
    text, param = _error_fields(_object(body))
    text = " ".join(text.split())[:LONGEST]
    later = status in BUSY or (status >= 500 and status not in NEVER)
    if not later or (status == 429 and NO_CREDIT.search(text)):
        return StatusError(status, text, param)
    # Behind any other 5xx the answer may have been made, and be paid for.
    kind = Busy if status in BUSY + UNAVAILABLE else RetryableError
    return kind(str(StatusError(status, text)), seconds_to_wait(headers, body))


def final(trouble: StatusError, address: str, model: str) -> Exception:
    """What an error status means for the pair (`Declined`, `Refused`) or for every pair alike (`EyespotError`)."""
    status, text = trouble.status, trouble.text
    if trouble.declined:
        return Declined(text)
    if status == 402 or NO_CREDIT.search(text):
        return EyespotError(f"{address} gives no more credit ({text}); top it up and run the same line again to go on")
    if status in (401, 403):
        if status == 403 and NO_ACCESS.search(text):
            refused = f"the key may not use the model {model!r} at {address} ({text})"
            return EyespotError(f"{refused}; name another model, or set another key")
        return EyespotError(f"{address} does not accept the key ({text}); set the right one and run again")
    if status < 400:
        return EyespotError(f"{address} answers {status}: it has moved; name the address that it has now")
    if status in (404, 405):
        if NO_PROVIDER.search(text):
            nobody = f"no provider of the model {model!r} takes all that is asked of it ({text})"
            return EyespotError(f"{nobody}; ask for less, or name another")
        return Unknown(f"{address} does not know the model {model!r} ({text}); check its name and the address")
    return Refused(f"{trouble}{MORE_TOKENS if trouble.cut_off else ''}")


def seconds_to_wait(headers: Mapping[str, str], body: str = "") -> float | None:
    """How long an answer asks to wait, in its headers or else in its body; None where neither does."""
    with suppress(ValueError):
        if math.isfinite(thousandths := float(headers.get("retry-after-ms", ""))):
            return max(0.0, thousandths) / 1000
    if (asked := retry_after(headers.get)) is not None:
        return asked
    hours, minutes, number, unit = found.groups() if (found := WAIT.search(body)) else [None] * 4
    if not (hours or minutes or number):
        return None
    return 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(number or 0) / (1000 if unit == "ms" else 1)


def _error_fields(found: Any) -> tuple[str, str]:
    """What an error says, and the parameter that it names; a host may pass on what its provider said (`raw`)."""
    if isinstance(found, list) and found:
        # The first of several errors; those of pydantic say where they are, and repeat the request
        first = found[0]
        if not isinstance(first, dict) or "loc" not in first:
            return _error_fields(first)
        place = ".".join(map(str, first["loc"])) if isinstance(first["loc"], list) else str(first["loc"])
        return f"{place}: {first.get('msg')}", place
    if isinstance(found, dict) and (inner := found.get("error") or found.get("detail")):
        return _error_fields(inner)
    if not isinstance(found, dict):
        return str(found), ""
    parts = [str(found[key]) for key in ("message", "code", "type") if found.get(key)]
    metadata = found.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    detail, param = _error_fields(_object(raw)) if isinstance(raw, str) else ("", "")
    message = ", ".join(dict.fromkeys([*parts, *([detail] if detail else [])])) or json.dumps(found)
    return message, param or str(found.get("param") or "")


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
