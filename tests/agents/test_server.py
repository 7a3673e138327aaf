"""The tools as an assistant meets them: `driple mcp` in a process, asked by the SDK's client."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from driple.agents.answers import JobAsked
from driple.agents.server import SKILL, server
from driple.errors import ConfigError
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from tests.agents.questions import QUESTIONS

ROOT = Path(__file__).parents[2]
TOOLS = ["predict", "fits", "plan", "explain"]
_TIMEOUT_S = 300


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """JOB of each config that questions name."""
    declare_torchvision_ops()  # transformers imports torchvision with this config
    import transformers

    folder = tmp_path_factory.mktemp("configs")
    transformers.GPT2Config().save_pretrained(folder / "gpt2")
    transformers.LlamaConfig().save_pretrained(folder / "llama")
    return {"GPT2": f"hf:{folder / 'gpt2'}", "LLAMA": f"hf:{folder / 'llama'}"}


@pytest.fixture(scope="module")
def answered(configs: dict[str, str]) -> list[Any]:
    """All questions, asked one after the other of one process on its stdin and stdout."""

    async def ask() -> list[Any]:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "driple", "mcp"], cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        async with Client(command, read_timeout_seconds=_TIMEOUT_S) as client:
            results = []
            for question in QUESTIONS:
                job = question.arguments["job"]
                arguments = {**question.arguments, "job": configs.get(job, job)}
                results.append(await client.call_tool(question.tool, arguments))
            return results

    return asyncio.run(ask())


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_twenty_questions_get_their_right_answers(answered: list[Any], number: int) -> None:
    question, result = QUESTIONS[number], answered[number]
    given = result.content[0].text if result.is_error else result.structured_content
    assert question.holds(given), f"{question.text} {question.right}; got {given}"


def test_there_are_twenty_questions_for_four_tools() -> None:
    assert len(QUESTIONS) == 20
    assert {question.tool for question in QUESTIONS} == set(TOOLS)


def test_every_tool_and_argument_is_described() -> None:
    """An assistant knows nothing but this."""

    async def listed() -> Any:
        async with Client(server()) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(listed())
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        assert tool.description
        assert tool.output_schema["type"] == "object"
        assert tool.annotations.read_only_hint
        assert "job" in tool.input_schema["required"]
        for name, field in tool.input_schema["properties"].items():
            plain = name in {"epochs", "budget_dollars", "deadline_hours"}
            assert plain or field["description"], name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"setting": "1xA100", "gpus": 8},
            "predict: unknown argument 'gpus'; known are job, setting, scheme, batch_size, ",
        ),
        (
            {"setting": "1xA100", "batch": 8},
            "predict: unknown argument 'batch'; did you mean batch_size?",
        ),
        ({}, "predict: it needs setting, which is not given"),
        (
            {"setting": "1xA100", "batch_size": "many", "input_shape": [3, "x"]},
            "predict: batch_size: input should be a valid integer, unable to parse string as an "
            "integer, got 'many'; input_shape.1: input should be a valid integer, unable to parse "
            "string as an integer, got 'x'",
        ),
        ({"setting": "1xA10O"}, "A10O"),
    ],
)  # fmt: skip
def test_arguments_that_a_tool_cannot_take_are_refused_in_one_line(
    arguments: dict[str, Any], said: str
) -> None:
    """One that it does not know would be left out, and the answer be of something else."""

    async def ask() -> Any:
        async with Client(server()) as client:
            return await client.call_tool("predict", {"job": "resnet50", **arguments})

    result = asyncio.run(ask())
    assert result.is_error
    (content,) = result.content
    assert said in content.text and "\n" not in content.text


def test_the_skill_names_the_tools_and_ships_beside_them() -> None:
    text = SKILL.read_text()
    front, _, body = text.removeprefix("---\n").partition("---\n")
    assert re.search(r"^name: driple$", front, re.MULTILINE)
    assert re.search(r"^description: .{80,1024}$", front, re.MULTILINE)
    assert [tool for tool in TOOLS if f"| `{tool}` |" in body] == TOOLS


@pytest.mark.parametrize("job", ["train.py:build", "/home/a/x.py:f", "models/net.py:build_model"])
def test_code_is_refused_before_anything_is_read(job: str) -> None:
    with pytest.raises(ConfigError, match="never run"):
        JobAsked(job=job)
