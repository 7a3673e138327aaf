"""Connections that stand still are closed: a request that does not arrive, an answer not taken.

protocol_within(limits) -> uvicorn's protocol for HTTP/1.1, with these two limits of time

Bodies have theirs in the gate; between two requests uvicorn itself waits some seconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from driple.web.limits import Limits
from driple.web.refusals import Refusal

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["protocol_within"]


def protocol_within(limits: Limits) -> type[H11Protocol]:
    """The protocol of a server.

    Args:
        limits: of the server.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class BoundedProtocol(H11Protocol):
        """One connection."""

        _head: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._head = _without(self._head)
            elif self._head is None:  # the begin of another request on this connection
                self._await_head()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread = self.loop.call_later(limits.unread_s, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._unread = _without(self._unread)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._head, self._unread = _without(self._head), _without(self._unread)

        def _await_head(self) -> None:
            self._head = self.loop.call_later(limits.head_s, self._refuse_head)

        def _refuse_head(self) -> None:
            if self.transport.is_closing():
                return
            words = f"the request took longer than {limits.head_s:g} s to arrive"
            body = Refusal(408, words).body
            head = (
                "HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
            self.transport.close()

    return BoundedProtocol


def _without(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer, in place of one that is cancelled."""
    if timer is not None:
        timer.cancel()
    return None
