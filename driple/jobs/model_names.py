"""Readers of `hf:PATH` and `timm:NAME`: models that libraries build from a config or a name."""

from __future__ import annotations

from driple.extras import require_timm, require_transformers
from driple.jobs.assumed import assumed_words
from driple.jobs.job import Job, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, kernels_on, one_at_a_time

__all__ = ["HUGGING_FACE", "TIMM"]

_HF, _TIMM = "hf:", "timm:"
_HF_OPTIMIZER, _TIMM_OPTIMIZER = "adamw", "momentum"  # defaults of their training scripts
_TIMM_BATCH = 32


def _read_hugging_face(request: JobRequest) -> Job:
    require_transformers("a Hugging Face model")
    from driple.jobs.hf_config import read_hf_config
    from driple.jobs.pytorch.huggingface import hugging_face_step

    options = request.options
    config = read_hf_config(request.text.removeprefix(_HF))
    step = options.step_options(_HF_OPTIMIZER, request.compute_capability)
    made = hugging_face_step(
        config,
        batch_size=options.batch_size,
        seq_len=options.seq_len,
        input_shape=options.input_shape,
        step=step,
    )
    return job_of(
        request.text,
        "hugging_face",
        made.graph,
        batch_size=made.batch_size,
        seq_len=made.seq_len,
        input_shape=made.input_shape,
        step=step,
        assumptions=(
            *assumed_words(
                options,
                batch_size=made.batch_size,
                seq_len=made.seq_len,
                input_shape=made.input_shape,
                optimizer=_HF_OPTIMIZER,
            ),
            *made.assumptions,
        ),
    )


def _read_timm(request: JobRequest) -> Job:
    require_timm("a model of timm")
    from driple.jobs.pytorch.timm_models import timm_step

    options = request.options
    step = options.step_options(_TIMM_OPTIMIZER, request.compute_capability)
    made = timm_step(
        request.text.removeprefix(_TIMM),
        batch_size=options.batch_size or _TIMM_BATCH,
        input_shape=options.input_shape,
        step=step,
    )
    return job_of(
        request.text,
        "timm",
        made.graph,
        batch_size=made.batch_size,
        input_shape=made.input_shape,
        step=step,
        assumptions=assumed_words(
            options,
            batch_size=made.batch_size,
            input_shape=made.input_shape,
            optimizer=_TIMM_OPTIMIZER,
        ),
    )


HUGGING_FACE = JobReader(
    name="a Hugging Face model",
    form="hf:PATH of a folder with a config.json",
    claims=lambda text: text.startswith(_HF),
    flags=flags_for("hugging_face"),
    read=one_at_a_time(_read_hugging_face),
    decided_by=kernels_on,
)
TIMM = JobReader(
    name="a model of timm",
    form="timm:NAME",
    claims=lambda text: text.startswith(_TIMM),
    flags=flags_for("timm"),
    read=one_at_a_time(_read_timm),
    decided_by=kernels_on,
)
