"""Whether a job is synchronous follows from the ops of its step."""

from dataclasses import replace

import pytest

from driple.graph.opgraph import RemoteOps
from tests.dataset.examples import chain_graph


@pytest.mark.parametrize(
    ("remote", "waits"),
    [
        (("ApplyGradientDescent",), False),
        (("ApplyGradientDescent", "ConditionalAccumulator"), True),
        # tf_cnn_benchmarks with --cross_replica_sync: tokens for the other workers.
        (("ApplyMomentum", "FIFOQueueV2", "QueueEnqueueV2", "QueueDequeueManyV2"), True),
        # A batch that the step takes out of an input queue.
        (("ApplyMomentum", "RandomShuffleQueueV2", "QueueDequeueManyV2"), False),
    ],
)
def test_a_step_waits_for_gradients_or_tokens(remote: tuple[str, ...], waits: bool) -> None:
    """Accumulators and tokens make workers wait; a queue that is only read does not."""
    ops = tuple(RemoteOps.of_op_type(kind, num_nodes=1, tensor_bytes=0) for kind in remote)
    assert replace(chain_graph(3), remote=ops).is_synchronous == waits
