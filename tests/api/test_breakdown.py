"""Where the work of a step is: phases, kinds and modules each add up to the whole step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.api.breakdown import Breakdown, Share, break_down_step
from driple.cluster.setting import Setting
from driple.graph.cost import cost_of_graph
from driple.graph.step_facts import OptimizerUpdate, Phase
from driple.jobs.load import Job, load_job
from tests.simulate.jobs import net
from tests.step.layered import layered

UPDATE = OptimizerUpdate(optimizer="sgd", moved_bytes=3_000_000, num_kernels=5)


def job(*, update: OptimizerUpdate = UPDATE, passes: int = 1, modules: bool = True) -> Job:
    """Three layers, of 64 rows, with an update of their parameters."""
    graph = replace(layered([512] * 4, rows=64, passes=passes), update=update)
    if modules:
        paths = ("layers.0", "layers.1", "layers.2")
        of_node = np.array([0, 1, 2, 2, 1, 0], dtype=np.int32)
        graph = replace(graph, modules=paths, module_of=of_node)
    return load_job(graph)


def broken_down(known: Job, name: str = "1xV100") -> Breakdown:
    return break_down_step(known, Setting.parse(name))


def seconds(shares: tuple[Share, ...]) -> float:
    return sum(share.time_s or 0.0 for share in shares)


@pytest.mark.parametrize("passes", [1, 4])
def test_all_views_add_up_to_the_step(passes: int) -> None:
    known = job(passes=passes)
    breakdown = broken_down(known)
    assert breakdown.total_s is not None
    assert seconds(breakdown.phases) == pytest.approx(breakdown.total_s)
    assert sum(share.time_pct or 0.0 for share in breakdown.phases) == pytest.approx(100)
    update = next(share for share in breakdown.phases if share.name == "update")
    assert update.time_s is not None and update.time_s > 0
    assert seconds(breakdown.kinds) + update.time_s == pytest.approx(breakdown.total_s)
    assert breakdown.modules is not None and breakdown.modules.time_s is not None
    assert breakdown.modules.time_s + update.time_s == pytest.approx(breakdown.total_s)
    flops = float((known.cost.flops * passes).sum())
    assert sum(share.flops for share in breakdown.phases) == pytest.approx(flops)
    assert sum(share.flops for share in breakdown.kinds) == pytest.approx(flops)
    assert breakdown.modules.flops == pytest.approx(flops)
    cost = cost_of_graph(known.graph)
    moved = float((cost.bytes_read + cost.bytes_written).sum()) * passes
    assert sum(share.moved_bytes for share in breakdown.kinds) == pytest.approx(moved)
    assert sum(share.ops for share in breakdown.kinds) == 6


def test_phases_come_in_their_order_and_kinds_by_their_time() -> None:
    breakdown = broken_down(job())
    assert [share.name for share in breakdown.phases] == ["forward", "backward", "update"]
    assert [share.ops for share in breakdown.phases] == [3, 3, 5]
    assert breakdown.phases[2].moved_bytes == 3_000_000
    graph = load_job(net(16))
    kinds = broken_down(graph).kinds
    times = [share.time_s or 0.0 for share in kinds]
    assert times == sorted(times, reverse=True) and len(kinds) > 2


def test_ops_of_an_update_count_beside_its_kernels() -> None:
    known = job()
    phases = known.graph.phases.copy()
    phases[5] = Phase.UPDATE
    changed = load_job(replace(known.graph, phases=phases))
    update = broken_down(changed).phases[-1]
    assert (update.name, update.ops) == ("update", 6)
    assert update.moved_bytes > 3_000_000
    assert update.flops == pytest.approx(2 * 64 * 512 * 512)
    alone = broken_down(job(update=OptimizerUpdate()))
    assert [share.name for share in alone.phases] == ["forward", "backward"]


def test_servers_update_in_the_workers_place() -> None:
    """The update takes no time of the device, and moves nothing of its memory."""
    here, there = broken_down(job()), broken_down(job(), "V100-P1w2/ho-PCIe")
    update = there.phases[-1]
    assert (update.name, update.time_s, update.moved_bytes) == ("update", 0.0, 0.0)
    assert there.total_s is not None and here.total_s is not None
    assert there.total_s < here.total_s
    assert "servers_update" in {remark.code for remark in there.assumptions}
    assert "servers_update" not in {remark.code for remark in here.assumptions}


def test_what_a_graph_does_not_show_is_said() -> None:
    known = job(modules=False)
    bare = load_job(replace(known.graph, phases=np.zeros(0, dtype=np.int8)))
    breakdown = broken_down(bare)
    assert breakdown.phases == ()
    assert {remark.code for remark in breakdown.unknown} == {"phases_not_shown", "no_modules"}
    assert broken_down(job()).unknown == ()
    assert breakdown.device == "V100"
