"""A thousand connections at once to `driple serve` on this machine: each ends in a status.

    connections, each with a question --loopback--> driple serve -> statuses, seconds until the end

    python -m scripts.checks.web_load --connections 1000 --write

All connections are opened first, and then all questions are sent. A finding is a connection that
is reset, gets no answer within a minute, or another status than 200, 202, 429 and 503; a line that
the server wrote; a server that does not answer afterwards, or leaves a process behind. `--write`
puts the figures, with the date, into scripts/checks/web_load.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from scripts.checks.clean_install import dated
from scripts.checks.web_server import RunningServer, processes_below, running_server

__all__ = ["Load", "load", "main"]

RESULT = Path(__file__).with_suffix(".json")
_MOST_S = 60.0
_EXPECTED = (200, 202, 429, 503)
_CLUSTERS = ("1xA100", "8xH100", "1xV100", "8xA100")
_WARM = {"job": "mobilenet_v2", "clusters": ["1xA100"]}


@dataclass(kw_only=True, slots=True)
class Load:
    """What came of connections at once.

    Attributes:
        connections: how many.
        by_status: answers.
        findings: what went wrong, and how often.
        p50_s: median time from the sending of the questions to the end of an answer, seconds.
        p99_s: of 99 in 100, seconds.
        all_s: until the last answer, seconds.
    """

    connections: int
    by_status: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    p50_s: float = 0.0
    p99_s: float = 0.0
    all_s: float = 0.0


def _question(number: int) -> bytes:
    """Of ten, eight are about a job that is read already, one reads a job, one is a page."""
    if number % 10 == 0:
        return b"GET /?job=mobilenet_v2&clusters=1xA100 HTTP/1.1\r\nhost: localhost\r\n\r\n"
    batch = 32 if number % 10 != 1 else 1 + number % 64
    asked = {
        "job": "mobilenet_v2",
        "clusters": [_CLUSTERS[number % len(_CLUSTERS)]],
        "seed": number % 7,
        "options": {"batch_size": batch},
    }
    body = json.dumps(asked).encode()
    head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def _ask(port: int, number: int, begin: asyncio.Event) -> tuple[str, float]:
    """Status, and seconds from the begin to the end of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await begin.wait()
        begin_s = time.monotonic()
        writer.write(_question(number))
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        lengths = [line.partition(":")[2] for line in lines if line.startswith("content-length:")]
        await reader.readexactly(int(lengths[0]))
        return lines[0].split()[1], time.monotonic() - begin_s
    finally:
        writer.close()


async def _all(port: int, count: int) -> list[tuple[str, float] | BaseException]:
    begin = asyncio.Event()
    tasks = [asyncio.create_task(_ask(port, number, begin)) for number in range(count)]
    await asyncio.sleep(1 + count / 1000)  # all are connected
    begin.set()
    waiting = [asyncio.wait_for(task, _MOST_S) for task in tasks]
    return await asyncio.gather(*waiting, return_exceptions=True)


def load(server: RunningServer, count: int) -> Load:
    """Ask over many connections at once.

    Args:
        server: that is asked.
        count: of connections.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 100 <= hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, hard))
    server.answer("/v1/predict", _WARM)
    begin_s = time.monotonic()
    ended = asyncio.run(_all(server.port, count))
    all_s = time.monotonic() - begin_s
    answers = [each for each in ended if not isinstance(each, BaseException)]
    failures = Counter(type(each).__name__ for each in ended if isinstance(each, BaseException))
    statuses = Counter(status for status, _ in answers)
    seconds = [taken_s for _, taken_s in answers] or [0.0]
    findings = [f"{count} connections ended in {name}" for name, count in failures.items()]
    findings += [
        f"{count} answers with status {status}"
        for status, count in statuses.items()
        if int(status) not in _EXPECTED
    ]
    server.answer("/v1/predict", _WARM)  # it goes on
    return Load(
        connections=count,
        by_status=dict(sorted(statuses.items())),
        findings=findings,
        p50_s=round(float(np.quantile(seconds, 0.5)), 3),
        p99_s=round(float(np.quantile(seconds, 0.99)), 3),
        all_s=round(all_s, 1),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=1000, help="at once")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    given = parser.parse_args(argv)
    with running_server() as server:
        result = load(server, given.connections)
        below = processes_below(server.process.pid)
    result.findings += [line.rstrip() for line in server.lines[:10]]
    result.findings += [f"process {number} is left" for number in below if _is_there(number)]
    facts = dated(asdict(result))
    print(json.dumps(facts, indent=1))
    if given.write:
        RESULT.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return 1 if result.findings else 0


def _is_there(number: int) -> bool:
    end_s = time.monotonic() + 10
    while Path(f"/proc/{number}").exists() and time.monotonic() < end_s:
        time.sleep(0.1)
    return Path(f"/proc/{number}").exists()


if __name__ == "__main__":
    sys.exit(main())
