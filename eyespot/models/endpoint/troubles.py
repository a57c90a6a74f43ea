"""What can go wrong between a question and its answer, and which of it is worth another try."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from eyespot.types import EyespotError

UNAVAILABLE = (503, 529)
BUSY = (408, 409, 425, 429)  # "later", not "no"; so is every 5xx but the two that say the server never will
NEVER = (501, 505)
NO_CREDIT = re.compile(r"insufficient_quota|insufficient credit|credit balance", re.IGNORECASE)
DECLINED = re.compile(
    r"content[_ ]?(policy|filter|management)|responsible ?ai|moderation|flagged|safety system", re.IGNORECASE
)
SORRY = re.compile(  # how a refusal in words begins
    r"\W*(unfortunately, )?(sorry|i( am|['’]?m) (so |very )?(sorry|afraid|unable|not (able|comfortable))"
    r"|i (can(no|['’])t|won['’]t|will not|(must |have to )?decline|apologi[sz]e))\b",
    re.IGNORECASE,
)
LONGEST = 300  # characters of a server's own words that are kept


class Trouble(Exception):
    """Why there is no answer, in one sentence."""


class Again(Trouble):
    """The same request may succeed later; `wait` is how many seconds the server asks for, None: it says nothing."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Busy(Again):
    """The server turned the request away for now; it takes nothing for that."""


class Unreachable(Again):
    """Nobody answers at this address."""


class Status(Trouble):
    """The server answered with an HTTP status that is an error, and with these words."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"the server answers {status}: {said}" if said else f"the server answers {status}")
        self.status, self.said = status, said


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


class Halted(Trouble):
    """The run is being stopped; nobody waits for this answer any more."""


def of_status(status: int, body: str, headers: Mapping[str, str]) -> Trouble:
    """`Again` if the server asks for patience, otherwise the `Status` itself."""
    said = _said(body)
    later = status in BUSY or (status >= 500 and status not in NEVER)
    if not later or (status == 429 and NO_CREDIT.search(said)):
        return Status(status, said)
    # Behind any other 5xx the answer may have been made, and be paid for.
    kind = Busy if status in BUSY + UNAVAILABLE else Again
    return kind(str(Status(status, said)), seconds_to_wait(headers))


def final(trouble: Status, address: str, model: str) -> Exception:
    """What an error status means for the pair (`Declined`, `Refused`) or for every pair alike (`EyespotError`)."""
    status, said = trouble.status, trouble.said
    if status in (400, 403, 422, 451) and DECLINED.search(said):
        return Declined(said)
    if status == 402 or NO_CREDIT.search(said):
        return EyespotError(f"{address} gives no more credit ({said}); top it up and run the same line again to go on")
    if status in (401, 403):
        return EyespotError(f"{address} does not accept the key ({said}); set the right one and run again")
    if status < 400:
        return EyespotError(f"{address} answers {status}: it has moved; name the address that it has now")
    if status in (404, 405):
        return Unknown(f"{address} does not know the model {model!r} ({said}); check its name and the address")
    return Refused(str(trouble))


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Retry-After as seconds from now, whether it is a number or an HTTP date; None where it says nothing usable."""
    if (exact := _number(headers.get("retry-after-ms", ""))) is not None:
        return exact / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _said(body: str) -> str:
    """The message of an error body in any of the usual forms, with its code, on one line."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = body
    if isinstance(found, dict):
        found = found.get("error") or found.get("detail") or found.get("message") or found
    if isinstance(found, dict):
        parts = [str(found[key]) for key in ("message", "code", "type") if found.get(key)]
        found = ", ".join(dict.fromkeys(parts)) or json.dumps(found)
    return " ".join(str(found).split())[:LONGEST]
