"""The gate: bodies too large, too slow, packed or cut off, and what every answer carries."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Sequence
from typing import Any

import pytest

from driple.web.app import create_app
from driple.web.gate import Gate
from driple.web.limits import Limits
from driple.web.metrics import Metrics
from tests.web.conftest import BODY_BYTES, Asker


def ask(
    pieces: Sequence[bytes | None],
    limits: Limits,
    headers: Sequence[tuple[bytes, bytes]] = (),
    *,
    ends: bool = True,
) -> tuple[list[dict[str, Any]], int]:
    """What the gate sends for a body in pieces, and how many were taken; None: the client goes."""
    sent: list[dict[str, Any]] = []
    taken = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": message["body"]})

    async def receive() -> dict[str, Any]:
        nonlocal taken
        if taken == len(pieces):
            await asyncio.sleep(60)
        piece = pieces[taken]
        taken += 1
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": not ends or taken < len(pieces)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
    asyncio.run(Gate(app, limits, Metrics())(scope, receive, send))
    return sent, taken


def test_a_body_that_is_too_large_is_refused_while_it_streams() -> None:
    """Of a hundred pieces the third passes the limit, and the fourth is not taken."""
    sent, taken = ask([b"x" * 100] * 100, Limits(body_bytes=250))
    assert (sent[0]["status"], taken) == (413, 3)


def test_a_length_that_is_too_large_is_refused_before_any_piece() -> None:
    sent, taken = ask([b"x"], Limits(body_bytes=250), [(b"content-length", b"251")])
    assert (sent[0]["status"], taken) == (413, 0)


def test_a_body_within_the_limit_arrives_whole() -> None:
    sent, _ = ask([b"ab", b"cd"], Limits(body_bytes=4))
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"abcd")


def test_a_slow_body_is_refused() -> None:
    """One piece arrives, and nothing more."""
    sent, taken = ask([b"x"], Limits(body_s=0.05), ends=False)
    assert (sent[0]["status"], taken) == (408, 1)


def test_a_client_that_goes_away_gets_no_answer() -> None:
    """Half an upload reaches nobody."""
    sent, taken = ask([b"x", None], Limits())
    assert (sent, taken) == ([], 2)


def test_bodies_that_are_too_much_together_are_refused() -> None:
    """One within its own limit, where all may have less; afterwards there is room again."""
    sent, taken = ask([b"x" * 100] * 3, Limits(bodies_bytes=250))
    assert (sent[0]["status"], taken) == (503, 3)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 200}

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    async def three() -> None:
        gate = Gate(app, Limits(bodies_bytes=250), Metrics())
        for _ in range(3):
            scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
            await gate(scope, receive, send)

    asyncio.run(three())
    assert statuses == [200, 200, 200]


def test_a_defect_has_its_headers_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The answer says nothing of the code; the server's output does."""
    sent: list[dict[str, Any]] = []
    metrics = Metrics()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("secret")

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    asyncio.run(Gate(app, Limits(), metrics)(scope, receive, send))
    assert sent[0]["status"] == 500
    assert b"content-security-policy" in dict(sent[0]["headers"])
    assert b"secret" not in sent[1]["body"]
    assert "secret" in caplog.text
    assert 'status="500"} 1' in metrics.text({})


def test_more_requests_than_may_be_open_are_refused() -> None:
    sent, _ = ask([b"x"], Limits(requests=0))
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"5") in sent[0]["headers"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_a_packed_body_is_refused_unread(asker: Asker, encoding: str) -> None:
    """So no bomb is unpacked: a graph may be a .gz, which its reader bounds."""
    bomb = gzip.compress(b"0" * 2**20)
    headers = {"content-encoding": encoding, "content-type": "application/json"}
    assert asker.client.post("/v1/predict", content=bomb, headers=headers).status_code == 415


def test_a_gzip_bomb_is_no_graph(asker: Asker) -> None:
    """100 MiB of zeros in 100 kB are more than the server reads."""
    bomb = gzip.compress(b"\n" * (100 * 2**20))
    answer = asker.post("/v1/predict", files={"graph": ("x", bomb)})
    assert answer.status_code == 422
    assert "at most" in answer.json()["reason"]


def test_an_upload_beyond_the_limit_is_refused(asker: Asker) -> None:
    answer = asker.client.post("/v1/predict", files={"graph": ("x", b"0" * (BODY_BYTES + 1))})
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/", "/healthz", "/static/driple.css"])
def test_a_monitor_may_ask_for_headers_alone(asker: Asker, path: str) -> None:
    head, whole = asker.client.head(path), asker.client.get(path)
    assert head.status_code == whole.status_code == 200
    assert head.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 200), ("GET", "/healthz", 200), ("GET", "/nothing", 404),
     ("DELETE", "/v1/predict", 405), ("POST", "/v1/predict", 415)],
)  # fmt: skip
def test_every_answer_has_headers_of_security(
    asker: Asker, method: str, path: str, status: int
) -> None:
    """The policy lets no inline script or style run, and no other site frame the page."""
    answer = asker.client.request(method, path)
    assert answer.status_code == status
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    if status >= 400:
        assert set(answer.json()) == {"reason", "status"}


def test_a_server_with_enough_to_do_says_when_to_ask_again() -> None:
    from fastapi.testclient import TestClient

    client = TestClient(create_app(Limits(waiting=0)))  # without its start: no child
    answer = client.post("/v1/predict", json={"job": "mobilenet_v2"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
