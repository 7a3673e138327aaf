"""The table of formats has the numbers of the code, and what it says of older files is true."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "driple"
MODULES = {
    "checkpoint": "inspector.checkpoint",
    "data set": "dataset.store",
    "index of a folder of graphs": "dataset.graph_store",
    "run of a training": "training.runfiles",
    "fold of an evaluation": "evaluation.foldfiles",
    "campaign": "measure.testbed.campaign",
    "machine file, catalogue": "catalog.rows",
    "record": "measure.record.store",
    "job trace": "async_sgd.jobtrace",
    "stall profile": "profiler.profile_records",
    "fitted links": "profiler.linkfit",
    "answers in the making (`.part`)": "api.predicting_jobs",
    "packed steps": "runs.step_pack",
}
SHIPPED = {  # tables of the package, which no user's command writes
    "answers.checked_runs", "analytic.closed_forms", "memory.calibration", "simulate.calibration",
}  # fmt: skip


def rows() -> dict[str, tuple[int, str]]:
    """Format and what is read, by kind of file."""
    text = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+) \| ([^|]+) \|$", text, re.MULTILINE)
    return {name: (int(number), read) for name, number, read in table}


def number_of(module: str) -> int:
    """The format number that a module writes, as its source states it."""
    source = (PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    match = re.search(r"^(?:.*\b)?_?(?:RECORD_)?FORMAT = .*?(\d+)(?: .*)?$", source, re.MULTILINE)
    assert match, module
    return int(match[1])


def test_each_format_of_the_table_is_that_of_its_module() -> None:
    assert set(rows()) == set(MODULES)
    for name, module in MODULES.items():
        assert rows()[name][0] == number_of(module), name


def test_each_module_that_numbers_a_format_is_in_the_table() -> None:
    """A new kind of file joins it."""
    numbered = {
        ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        for file in PACKAGE.rglob("*.py")
        if re.search(r"^(?:\w+, )?_?(?:RECORD_)?FORMAT = ", file.read_text(), re.MULTILINE)
    }
    assert numbered == set(MODULES.values()) | SHIPPED


def test_a_kind_that_has_changed_says_what_is_read() -> None:
    """Of formats before; tests/inspector/test_checkpoint.py reads one of each."""
    changed = {name: read for name, (number, read) in rows().items() if number > 1}
    assert set(changed) == {"checkpoint", "data set", "stall profile"}
    assert changed["checkpoint"] == "1 to 3"
    assert all("anew" in read for name, read in changed.items() if name != "checkpoint")
