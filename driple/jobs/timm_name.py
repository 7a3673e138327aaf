"""Jobs typed as `timm:NAME`: models that timm builds from a name."""

from __future__ import annotations

from driple.extras import require_timm
from driple.jobs.assumed import assumed_options
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, kernels_on, one_at_a_time

__all__ = ["TIMM"]

_PREFIX = "timm:"
_OPTIMIZER = "momentum"  # default of its training script
_BATCH = 32


def _read(request: JobRequest) -> Job:
    require_timm("a model of timm")
    from driple.jobs.pytorch.timm_models import timm_step

    options = request.options
    step = options.step_options(_OPTIMIZER, request.compute_capability)
    model_step = timm_step(
        request.text.removeprefix(_PREFIX),
        batch_size=options.batch_size or _BATCH,
        input_shape=options.input_shape,
        step=step,
    )
    return job_of(
        request.text,
        TIMM.origin,
        model_step.graph,
        batch_size=model_step.batch_size,
        input_shape=model_step.input_shape,
        step=step,
        assumptions=assumed_options(
            options,
            batch_size=model_step.batch_size,
            input_shape=model_step.input_shape,
            optimizer=_OPTIMIZER,
        ),
    )


TIMM = JobReader(
    origin=JobOrigin(name="timm", is_model=True),
    name="a model of timm",
    form="timm:NAME",
    claims=lambda text: text.startswith(_PREFIX),
    flags=flags_for("timm"),
    read=one_at_a_time(_read),
    decided_by=kernels_on,
)
