"""Reader of ONNX files: a forward pass, from which the rest of the training step is derived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from driple.errors import ConfigError, GraphError
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, nothing_of
from driple.remarks import remark

__all__ = ["ONNX_FILE"]

_SUFFIXES = (".onnx", ".onnx.gz")
_OPTIMIZER = "momentum"
_LOSSES = ("cross-entropy", "bce", "mse")  # the first is assumed


def _claims(text: str) -> bool:
    return text.endswith(_SUFFIXES) and ":" not in text.rpartition("/")[2]


def _read(request: JobRequest) -> Job:
    from driple.graph.onnx.reader import read_onnx_step

    path, options = Path(request.text), request.options
    if request.content is None and not path.exists():
        raise GraphError(f"there is no ONNX file {path}; give one, or a workload")
    if options.loss not in (None, *_LOSSES):
        raise ConfigError(
            f"--loss {str(options.loss)[:60]}: of an ONNX file it is one of {', '.join(_LOSSES)}"
        )
    if options.precision == "tf32":
        raise ConfigError(
            "--precision tf32: single-precision products of an ONNX file run in TF32 as they are, "
            "on devices that have it; leave the option out"
        )
    loss, precision = options.loss or _LOSSES[0], options.precision or "fp32"
    graph, batch_size = read_onnx_step(
        path,
        max_bytes=options.max_bytes,
        options=options.read,
        optimizer=options.optimizer or _OPTIMIZER,
        loss=loss,
        precision=precision,
        content=request.content,
    )
    assumed = [remark("derived_from_forward")]
    if options.optimizer is None:
        assumed.append(remark("assumed_options", optimizer=_OPTIMIZER))
    if options.loss is None:
        assumed.append(remark("assumed_loss", loss=loss, others=_LOSSES[1:]))
    job = job_of(
        str(path),
        ONNX_FILE.origin,
        graph,
        batch_size=batch_size,
        assumptions=(*assumed, *options.config.remarks),
    )
    return replace(job, precision=options.precision or job.precision)


ONNX_FILE = JobReader(
    origin=JobOrigin(name="onnx", is_path=True),
    name="an ONNX file",
    form="an ONNX file (.onnx, also .gz)",
    claims=_claims,
    flags=flags_for("onnx"),
    read=_read,
    decided_by=nothing_of,
)
