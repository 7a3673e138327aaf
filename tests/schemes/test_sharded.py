"""Laws of ZeRO and FSDP: bytes of theory, shards that add up, one device alone, passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.cluster.schemes import DDP
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.schemes.registry import scheme_named
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate, simulate_steps
from driple.step.blocks import blocks_of
from tests.schemes.exchanged import LAYERS, sent_bytes, transformer
from tests.simulate.jobs import net
from tests.work import num_calls

STILL = replace(shipped_calibration(), jitter=0.0)
ZERO1, ZERO2, FSDP, HSDP = SHARDED = ("zero1", "zero2", "fsdp", "hsdp")
MACHINES = "4x8xA100-SXM4-80GB/NVLink+200G"


def record_on(job: PreparedJob, name: str, scheme: str):  # type: ignore[no-untyped-def]
    topology = topology_of(Setting.parse(name).with_scheme(scheme))
    return simulate_steps(job, topology, STILL, num_steps=3)[0]


def parameter_bytes(job: PreparedJob) -> float:
    return float(job.graph.parameters.nbytes.sum())


@pytest.mark.parametrize("scheme", SHARDED)
def test_one_device_shares_nothing_out(scheme: str) -> None:
    """No traffic, and the time of the plain step."""
    alone = record_on(transformer(), "1xH100", scheme)
    assert not sent_bytes(alone)
    plain = record_on(transformer(), "1xH100", DDP)
    assert alone.iteration_time_s == pytest.approx(plain.iteration_time_s, rel=1e-9)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_bytes_are_those_of_the_zero_paper(count: int) -> None:
    """Section 7: 2 P with all-reduce and ZeRO-1 and -2, 3 P with ZeRO-3, (n - 1) / n of each.

    FSDP keeps the root, here embedding and head, gathered from the forward to the backward pass.
    """
    job = transformer()
    whole, share = parameter_bytes(job), (count - 1) / count
    order = np.empty(job.graph.num_nodes, dtype=np.int64)
    order[job.order] = np.arange(len(job.order))
    root = sum(one.gathered_bytes for one in blocks_of(job.graph, order) if not one.name)
    assert 0 < root < whole
    wanted = {
        DDP: 2 * whole,
        ZERO1: 2 * whole,
        ZERO2: 2 * whole,
        FSDP: 3 * whole - root,
        HSDP: 3 * whole - root,
    }
    for scheme, nbytes in wanted.items():
        sent = sent_bytes(record_on(job, f"{count}xH100/NVLink", scheme))
        assert sent == pytest.approx(share * nbytes, rel=1e-6), scheme


def test_hybrid_shards_send_gradients_between_machines() -> None:
    """8 devices on 4 machines: shards within, and 2 x 3/4 of an eighth of the gradients between."""
    job = transformer()
    inside = sent_bytes(record_on(job, "8xH100/NVLink", FSDP))
    hybrid = sent_bytes(record_on(job, "4x8xH100/NVLink+400G", HSDP))
    assert hybrid - inside == pytest.approx(2 * 3 / 4 * parameter_bytes(job) / 8, rel=1e-6)


def test_blocks_hold_each_parameter_once() -> None:
    """The numbered layers and the root; their bytes add up, forward and backward in order."""
    job = transformer()
    order = np.empty(job.graph.num_nodes, dtype=np.int64)
    order[job.order] = np.arange(len(job.order))
    blocks = blocks_of(job.graph, order)
    names = [one.name for one in blocks]
    assert names == ["", *(f"model.layers.{i}" for i in range(LAYERS))]
    assert sum(one.gathered_bytes for one in blocks) == parameter_bytes(job)
    assert sum(one.gradient_bytes for one in blocks) == parameter_bytes(job)
    assert sum(one.num_tensors for one in blocks) == len(job.graph.parameters.names)
    layers = blocks[1:]
    forward = [one.forward_at for one in layers]
    backward = [one.backward_at or 0 for one in layers]
    assert forward == sorted(forward)
    assert backward == sorted(backward, reverse=True)
    assert min(backward) > max(forward)
    assert all((one.complete_at or 0) >= (one.backward_at or 0) for one in layers)


def test_under_autocast_half_the_bytes_are_gathered() -> None:
    """MixedPrecision of FSDP; DDP exchanges gradients in the type of the parameters."""
    for scheme, ratio in ((FSDP, 0.5), (DDP, 1.0)):
        full, half = (
            sent_bytes(record_on(transformer(precision=one), "8xH100", scheme))
            for one in ("fp32", "amp-bf16")
        )
        assert half == pytest.approx(ratio * full, rel=1e-6), scheme


@pytest.mark.parametrize(("scheme", "gathers", "sends"), [
    (DDP, 0, 2), (ZERO1, 1, 1), (ZERO2, 1, 4), (FSDP, None, 4),
])  # fmt: skip
def test_passes_of_accumulation(scheme: str, gathers: int | None, sends: int) -> None:
    """Of four passes, DDP and ZeRO-1 exchange in the last, ZeRO-2 and FSDP in each."""
    single, four = transformer(), transformer(4)
    sent = sent_bytes(record_on(four, "8xH100", scheme))
    if gathers is None:
        assert sent == pytest.approx(4 * sent_bytes(record_on(single, "8xH100", scheme)), rel=1e-6)
    else:
        wanted = (gathers + sends) * 7 / 8 * parameter_bytes(single)
        assert sent == pytest.approx(wanted, rel=1e-6)
    computing = sum(s.duration_s for s in four.exchange_plan(
        STILL.device("H100"), scheme_named(scheme).rule("buckets")  # type: ignore[arg-type]
    ).segments)  # fmt: skip
    assert computing == pytest.approx(four.times(STILL.device("H100")).duration_s.sum())


@pytest.mark.parametrize("scheme", (DDP, *SHARDED))
@pytest.mark.parametrize("passes", [1, 4])
def test_a_slower_link_never_makes_a_step_shorter(scheme: str, passes: int) -> None:
    job = transformer(passes)
    times = [
        record_on(job, f"2x4xH100/NVLink+{rate}", scheme).iteration_time_s
        for rate in ("3200G", "400G", "100G", "10G", "1G", "100M")
    ]
    assert times == sorted(times)
    assert times[-1] > 5 * times[0]
    within = [
        record_on(job, f"4xH100/{link}", scheme).iteration_time_s for link in ("NVLink", "PCIe")
    ]
    assert within == sorted(within)


@pytest.mark.parametrize("scheme", (DDP, *SHARDED))
def test_weak_scaling_never_beats_computing_alone(scheme: str) -> None:
    """The batch per device is the same: a step is no shorter than its computing on one device.

    Only the update is shared out, so it is left out of the bound.
    """
    job = transformer()
    computing = job.times(STILL.device("H100")).duration_s.sum()
    times = [
        record_on(job, name, scheme).iteration_time_s
        for name in ("2xH100", "8xH100", "2x8xH100/NVLink+400G", "16x8xH100/NVLink+400G")
    ]
    assert min(times) >= computing * (1 - 1e-12)


def test_the_update_is_shared_out() -> None:
    """On a link that takes no time, a step shortens by what the shards of the update save."""
    job = transformer()
    update_s = job.update_seconds(STILL.device("H100"))
    alone = record_on(job, "1xH100", FSDP)
    computing = [one for one in alone.computing if one.busy_share == 1.0][-1]
    assert computing.end_s - computing.start_s == pytest.approx(update_s)
    shared = record_on(job, "8xH100", FSDP).computing[-1]
    assert shared.end_s - shared.start_s == pytest.approx(update_s / 8)


@pytest.mark.parametrize("scheme", SHARDED)
def test_graphs_of_tensorflow_can_be_sharded(scheme: str) -> None:
    """Without a table of parameters: groups by size, gradients by size."""
    job = PreparedJob(net(8))
    whole = job.graph.received_bytes
    sent = sent_bytes(record_on(job, "8xH100", scheme))
    turns = 2 if scheme in (ZERO1, ZERO2) else 3
    assert sent == pytest.approx(turns * 7 / 8 * whole, rel=1e-6)


@pytest.mark.parametrize("scheme", (DDP, *SHARDED))
def test_the_work_for_a_thousand_devices_grows_as_their_number(scheme: str) -> None:
    job = transformer()
    record_on(job, "8xH100", scheme)  # times of ops are known then

    def work(num_machines: int) -> int:
        setting = Setting.parse(f"{num_machines}x8xH100/NVLink+3200G").with_scheme(scheme)

        def simulated() -> None:
            simulation = simulate(job, setting, shipped_calibration())
            assert len(simulation.records) == 8 * num_machines
            assert simulation.targets.values[0][0] <= 100

        return num_calls(simulated)

    assert work(128) < 10 * work(16)  # as pairs of devices: 64 times
