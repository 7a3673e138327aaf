"""Figures of the paper are put beside what the simulation says, row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, Example
from driple.errors import ConfigError
from driple.runs.validation.paper_figures import check_facts, read_facts, workloads_of
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulate
from driple.trace.targets import Targets
from tests.simulate.jobs import CALIBRATION, net

SHIPPED = Path(__file__).parents[3] / "datasets" / "runs" / "published" / "driple_paper.csv"
NAME = "resnet56/cifar10/b512/sgd/async"
OTHER = "resnet56/cifar10/b128/sgd/async"
JOBS = {NAME: PreparedJob(net(512)), OTHER: PreparedJob(net(128))}
V100, TI = "V100-P1w2/ho-PCIe", "2080Ti-P1w2/ho-PCIe"


def row(**changed: str) -> dict[str, str]:
    plain = {
        "section": "5",
        "kind": "value",
        "workload": NAME,
        "setting": V100,
        "against_workload": "",
        "against_setting": "",
        "quantity": "iteration_time",
        "value": "1.5",
        "unit": "s",
        "note": "batch size not stated",
    }
    return plain | changed


def ours(**changed: str) -> float | None:
    (fact,) = check_facts([row(**changed)], JOBS, CALIBRATION, num_steps=20)
    return fact.simulated


def on(workload: str, setting: str) -> float:
    job, where = JOBS[workload], Setting.parse(setting)
    return simulate(job, where, CALIBRATION, num_steps=20).iteration_time_s


def test_a_value_is_that_of_its_workload_and_setting() -> None:
    (fact,) = check_facts([row()], JOBS, CALIBRATION, num_steps=20)
    assert fact.simulated == pytest.approx(on(NAME, V100))
    assert (fact.paper, fact.unit, fact.note) == (1.5, "s", "batch size not stated")
    assert NAME in fact.what
    assert V100 in fact.what


def test_ratios_are_against_another_setting_or_workload() -> None:
    across = ours(kind="ratio", setting=TI, against_setting=V100)
    assert across == pytest.approx(on(NAME, TI) / on(NAME, V100))
    within = ours(kind="ratio", against_workload=OTHER)
    assert within == pytest.approx(on(NAME, V100) / on(OTHER, V100))
    largest = ours(kind="largest ratio", against_setting=f"{TI} {V100}")
    pair = [on(NAME, TI), on(NAME, V100)]
    assert largest == pytest.approx(max(pair) / min(pair))


def test_idle_to_burst_is_the_share_of_a_cycle() -> None:
    targets = simulate(JOBS[NAME], Setting.parse(V100), CALIBRATION, num_steps=20).targets.to_dict()
    cycle = targets["net_tx"]
    expected = cycle["idle_duration"] / cycle["burst_duration"]
    assert ours(kind="idle to burst", quantity="net_tx") == pytest.approx(expected)


def test_what_cannot_be_simulated_is_left_open() -> None:
    assert ours(workload="vgg19/imagenet/b64/sgd/async") is None
    assert ours(workload="all", kind="range", quantity="net_tx.burst_amount") is None


def test_figures_over_the_whole_catalogue_come_from_its_data_set() -> None:
    values = np.ones((2, 4, 3))
    values[1, 2, 0] = 8.5
    examples = tuple(
        Example(
            workload=name,
            family="resnet",
            setting=V100,
            graph=net(16),
            targets=Targets(values[i]),
            iteration_time_s=1.0,
            label_source="simulated",
            details={"pattern_device_util": pattern},
        )
        for i, (name, pattern) in enumerate([(NAME, "BIB"), (OTHER, "I")])
    )
    whole = Dataset(name="V100-P1w2_ho-PCIe", setting=V100, examples=examples)
    rows = [
        row(workload="all", kind="pattern share", quantity="device_util.I", unit="%"),
        row(workload="all", kind="range", quantity="net_tx.burst_amount", unit="MB/s"),
    ]
    facts = check_facts(rows, JOBS, CALIBRATION, whole)
    assert [fact.simulated for fact in facts] == [50.0, 7.5]


@pytest.mark.parametrize(
    "changed",
    [{"kind": "guess"}, {"quantity": "luck"}, {"workload": "all", "kind": "ratio"}],
)
def test_rows_of_an_unknown_kind_are_refused(changed: dict[str, str]) -> None:
    whole = None
    if changed.get("workload"):
        example = Example(
            workload=NAME, family="resnet", setting=V100, graph=net(16),
            targets=Targets(np.ones((4, 3))), iteration_time_s=1.0, label_source="simulated",
            details={},
        )  # fmt: skip
        whole = Dataset(name="x", setting=V100, examples=(example,))
    with pytest.raises(ConfigError, match="figures of the paper"):
        check_facts([row(**changed)], JOBS, CALIBRATION, whole, num_steps=20)


def test_the_shipped_rows_can_be_read() -> None:
    rows = read_facts(SHIPPED)
    assert len(rows) > 30
    assert "all" not in workloads_of(rows)
    assert "vgg19/imagenet/b64/sgd/async" in workloads_of(rows)
    for figure in rows:
        float(figure["value"])
        for name in [figure["setting"], *figure["against_setting"].split()]:
            Setting.parse(name)


def test_damaged_tables_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="come with a checkout"):
        read_facts(tmp_path / "no.csv")
    (tmp_path / "odd.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="columns"):
        read_facts(tmp_path / "odd.csv")
    row = dict.fromkeys(("section", "kind", "setting", "against_setting", "quantity"), "x")
    row |= {"workload": "none", "against_workload": "", "value": "much", "unit": "", "note": ""}
    with pytest.raises(ConfigError, match="'much' is no number"):
        check_facts([row], {}, CALIBRATION)
