"""The page has a line for each check, and says in bold what went wrong."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from scripts.pages.reliability import page

DAY = "2026-11-29"
RESULTS: dict[str, Any] = {
    "mutate_files": {"onnx": {"files": 10_000, "faults": [], "date": DAY}},
    "fuzz_parsers": {"json": {"inputs": 5_000, "faults": [], "date": DAY}},
    "kills": {"train": {"kills": 20, "runs": 4, "faults": [], "compared": "bytes", "date": DAY}},
    "chaos": {"rounds": {"predict": 2}, "nodes_killed": 3, "failed": 0, "date": DAY},
    "web_requests": {"requests": 800, "findings": [], "date": DAY},
    "web_load": {
        "connections": 1000,
        "by_status": {"200": 1, "503": 999},
        "findings": [],
        "p99_s": 2.0,
        "date": DAY,
    },
    "web_times": {
        "read_job_p99_s": 0.08,
        "graph_p99_s": 0.7,
        "batch_per_s": 300,
        "questions": {"read_job": 320, "graph": 100, "batch": 320},
        "findings": [],
        "date": DAY,
    },
    "share": {
        "sample": 100,
        "not_run": 10,
        "killed_pct": 91.0,
        "interval_pct": [84.0, 95.0],
        "packages": {"memory": {}},
        "date": DAY,
    },
    "pythons": {"3.11": {"version": "3.11.7", "commands": 6, "date": DAY}},
    "dependencies": {
        "lowest": {
            "versions": {"numpy": "2.0"},
            "commands": 6,
            "tests": {"passed": 500},
            "date": DAY,
        }
    },
    "readme_commands": {"commands": [1, 2], "without_downloads_s": 100, "date": DAY},
    "rebuild": {
        "schema": {"result": "equal", "date": DAY},
        "steps": {"result": "equal in the rows of the sample", "date": DAY},
        "jobs": {"result": "equal to six digits", "date": DAY},
        "runs": {"result": "not run", "date": DAY},
    },
}


def test_each_check_has_a_line_with_its_command_and_its_day() -> None:
    text = page(RESULTS)
    lines = [line for line in text.splitlines() if line.startswith("|") and DAY in line]
    assert len(lines) == len(RESULTS)
    assert all("`python -m scripts.checks." in line for line in lines)
    assert "**" not in text
    assert "90 random mutants of memory" in text
    assert "lowest versions of 1 dependencies|6 commands answer, 500 tests pass|" in text
    assert "1 equal to the byte; 1 equal in the rows of a sample" in text
    assert "; 1 equal to six digits; 1 not run here|" in text


@pytest.mark.parametrize(
    ("name", "part", "words"),
    [
        ("mutate_files", {"onnx": {"files": 9, "faults": ["x"], "date": DAY}}, "**1: fault**"),
        (
            "kills",
            {
                "record": {
                    "kills": 2,
                    "runs": 1,
                    "faults": ["a", "b"],
                    "compared": "names",
                    "date": DAY,
                }
            },
            "**2: fault**",
        ),
        ("chaos", {"failed": 1}, "**1: differs**"),
        ("web_requests", {"findings": ["500"]}, "**1: finding**"),
        ("rebuild", {"page": {"result": "differs", "date": DAY}}, "**1: differs**"),
        ("rebuild", {"page": {"result": "failed", "date": DAY}}, "**1: failed**"),
    ],
)
def test_what_went_wrong_is_bold(name: str, part: dict[str, Any], words: str) -> None:
    results = deepcopy(RESULTS)
    results[name] |= part
    assert words in page(results)
