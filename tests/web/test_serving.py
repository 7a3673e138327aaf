"""`driple serve` as a process: it answers, ends cleanly, and says what is wrong in one line."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SERVE = [sys.executable, "-m", "driple", "serve", "--port", "0"]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server, which leaves neither processes nor files behind."""
    folder = tmp_path_factory.mktemp("serve")
    temporary = tmp_path_factory.mktemp("temporary")
    process = subprocess.Popen(
        SERVE, cwd=folder, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )  # fmt: skip
    assert process.stderr is not None
    match = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
    assert match is not None
    yield int(match[1])
    below = children(process.pid)
    assert below
    process.send_signal(signal.SIGINT)
    assert process.wait(30) in (0, -signal.SIGINT, 130)
    assert list(folder.iterdir()) == []
    assert list(temporary.iterdir()) == []
    deadline_s = time.monotonic() + 10
    while any(Path(f"/proc/{number}").exists() for number in below):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def children(parent: int) -> list[int]:
    """Processes below one."""
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    direct = [int(word) for word in text.split()]
    return direct + [deep for child in direct for deep in children(child)]


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    content = None if body is None else json.dumps(body)
    headers = {} if body is None else {"content-type": "application/json"}
    connection.request(method, path, content, headers)
    answer = connection.getresponse()
    reply = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    connection.close()
    return reply


def finished(port: int, path: str, body: Any) -> bytes:
    """The answer of a question, however long it takes."""
    status, headers, content = ask(port, "POST", path, body)
    while status == 202:
        time.sleep(0.2)
        status, headers, content = ask(port, "GET", headers["location"])
    assert status == 200, content
    return content


def test_it_answers_the_same_bytes(port: int) -> None:
    body = {"job": "mobilenet_v2", "clusters": ["1xA100"]}
    assert ask(port, "GET", "/healthz")[0] == 200
    assert finished(port, "/v1/predict", body) == finished(port, "/v1/predict", body)


def test_it_takes_no_more_than_it_says(port: int) -> None:
    """The answer comes while the body is sent, and the server goes on."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    connection.sendall(head.encode())
    piece = b"100000\r\n" + b"0" * 2**20 + b"\r\n"
    sent = 0
    try:
        for _ in range(200):
            connection.sendall(piece)
            sent += 1
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert 60 < sent < 200
    connection.close()
    assert ask(port, "GET", "/healthz")[0] == 200
    text = ask(port, "GET", "/metrics")[2].decode()
    assert re.search(r'requests_total\{route="\w+",status="413"\} 1', text)


def test_half_an_upload_leaves_nothing(port: int) -> None:
    """The client is gone after half of what it claimed."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n"
    connection.sendall(head.encode() + b"x" * 500)
    connection.close()
    deadline_s = time.monotonic() + 20
    while b'status="499"' not in ask(port, "GET", "/metrics")[2]:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_what_is_no_http_is_refused(port: int) -> None:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
    assert b"400" in connection.recv(1000)
    connection.close()


def test_a_port_in_use_is_said_in_one_line(port: int) -> None:
    words = [*SERVE[:-1], str(port)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == f"driple: 127.0.0.1:{port} is in use; give another --port\n"


def test_an_address_of_another_machine_is_refused() -> None:
    words = [*SERVE, "--host", "192.0.2.1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "is no address of this machine" in done.stderr


def test_without_the_extra_it_says_what_to_install() -> None:
    """And nothing of the server is imported by other commands."""
    code = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'uvicorn' else real(name, *a)\n"
        "from driple.cli.main import run; sys.argv = ['driple', 'serve']; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "needs uvicorn, which is not installed" in done.stderr
    code = (
        "import sys; from driple.cli.main import app\n"
        "print([n for n in ('fastapi', 'uvicorn', 'starlette') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example:80", 421)],
)
def test_a_server_of_this_machine_answers_to_its_own_names(
    port: int, host: str, status: int
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/healthz", headers={"Host": host})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()

    assert answer.status == status
    if status == 421:
        assert json.loads(content)["reason"] == (
            "this server answers to localhost and 127.0.0.1 alone"
        )
