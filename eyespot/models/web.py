"""What comes over HTTP: no more than was promised, in bounded time, on from where it was cut, without credentials.

Proxies are those of the environment (HTTPS_PROXY, NO_PROXY), certificates those of SSL_CERT_FILE. User, password and
query of an address are sent, and stand in no text that comes back.
"""

from __future__ import annotations

import base64
import re
import ssl
import time
from calendar import timegm
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate
from functools import cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from math import inf, isfinite
from pathlib import Path
from socket import SHUT_RDWR
from string import punctuation
from threading import Event, Thread
from typing import Any, BinaryIO
from urllib.error import HTTPError
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from eyespot.storage.atomic import trouble
from eyespot.types import EyespotError, Progress, no_progress

PIECE = 1 << 20
SILENCE = 60.0  # seconds without a byte
START = 120.0  # seconds for an answer, beside those for bytes that come no slower than SLOWEST
SLOWEST = 1 << 12  # bytes a second
PATIENCE = 10  # times as long as it may be silent, a small answer may take
UNSTATED = 1 << 34  # bytes of an answer whose length nobody states
WAY = "fetch it while online"
_REFUSED = {  # the hub's X-Error-Code, or a status → what it means, and what to do
    "GatedRepo": "its terms are not accepted yet; accept them there, then log in with: hf auth login",
    "RepoNotFound": "the hub has no repository of this name, or it is private; check the name",
    "RevisionNotFound": "the repository has no revision of this name; check it",
    "EntryNotFound": "no file there has this name; check it",
    401: "it wants a login; download it in a browser",
    403: "access is not granted; accept its terms there and download it in a browser",
    404: "it is not there any more; look for its new place",
}


class HostBusy(EyespotError):
    """The host answers later, or the line broke; `wait` is how long to wait, in seconds."""

    def __init__(self, sentence: str, wait: float = 0.0) -> None:
        super().__init__(sentence)
        self.wait = wait


class NotThere(EyespotError):
    """The host has nothing at this address."""


class TooMuch(EyespotError):
    """The host sends more than was promised."""


# -- credentials ------------------------------------------------------------------------------------------------


def public(url: str) -> str:
    """An address for a sentence: without user, password and query."""
    head, slashes, rest = url.partition("://")
    place, slash, path = rest.partition("?")[0].partition("#")[0].partition("/")
    return head + slashes + place.rpartition("@")[2] + slash + path if slashes else url


def secrets(*sent: str, least: int = 1) -> re.Pattern[str]:
    """What the credentials in these addresses and headers look like in a text, those of `least` characters or more.

    Also quoted as in addresses, escaped as in JSON, and in base64 as a server sees user and password.
    """
    found = set[str]()
    for one in sent:
        with suppress(ValueError):
            parts = urlsplit(one if "://" in one else "")
            login = unquote(parts.netloc.rpartition("@")[0])
            values = [parts.username, parts.password, parts.query, *(value for _, value in parse_qsl(parts.query))]
            found |= {login, base64.b64encode(login.encode()).decode(), *filter(None, values)}
            found |= set() if "://" in one else {one.removeprefix("Bearer ")}
    found |= {change(one) for one in found for change in (unquote, quote, lambda text: quote(text, safe=""))}
    spelled = sorted((one for one in found if len(one) >= least), key=len, reverse=True)
    return re.compile("|".join("".join(map(_escaped, one)) for one in spelled) or "(?!)")


def _escaped(character: str) -> str:
    plain = re.escape(character)
    return rf"(?:\\(?:u(?i:{ord(character):04x})|{plain})|{plain})"


def redacted(text: str, *sent: str) -> str:
    """What somebody else wrote, with *** for the credentials in these addresses and headers that were sent."""
    return secrets(*sent).sub("***", text)


def is_address(text: str) -> bool:
    """Whether this is an address of the web."""
    with suppress(ValueError):
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.netloc)
    return False


# -- asking -----------------------------------------------------------------------------------------------------


class _Redirects(HTTPRedirectHandler):
    """A token is for the host that it was given to, and for no other that this host leads to."""

    def redirect_request(self, req: Any, *answer: Any) -> Any:
        made = super().redirect_request(req, *answer)
        if made is not None and urlsplit(made.full_url)[:2] != urlsplit(req.full_url)[:2]:
            made.remove_header("Authorization")
        return made


class _Answer(HTTPResponse):
    """An answer, head and body, that is cut where the whole takes too long: each byte of it may come in time."""

    def __init__(self, sock: Any, *args: Any, start: float, slowest: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self._line, self._end, self._slowest = sock, time.monotonic() + start, slowest
        self._late, self._closed = False, Event()
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while (left := self._end - time.monotonic()) > 0:  # bytes that come put the end off
            if self._closed.wait(left):
                return
        self._late = True
        with suppress(OSError):
            self._line.shutdown(SHUT_RDWR)

    def read1(self, n: int = -1) -> bytes:
        piece = super().read1(n)
        self._end += len(piece) / self._slowest
        if self._late:  # else the end of the line would be that of an answer without a length
            raise TimeoutError("the answer takes too long")
        return piece

    def close(self) -> None:
        self._closed.set()
        super().close()


class _Connections(HTTPSHandler):
    """Connections whose answers take at most `start` seconds, and one more for each `slowest` bytes."""

    http_request = HTTPSHandler.https_request

    def __init__(self, start: float, slowest: float) -> None:
        super().__init__()
        self.answers = partial(_Answer, start=start, slowest=slowest)

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(self._made, HTTPConnection), req)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(self._made, HTTPSConnection, context=_certificates()), req)

    def _made(self, kind: Any, host: str, **options: Any) -> Any:
        connection = kind(host, **options)
        connection.response_class = self.answers
        return connection


@cache  # reading those of the system takes longer than many an answer
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


def _opener(*handlers: Any) -> OpenerDirector:
    opener = OpenerDirector()
    for handler in (ProxyHandler(), UnknownHandler(), *handlers):
        opener.add_handler(handler)
    return opener


def _request(url: str, headers: Mapping[str, str], data: bytes | BinaryIO | None = None) -> Request:
    """A request whose user and password, which stand in its address, go as HTTP wants them."""
    parts = urlsplit(url)
    login, _, host = parts.netloc.rpartition("@")
    about = {"User-Agent": "eyespot", "Accept-Encoding": "identity", **headers}
    if login:  # RFC 7617: a user and a password, which may be empty
        both = unquote(login if ":" in login else f"{login}:")
        about["Authorization"] = f"Basic {base64.b64encode(both.encode()).decode()}"
    path, query = (quote(part, safe=punctuation) for part in (parts.path, parts.query))  # as a browser shows them
    return Request(parts._replace(netloc=host, path=path, query=query).geturl(), data, about)


def exchange(
    url: str,
    headers: Mapping[str, str],
    data: bytes | BinaryIO | None = None,
    *,
    silence: float,
    most: int,
    method: str | None = None,
) -> tuple[int, Mapping[str, str], bytes]:
    """One answer: status, whatever it is, headers and body; POST where there is data. No redirect is followed.

    silence: seconds without a byte; the whole may take PATIENCE times that. most: bytes. Raises: URLError where no
    request could be sent, OSError and HTTPException where no head came, HostBusy where the body broke off, TooMuch.
    """
    request = _request(url, headers, data)
    request.method = method or request.get_method()
    with _opener(_Connections(PATIENCE * silence, inf)).open(request, timeout=silence) as answer:
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise TooMuch(f"{public(url)} sends a packed answer, which nobody wanted")
        return answer.status, answer.headers, b"".join(pieces(answer, public(url), most))


@contextmanager
def opened(
    url: str, source: str = "", headers: Mapping[str, str] = {}, *, way: str = WAY
) -> Iterator[HTTPResponse | HTTPError]:
    """What the host sends, redirects followed; an answer 416 to a range comes as it is.

    source: what to call it in a sentence, and `way` how else it can be had. Raises: HostBusy, NotThere, EyespotError.
    """
    source = source or public(url)
    # Not those of files and FTP: a redirect leads to neither
    followed = _Connections(START, SLOWEST), _Redirects(), HTTPDefaultErrorHandler(), HTTPErrorProcessor()
    answer: HTTPResponse | HTTPError
    try:
        answer = _opener(*followed).open(request := _request(url, headers), timeout=SILENCE)
    except HTTPError as error:
        if error.code != 416 or "Range" not in headers:
            error.close()
            elsewhere = urlsplit(error.url or "").netloc != request.host  # a signed address expires
            raise _refusal(error, source, way, elsewhere) from None
        answer = error
    except (OSError, HTTPException, ValueError) as error:
        why = redacted(str(getattr(error, "reason", error)) or type(error).__name__, url, *headers.values())
        raise HostBusy(f"cannot get {source} ({why}); check the connection and run the same line again") from None
    with answer:
        yield answer


def _refusal(error: HTTPError, source: str, way: str, elsewhere: bool) -> EyespotError:
    if (why := _REFUSED.get(error.headers.get("X-Error-Code") or "")) is not None:
        return EyespotError(f"could not get {source}: {why}, or {way}")
    if error.code == 429 or error.code >= 500 or (elsewhere and error.code == 403):
        sentence = f"cannot get {source}: the host answers {error.code}; try again later"
        return HostBusy(sentence, 1.0 if (wait := retry_after(error.headers.get)) is None else wait)
    why = _REFUSED.get(error.code, f"the host answers {error.code}; try again later, or download it in a browser")
    return (NotThere if error.code == 404 else EyespotError)(f"cannot get {source}: {why}, and {way}")


def retry_after(header: Callable[[str], str | None]) -> float | None:
    """The seconds that an answer asks to wait (RFC 9110, 10.2.3): a date counts from its own Date on, else from now."""
    with suppress(ValueError):
        return max(0.0, seconds) if isfinite(seconds := float(header("retry-after") or "")) else None
    then, now = (parsedate(header(name) or "") for name in ("retry-after", "date"))
    return max(0.0, timegm(then) - (timegm(now) if now else time.time())) if then else None


# -- reading ----------------------------------------------------------------------------------------------------


def pieces(answer: HTTPResponse | HTTPError, source: str, most: int | None = None) -> Iterator[bytes]:
    """The bytes of an answer as they come, at most `most`, or what it states itself.

    Raises: EyespotError for more, HostBusy where the line breaks, is silent, or is slower than SLOWEST.
    """
    coming = _stated(answer)
    limit = next(one for one in (most, coming, UNSTATED) if one is not None)
    got = 0
    while got <= limit and (coming or 0) <= limit:
        try:
            piece = answer.read1(PIECE)
        except (OSError, HTTPException):
            break
        got += len(piece)
        if not piece and coming in (None, got):
            return
        if not piece:
            break
        if got <= limit:
            yield piece
    else:
        raise TooMuch(f"{source} sends more than the {limit:,} bytes that it should have; nothing of it is used")
    raise HostBusy(f"{source} was cut after {got:,} bytes; run the same line again to go on")


def _stated(answer: HTTPResponse | HTTPError) -> int | None:
    length = answer.headers.get("Content-Length") or ""
    return int(length[:20]) if length.isdecimal() else None  # Python refuses to read thousands of digits


def read(url: str, most: int, source: str = "", headers: Mapping[str, str] = {}, *, way: str = WAY) -> bytes:
    """A small answer, whole."""
    with opened(url, source, headers, way=way) as answer:
        return b"".join(pieces(answer, source or public(url), most))


def grow(
    part: Path,
    url: str,
    source: str,
    *,
    size: int | None = None,
    tag: Path | None = None,
    headers: Mapping[str, str] = {},
    tell: Progress = no_progress,
    way: str = WAY,
) -> int:
    """Bring the rest of a file that grows under this name; how many bytes came now.

    size: that somebody promised. tag: where the host's ETag stands, if nothing else says that the file is the same.
    """
    before = part.stat().st_size if part.exists() and (tag is None or tag.exists()) else 0
    if size is not None and before >= size > 0:
        return 0
    wanted = {"Range": f"bytes={before}-"} if before else {}
    if before and tag is not None:
        wanted["If-Range"] = tag.read_text("utf-8")
    with opened(url, source, {**headers, **wanted}, way=way) as answer:
        if answer.status == 416:  # nothing to come: If-Range lets another file come whole, so the size decides
            if answer.headers.get("Content-Range") == f"bytes */{before}":
                return 0
            for leftover in filter(None, (part, tag)):
                leftover.unlink(missing_ok=True)
            raise EyespotError(f"{source} has changed meanwhile; run the same line again to get it whole")
        start = _begun(answer, source, part, tag, before)
        total = size or start + (_stated(answer) or -start)
        left = None if size is None else size - start
        return _written(part, pieces(answer, source, left), lambda got: tell("bytes", start + got, total))


def _written(part: Path, coming: Iterator[bytes], tell: Callable[[int], None]) -> int:
    got = 0
    try:
        with part.open("ab") as file:
            for piece in coming:
                file.write(piece)
                got += len(piece)
                tell(got)
    except OSError as error:
        raise EyespotError(f"{part.parent} cannot be written {trouble(error)}") from None
    except TooMuch:  # none of it can be right
        part.unlink()
        raise
    return got


def _begun(answer: Any, source: str, part: Path, tag: Path | None, before: int) -> int:
    """The byte that the host begins with; what is here goes if that is the first."""
    if answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {before}-"):
        return before
    for old in filter(None, (tag, part)):  # the tag goes first: a kill between must leave no old bytes under a new tag
        old.unlink(missing_ok=True)
    if answer.status == 206:
        raise EyespotError(
            f"{source} sends another part than the one it lacks; run the same line again to get it whole"
        )
    etag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
    if tag is not None and etag and not etag.startswith("W/"):
        tag.write_text(etag, "utf-8")
    return 0
