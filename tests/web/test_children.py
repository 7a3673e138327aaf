"""Children end by their limits, whatever they read, and the server says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from driple.errors import GraphError
from driple.jobs.graph_file import GRAPH_FILE
from driple.jobs.options import JobOptions
from driple.jobs.readers import JobRequest
from driple.web.children import Children
from driple.web.limits import Limits
from driple.web.sources import source_with


@pytest.fixture
def children(request: pytest.FixtureRequest) -> Iterator[Children]:
    pool = Children(request.param)
    yield pool
    pool.end()


@pytest.mark.parametrize(
    "children",
    [Limits(read_s=0.01), Limits(memory_bytes=2**20)],
    indirect=True,
    ids=["time", "memory"],
)
def test_a_child_beyond_its_limits_is_ended(children: Children, graph: bytes) -> None:
    """A graph that takes some 100 ms and some 10 MB."""
    source = source_with("graph", graph)
    request = JobRequest(text=source.text, options=JobOptions(), content=graph)
    with pytest.raises(GraphError, match=r"than 0\.01 s|more memory than the server gives"):
        children.read(GRAPH_FILE, request, source)
