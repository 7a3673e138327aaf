"""Connections at once end in answers or 503, and the server goes on."""

from scripts.checks.web_load import load
from scripts.checks.web_server import running_server


def test_connections_at_once_end_in_answers_or_503() -> None:
    """Three times as many as may be open."""
    with running_server(requests=100) as server:
        result = load(server, 300)
    assert result.findings == []
    assert sum(result.by_status.values()) == 300
    assert set(result.by_status) <= {"200", "202", "503"}
    assert int(result.by_status["503"]) >= 1
    assert result.p99_s < 60
    assert server.lines == []
