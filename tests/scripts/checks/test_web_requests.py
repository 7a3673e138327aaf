"""A sample of requests from the server's description, the same each time, has no finding."""

from types import SimpleNamespace

import pytest

from scripts.checks.web_requests import LIMITS, check_requests
from scripts.checks.web_requests_hooks import can_be_sent
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


@pytest.mark.parametrize(
    ("media_type", "body", "can"),
    [
        ("multipart/form-data", {"graph": b"", "request": []}, False),
        ("multipart/form-data", {"graph": b"", "request": ""}, True),
        ("multipart/form-data", {"graph": b"", "request": {}}, False),
        ("application/json", {"clusters": []}, True),
        ("application/octet-stream", b"[]", True),
    ],
)
def test_forms_with_a_field_that_is_neither_text_nor_bytes_are_left_out(
    media_type: str, body: object, can: bool
) -> None:
    case = SimpleNamespace(media_type=media_type, body=body)
    assert can_be_sent(SimpleNamespace(), case) is can  # type: ignore[arg-type]
