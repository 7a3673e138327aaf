"""The gate before the application (ASGI): bodies within limits, headers of security, counts.

request -> refused: another host, too many, packed, too large, too slow -> application
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from driple.web.limits import Limits
from driple.web.metrics import Metrics
from driple.web.refusals import Refusal, busy

__all__ = ["CONTENT_SECURITY_POLICY", "Gate"]

_LOG = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }.items()
)
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Gate:
    """An ASGI application around another.

    Args:
        app: the application, which gets the whole body at once.
        limits: of the server.
        metrics: that count each request.
        local_only: whether requests under other names than those of this machine's own loopback
            address are refused. A page elsewhere can point its name at 127.0.0.1 and then read
            answers as its own; the browser still sends that page's name as Host.
    """

    def __init__(
        self, app: App, limits: Limits, metrics: Metrics, *, local_only: bool = False
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._local_only = local_only
        self._num_open = self._num_bytes = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s, status = time.monotonic(), 499  # the client went away
        body = bytearray()

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        self._num_open += 1
        try:
            if self._num_open > self._limits.requests:
                raise busy(f"{self._num_open - 1} requests are open")
            if await self._has_arrived(scope, receive, body):
                await self._app(scope, _receive_once(bytes(body), receive), counted)
        except Refusal as refusal:
            await _refuse(refusal, counted)
        except Exception:  # a defect, shown where the server runs
            _LOG.exception("%s %s", scope["method"], scope["path"])
            if status != 499:
                raise
            await _refuse(Refusal(500, "a defect of the server"), counted)
        finally:
            self._num_open -= 1
            self._num_bytes -= len(body)
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(route, status, time.monotonic() - started_s)

    async def _has_arrived(self, scope: Message, receive: Receive, body: bytearray) -> bool:
        """Take the whole body; False if the client went away.

        Raises:
            Refusal: another host is asked, or the body is packed, too large, or too slow.
        """
        headers = {name.lower(): value for name, value in scope["headers"]}
        if self._local_only and not _is_local(headers.get(b"host", b"")):
            raise Refusal(421, "this server answers to localhost and 127.0.0.1 alone")
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Refusal(
                415, "content-encoding is not taken; send the body as it is (a graph may be a .gz)"
            )
        most = self._limits.body_bytes
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._limits.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return False
                    piece = message.get("body", b"")
                    body += piece
                    self._num_bytes += len(piece)
                    if len(body) > most:
                        raise _too_large(most)
                    if self._num_bytes > self._limits.bodies_bytes:
                        raise busy("too much is being uploaded")
                    if not message.get("more_body", False):
                        return True
        except TimeoutError as error:
            raise Refusal(
                408, f"the body took longer than {self._limits.body_s:g} s to arrive"
            ) from error


def _is_local(host: bytes) -> bool:
    """Whether a Host header names this machine's loopback address."""
    try:
        return urlsplit(f"//{host.decode('ascii')}").hostname in _LOCAL_NAMES
    except (UnicodeDecodeError, ValueError):
        return False


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"the body is larger than {most} bytes; ask driple on the command line")


def _receive_once(body: bytes, receive: Receive) -> Receive:
    """The body in one message; then what the client does."""
    sent = False

    async def once() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once


async def _refuse(refusal: Refusal, send: Send) -> None:
    """Answer, and have the connection closed: the rest of the body is not read."""
    headers = {**refusal.headers, "content-length": str(len(refusal.body)), "connection": "close"}
    await send(
        {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": refusal.body})
