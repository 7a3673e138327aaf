"""A sample of requests from the server's description, the same each time, has no finding."""

from scripts.checks.web_requests import LIMITS, check_requests
from scripts.checks.web_server import running_server


def test_no_answer_is_other_than_described() -> None:
    """Each value at its limits and beyond, methods without a route, and some random requests."""
    with running_server(**LIMITS) as server:
        counts, printed = check_requests(
            server.address, phases="examples,coverage,fuzzing", examples=10
        )
    assert counts.findings == [], printed
    assert counts.requests > 1000
    assert [line for line in server.lines if "Invalid HTTP" not in line] == []
