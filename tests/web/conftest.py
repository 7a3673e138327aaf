"""One server for all tests of REST and of the page, in this process; its children are real."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from driple.web.app import create_app
from driple.web.limits import Limits

ROOT = Path(__file__).resolve().parents[2]
BODY_BYTES = 8 * 2**20


class Asker:
    """A client that waits for long work, as programs and the page do."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def post(self, path: str, **values: Any) -> Any:
        """The answer of REST."""
        answer = self.client.post(path, **values)
        while answer.status_code == 202:
            time.sleep(0.1)
            answer = self.client.get(answer.headers["location"])
        return answer

    def page(self, path: str) -> Any:
        """The page, or its answer."""
        answer = self.client.get(path)
        while answer.status_code == 202:
            time.sleep(0.1)
            match = re.search(r"/view/([\w-]+)", answer.text)
            assert match is not None
            answer = self.client.get(f"/view/{match[1]}")
        return answer


@pytest.fixture(scope="session")
def asker() -> Iterator[Asker]:
    with TestClient(create_app(Limits(body_bytes=BODY_BYTES, graph_bytes=32 * 2**20))) as client:
        yield Asker(client)


@pytest.fixture(scope="session")
def graph() -> bytes:
    """A TensorFlow graph that is shipped as an example."""
    return (ROOT / "datasets" / "examples" / "resnet20.pbtxt").read_bytes()
