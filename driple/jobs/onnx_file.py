"""Reader of ONNX files: a forward pass, from which the rest of the training step is derived."""

from __future__ import annotations

from pathlib import Path

from driple.errors import GraphError
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, nothing_of
from driple.remarks import remark

__all__ = ["ONNX_FILE"]

_SUFFIXES = (".onnx", ".onnx.gz")
_OPTIMIZER = "momentum"


def _claims(text: str) -> bool:
    return text.endswith(_SUFFIXES) and ":" not in text.rpartition("/")[2]


def _read(request: JobRequest) -> Job:
    from driple.graph.onnx.reader import read_onnx_step

    path, options = Path(request.text), request.options
    if not path.exists():
        raise GraphError(f"there is no ONNX file {path}; give one, or a workload")
    graph, batch_size = read_onnx_step(
        path,
        max_bytes=options.max_bytes,
        options=options.read,
        optimizer=options.optimizer or _OPTIMIZER,
    )
    assumed = [remark("derived_from_forward")]
    if options.optimizer is None:
        assumed.append(remark("assumed_options", optimizer=_OPTIMIZER))
    return job_of(
        str(path),
        ONNX_FILE.origin,
        graph,
        batch_size=batch_size,
        assumptions=(*assumed, *options.config.remarks),
    )


ONNX_FILE = JobReader(
    origin=JobOrigin(name="onnx", is_path=True),
    name="an ONNX file",
    form="an ONNX file (.onnx, also .gz)",
    claims=_claims,
    flags=flags_for("onnx"),
    read=_read,
    decided_by=nothing_of,
)
