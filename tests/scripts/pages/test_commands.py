"""A page's commands are shown with what they print now."""

from __future__ import annotations

import pytest

from driple.errors import DripleError
from scripts.pages.commands import printed, refreshed

PAGE = "Head\n```console\n$ driple env\nold\n```\nMiddle\n```console\n$ driple a b\n```\nTail\n"


def test_each_block_gets_the_output_of_its_command() -> None:
    """The rest of the page stays."""
    assert refreshed(PAGE, lambda arguments: f"output of {arguments}") == (
        "Head\n```console\n$ driple env\noutput of env\n```\n"
        "Middle\n```console\n$ driple a b\noutput of a b\n```\nTail\n"
    )


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(DripleError, match=r"^driple predict nothing\.onnx failed: .*nothing\.onnx"):
        printed("predict nothing.onnx")
