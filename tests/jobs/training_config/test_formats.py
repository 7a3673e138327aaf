"""Each field that a tool's own schema has is in exactly one list of its format."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from driple.jobs.training_config import FORMATS

FIELDS = Path(__file__).parents[2] / "data/training_configs/fields"
TOOLS = {
    "accelerate": "Accelerate",
    "axolotl": "axolotl",
    "deepspeed": "DeepSpeed",
    "llama_factory": "LLaMA-Factory",
    "torchtitan": "torchtitan",
    "torchtune": "torchtune",
    "trl": "TRL",
}
BY_NAME = {tool.name: tool for tool in FORMATS}


@pytest.mark.parametrize("name", TOOLS)
def test_each_field_of_a_tools_schema_is_in_one_list(name: str) -> None:
    """The names are those of the tool's repository at a commit, which the file states."""
    schema = json.loads((FIELDS / f"{name}.json").read_text())
    tool = BY_NAME[TOOLS[name]]
    wrong = {
        field: tool.lists_with(field)
        for field in schema["fields"]
        if len(tool.lists_with(field)) != 1
    }
    assert len(schema["fields"]) > 100
    assert not wrong


@pytest.mark.parametrize("name", ["Trainer", "TRL", "LLaMA-Factory"])
def test_each_training_argument_of_transformers_is_in_one_list(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    fields = [field.name for field in dataclasses.fields(transformers.TrainingArguments)]
    tool = BY_NAME[name]
    assert len(fields) > 100
    assert [one for one in fields if len(tool.lists_with(one)) != 1] == []


@pytest.mark.parametrize("tool", FORMATS, ids=lambda tool: tool.name)
def test_the_lists_of_a_format_name_no_field_twice(tool) -> None:  # type: ignore[no-untyped-def]
    names = [*tool.read, *tool.harmless, *tool.decisive, *tool.beside]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("tool", FORMATS, ids=lambda tool: tool.name)
def test_a_decisive_field_that_is_off_changes_nothing(tool) -> None:  # type: ignore[no-untyped-def]
    for name, entry in tool.decisive.items():
        for value in (None, False, "", *entry.off):
            assert entry.is_off(value), (name, value)
        assert not entry.is_off("something else"), name
        assert set(entry.changes) <= {"memory", "time"}, name
        assert entry.changes, name
