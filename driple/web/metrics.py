"""Counts of a server in Prometheus' text format (version 0.0.4): requests, seconds, work, jobs."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts since the server was started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            route: of the application, not the path as it was sent.
            status: of the answer.
            seconds: until its end.
        """
        with self._lock:
            self._requests[route, status] += 1
            counts = self._seconds.setdefault(route, [0] * (len(_BOUNDS_S) + 1))
            counts[bisect_left(_BOUNDS_S, seconds)] += 1
            self._sums[route] += seconds  # type: ignore[assignment]  # a Counter of floats

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All counts.

        Args:
            gauges: what is so now: help and value by name.
        """
        lines = ["# HELP driple_requests_total Requests by route and status.",
                 "# TYPE driple_requests_total counter"]  # fmt: skip
        with self._lock:
            for (route, status), count in sorted(self._requests.items()):
                lines.append(f'driple_requests_total{{route="{route}",status="{status}"}} {count}')
            lines += ["# HELP driple_request_seconds Seconds of requests by route.",
                      "# TYPE driple_request_seconds histogram"]  # fmt: skip
            for route, counts in sorted(self._seconds.items()):
                total = 0
                for bound, count in zip((*_BOUNDS_S, "+Inf"), counts, strict=True):
                    total += count
                    lines.append(
                        f'driple_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
                    )
                lines.append(
                    f'driple_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}'
                )
                lines.append(f'driple_request_seconds_count{{route="{route}"}} {total}')
        for name, (help_, value) in gauges.items():
            lines += [f"# HELP {name} {help_}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"
