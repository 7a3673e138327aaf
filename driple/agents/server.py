"""The four tools over the Model Context Protocol, on stdin and stdout.

`driple mcp` runs it; an assistant starts that command. Questions are answered one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field, ValidationError

from driple.agents import answers
from driple.agents.answers import (
    ExplainAnswer,
    FitsAnswer,
    JobAsked,
    PlanAnswer,
    PredictAnswer,
)
from driple.errors import DripleError
from driple.extras import driple_version
from driple.jobs.fuzzy_match import unknown_name

__all__ = ["SKILL", "server"]

SKILL = Path(__file__).with_name("SKILL.md")
"""When to ask what; ships with the package."""

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")

Job = Annotated[
    str,
    Field(
        description="catalogue job (resnet50, bert-large, ...; `driple jobs list`), hf:PATH of a "
        "Hugging Face config, timm:NAME, or the path of a graph (.pb, .pbtxt, .onnx); never code"
    ),
]
SettingName = Annotated[
    str,
    Field(description="cluster: 1xA100, 8xH100, 4x8xH100/NVLink+400G, or an instance: p5.48xlarge"),
]
Scheme = Annotated[
    str | None, Field(description="ddp (default), zero1, zero2, fsdp, hsdp, or tp2-pp4")
]
BatchSize = Annotated[int | None, Field(description="samples of one device in one pass")]
SeqLen = Annotated[int | None, Field(description="tokens of a sample")]
InputShape = Annotated[list[int] | None, Field(description="one sample, such as [3, 224, 224]")]
Precision = Annotated[str | None, Field(description="fp32, tf32, bf16, amp-bf16, amp-fp16, ...")]
Optimizer = Annotated[str | None, Field(description="sgd, momentum, adam, adamw, ...")]
Passes = Annotated[int | None, Field(description="gradient accumulation: passes of an update")]
Checkpointing = Annotated[str | None, Field(description="none, selective or full")]


class _Server(MCPServer):
    """Takes no argument that a tool does not know, and says what is wrong in one line."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Answer a question.

        Raises:
            ToolError: an argument is unknown, missing or of another type, or Driple refuses it.
        """
        fields = {tool.name: tool.input_schema["properties"] for tool in await self.list_tools()}
        known = fields.get(name, arguments)  # a tool that there is not is refused by itself
        for argument in arguments:
            if argument not in known:
                raise ToolError(f"{name}: {unknown_name('argument', argument, known)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_in_one_line(name, error.__cause__)) from error
            raise


def _in_one_line(tool: str, error: ValidationError) -> str:
    """What arguments a tool lacks, or cannot take."""
    faults = [
        f"it needs {field}, which is not given"
        if each["type"] == "missing"
        else f"{field}: {each['msg'][0].lower()}{each['msg'][1:]}, got {str(each['input'])[:60]!r}"
        for each in error.errors()
        for field in [".".join(map(str, each["loc"]))]
    ]
    return f"{tool}: {'; '.join(faults)}"


def server() -> MCPServer:
    """The server with its four tools."""
    mcp = _Server(
        "driple",
        instructions=SKILL.read_text(encoding="utf-8"),
        version=driple_version(),
        log_level="WARNING",
    )
    read_only = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for tool in (predict, fits, plan, explain):
        mcp.add_tool(tool, annotations=read_only, structured_output=True)
    return mcp


_answering = threading.Lock()


def _one_at_a_time(tool: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """One question at a time; what Driple refuses reaches the assistant in one line."""

    @wraps(tool)
    def answer(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        try:
            with _answering:
                return tool(*args, **kwargs)
        except DripleError as error:
            raise ToolError(str(error)) from error

    return answer


def _of_one_setting(
    ask: Callable[[JobAsked, str, str | None], _Result], returned: type[_Result], words: str
) -> Callable[..., _Result]:
    """A tool on one job and one cluster.

    Args:
        ask: answers it, and has its name.
        returned: type of the answer, which the tool states.
        words: that an assistant chooses it by.
    """

    def tool(
        *,
        job: Job,
        setting: SettingName,
        scheme: Scheme = None,
        batch_size: BatchSize = None,
        seq_len: SeqLen = None,
        input_shape: InputShape = None,
        precision: Precision = None,
        optimizer: Optimizer = None,
        grad_accumulation: Passes = None,
        activation_checkpointing: Checkpointing = None,
    ) -> _Result:
        asked = JobAsked(
            job=job, batch_size=batch_size, seq_len=seq_len, input_shape=input_shape,
            precision=precision, optimizer=optimizer, grad_accumulation=grad_accumulation,
            activation_checkpointing=activation_checkpointing,
        )  # fmt: skip
        return ask(asked, setting, scheme)

    tool.__name__, tool.__doc__ = ask.__name__, words
    tool.__annotations__["return"] = returned
    return _one_at_a_time(tool)


predict = _of_one_setting(
    answers.predict,
    PredictAnswer,
    """Time of a training step on a cluster, and samples and tokens per second.

    Numbers have 90 % intervals: state them. If is_guess is true, call it a guess.
    """,
)
fits = _of_one_setting(
    answers.fits,
    FitsAnswer,
    "Whether a job fits in the memory of a GPU, the largest batch, and what would make it fit.",
)
explain = _of_one_setting(
    answers.explain,
    ExplainAnswer,
    "Where the time of a step goes, what limits it, what was assumed, and how sure it is.",
)


@_one_at_a_time
def plan(
    *,
    job: Job,
    samples: Annotated[float | None, Field(description="samples of an epoch")] = None,
    tokens: Annotated[float | None, Field(description="tokens, in place of samples")] = None,
    epochs: float = 1.0,
    devices: Annotated[list[str] | None, Field(description="only these GPUs: A100, H100")] = None,
    instances: Annotated[list[str] | None, Field(description="only these: p5, g5.xlarge")] = None,
    settings: Annotated[
        list[str] | None, Field(description="own clusters in place of cloud instances: 8xH100")
    ] = None,
    machines: Annotated[list[int] | None, Field(description="numbers of instances; [1]")] = None,
    budget_dollars: float | None = None,
    deadline_hours: float | None = None,
    spot: Annotated[bool, Field(description="spot prices in place of on demand")] = False,
    batch_size: BatchSize = None,
    seq_len: SeqLen = None,
    input_shape: InputShape = None,
    precision: Precision = None,
    optimizer: Optimizer = None,
) -> PlanAnswer:
    """Machines for a whole training: time, cost, what fits, and which to take."""
    return answers.plan(
        JobAsked(
            job=job, batch_size=batch_size, seq_len=seq_len, input_shape=input_shape,
            precision=precision, optimizer=optimizer,
        ),
        samples=samples, tokens=tokens, epochs=epochs, devices=devices or [],
        instances=instances or [], settings=settings or [], machines=machines or [1],
        budget_dollars=budget_dollars, deadline_hours=deadline_hours, spot=spot,
    )  # fmt: skip
