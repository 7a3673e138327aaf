"""Run the application with uvicorn on one address, until it is stopped.

host, port -> socket -> uvicorn
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from driple.errors import ConfigError
from driple.web.gate import refuse
from driple.web.limits import Limits
from driple.web.refusals import Refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["LocalNames", "bound_socket", "run_server"]

_BACKLOG = 1024
_STOP_S = 3  # for open requests when the server is stopped
_IDLE_S = 5  # that a connection stays open between requests
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_REASONS = {
    errno.EADDRINUSE: "is in use; give another --port",
    errno.EACCES: "may not be used by you; give a --port of 1024 or more",
    errno.EADDRNOTAVAIL: "is no address of this machine; give --host 127.0.0.1",
}


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Args:
        host: address or name of this machine.
        port: 0 for any that is free.

    Raises:
        ConfigError: the address is in use, or is none of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--host {host}: {error}; give --host 127.0.0.1") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        reason = _REASONS.get(error.errno or 0, f"cannot be used: {error.strerror}")
        raise ConfigError(f"{host}:{port} {reason}") from error
    return listening


def run_server(listening: socket.socket, limits: Limits | None = None) -> None:
    """Serve until the process is stopped.

    Args:
        listening: see `bound_socket`.
        limits: of the server.
    """
    import uvicorn

    from driple.web.app import create_app

    app: ASGIApp = create_app(limits)
    if ipaddress.ip_address(listening.getsockname()[0]).is_loopback:
        app = LocalNames(app)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_STOP_S,
        timeout_keep_alive=_IDLE_S,
        backlog=_BACKLOG,
    )
    uvicorn.Server(config).run(sockets=[listening])


class LocalNames:
    """Refuses requests under other names than those of this machine's own loopback address.

    A page elsewhere can point its name at 127.0.0.1 and then read answers as its own; the browser
    still sends that page's name as Host.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with status 421."""
        if scope["type"] != "http" or _is_local(dict(scope["headers"]).get(b"host", b"")):
            await self._app(scope, receive, send)
            return
        await refuse(Refusal(421, "this server answers to localhost and 127.0.0.1 alone"), send)


def _is_local(host: bytes) -> bool:
    """Whether a Host header names this machine's loopback address."""
    try:
        return urlsplit(f"//{host.decode('ascii')}").hostname in _LOCAL_NAMES
    except (UnicodeDecodeError, ValueError):
        return False
