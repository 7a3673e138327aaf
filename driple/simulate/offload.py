"""Time of states and parameters that are kept on the host: ZeRO-Offload, and FSDP's CPU offload.

    SchemeStep, PreparedJob -> SchemeStep whose hosts update what devices keep there

Gradients go to the host beside the backward pass, in every pass; Adam runs there when all have
come; new parameters come back, or, where parameters are kept there too, each block comes before its
forward and its backward pass, beside computing. The devices of a machine share its host.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driple.errors import SettingError
from driple.graph.step_facts import Phase
from driple.remarks import Remark, remark
from driple.schemes.links import ReachedLink
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import SchemeStep
from driple.simulate.calibration import CalibratedDevice
from driple.simulate.prepared_job import PreparedJob
from driple.step.exchange import passes_of

__all__ = ["offload_assumptions", "with_offload"]

# Seconds of a host with two processors (24 cores each, 12 channels of DDR4-2666) to update one
# parameter by Adam: DeepSpeed's own (2.57 s for 10 billion parameters), and PyTorch's (14.76 s);
# Ren et al., ZeRO-Offload, arXiv 2101.06840, table 4.
_VECTORISED_S, _PLAIN_S = 2.57e-10, 1.476e-9
_FUSED = "-fused"


def with_offload(
    step: SchemeStep, job: PreparedJob, device: CalibratedDevice, host: ReachedLink | None
) -> SchemeStep:
    """A step whose devices keep states, and maybe parameters, on their host.

    Args:
        step: as if they kept all themselves.
        job: the whole training job.
        device: of every worker.
        host: link of a device to its host's memory.

    Raises:
        SettingError: the setting does not state the memory of a host, or the link to it.
    """
    offload, topology = job.program.offload, step.topology
    if topology.host_memory_bytes is None:
        raise SettingError(
            f"the training config keeps states on the host, whose memory {topology.name} does not "
            "state; name an instance, or a cluster.yaml with memory_gb for each machine"
        )
    if host is None:
        raise SettingError(
            f"the catalogue does not know the link of {device.spec.name} to its host, which an "
            "offload crosses; add it to a catalogue of your own"
        )
    degrees = topology.degrees
    split = degrees.tensor * degrees.pipeline
    sharding = scheme_named(topology.scheme).sharding_of(degrees)
    is_shared = sharding is not None and sharding.shards_states
    copies = len(topology.workers) // split
    sharers = 1
    if sharding is not None and is_shared:
        sharers = sharding.num_shards(copies, topology.devices_per_machine)
    table, passes = job.graph.parameters, passes_of(job.graph)
    own = float(table.elements[table.is_trained].sum()) / split / sharers
    own_bytes = float(table.nbytes[table.is_trained].sum()) / split / sharers
    seconds = job.times(device).duration_s / split
    back = np.isin(job.graph.phases, (Phase.BACKWARD, Phase.RECOMPUTE))
    computing_s = float(seconds.sum())
    backward_s = float(seconds[back].sum()) if len(back) == len(seconds) else computing_s / 2
    copy_s = own_bytes / host.bytes_per_s(1)
    host_s = max(passes * copy_s - backward_s, 0.0)
    each_s = _VECTORISED_S if _is_vectorised(job) else _PLAIN_S
    host_s += own * topology.devices_per_machine * each_s
    if "parameters" in offload and sharding is not None and sharding.shards_parameters:
        host_s += max(2 * passes * copy_s - computing_s, 0.0)
    else:
        host_s += copy_s
    nothing = (0.0,) * len(topology.workers)
    return replace(step, update=replace(step.update, update_s=nothing, host_s=host_s))


def offload_assumptions(job: PreparedJob) -> tuple[Remark, ...]:
    """How fast a host is taken to update parameters; nothing of a job that keeps none there."""
    if not job.program.offload:
        return ()
    each_s = _VECTORISED_S if _is_vectorised(job) else _PLAIN_S
    return (remark("host_updates", seconds=1e9 * each_s),)


def _is_vectorised(job: PreparedJob) -> bool:
    """Whether the host updates by wide instructions: DeepSpeed, or PyTorch's fused optimizers."""
    return job.program.by_engine or job.graph.update.optimizer.endswith(_FUSED)
