"""The gate before the application (ASGI): bodies within limits, headers of security, counts.

request -> refused: too many, packed, too large while it streams, too slow -> application
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from driple.web.limits import Limits
from driple.web.metrics import Metrics
from driple.web.refusals import Refusal, busy

__all__ = ["CONTENT_SECURITY_POLICY", "Gate", "refuse"]

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
_NO_BODY = ("GET", "HEAD", "OPTIONS")


class Gate:
    """An ASGI application around another.

    Args:
        app: the application, which gets the whole body at once.
        limits: of the server.
        metrics: that count each request.
    """

    def __init__(self, app: App, limits: Limits, metrics: Metrics) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._num_open = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s, status = time.monotonic(), 499  # the client went away

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
            body = await self._body(scope, receive)
            if body is not None:
                await self._app(scope, _receive_once(body, receive), counted)
        except Refusal as refusal:
            await refuse(refusal, counted)
        finally:
            self._num_open -= 1
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(route, status, time.monotonic() - started_s)

    async def _body(self, scope: Message, receive: Receive) -> bytes | None:
        """The whole body; None if the client went away.

        Raises:
            Refusal: it is packed, too large, or too slow.
        """
        headers = {name.lower(): value for name, value in scope["headers"]}
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Refusal(
                415, "content-encoding is not taken; send the body as it is (a graph may be a .gz)"
            )
        most = self._limits.body_bytes
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > most:
            raise _too_large(most)
        if scope["method"] in _NO_BODY:
            most = 0
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise _too_large(most)
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError as error:
            raise Refusal(
                408, f"the body took longer than {self._limits.body_s:g} s to arrive"
            ) from error


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


async def refuse(refusal: Refusal, send: Send) -> None:
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
