"""Jobs typed as `hf:PATH`: models that transformers builds from a config."""

from __future__ import annotations

from pathlib import Path

from driple.extras import require_transformers
from driple.jobs.assumed import assumed_options
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.options import flags_for
from driple.jobs.readers import JobReader, JobRequest, kernels_on, one_at_a_time

__all__ = ["HUGGING_FACE"]

_PREFIX = "hf:"
_OPTIMIZER = "adamw"  # default of their training scripts


def _read(request: JobRequest) -> Job:
    require_transformers("a Hugging Face model")
    from driple.jobs.hf_config import hf_config_of, read_hf_config
    from driple.jobs.pytorch.huggingface import hugging_face_step

    options = request.options
    if request.content is None:
        config = read_hf_config(request.text.removeprefix(_PREFIX))
    else:
        config = hf_config_of(request.content, Path(request.text), request.text)
    step = options.step_options(_OPTIMIZER, request.compute_capability)
    built = hugging_face_step(
        config,
        batch_size=options.batch_size,
        seq_len=options.seq_len,
        input_shape=options.input_shape,
        step=step,
    )
    return job_of(
        request.text,
        HUGGING_FACE.origin,
        built.graph,
        batch_size=built.batch_size,
        seq_len=built.seq_len,
        input_shape=built.input_shape,
        step=step,
        assumptions=(
            *assumed_options(
                options,
                batch_size=built.batch_size,
                seq_len=built.seq_len,
                input_shape=built.input_shape,
                optimizer=_OPTIMIZER,
            ),
            *built.assumptions,
        ),
    )


HUGGING_FACE = JobReader(
    origin=JobOrigin(name="hugging_face", is_model=True),
    name="a Hugging Face model",
    form="hf:PATH of a folder with a config.json",
    claims=lambda text: text.startswith(_PREFIX),
    flags=flags_for("hugging_face"),
    read=one_at_a_time(_read),
    decided_by=kernels_on,
)
