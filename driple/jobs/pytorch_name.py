"""Jobs typed as a name without parts: built-in PyTorch models, such as `mobilenet_v2`."""

from __future__ import annotations

from pathlib import Path

from driple.errors import ConfigError
from driple.extras import require_torch
from driple.jobs.assumed import assumed_options
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, kernels_on, one_at_a_time

__all__ = ["PYTORCH"]

_OPTIMIZER = "momentum"
_IMAGE_RANK = 3


def _claims(text: str) -> bool:
    return "/" not in text and ":" not in text and not Path(text).suffix


def _read(request: JobRequest) -> Job:
    from driple.jobs.pytorch.workloads import pytorch_workload_named

    text, options = request.text, request.options
    model = pytorch_workload_named(text)
    tokens = model.kind == "tokens"
    unfit = options.input_shape if tokens else options.seq_len
    if unfit is not None:
        advice = "tokens: give --seq-len N" if tokens else "images: give --input 3xHEIGHTxWIDTH"
        raise ConfigError(f"{text} takes {advice} in place of what was given")
    side = _side(text, options.input_shape, model.least_size) if not tokens else None
    require_torch("a PyTorch model's graph")
    from driple.jobs.pytorch.step_graph import graph_of_workload

    size = options.batch_size or model.batch_size
    length = options.seq_len or model.length if tokens else None
    shape = None if tokens else (3, side or model.image_size, side or model.image_size)
    step = options.step_options(_OPTIMIZER, request.compute_capability)
    graph = graph_of_workload(model, size, image_size=side, length=length, step=step)
    return job_of(
        text,
        PYTORCH.origin,
        graph,
        batch_size=size,
        seq_len=length,
        input_shape=shape,
        step=step,
        samples=model.samples,
        assumptions=assumed_options(
            options, batch_size=size, seq_len=length, input_shape=shape, optimizer=_OPTIMIZER
        ),
    )


def _side(text: str, shape: tuple[int, ...] | None, least: int) -> int | None:
    """Side of the images from --input; None without."""
    if shape is None:
        return None
    if len(shape) != _IMAGE_RANK or shape[0] != 3 or shape[1] != shape[2] or shape[1] < least:
        raise ConfigError(
            f"{text} takes square RGB images of {least} pixels or more, such as --input "
            f"3x224x224, got {'x'.join(map(str, shape))}"
        )
    return shape[1]


PYTORCH = JobReader(
    origin=JobOrigin(name="pytorch", is_model=True),
    name="a built-in PyTorch model",
    form="a built-in PyTorch model such as mobilenet_v2",
    claims=_claims,
    flags=flags_for("pytorch"),
    read=one_at_a_time(_read),
    decided_by=kernels_on,
)
