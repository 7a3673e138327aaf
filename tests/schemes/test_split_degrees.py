"""Bytes and time of context, expert and interleaved parallelism, and of shared states, by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import GraphError
from driple.schemes.collectives import DeviceGroup, Hop
from driple.schemes.records import WorkerRecord
from driple.schemes.split import SplitGroups
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import simulate_steps
from driple.simulate.split_plans import split_plans
from tests.schemes.exchanged import sent_bytes
from tests.schemes.test_split import ACTIVATIONS, gpt2
from tests.step.mixtures import (
    CHOSEN,
    LAYERS,
    SAMPLES,
    TOKENS,
    TYPE_BYTES,
    WIDTH,
    dense,
    mixture,
)

STILL = replace(shipped_calibration(), jitter=0.0)
RESIDUAL = SAMPLES * TOKENS * WIDTH * TYPE_BYTES
SENT = CHOSEN * RESIDUAL  # of an all-to-all, before it


@cache
def mixed(passes: int = 1) -> PreparedJob:
    return PreparedJob(mixture(passes))


@cache
def plain(passes: int = 1) -> PreparedJob:
    return PreparedJob(dense(passes))


def records_on(job: PreparedJob, name: str) -> list[WorkerRecord]:
    return simulate_steps(job, topology_of(Setting.parse(name)), STILL, num_steps=3)


def seconds_on(job: PreparedJob, name: str) -> float:
    return records_on(job, name)[0].iteration_time_s


def gradients_of(job: PreparedJob, *, experts: bool) -> float:
    """Bytes of the gradients of experts, or of all else."""
    table = job.graph.parameters
    return float(
        sum(
            nbytes
            for name, nbytes in zip(table.names, table.nbytes.tolist(), strict=True)
            if ("experts" in name) == experts
        )
    )


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize(("devices", "degree"), [(4, 4), (8, 4), (4, 2)])
def test_bytes_of_experts(devices: int, degree: int, passes: int) -> None:
    """Four all-to-alls a layer and pass; gradients of experts by those with the same ones."""
    job = mixed(passes)
    moved = passes * LAYERS * 4 * (degree - 1) / degree * SENT
    sums = 2 * (devices - 1) / devices * gradients_of(job, experts=False)
    copies = devices // degree
    sums += 2 * (copies - 1) / copies * gradients_of(job, experts=True) / degree
    records = records_on(job, f"{devices}xH100/NVLink@ep{degree}")
    assert {round(sent_bytes(one)) for one in records} == {round(moved + sums)}


@pytest.mark.parametrize("states", ["zero1", "zero2", "fsdp"])
def test_bytes_of_shared_states(states: str) -> None:
    """A reduce-scatter and a gather of dense parameters by all, of experts by their replicas.

    FSDP gathers blocks twice, but for what is outside of blocks, which stays gathered.
    """
    job = mixed()
    (sent,) = {round(sent_bytes(one)) for one in records_on(job, f"8xH100/NVLink@ep4-{states}")}
    moved = LAYERS * 4 * 3 / 4 * SENT
    table = job.graph.parameters
    gathers = 0.0
    for name, nbytes in zip(table.names, table.nbytes.tolist(), strict=True):
        own = nbytes / 4 * 1 / 2 if "experts" in name else nbytes * 7 / 8
        turns = 2 if states == "fsdp" and ".layers." in name else 1
        gathers += own * (1 + turns)
    assert sent == pytest.approx(moved + gathers, rel=1e-5)


@pytest.mark.parametrize(
    ("scheme", "moved"),
    [
        # keys and values, then with their gradients: 3 rings a layer of both
        ("cp2", LAYERS * 3 * 2 * RESIDUAL / 2),
        # queries, keys, values, results of a half of the tokens, of which a half leaves
        ("ulysses2", LAYERS * 2 * 4 * RESIDUAL / 2 / 2),
    ],
)
def test_bytes_of_contexts(scheme: str, moved: float) -> None:
    """Beside the gradients, which devices of a context group add up like replicas."""
    gradients = gradients_of(plain(), experts=False)
    sent = {round(sent_bytes(one)) for one in records_on(plain(), f"2xH100/NVLink@{scheme}")}
    assert sent == {round(moved + gradients)}


@pytest.mark.parametrize("passes", [2, 4])
def test_bytes_of_interleaved_stages(passes: int) -> None:
    """Two devices with 2 stages of a layer each: 0-1, 1-2 and 2-3 hand on, and back."""
    sent = [sent_bytes(each) for each in records_on(gpt2(passes), "2xH100/NVLink@pp2-vpp2")]
    assert sent == pytest.approx([passes * 3 * ACTIVATIONS] * 2)


def test_stages_and_micro_batches_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match=r"of 4 stages .* at most 2 stages do"):
        records_on(plain(2), "2xH100/NVLink@pp2-vpp2")
    with pytest.raises(GraphError, match="take 2 or 4 passes"):
        records_on(gpt2(3), "2xH100/NVLink@pp2-vpp2")


def test_interleaved_stages_are_faster_with_few_micro_batches() -> None:
    """A shorter bubble; with very many micro-batches both come to the same."""
    few = [seconds_on(gpt2(2), f"2xH100/NVLink@{name}") for name in ("pp2", "pp2-vpp2")]
    assert few[1] < few[0]


@pytest.mark.parametrize(
    "scheme", ["ep4", "ep2-zero1", "tp2-ep4", "cp2-ep4", "ep4-fsdp", "pp2-ep2-zero1"]
)
def test_a_faster_link_is_never_slower(scheme: str) -> None:
    between = [
        seconds_on(mixed(2), f"2x4xH100/NVLink+{rate}@{scheme}")
        for rate in ("1G", "10G", "100G", "400G", "3200G")
    ]
    assert between == sorted(between, reverse=True)


def test_an_all_to_all_by_hand() -> None:
    """8 devices on 2 machines: 4/8 of each device's bytes leave; 4 devices share the network."""
    within = Hop(bytes_per_s=100e9, latency_s=0.0)
    between = Hop(bytes_per_s=50e9, latency_s=0.0)
    group = DeviceGroup(count=8, machines=2, within=within, between=between)
    size = np.array([1e9])
    assert group.sent_bytes("all_to_all", size)[0] == 7 / 8 * 1e9
    leaving_s = 4 * 1e9 * 4 / 8 / 50e9
    assert group.seconds("all_to_all", size)[0] == pytest.approx(leaving_s, rel=1e-3)
    inside = DeviceGroup(count=4, within=within)
    assert inside.seconds("all_to_all", size)[0] == pytest.approx(1e9 * 3 / 4 / 100e9, rel=1e-2)


def test_update_of_a_share() -> None:
    """Replicas that share out states update 1 / n of them: dense by all, experts by fewer."""

    def of(count: int) -> DeviceGroup:
        return DeviceGroup(count=count, within=Hop(bytes_per_s=1e11, latency_s=1e-6))

    groups = SplitGroups(
        tensor=DeviceGroup(count=1), replicas=of(8), expert=of(4), expert_replicas=of(2)
    )
    device = STILL.device("H100")
    whole, shared = (
        split_plans(mixed(), device, groups, Degrees(expert=4, states=states)).update_s[0]
        for states in ("ddp", "zero1")
    )
    dense_bytes = gradients_of(mixed(), experts=False)
    expert_bytes = gradients_of(mixed(), experts=True) / 4
    share = (dense_bytes / 8 + expert_bytes / 2) / (dense_bytes + expert_bytes)
    assert shared == pytest.approx(share * whole, rel=1e-6)


@pytest.mark.parametrize("bytes_per_s", [1e6, 1e9, 1e13])
def test_attention_hides_its_ring(bytes_per_s: float) -> None:
    """A share of keys and values passes while attention computes on the one before."""
    degrees, device = Degrees(context=2), STILL.device("H100")
    groups = SplitGroups(
        tensor=DeviceGroup(count=1),
        replicas=DeviceGroup(count=1),
        context=DeviceGroup(count=2, within=Hop(bytes_per_s=bytes_per_s, latency_s=0.0)),
    )
    own, shard = plain().shard(degrees)
    times = own.times(device).duration_s
    waits_s = 0.0
    for exchange in shard.exchanges:
        took_s = float(groups.context.seconds("all_gather", np.array([exchange.nbytes]))[0])
        waits_s += max(took_s - times[exchange.node] / 2, 0.0)
    (plan,) = split_plans(plain(), device, groups, degrees).plans
    assert plan.compute_s == pytest.approx(times.sum() + waits_s)


@pytest.mark.parametrize("bytes_per_s", [1e6, 1e9, 1e13])
def test_products_hide_a_part_of_what_is_exchanged_beside_them(bytes_per_s: float) -> None:
    """0.37 of the sums and gathers of a tensor group, and no more than the products last."""
    degrees, device = Degrees(tensor=2), STILL.device("H100")
    groups = SplitGroups(
        tensor=DeviceGroup(count=2, within=Hop(bytes_per_s=bytes_per_s, latency_s=0.0)),
        replicas=DeviceGroup(count=1),
    )
    beside = PreparedJob(dense(), program=Program(tensor_overlap=True))
    own, shard = plain().shard(degrees)
    times = own.times(device).duration_s
    waits_s = sum(
        float(groups.tensor.seconds(one.kind, np.array([one.nbytes]))[0])  # type: ignore[arg-type]
        for one in shard.exchanges
        if not one.is_hidden
    )
    products_s = times[np.isin(np.array(own.graph.kinds), ("matmul", "batch_matmul"))].sum()
    before, after = (
        split_plans(job, device, groups, degrees).plans[0].compute_s for job in (plain(), beside)
    )
    assert before - after == pytest.approx(min(0.37 * waits_s, products_s))
