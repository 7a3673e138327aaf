"""Messages of the command line name fields where a request made them."""

import pytest

from driple.errors import GraphError
from driple.graph.filebytes import unpacked
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
        (
            "file has 9 bytes; raise the limit with --set max_mib=N",
            "file has 9 bytes; ask driple on the command line, which has --set max_mib=N",
        ),
    ],
)
def test_flags_become_fields(message: str, expected: str) -> None:
    assert with_fields(message) == expected


def test_a_graph_that_is_too_large_is_told_so() -> None:
    """The words of the reader, which stand in a table here."""
    with pytest.raises(GraphError) as refused:
        unpacked(b"12", 1)
    assert "the command line" in with_fields(str(refused.value))
