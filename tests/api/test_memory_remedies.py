"""What is read to find a batch that fits is read once for all clusters of the same kernels."""

from __future__ import annotations

from driple.api.predicting import predict
from driple.graph.torch.step import traced_step
from tests.work import calls_of

JOB = "shufflenet"


def test_clusters_share_the_job_at_another_batch() -> None:
    """Largest batches of four clusters with the kernels of an A100 take one reading more."""
    settings = ["1xA100", "8xA100", "2x8xA100/NVLink+100G", "4xA100"]
    with calls_of(traced_step) as counts:
        answers = predict(JOB, settings).answers
    sizes = [answer.memory.largest for answer in answers if answer.memory is not None]
    assert len(sizes) == 4 and None not in sizes
    assert counts == {"traced_step": 2}
