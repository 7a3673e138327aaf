"""Messages of the command line name fields where a request made them."""

import pytest

from driple.web.field_names import with_fields


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("give --batch-size", "give options.batch_size"),
        ("--setting 8xH100 --scheme fsdp", "clusters 8xH100 scheme fsdp"),
        ("raise it: --set loop_turns=N", "raise it: options.loop_turns=N"),
        ("--set host_us_per_op and --machine", "host_us_per_op and --machine"),
        ("give --samples N or --tokens N", "give samples N or tokens N"),
        ("driple plan --catalog mine.toml", "driple plan --catalog mine.toml"),
    ],
)
def test_flags_become_fields(message: str, expected: str) -> None:
    assert with_fields(message) == expected
