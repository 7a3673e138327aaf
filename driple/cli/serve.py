"""`driple serve`: the web page and REST."""

from __future__ import annotations

from typing import Annotated

import typer

from driple.cli.extras import require_web
from driple.cli.numbers import whole_number
from driple.render.show import note

__all__ = ["serve"]

_MOST_PORT = 65_535


def serve(
    host: Annotated[
        str, typer.Option(help="address to listen on; others than 127.0.0.1 let others in")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(help="port; 0 for any that is free", callback=whole_number(0, _MOST_PORT)),
    ] = 8080,
) -> None:
    """Serve a web page and REST, until Ctrl-C.

    Choose a job and clusters on the page, or send them to /v1/predict, /v1/plan, /v1/sweep and
    /v1/inspect; /openapi.json describes them. It writes no file, takes no path, and never runs
    code of users. There is no login: keep it on 127.0.0.1, or behind a proxy that has one.

    Examples:

      driple serve

      driple serve --port 8000

      driple serve --host 0.0.0.0 --port 80
    """
    require_web("driple serve")
    from driple.web.serving import bound_socket, run_server

    listening = bound_socket(host, port)
    number = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    note(f"serving on http://{shown}:{number}; stop with Ctrl-C")
    run_server(listening)
