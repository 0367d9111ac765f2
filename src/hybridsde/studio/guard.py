"""Who may ask the studio: this machine, the page that it served, whoever knows its address.

A random token is the first part of every path, so that no request is answered without it. The
Host header must name this machine, which keeps out names that were bound to 127.0.0.1 after a page
was loaded (DNS rebinding). A request that another page makes is refused by where it comes from.
"""

import hmac
import secrets
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
"""Of the studio's own page. Charts set styles; no script but our files is run."""
FRAMED = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'; base-uri 'none'; "
    "form-action 'none'"
)
"""Of a report inside the page: its scripts draw, and can ask nobody, the studio included."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
HERE = ("127.0.0.1", "localhost")
OWN_SITES = ("same-origin", "none")
"""What a browser says of a request of the page itself, and of an address that was typed."""


def new_token() -> str:
    """Nobody guesses it."""
    return secrets.token_urlsafe(24)


class Guard:
    """Answers 403 to everybody else, and adds a content policy to every answer."""

    def __init__(self, app: ASGIApp, token: str, port: int):
        self._app, self._token = app, token
        self._hosts = tuple(f"{name}:{port}" for name in HERE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, its path without the token; or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        _, token, rest = (*scope["path"].split("/", 2), "", "")[:3]
        allowed = scope["type"] == "http" and self._comes_from_here(Headers(scope=scope))
        if not allowed or not hmac.compare_digest(token.encode(), self._token.encode()):
            await self._refuse(scope, receive, send)
            return
        inside = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}
        await self._app(inside, receive, _with_headers(send))

    def _comes_from_here(self, headers: Headers) -> bool:
        host, origin = headers.get("host", ""), headers.get("origin")
        own = host in self._hosts and origin in (None, f"http://{host}")
        return own and headers.get("sec-fetch-site", "none") in OWN_SITES

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        said = "Open the studio by the address that it printed.\n"
        await PlainTextResponse(said, 403, HEADERS)(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            _set_default(MutableHeaders(scope=message), HEADERS.items())
        await send(message)

    return sent


def _set_default(headers: MutableHeaders, wanted: Iterable[tuple[str, str]]) -> None:
    for name, value in wanted:
        headers.setdefault(name, value)
