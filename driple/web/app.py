"""The application: REST and the page behind one gate.

create_app(limits) -> ASGI application, to be run by uvicorn (`driple serve`) or any other server
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from driple.web.gate import Gate
from driple.web.limits import Limits
from driple.web.openapi import openapi
from driple.web.pages import page_router
from driple.web.refusals import Refusal
from driple.web.rest import rest_router
from driple.web.service import Service

__all__ = ["create_app"]


def create_app(limits: Limits | None = None, *, local_only: bool = False) -> FastAPI:
    """The application of one server.

    Args:
        limits: sizes, times and counts; the usual ones if None.
        local_only: whether it answers to names of this machine's loopback address alone.
    """
    known = limits or Limits()
    service = Service(known)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.children.start()
        yield
        service.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.include_router(rest_router(service))
    app.include_router(page_router(service))

    @app.get("/openapi.json")
    async def description() -> dict[str, Any]:
        return openapi()

    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_middleware(Gate, limits=known, metrics=service.metrics, local_only=local_only)
    app.state.service = service
    return app


async def _refused(_: Request, error: Exception) -> Response:
    refusal = cast("Refusal", error)
    return Response(refusal.body, status_code=refusal.status, headers=refusal.headers)


async def _no_route(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    words = {
        404: f"there is nothing at {request.url.path[:80]}; see /openapi.json",
        405: f"{request.method} is not for {request.url.path[:80]}; see /openapi.json",
    }
    refusal = Refusal(status, words.get(status, "the request cannot be answered"))
    headers = refusal.headers | dict(getattr(error, "headers", None) or {})
    return Response(refusal.body, status_code=status, headers=headers)
