"""A real server with short limits: slow, half-sent and unread connections end."""

from __future__ import annotations

import gzip
import io
import json
import signal
import socket
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from scripts.checks.web_server import RunningServer, processes_below, running_server

HEAD = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
HEAD_S, BODY_S, UNREAD_S = 1.0, 1.5, 2.0


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    limits = {"head_s": HEAD_S, "body_s": BODY_S, "unread_s": UNREAD_S, "read_s": 20.0}
    with running_server(**limits, graph_bytes=2**20) as running:
        yield running
    assert [line for line in running.lines if "Invalid HTTP" not in line] == []


@pytest.fixture
def connection(server: RunningServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stream:
        yield stream


def everything(stream: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    content = b""
    while piece := stream.recv(65536):
        content += piece
    return content


def test_a_connection_that_sends_nothing_is_closed(connection: socket.socket) -> None:
    begin_s = time.monotonic()
    assert b" 408 " in everything(connection)
    assert time.monotonic() - begin_s > 0.9 * HEAD_S


def test_a_head_that_trickles_is_refused(connection: socket.socket) -> None:
    """One header after another, each soon enough for a server that waits for any bytes."""
    connection.sendall(HEAD.encode())
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for number in range(200):
            connection.sendall(f"x-{number}: 1\r\n".encode())
            time.sleep(0.05)


def test_a_second_head_that_stops_is_refused(connection: socket.socket) -> None:
    """On a connection that has had an answer."""
    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert b" 200 " in connection.recv(65536)
    connection.sendall(b"GET /healthz HT")
    content = everything(connection)
    assert b" 408 " in content
    reason = json.loads(content.partition(b"\r\n\r\n")[2])
    assert reason == {"reason": "the request took longer than 1 s to arrive", "status": 408}


def test_a_body_that_trickles_is_refused(connection: socket.socket) -> None:
    connection.sendall(f"{HEAD}content-length: 1000\r\n\r\n".encode())
    begin_s = time.monotonic()
    for _ in range(5):
        connection.sendall(b" ")
        time.sleep(0.1)
    assert b" 408 " in everything(connection)
    assert time.monotonic() - begin_s < 20


def test_a_client_that_takes_no_answer_is_cut_off(server: RunningServer) -> None:
    """It asks for the catalogue again and again, and reads nothing."""
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.settimeout(60)
    stream.connect(("127.0.0.1", server.port))
    with stream, pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(10_000):
            stream.sendall(b"GET /v1/catalog HTTP/1.1\r\nhost: localhost\r\n\r\n" * 100)
            time.sleep(0.01)
    assert server.ask("GET", "/healthz")[0] == 200


def test_a_client_that_goes_away_leaves_a_server_that_answers(server: RunningServer) -> None:
    """After its question, before the answer; others then get it."""
    body = json.dumps({"job": "mobilenet_v2", "clusters": ["1xV100"]}).encode()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stream:
            stream.sendall(f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body)
    answer = server.answer("/v1/predict", json.loads(body))
    assert answer["answers"][0]["setting"] == "1xV100"


def zip_bomb() -> bytes:
    """4 MiB in some kB."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("saved_model.pb", b"0" * 2**22)
    return packed.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", zip_bomb(), gzip.compress(b"\n" * 2**22), gzip.compress(gzip.compress(b"0" * 2**26)),
     gzip.compress(b"node {")[:-4]],
    ids=["empty", "zip", "gzip", "gzip twice", "cut"],
)  # fmt: skip
@pytest.mark.parametrize("part", ["graph", "onnx", "config"])
def test_no_upload_is_unpacked_beyond_the_limit(
    server: RunningServer, part: str, content: bytes
) -> None:
    """Empty files, bombs and damaged ones have a reason, and soon."""
    status, _, answer = upload(server, part, content)
    assert status in (400, 422)
    assert json.loads(answer)["reason"]


def upload(server: RunningServer, part: str, content: bytes) -> tuple[int, dict[str, str], bytes]:
    """The answer to a form with one file."""
    head = f'--x\r\ncontent-disposition: form-data; name="{part}"; filename="f"\r\n\r\n'
    body = head.encode() + content + b"\r\n--x--\r\n"
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    path, kind = "/v1/predict", {"content-type": "multipart/form-data; boundary=x"}
    connection.request("POST", path, body, kind)
    answer = connection.getresponse()
    status, headers, sent = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    if status != 202:
        return status, headers, sent
    while status == 202:
        time.sleep(0.1)
        status, headers, sent = server.ask("GET", json.loads(sent)["location"])
    return status, headers, sent


def test_a_graph_that_takes_too_long_is_refused(graph: bytes) -> None:
    with running_server(read_s=0.01) as server:
        status, _, answer = upload(server, "graph", graph)
    reason = json.loads(answer)["reason"]
    assert status == 422
    assert "took longer than 0.01 s" in reason
    assert server.lines == []


def test_a_stopped_server_waits_for_no_question() -> None:
    """More plans than are worked on at a time: all end with the server, and so do its children."""
    with running_server(wait_s=0.01) as server:
        server.answer("/v1/predict", {"job": "mobilenet_v2"})  # children can be forked
        asked: dict[str, Any] = {"job": "mobilenet_v2", "devices": ["A100", "H100", "V100"]}
        for number in range(6):
            assert server.ask("POST", "/v1/plan", {**asked, "samples": 1e6 + number})[0] == 202
        below = processes_below(server.process.pid)
        begin_s = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        server.process.wait(30)
        assert time.monotonic() - begin_s < 20
    assert below
    end_s = time.monotonic() + 10
    while any(is_alive(number) for number in below):
        assert time.monotonic() < end_s
        time.sleep(0.1)


def is_alive(number: int) -> bool:
    """Whether a process runs."""
    try:
        with open(f"/proc/{number}/stat", encoding="ascii") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
