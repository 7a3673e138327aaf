"""`driple mcp`: tools for assistants, over the Model Context Protocol."""

from __future__ import annotations

from driple.extras import require_mcp

__all__ = ["mcp"]


def mcp() -> None:
    """Answer assistants on stdin and stdout (Model Context Protocol).

    Four tools: predict, fits, plan and explain. No code of a user is run: JOB is a file, a name of
    the catalogue, hf:PATH or timm:NAME. Start it from the assistant's settings.

    Example:

      driple mcp
    """
    require_mcp("driple mcp")
    from driple.agents.server import server

    server().run("stdio")
