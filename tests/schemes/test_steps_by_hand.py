"""One step of every scheme by hand: 4 devices, 400 MB, 100 MB/s within machines, 200 between.

A device computes 1 s on a block of 400 MB of parameters, whose gradients leave at its end, and all
parameters together take 0.4 s to update.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.catalog import device_named, link_named
from driple.cluster.topology import Topology
from driple.schemes.links import LinkEfficiency, ReachedLink
from driple.schemes.registry import scheme_named
from driple.schemes.scheme import SchemeStep, ServerRates
from driple.schemes.timeline import StepUpdate
from driple.step.plan import Message, Segment, StepPlan

MB = 1e6
BLOCK = Message(0, 400 * MB)
PLAN = StepPlan(
    pulls=(BLOCK,),
    segments=(Segment(needs=1, duration_s=1.0, busy_s=1.0, memory_s=1.0, sends=(BLOCK,)),),
)


def reached(name: str, bytes_per_s: float) -> ReachedLink:
    """A link at a rate, without latency."""
    link = link_named(name)
    return ReachedLink(link, LinkEfficiency(bytes_per_s / link.bytes_per_s, 0.0, 0.0))


def step_on(num_machines: int) -> SchemeStep:
    within, between = reached("PCIe3", 100 * MB), reached("10G", 200 * MB)
    several = num_machines > 1
    topology = Topology(
        workers=(device_named("A100"),) * 4,
        worker_machine=tuple(worker * num_machines // 4 for worker in range(4)),
        within=within.link,
        between=between.link if several else None,
    )
    return SchemeStep(
        topology=topology,
        plans=(PLAN,) * 4,
        within=within,
        between=between if several else None,
        update=StepUpdate(update_s=(0.4,) * 4),
        servers=ServerRates(
            bridge_bytes_per_s=1.0, role_copy_bytes_per_s=1.0, apply_s_per_byte=0.0
        ),
        synchronous=True,
        are_alike=True,
    )


@pytest.mark.parametrize(
    ("scheme", "num_machines", "parts_s"),
    [
        # An all-reduce passes 2 x 3/4 of 400 MB; every device updates all.
        ("ddp", 1, (1.0, 6.0, 0.4)),
        # A reduce-scatter passes 3/4, and so does the gather of the new parameters.
        ("zero1", 1, (1.0, 3.0, 0.4 / 4, 3.0)),
        ("zero2", 1, (1.0, 3.0, 0.4 / 4, 3.0)),
        # The block is gathered before it is computed on, and nothing after the update.
        ("fsdp", 1, (3.0, 1.0, 3.0, 0.4 / 4)),
        # Within 2 devices 1/2 passes; of shards of 200 MB 2 x 1/2 at half of the network's rate.
        ("hsdp", 2, (2.0, 1.0, 2.0 + 2.0, 0.4 / 2)),
        ("hierarchical", 2, (1.0, 2.0 + 2.0 + 2.0, 0.4)),
        ("hsdp", 1, (3.0, 1.0, 3.0, 0.4 / 4)),
        ("hierarchical", 1, (1.0, 6.0, 0.4)),
    ],
)
def test_a_step_by_hand(scheme: str, num_machines: int, parts_s: tuple[float, ...]) -> None:
    """Nothing overlaps, as the only block is the first and the last."""
    records = scheme_named(scheme).simulate(step_on(num_machines), 3, 0)
    assert records[0].iteration_time_s == pytest.approx(sum(parts_s), rel=1e-4)  # starts of NCCL


@pytest.mark.parametrize("devices", [4, 2, 1])
def test_tensors_of_tensorflow_are_started_and_copied_one_by_one(devices: int) -> None:
    """For each device 10 us a tensor, here three, and for each other one 4 ps a byte."""
    usual = step_on(1)
    block = replace(BLOCK, tensors=3)
    segment = replace(PLAN.segments[0], sends=(block,))
    plan = replace(PLAN, segments=(segment,))
    topology = replace(
        usual.topology,
        workers=usual.topology.workers[:devices],
        worker_machine=usual.topology.worker_machine[:devices],
    )
    update = StepUpdate(update_s=(0.4,) * devices)
    changed = replace(usual, topology=topology, plans=(plan,) * devices, update=update)
    buckets, tensors = (
        scheme_named("ddp").simulate(replace(changed, program=program), 3, 0)[0].iteration_time_s
        for program in ("buckets", "tensors")
    )
    more_s = devices * 1e-5 * 3 + (devices - 1) * 4e-12 * 400 * MB
    assert tensors - buckets == pytest.approx(more_s if devices > 1 else 0.0, rel=1e-6)
