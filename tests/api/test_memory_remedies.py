"""What is read to find a batch that fits is read once for all clusters of the same kernels."""

from __future__ import annotations

import pytest

from driple.api.predicting import predict
from driple.jobs.pytorch import step_graph

JOB = "shufflenet"


def test_clusters_share_the_job_at_another_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Largest batches of four clusters with the kernels of an A100 take one reading more."""
    read = []

    def counted(*values: object, **named: object) -> object:
        read.append(1)
        return step(*values, **named)  # type: ignore[arg-type]

    step = step_graph.traced_step
    monkeypatch.setattr(step_graph, "traced_step", counted)
    answers = predict(JOB, ["1xA100", "8xA100", "2x8xA100/NVLink+100G", "4xA100"]).answers
    sizes = [answer.memory.largest for answer in answers if answer.memory is not None]
    assert len(sizes) == 4 and None not in sizes
    assert len(read) == 2
