"""What an answer about a split model assumes, and what of it products hide."""

from __future__ import annotations

import numpy as np
import pytest

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.schemes.collectives import DeviceGroup, Hop
from driple.schemes.split import SplitGroups
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.split_plans import SplitPlans, split_assumptions, split_plans
from tests.schemes.test_split import gpt2

DEVICE = shipped_calibration().device("H100")
ALONE = DeviceGroup(count=1)


def assumed(name: str, job: PreparedJob | None = None) -> dict[str, dict[str, object]]:
    """Values of remarks by their codes."""
    remarks = split_assumptions(gpt2(4) if job is None else job, topology_of(Setting.parse(name)))
    return {one.code: dict(one.values) for one in remarks}


def test_a_model_that_is_not_split_assumes_nothing() -> None:
    assert assumed("8xH100/NVLink@ddp") == {}


def test_tensor_groups_share_sequences_and_may_span_machines() -> None:
    inside = assumed("2x4xH100/NVLink+400G@tp4")
    assert inside == {
        "batch_of_replica": {"num_replicas": 2, "num_devices": 4}, "sequence_parallelism": {},
    }  # fmt: skip
    across = assumed("4x2xH100/NVLink+400G@tp4")
    assert across.pop("tensor_group_spans_machines") == {
        "num_devices": 4, "devices_per_machine": 2,
    }  # fmt: skip
    assert across == inside
    assert isinstance(inside["batch_of_replica"]["num_replicas"], int)


def test_experts_are_taken_to_get_even_shares() -> None:
    assert assumed("8xH100/NVLink@ep4") == {"even_all_to_all": {"num_devices": 4}}


def test_pipelines_state_their_passes_and_blocks_that_do_not_divide() -> None:
    assert assumed("4xH100/NVLink@pp2") == {
        "batch_of_replica": {"num_replicas": 2, "num_devices": 2},
        "pipeline_passes": {"num_stages": 2, "num_passes": 4},
    }
    uneven = assumed("2xH100/NVLink@pp2", gpt2(2, 11))
    assert uneven["uneven_stages"] == {"num_blocks": 11, "blocks_per_stage": (6, 5)}


def plans(degrees: Degrees, groups: SplitGroups, job: PreparedJob | None = None) -> SplitPlans:
    """Plans of GPT-2 on an H100."""
    return split_plans(gpt2(4) if job is None else job, DEVICE, groups, degrees)


def seconds(split: SplitPlans, stage: int = 0) -> float:
    """Seconds of the segments of a stage."""
    return sum(one.duration_s for one in split.plans[stage].segments)


def hop(bytes_per_s: float, latency_s: float = 0.0) -> Hop:
    """A hop of any rate."""
    return Hop(bytes_per_s=bytes_per_s, latency_s=latency_s)


def test_sums_of_a_tensor_group_lengthen_its_steps_by_what_they_take() -> None:
    """Over a link of half the rate the rest of the bytes takes twice as long."""
    degrees = Degrees(tensor=2)
    slow, fast, faster = (
        seconds(plans(degrees, SplitGroups(tensor=DeviceGroup(count=2, within=hop(rate)),
                                           replicas=ALONE)))
        for rate in (1e9, 2e9, 4e9)
    )  # fmt: skip
    assert slow - fast == pytest.approx(2 * (fast - faster), rel=1e-3)
    assert slow > fast


def test_overlap_hides_no_more_than_a_share_and_no_more_than_products_take() -> None:
    """37 % of exchanges that take long; the products' time where these are longer still."""
    job = gpt2(4)
    hidden = PreparedJob(job.graph, cost=job.cost, program=Program(tensor_overlap=True))
    degrees = Degrees(tensor=2)

    def taken_s(prepared: PreparedJob, rate: float) -> float:
        groups = SplitGroups(tensor=DeviceGroup(count=2, within=hop(rate)), replicas=ALONE)
        return seconds(plans(degrees, groups, prepared))

    for rate in (1e12, 1e11, 1e5):
        saved_s = taken_s(job, rate) - taken_s(hidden, rate)
        assert 0 < saved_s <= 0.37 * taken_s(job, rate)
    ends = [taken_s(job, rate) - taken_s(hidden, rate) for rate in (1e5, 1e4)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)  # all that products last


def test_updates_are_those_of_the_shard_or_of_its_share() -> None:
    """Of two replicas a half each with shared states; of two stages their parameters' shares."""
    pair = DeviceGroup(count=2, within=hop(1e12))
    groups = SplitGroups(tensor=ALONE, replicas=pair, expert_replicas=pair, handing=(hop(1e12),))
    (whole,) = plans(Degrees(), groups).update_s
    (half,) = plans(Degrees(states="zero1"), groups).update_s
    assert half == pytest.approx(whole / 2)
    assert whole == pytest.approx(gpt2(4).update_seconds(DEVICE))
    stages = plans(Degrees(pipeline=2), groups).update_s
    assert len(stages) == 2
    assert sum(stages) == pytest.approx(whole)
    shared = plans(Degrees(pipeline=2, states="zero1"), groups).update_s
    assert np.array(shared) == pytest.approx(np.array(stages) / 2)


def test_a_stage_gathers_its_parameters_once_before_it_computes() -> None:
    """With shared parameters, in all stages together those of the model."""
    pair = DeviceGroup(count=2, within=hop(1e12))
    groups = SplitGroups(tensor=ALONE, replicas=pair, expert_replicas=pair, handing=(hop(1e12),))
    gathered = plans(Degrees(pipeline=2, states="fsdp"), groups).plans
    nbytes = [sum(message.nbytes for message in plan.pulls) for plan in gathered]
    assert sum(nbytes) == pytest.approx(float(gpt2(4).graph.parameters.nbytes.sum()))
    for plan in gathered:
        assert len(plan.pulls) == 1
        assert plan.pulls[0].server == 0
        assert plan.segments[0].needs == 0
        assert {segment.needs for segment in plan.segments[1:]} == {1}
    kept = plans(Degrees(pipeline=2, states="zero1"), groups).plans
    assert all(not plan.pulls for plan in kept)
