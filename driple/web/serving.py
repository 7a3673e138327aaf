"""Run the application with uvicorn on one address, until it is stopped.

host, port -> socket -> uvicorn
"""

from __future__ import annotations

import errno
import ipaddress
import resource
import socket
from contextlib import suppress

from driple.errors import ConfigError
from driple.web.connections import protocol_within
from driple.web.limits import Limits

__all__ = ["bound_socket", "run_server"]

_BACKLOG = 1024
_OPEN_FILES = 65_536  # one for each connection
_STOP_S = 3  # for open requests when the server is stopped
_IDLE_S = 5  # that a connection stays open between requests
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

    known = limits or Limits()
    local_only = ipaddress.ip_address(listening.getsockname()[0]).is_loopback
    _raise_open_files()
    config = uvicorn.Config(
        create_app(known, local_only=local_only),
        http=protocol_within(known),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_STOP_S,
        timeout_keep_alive=_IDLE_S,
        backlog=_BACKLOG,
    )
    with suppress(KeyboardInterrupt):  # which is how it ends
        uvicorn.Server(config).run(sockets=[listening])


def _raise_open_files() -> None:
    """Let this process have as many connections as the system allows; often it is 1024 at first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
