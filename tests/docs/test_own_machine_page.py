"""The page of one's own machine: its output is that of its commands, and the file is read."""

from __future__ import annotations

import pytest

from driple.catalog.machine_file import read_machine
from driple.render.machine_lines import machine_lines
from scripts.pages.own_machine import BITS_PER_S, FILE, PAGE, main
from scripts.settings.shipped import ROOT

TEXT = PAGE.read_text(encoding="utf-8")
MADE = read_machine(ROOT / FILE)


def test_the_page_shows_what_its_commands_print() -> None:
    assert main(["--check"]) == 0


def test_the_page_is_short_and_part_of_the_site() -> None:
    assert len(TEXT.split()) < 700
    assert "own_machine" in (PAGE.parent / "index.md").read_text(encoding="utf-8")


def test_the_links_of_the_file_have_the_rate_that_was_set() -> None:
    (ring,) = [one for one in MADE.collectives if one.collective == "all_reduce"]
    assert ring.sustained_bytes_per_s == pytest.approx(BITS_PER_S / 8, rel=0.1)


def test_every_line_fits_a_terminal() -> None:
    lines = list(machine_lines(MADE))
    assert [line.split()[0] for line in lines[:4]] == ["machine", "host", "processor", "links"]
    assert max(map(len, lines)) <= 105
