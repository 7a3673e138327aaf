"""The routes of the page: the whole page, its answer alone, an upload, and static files.

GET /?job=...  page with its answer;  GET /view?...  the answer;  POST /upload  -> 303 to the page
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from fastapi import APIRouter, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from driple.errors import ConfigError, DripleError
from driple.web.bodies import form_of, json_of
from driple.web.fingerprint import etag_of
from driple.web.refusals import Refusal, refusal_of
from driple.web.service import Answered, Service
from driple.web.sources import UPLOADED, RequestJob, built_in_names, source_of, source_with
from driple.web.view import View, answer_parts, plan_parts

if TYPE_CHECKING:
    from driple.api.inspecting import InspectResult
    from driple.api.predicting import PredictResult

__all__ = ["page_router"]

_HTML = "text/html; charset=utf-8"
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
_STATIC = ("driple.css", "driple.js", "htmx-4.0.1.min.js", "htmx-LICENSE.txt", "icon.svg")
_CLUSTERS = (
    "1xA100", "8xA100", "1xH100", "8xH100", "4x8xH100/NVLink+400G", "8xV100", "4xL4", "8xB200",
    "8xMI300X", "V100-P1w2/ho-PCIe", "p5.48xlarge",
)  # fmt: skip


def page_router(service: Service) -> APIRouter:
    """The routes of the page.

    Args:
        service: that answers.
    """
    router = APIRouter()

    @router.api_route("/", methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        view, shown, status = await _shown(service, request.query_params)
        return _page(_whole(view, shown), status)

    @router.get("/view")
    async def answer(request: Request) -> Response:
        view, shown, status = await _shown(service, request.query_params)
        headers = {"hx-replace-url": view.url} if status < 300 and view.is_asked else {}
        return _page(shown, status, headers)

    @router.get("/view/{work_id}")
    async def later(work_id: str) -> Response:
        future = service.work.find(work_id)
        if future is None:
            return _page(*_refused(Refusal(404, "this answer is not kept any more; ask again")))
        return _page(*await _finished(service, future, work_id))

    @router.post("/upload")
    async def upload(request: Request) -> Response:
        try:
            view = _uploaded(service, await request.body(), request.headers)
        except DripleError as error:
            text, status = _refused(error)
            return _page(_whole(View(), text), status)
        return Response(status_code=303, headers={"location": view.url})

    @router.api_route("/static/{name}", methods=["GET", "HEAD"])
    async def static(name: str, request: Request) -> Response:
        if name not in _STATIC:
            raise Refusal(404, "there is no such file")
        content, etag = _static(name)
        headers = {"etag": etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        kind = _TYPES[name[name.rindex(".") :]]
        return Response(content, headers={**headers, "content-type": kind})

    return router


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("driple.web"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template(name: str) -> Any:
    return _environment().get_template(name)


def _whole(view: View, answer: str) -> str:
    """The page with an answer, which may be empty."""
    return str(
        _template("index.html").render(
            view=view,
            answer=answer,
            jobs=built_in_names(),
            clusters=_CLUSTERS,
            reads_names=find_spec("torch") is not None,
        )
    )


@cache
def _static(name: str) -> tuple[bytes, str]:
    content = (files("driple.web") / "static" / name).read_bytes()
    return content, etag_of("static", name)


def _page(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    kept = {"content-type": _HTML, "cache-control": "no-store", **(headers or {})}
    return Response(text, status_code=status, headers=kept)


def _uploaded(service: Service, body: bytes, headers: Mapping[str, str]) -> View:
    """The view of a file in a form, which is kept in memory for a while."""
    fields = form_of(body, headers.get("content-type", ""))
    texts = {
        name: values[-1].decode("utf-8", "replace")
        for name, values in fields.items()
        if name != "file"
    }
    content = fields.get("file", [b""])[-1]
    kind = texts.get("kind", "graph")
    if kind == "config":
        source = source_of({"config": json_of(content, kind)})
        return View.of(
            {**texts, "kind": kind, "job": "", "config": (source.content or b"").decode()}
        )
    if kind not in UPLOADED:
        raise ConfigError(f"a file is one of {', '.join(UPLOADED)}, config; choose which")
    source = source_with(kind, content)
    service.sources.put(source.digest, source, len(content))
    return View.of({**texts, "kind": kind, "job": source.digest, "config": ""})


def _source_of(service: Service, view: View) -> RequestJob:
    """The job of a view.

    Raises:
        DripleError: there is none, or its file is not kept any more.
    """
    if view.kind == "config":
        return source_of({"config": json_of(view.config.encode(), "config")})
    if not view.is_upload:
        return source_of({view.kind: view.job})
    source = service.sources.get(view.job)
    if source is None:
        raise ConfigError("a link does not hold an uploaded file: drop the file again")
    return source


async def _shown(service: Service, query: Mapping[str, str]) -> tuple[View, str, int]:
    """The view of a query, its answer as HTML, and the status."""
    view = View()
    try:
        view = View.of(query)
        if not view.is_asked:
            return view, "", 200
        source = _source_of(service, view)
        make = _plan if view.plan else _answer
        future = make(service, view, source)
    except DripleError as error:
        return view, *_refused(error)
    return view, *await _finished(service, future, "")


def _answer(service: Service, view: View, source: RequestJob) -> asyncio.Future[Answered]:
    """The predictions of a view, as HTML."""
    question, inspecting = view.predict, view.inspect
    if question.is_long:
        raise ConfigError("this would take minutes: name fewer workers, or ask /v1/predict")
    etag = service.etag(question, [source], f"page {inspecting.canonical} {view.url}")

    def make() -> bytes:
        result = service.result(question, [source])
        inspected = _inspected(service, view, source)
        parts = answer_parts(cast("PredictResult", result), inspected)
        return str(_template("answer.html").render(view=view, **parts)).encode()

    def then(done: asyncio.Future[Answered]) -> None:
        if not done.cancelled() and done.exception() is None:
            service.read_ahead(question, source)

    future = service.once(etag, make)
    future.add_done_callback(then)
    return future


def _inspected(service: Service, view: View, source: RequestJob) -> InspectResult | None:
    """The job's modules and memory; its modules alone where its memory is unknown."""
    from driple.api.inspecting import inspect

    question = view.inspect
    setting = view.names[0] if view.names else None
    for memory in (True, False):

        def ask(texts: Sequence[str], memory: bool = memory) -> InspectResult:
            return inspect(texts[0], setting, options=question.options, depth=1, memory=memory)

        try:
            return service.in_context([source], ask)
        except DripleError:  # said in the lines of the answer
            continue
    return None


def _plan(service: Service, view: View, source: RequestJob) -> asyncio.Future[Answered]:
    """The plan of a view, as HTML."""
    question = view.planned
    etag = service.etag(question, [source], f"page plan {view.url}")

    def make() -> bytes:
        parts = plan_parts(service.children.ask(question, [source]))
        return str(_template("plan.html").render(view=view, **parts)).encode()

    return service.once(etag, make, is_long=True)


async def _finished(
    service: Service, future: asyncio.Future[Answered], work_id: str
) -> tuple[str, int]:
    """The answer, or that it is at work and where the page asks again."""
    try:
        await asyncio.wait([future], timeout=service.limits.wait_s)
        if not future.done():
            name = work_id or service.work.add(future)
            return _template("waiting.html").render(work_id=name), 202
        return future.result().text.decode(), 200
    except DripleError as error:
        return _refused(error)


def _refused(error: DripleError) -> tuple[str, int]:
    refusal = refusal_of(error)
    return _template("refused.html").render(reason=str(refusal)), refusal.status
