"""A page's commands are shown with what they print now."""

from __future__ import annotations

import pytest

from driple.errors import DripleError
from scripts.pages.commands import part_of, printed, refreshed

PAGE = "Head\n```console\n$ driple env\nold\n```\nMiddle\n```console\n$ driple a b\n```\nTail\n"


def test_each_block_gets_the_output_of_its_command() -> None:
    """The rest of the page stays."""
    assert refreshed(PAGE, lambda arguments: f"output of {arguments}") == (
        "Head\n```console\n$ driple env\noutput of env\n```\n"
        "Middle\n```console\n$ driple a b\noutput of a b\n```\nTail\n"
    )


def test_a_file_that_is_printed_is_shown_after_its_command() -> None:
    page = (
        "```bash\ndriple predict job --emit slurm > job.sh\ncp a b\n```\n```text\n{}\n```\nTail\n"
    )
    asked: list[str] = []

    def shown(arguments: str) -> str:
        asked.append(arguments)
        return "new"

    assert refreshed(page.format("old"), shown) == page.format("new")
    assert asked == ["predict job --emit slurm"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("b\nold", "b\nc"), ("b\nold\nd", "b\nc\nd"), ("b\nd", "b\nc\nd"), ("old", "a")],
)
def test_a_part_starts_where_it_did_and_ends_with_the_output_if_it_did(old: str, new: str) -> None:
    assert part_of("a\nb\nc\nd", old) == new


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(DripleError, match=r"^driple predict nothing\.onnx failed: .*nothing\.onnx"):
        printed("predict nothing.onnx")
