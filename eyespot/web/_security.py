"""Access: who may come in, from where, with how much, for how long, and what a browser may do with the answer.

Whoever sits at this machine comes in without a token and may do everything; any other address needs one. A request
counts as from this machine only if its address and the host it names are loopback and no proxy says that it passed it
on: so a page of another site that has its name point here (DNS rebinding) is turned away.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from urllib.parse import quote, unquote, urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eyespot.types import quantity
from eyespot.web._problems import Problem, problem_json, wants_page
from eyespot.web._settings import Access, Role, ServerSettings, User, digest_of

COOKIE, NAME_COOKIE = "eyespot", "eyespot_name"
OPEN = re.compile(
    r"/(healthz|readyz|login|static/[^/]*|shared/[A-Za-z0-9_-]+(/[0-9]+-(320|1600)\.jpg|/open|/photos\.zip)?)"
)  # what anybody may see, the last with the token of a list in the address
SAFE = ("GET", "HEAD", "OPTIONS")
BODY = 1 << 20  # bytes of a request that is not an upload
LARGEST_HEAD = 32 << 10  # bytes of a request's address and headers
PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",  # a query is nobody else's business; `no-referrer` would blank forms' Origin
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TOO_MUCH = "this is more than the server takes; send a smaller picture or a shorter text"
NOBODY = User("", Role.READER, False)


def person_of(request: Request) -> User:
    """Who asks."""
    person: User = request.scope.get("person", NOBODY)
    return person


def is_visitor(person: User, access: Sequence[Access]) -> bool:
    """Whether somebody without a name may be any of several people.

    At a machine whose server knows nobody else by a token, whoever has no name is its owner.
    """
    others = any(one.role < Role.OWNER and not one.internal for one in access)
    return not person.proven and not person.name and (person.role < Role.OWNER or others)


def needs(role: Role) -> Callable[[Request], User]:
    """A dependency that gives who asks, and turns away whoever has not this role."""

    def check(request: Request) -> User:
        person = person_of(request)
        if person.role < role:
            raise Problem(403, f"this needs a token of the role {role.name.lower()}; ask the gallery's owner for one")
        return person

    return check


class LoginThrottle:
    """Wrong tokens of late, by address: whoever has too many has to wait."""

    def __init__(
        self,
        most: int = 10,
        seconds: float = 300.0,
        addresses: int = 10_000,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most, self.seconds, self.addresses, self.clock = most, seconds, addresses, clock
        self._wrong: OrderedDict[str, deque[tuple[float, bytes]]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Seconds until this address may try again; 0 if it may now."""
        wrong = self._wrong.get(address, deque())
        while wrong and self.clock() - wrong[0][0] > self.seconds:
            wrong.popleft()
        return 0 if len(wrong) < self.most else int(self.seconds - (self.clock() - wrong[0][0])) + 1

    def count(self, address: str, digest: bytes, what: str = "tokens") -> None:
        """`Problem` if there were too many; the same one again, as a browser's old cookie, is not a new guess."""
        if wait := self.wait(address):
            again = f"too many wrong {what}; try again in {quantity(wait, 'second')}"
            raise Problem(429, again, {"Retry-After": str(wait)})
        wrong = self._wrong.setdefault(address, deque(maxlen=self.most))
        if all(digest != known for _, known in wrong):
            wrong.append((self.clock(), digest))
        self._wrong.move_to_end(address)
        if len(self._wrong) > self.addresses:
            self._wrong.popitem(last=False)


class AuthMiddleware:
    """The middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.settings, self.guesses = app, settings, LoginThrottle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        with_headers = _with_headers(send)
        try:
            self._admit(scope)
            body = _Body(receive, self._most(scope))
            await answer_within(self.settings.seconds, self.app, scope, body, with_headers)
        except Problem as problem:
            refusal: Response
            # For a person without a token the way to the page that takes one; for all others the problem
            if problem.status == 401 and scope["method"] == "GET" and wants_page(Headers(scope=scope), scope["path"]):
                url = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
                refusal = RedirectResponse(f"/login?next={quote(url, safe='')}", 303)
            else:
                refusal = problem_json(problem)
            await refusal(scope, receive, with_headers)

    def _admit(self, scope: Scope) -> None:
        # Bytes of a request's head; a server limits only what comes in several pieces
        address = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        head = address + sum(len(name) + len(value) for name, value in scope["headers"])
        if head > LARGEST_HEAD:
            raise Problem(431, "the address and headers of this request are too long; delete cookies or ask for less")
        request = HTTPConnection(scope)
        headers, settings = request.headers, self.settings
        try:  # the name in the Host header, without its port; where there is none, starlette's `URL` has the server's
            host = (urlsplit(f"//{headers.get('host', '')}").hostname or "").lower()
        except ValueError:
            host = ""
        # No other site can have a name of this machine's own point here, and without `trust_loopback` it opens nothing.
        local_name = host == "localhost" or _loopback(host)
        # TrustedHostMiddleware knows no own names, and answers in plain text
        if not local_name and settings.hosts is not None and host not in settings.hosts:
            raise Problem(421, "this server does not answer under that name; start it with --allow-host NAME")
        direct = _loopback(address_of(scope)) and not any(name in headers for name in PASSED_ON)
        person = self._person(request, settings.trust_loopback and local_name and direct)
        if person.internal and not direct:
            raise Problem(403, "this token is for programs on the server's own machine")
        scope["access"], scope["person"] = self, person
        length = headers.get("content-length", "0")
        if re.fullmatch("[0-9]{1,18}", length) and int(length) > self._most(scope):
            raise Problem(413, TOO_MUCH)
        if scope["method"] not in SAFE and not _same_origin(headers):
            raise Problem(403, "another site sent this request, and its pages may not act here; use eyespot's own page")

    def _person(self, request: HTTPConnection, here: bool) -> User:
        """Who asks, by their token or because they sit at this machine; `Problem` if neither lets them in."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip() if kind.lower() == "bearer" else request.cookies.get(COOKIE)
        path = request.scope["path"]
        if here and (given is None or _matching(self.settings.access, given) is None):
            # What somebody without a token said their name is
            return User(clean_name(unquote(request.cookies.get(NAME_COOKIE, ""))), Role.OWNER, False)
        if OPEN.fullmatch(path):
            return NOBODY
        if given is not None:
            return self.known(given, address_of(request.scope))
        raise Problem(401, "this needs a token; ask the gallery's owner for one", {"WWW-Authenticate": "Bearer"})

    def known(self, token: str, address: str) -> User:
        """Whose token this is; `Problem` if it is nobody's.

        A right one always comes in: behind a proxy all have one address, and one who guesses would lock out everybody.
        """
        found = _matching(self.settings.access, token)
        if found is None:
            self.guesses.count(address, digest_of(token), "tokens")
            raise Problem(401, "this token is unknown; ask the gallery's owner", {"WWW-Authenticate": "Bearer"})
        return User(found.name, found.role, True, found.internal)

    def _most(self, scope: Scope) -> int:
        kind = Headers(scope=scope).get("content-type", "")
        pictures = self.settings.upload_bytes if kind.startswith("multipart/form-data") else 0
        if scope["path"] == "/v1/embeddings":
            pictures = self.settings.upload_bytes * 4 // 3  # in base64
        return pictures + BODY


def _matching(access: tuple[Access, ...], token: str) -> Access | None:
    """All are compared, each in constant time, so that time tells nothing."""
    digest = digest_of(token)
    found = [one for one in access if hmac.compare_digest(one.digest, digest)]
    return found[0] if found else None


def address_of(scope: Scope) -> str:
    """Where a request comes from."""
    return str((scope.get("client") or ("",))[0])


def clean_name(name: str) -> str:
    """A name as it can stand in a record: one short line."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())[:80]


def _loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def _same_origin(headers: Headers) -> bool:
    """Browsers say where a request comes from; programs that say nothing are not browsers.

    CORSMiddleware only tells browsers which answers their pages may read; it refuses no request.
    """
    origin = headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


# -- how much, how long -----------------------------------------------------------------------------------------


class _Body:
    """The body of a request up to a number of bytes, whatever its header promised.

    starlette's RequestBodyLimitMiddleware has one limit for uploads and texts alike, and answers in plain text.
    """

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive, self.left = receive, most

    async def __call__(self) -> Message:
        message = await self.receive()
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise HTTPException(413, TOO_MUCH)  # the one kind of error that a form's parser lets through
        return message


async def answer_within(seconds: float, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the application; whoever waits so long for the next piece of the answer is told to come again.

    The work itself goes on to its end in its thread, which nothing can stop, and what it then sends is dropped.
    """
    sent, begun = asyncio.Event(), False
    over = False

    async def watched(message: Message) -> None:
        nonlocal begun
        if over:
            return
        begun = True
        await send(message)
        sent.set()

    task = asyncio.ensure_future(app(scope, receive, watched))
    try:
        while not (await asyncio.wait({task}, timeout=seconds))[0]:
            if not sent.is_set():
                over = True
                break
            sent.clear()
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not over:
        return await task
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    if begun:
        raise ConnectionError("the answer took too long")
    raise Problem(503, f"this took longer than {seconds:g} seconds; ask for less, or again later", {"Retry-After": "5"})


def _with_headers(send: Send) -> Send:
    """Every answer with the headers that keep a browser from doing harm with it."""

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "private, no-cache")
        await send(message)

    return with_headers
