"""REST: one route per question, whose answer is the JSON of the command line.

POST /v1/QUESTION  ->  200 with ETag | 202 with Location | 304 | 400, 413, 415, 422, 503 with reason
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from driple.codec import to_json
from driple.errors import DripleError
from driple.extras import driple_version
from driple.web.bodies import form_of, json_of
from driple.web.fingerprint import data_fingerprint, etag_of
from driple.web.metrics import CONTENT_TYPE
from driple.web.questions import QUESTIONS, Question
from driple.web.refusals import Refusal, refusal_of
from driple.web.service import Answered, Service
from driple.web.sources import UPLOADED, RequestJob, built_in_names, source_of, source_with

__all__ = ["answered", "rest_router"]

_JSON = "application/json"
_WORK = "/v1/work/"
_RETRY_S = "1"


def rest_router(service: Service) -> APIRouter:
    """The routes of REST.

    Args:
        service: that answers.
    """
    router = APIRouter()

    def add(name: str, path: str, *, many: bool) -> None:
        async def ask(request: Request) -> Response:
            return await _ask(service, request, name, many=many)

        router.add_api_route(path, ask, methods=["POST"], name=path)

    for name in QUESTIONS:
        add(name, f"/v1/{name}", many=False)
    add("predict", "/v1/predict:batch", many=True)

    @router.get(_WORK + "{work_id}")
    async def fetch_work(work_id: str, request: Request) -> Response:
        future = service.work.find(work_id)
        if future is None:
            minutes = service.limits.work_kept_s / 60
            raise Refusal(404, f"no such work; answers are kept for {minutes:g} minutes")
        return await answered(service, future, request, work_id=work_id)

    @router.get("/v1/catalog")
    async def catalog(request: Request) -> Response:
        etag = etag_of("catalog")
        if _is_known(request, etag):
            return Response(status_code=304, headers={"etag": etag})
        done = await service.once(etag, _catalog_text)
        headers = {"etag": done.etag, "cache-control": "private, no-cache"}
        return Response(done.text, media_type=_JSON, headers=headers)

    @router.api_route("/healthz", methods=["GET", "HEAD"])
    async def health() -> Response:
        facts = {"status": "ok", "version": driple_version()}
        return Response(json.dumps(facts), media_type=_JSON, headers={"cache-control": "no-store"})

    @router.get("/metrics")
    async def metrics() -> Response:
        text = service.metrics.text(service.gauges)
        return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    return router


async def _ask(service: Service, request: Request, name: str, *, many: bool) -> Response:
    body = await request.body()
    try:
        sources, asked = _read(body, request.headers.get("content-type", ""), service, many=many)
        question = Question.of(name, asked, service.limits.graph_bytes)
        service.check(question, sources)
        etag = service.etag(question, sources)
        if _is_known(request, etag):
            return Response(status_code=304, headers={"etag": etag})
        future = service.answer(question, sources)
    except DripleError as error:
        raise refusal_of(error) from error
    except RecursionError as error:
        raise Refusal(400, "the body is nested too deeply; send a flatter object") from error
    return await answered(service, future, request)


def _read(
    body: bytes, content_type: str, service: Service, *, many: bool
) -> tuple[list[RequestJob], Mapping[str, Any]]:
    """The jobs of a request, and its other fields.

    Raises:
        DripleError: a body that is neither JSON nor a form, or no job.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return _read_form(form_of(body, content_type))
    if kind != _JSON:
        raise Refusal(415, f"content-type must be {_JSON} or multipart/form-data, got {kind!r:.80}")
    asked = dict(json_of(body))
    key = "jobs" if many else "job"
    if key not in asked:
        what = "names, or objects" if many else "a name, or an object"
        raise Refusal(422, f"{key} is missing; give {what} with a config or a file")
    given = asked.pop(key)
    if not many:
        given = [given]
    if not isinstance(given, list) or not 1 <= len(given) <= service.limits.jobs:
        raise Refusal(422, f"jobs must be a list of 1 to {service.limits.jobs} jobs")
    return [source_of(one) for one in given], asked


def _read_form(fields: Mapping[str, Sequence[bytes]]) -> tuple[list[RequestJob], Mapping[str, Any]]:
    """A form with a file, `graph`, `onnx` or `config`, and `request` with the rest in JSON."""
    kinds = ("config", *UPLOADED)
    odd = [name for name in fields if name not in (*kinds, "request")]
    if odd:
        raise Refusal(422, f"unknown part {odd[0][:80]!r}; known are {', '.join(kinds)}, request")
    files = [(name, value) for name in kinds for value in fields.get(name, ())]
    if len(files) != 1:
        raise Refusal(422, f"give one file, as {', '.join(kinds)}; got {len(files)}")
    asked = json_of(fields["request"][0], "request") if "request" in fields else {}
    ((kind, content),) = files
    if kind == "config":
        return [source_of({kind: json_of(content, kind)})], asked
    return [source_with(kind, content)], asked


async def answered(
    service: Service,
    future: asyncio.Future[Answered],
    request: Request,
    *,
    work_id: str = "",
) -> Response:
    """The answer of a future; where to fetch it, if it is not there after a second.

    Args:
        service: that keeps what takes longer.
        future: of the answer.
        request: for which it is.
        work_id: of a work that is kept already; empty of a new one.

    Raises:
        Refusal: the question has no answer, or too many are at work.
    """
    await asyncio.wait([future], timeout=service.limits.wait_s)
    if not future.done():
        name = work_id or service.work.add(future)
        place = f"{_WORK}{name}"
        text = json.dumps({"status": 202, "reason": "at work", "location": place})
        headers = {"location": place, "retry-after": _RETRY_S, "cache-control": "no-store"}
        return Response(text, status_code=202, media_type=_JSON, headers=headers)
    try:
        done = future.result()
    except DripleError as error:
        raise refusal_of(error) from error
    headers = {"etag": done.etag, "cache-control": "private, no-cache"}
    if _is_known(request, done.etag):
        return Response(status_code=304, headers=headers)
    return Response(done.text, media_type=_JSON, headers=headers)


def _is_known(request: Request, etag: str) -> bool:
    """Whether the client has the answer already (If-None-Match)."""
    given = request.headers.get("if-none-match", "")
    return etag in [one.strip().removeprefix("W/") for one in given.split(",")]


def _catalog_text() -> bytes:
    """What requests may name."""
    from importlib.util import find_spec

    from driple.catalog.catalog import shipped_catalog
    from driple.catalog.listing import list_devices, list_instances, list_links
    from driple.cluster.setting import KNOWN_SETTINGS
    from driple.inspector.checkpoint_places import settings_with_checkpoint
    from driple.jobs.lists import paper_workloads
    from driple.render.show import json_text

    hardware = shipped_catalog()
    extras = {
        "catalogue": "torch",
        "onnx": "onnx",
        "timm": "timm",
        "config": "transformers",
        "workload": "tensorflow",
    }
    listed = {
        "version": driple_version(),
        "data": data_fingerprint(),
        "jobs": list(built_in_names()),
        "workloads": [workload.name for workload in paper_workloads()],
        "kinds": {kind: find_spec(module) is not None for kind, module in extras.items()},
        "settings": list(dict.fromkeys([*KNOWN_SETTINGS, *settings_with_checkpoint()])),
        "devices": list_devices(hardware),
        "links": list_links(hardware),
        "instances": list_instances(hardware),
    }
    return json_text(to_json(listed)).encode() + b"\n"
