"""Closed forms of a shipped graph: sums, limits, what they do not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.analytic.closed_forms import (
    PARTS,
    ClosedForm,
    ClosedForms,
    shipped_closed_forms,
    work_of,
    zeng_published,
    zeng_repaired,
    zhang_pipeline,
)
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.errors import ConfigError, SettingError
from driple.graph import read_graph
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate

GRAPH = Path(__file__).parents[2] / "datasets" / "examples" / "resnet50.pbtxt"
CALIBRATION = shipped_calibration()
EXCHANGE = shipped_closed_forms().exchange


@pytest.fixture(scope="module")
def job() -> PreparedJob:
    return PreparedJob(read_graph(GRAPH))


def topology(
    gbit: float = 10, workers: int = 2, servers: int = 1, device: str = "V100"
) -> Topology:
    return topology_of(Setting.parse(f"{device}-P{servers}w{workers}/ho-{gbit:g}G"))


def forms(job: PreparedJob, where: Topology) -> list[ClosedForm]:
    return [
        zeng_published(job, where),
        zeng_repaired(job, where, CALIBRATION, EXCHANGE),
        zhang_pipeline(job, where, CALIBRATION),
    ]


def test_forward_pass_is_what_is_published(job: PreparedJob) -> None:
    """ResNet-50, the stride in a block's first convolution: 3,878 M multiply-adds an image.

    osmr/imgclsmob, gluon/README.md. With the stride in the second one it would be 4,110 M.
    """
    work = work_of(job)
    assert work.forward_flops / 32 == pytest.approx(2 * 3.87795e9, rel=0.01)
    assert work.weights == pytest.approx(25.6e6, rel=0.01)
    assert 0 < work.is_forward.sum() < len(work.is_forward)
    assert work.unknown == {}
    assert work.unknown_share == 0


def test_ops_without_a_formula_are_told_with_their_share(job: PreparedJob) -> None:
    graph = job.graph
    odd = tuple("Mystery" if op == "Relu" else op for op in graph.op_types)
    signatures = tuple(
        replace(one, kind="other", variant="Mystery") if one.kind == "relu" else one
        for one in graph.signatures
    )
    work = work_of(PreparedJob(replace(graph, op_types=odd, signatures=signatures)))
    assert work.unknown == {"Mystery": graph.op_type_counts()["Relu"]}
    assert 0.01 < work.unknown_share < 0.5


def test_parts_sum_to_the_iteration(job: PreparedJob) -> None:
    for gbit in (1, 10, 100):
        for form in forms(job, topology(gbit)):
            assert set(form.parts_s) == set(PARTS)
            assert sum(form.parts_s.values()) == pytest.approx(form.iteration_time_s)
            assert min(form.parts_s.values()) >= -1e-12


def test_slower_networks_and_more_workers_take_longer_in_every_form(job: PreparedJob) -> None:
    for kind in range(3):
        by_rate = [forms(job, topology(gbit))[kind].iteration_time_s for gbit in (1, 5, 25)]
        by_count = [forms(job, topology(1, count))[kind].iteration_time_s for count in (1, 2, 4)]
        assert by_rate == sorted(by_rate, reverse=True)
        assert by_count == sorted(by_count)


def test_on_a_slow_network_all_forms_agree_and_computing_does_not_matter(job: PreparedJob) -> None:
    """Four transfers of all parameters at the rate that links reach."""
    times = [form.iteration_time_s for form in forms(job, topology(0.1))]
    assert max(times) / min(times) < 1.12
    bound = 4 * 8 * job.graph.received_bytes / 0.1e9
    assert times[0] == pytest.approx(bound, rel=0.01)


def test_several_servers_help_the_repaired_model_and_the_pipeline(job: PreparedJob) -> None:
    one_server, two = forms(job, topology(1, 4)), forms(job, topology(1, 4, 2))
    assert one_server[0].iteration_time_s == two[0].iteration_time_s  # it knows one server
    for kind in (1, 2):
        assert 0.5 < two[kind].iteration_time_s / one_server[kind].iteration_time_s < 0.7


def test_without_variance_the_pipeline_is_the_simulator(
    job: PreparedJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for copies between host and device, of which the pipeline knows nothing."""
    monkeypatch.setattr(
        "driple.simulate.run.copies_s_per_byte", lambda topology: (0.0,) * len(topology.workers)
    )
    calm, setting = replace(CALIBRATION, jitter=0.0), Setting.parse("V100-P1w2/ho-10G")
    wanted = simulate(job, setting, calm, num_steps=3).iteration_time_s
    pipeline_s = zhang_pipeline(job, topology_of(setting), calm).iteration_time_s
    assert pipeline_s == pytest.approx(wanted, rel=1e-9)


def test_other_traffic_and_a_measured_run(job: PreparedJob) -> None:
    calm = zhang_pipeline(job, topology(1), CALIBRATION).iteration_time_s
    busy = zhang_pipeline(job, topology(1), CALIBRATION, background=0.5).iteration_time_s
    assert busy == pytest.approx(2 * calm, rel=0.02)
    with pytest.raises(ConfigError, match="utilisation"):
        zhang_pipeline(job, topology(1), CALIBRATION, background=1.0)
    matched = zhang_pipeline(job, topology(1), CALIBRATION, measured_s=2 * calm)
    assert matched.iteration_time_s == pytest.approx(2 * calm)
    with pytest.raises(ConfigError, match="--set measured"):
        zhang_pipeline(job, topology(1), CALIBRATION, measured_s=0.01)


def test_rings_are_refused(job: PreparedJob) -> None:
    ring = topology_of(Setting.parse("A100-R8/ho-NVLink"))
    for ask in (
        lambda: zeng_published(job, ring),
        lambda: zeng_repaired(job, ring, CALIBRATION, EXCHANGE),
        lambda: zhang_pipeline(job, ring, CALIBRATION),
    ):
        with pytest.raises(SettingError, match="ring"):
            ask()


def test_errors_are_told_where_they_were_measured() -> None:
    shipped = shipped_closed_forms()
    for method in ("zeng", "zeng-repaired", "zhang"):
        servers = shipped.error_of(topology(), method)
        assert servers is not None
        assert servers.rows >= 10
        cpu = shipped.error_of(topology_of(Setting.parse("CPU-P1w2")), method)
        assert cpu is not None
        assert cpu.p90_pct > 0
    assert shipped.error_of(topology_of(Setting.parse("V100-P1w2")), "zhang") is None
    assert np.isfinite(shipped.exchange.server_s_per_byte)
    # The goal on measured clusters over Ethernet.
    for method, most_pct in (("zhang", 5), ("zeng-repaired", 4)):
        error = shipped.error_of(topology(), method)
        assert error is not None
        assert error.mean_pct < most_pct


def test_damaged_files_are_told() -> None:
    for text in ("{}", "nothing", '{"format": 99}'):
        with pytest.raises(ConfigError, match="closed"):
            ClosedForms.from_json(text)
