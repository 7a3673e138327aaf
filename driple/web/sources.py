"""Where the job of a request comes from, and the readers that find it there.

    {"config": {...}} --source_of--> RequestJob    with served(sources, read): predict(source.text)

A request's job is a name of the catalogue or of timm, or content. Within `served`, the readers of
jobs know its text, and nothing else of the request: no text is looked up as a file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

from driple.errors import ConfigError
from driple.jobs.graph_file import GRAPH_FILE
from driple.jobs.hugging_face import HUGGING_FACE
from driple.jobs.job import Job
from driple.jobs.load import JOB_HELP  # noqa: F401  # registers the readers that these come before
from driple.jobs.onnx_file import ONNX_FILE
from driple.jobs.pytorch_name import PYTORCH
from driple.jobs.readers import JobReader, JobRequest, register_reader
from driple.jobs.timm_name import TIMM
from driple.jobs.workload_name import CATALOGUE
from driple.web.refusals import unknown, wrong_type

__all__ = [
    "KINDS",
    "TIMM_NAME",
    "UPLOADED",
    "WORKLOAD_NAME",
    "RequestJob",
    "built_in_names",
    "served",
    "source_of",
    "source_with",
]

KINDS = ("catalogue", "timm", "config", "graph", "onnx")
UPLOADED = ("graph", "onnx")  # whose content no link can hold
WORKLOAD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/-]{0,199}")
"""Names of the catalogue; `..` is refused beside."""
TIMM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]{0,99}")
"""Names of models of timm."""
_READERS = (PYTORCH, CATALOGUE, TIMM, HUGGING_FACE, GRAPH_FILE, ONNX_FILE)
_OF_KIND = {"timm": TIMM, "config": HUGGING_FACE, "graph": GRAPH_FILE, "onnx": ONNX_FILE}
_DIGITS = 12

Read = Callable[[JobReader, JobRequest], Job]


@dataclass(frozen=True)
class RequestJob:
    """The job of a request.

    Attributes:
        kind: one of `KINDS`.
        text: JOB, as answers name it; the kind and the begin of the digest of what has no name.
        content: of a file; None of a name.
    """

    kind: str
    text: str
    content: bytes | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of kind and content."""
        content = self.text.encode() if self.content is None else self.content
        return hashlib.sha256(self.kind.encode() + b"\0" + content).hexdigest()

    @property
    def reader(self) -> JobReader:
        """Who reads it."""
        if self.kind == "catalogue":
            return PYTORCH if self.text in built_in_names() else CATALOGUE
        return _OF_KIND[self.kind]


def source_with(kind: str, content: bytes) -> RequestJob:
    """The source of a file's content.

    Raises:
        ConfigError: it is empty.
    """
    if not content.strip():
        raise ConfigError(f"the {kind} is empty; send the content of a file")
    bare = RequestJob(kind, kind, content)
    return replace(bare, text=f"{kind}-{bare.digest[:_DIGITS]}")


def source_of(value: object) -> RequestJob:
    """The source that a request's `job` states.

    Args:
        value: a name of the catalogue, or an object with one of `KINDS`: `catalogue` and `timm` are
            names, `config` is the object of a config.json, `graph` and `onnx` are files in base64.

    Raises:
        ConfigError: none of these.
    """
    if isinstance(value, str):
        value = {"catalogue": value}
    if not isinstance(value, Mapping) or len(value) != 1:
        raise wrong_type("job", f"a name or an object with one of {', '.join(KINDS)}", value)
    ((kind, given),) = value.items()
    if kind not in KINDS:
        raise unknown("kind of job", kind, KINDS)
    if kind == "config":
        if not isinstance(given, Mapping):
            raise wrong_type("job.config", "the object of a config.json", given)
        return source_with(kind, json.dumps(given, sort_keys=True).encode())
    if not isinstance(given, str):
        raise wrong_type(f"job.{kind}", "a text", given)
    if kind in UPLOADED:
        try:
            return source_with(kind, base64.b64decode(given, validate=True))
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"job.{kind} is no base64: {error}") from error
    return _named(kind, given)


def _named(kind: str, name: str) -> RequestJob:
    if kind == "timm":
        if not TIMM_NAME.fullmatch(name):
            raise ConfigError(f"job.timm is no name of a model of timm: {name[:80]!r}")
        return RequestJob(kind, f"timm:{name}")
    from driple.jobs.names import workload_named

    if not WORKLOAD_NAME.fullmatch(name) or ".." in name:
        raise ConfigError(
            f"job is no name of the catalogue: {name[:80]!r}; see /v1/catalog, or give an object "
            f"with one of {', '.join(KINDS)}"
        )
    if name not in built_in_names():
        if "/" not in name:
            raise unknown("job", name, built_in_names())
        workload_named(name)
    return RequestJob(kind, name)


@cache
def built_in_names() -> tuple[str, ...]:
    """Names of the built-in PyTorch models."""
    from driple.jobs.pytorch.workloads import WORKLOADS

    return tuple(WORKLOADS)


@dataclass(frozen=True)
class _Served:
    sources: Mapping[str, RequestJob]
    read: Read


_SERVED: ContextVar[_Served | None] = ContextVar("driple_served", default=None)
_INSTALLING = threading.Lock()


@contextmanager
def served(sources: Mapping[str, RequestJob], read: Read) -> Iterator[None]:
    """Have the texts of these sources read by a function, in this context.

    Args:
        sources: by their texts.
        read: gets the reader of the source's kind, and the request with the source's content.
    """
    _install()
    token = _SERVED.set(_Served(sources, read))
    try:
        yield
    finally:
        _SERVED.reset(token)


@cache
def _installed() -> bool:
    for base in _READERS:
        register_reader(
            replace(
                base,
                form=f"{base.form}, of a request",
                claims=partial(_is_of, base),
                read=partial(_read, base),
                refuse=None,
            ),
            first=True,
        )
    return True


def _install() -> None:
    """Register readers that claim nothing but what is served."""
    with _INSTALLING:
        _installed()


def _is_of(base: JobReader, text: str) -> bool:
    known = _SERVED.get()
    source = None if known is None else known.sources.get(text)
    return source is not None and source.reader is base


def _read(base: JobReader, request: JobRequest) -> Job:
    known = _SERVED.get()
    if known is None:
        raise ConfigError(f"{request.text} is of a request that is over; ask again")
    content = known.sources[request.text].content
    return known.read(base, replace(request, content=content))
