"""How a machine differs from the one whose labels an inspector learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.dataset.store import read_dataset
from driple.errors import ConfigError
from driple.inspector.host import (
    HOSTS_DIFFER,
    HostTuning,
    host_tuning,
    on_any_host,
    read_host,
    step_factor,
    write_host,
)
from driple.inspector.predict import Prediction
from driple.inspector.trained_on import TrainedOn
from driple.trace.targets import Targets
from scripts.runs.other_hosts import logs_of, read_times

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
SETTING = "CPU-P1w2/ho-200M"
NAMES = [f"net{i}" for i in range(6)]


def prediction(**fields: object) -> Prediction:
    """One with intervals of a tenth to each side."""
    values = np.arange(1.0, 13.0).reshape(4, 3)
    every = np.append(values.ravel(), 20.0)
    usual = Prediction(
        setting=SETTING,
        targets=Targets(values),
        iteration_time_s=20.0,
        num_nodes=5,
        num_edges=4,
        num_groups=2,
        unknown_op_types={},
        provenance="measured",
        trained_on=TrainedOn(),
        metrics={},
        level=0.9,
        ends=np.stack([every / 1.1, every * 1.1], axis=1),
        strange=(),
        closed_form_s=18.0,
    )
    return replace(usual, **fields)  # type: ignore[arg-type]


def tuning(factor: float) -> HostTuning:
    """Of a host that computes for a factor as long, in every workload."""
    known = [prediction(iteration_time_s=time) for time in np.linspace(0.1, 1.0, len(NAMES))]
    times = [step_factor(made, factor) * made.iteration_time_s for made in known]
    return host_tuning(SETTING, NAMES, known, np.array(times))


def test_a_host_that_is_slower_throughout_is_found() -> None:
    """And nothing is left once its factor is known."""
    tuned = tuning(1.5)
    assert tuned.computing_factor == pytest.approx(1.5, rel=0.005)
    assert tuned.before_pct == pytest.approx(100 * 0.2 / 1.2)
    assert tuned.after_pct == pytest.approx(0, abs=0.3)


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_computing_takes_the_factor_and_the_network_carries_as_before(factor: float) -> None:
    """Of five seconds a device is busy for two: the step grows by their share alone."""
    usual, tuned = prediction(), replace(tuning(1.0), computing_factor=factor).applied(prediction())
    before, after = usual.targets.values, tuned.targets.values
    step = tuned.iteration_time_s / usual.iteration_time_s
    assert step == pytest.approx(1 + 0.4 * (factor - 1))
    assert after[:, 0].tolist() == before[:, 0].tolist()
    assert after[0, 1] == pytest.approx(factor * before[0, 1])
    assert after[0, 2] == before[0, 2]
    np.testing.assert_allclose(after[2:, 1], before[2:, 1])
    np.testing.assert_allclose(after[2:, 1:].sum(axis=1), step * before[2:, 1:].sum(axis=1))
    assert tuned.closed_form_s == pytest.approx(18.0 * step)
    assert tuned.ends is not None and usual.ends is not None
    np.testing.assert_allclose(tuned.ends[0], usual.ends[0])
    np.testing.assert_allclose(tuned.ends[1], factor * usual.ends[1])


def test_a_job_that_waits_for_the_network_is_as_long_on_any_host() -> None:
    """A device that is never busy has nothing to compute faster."""
    values = np.arange(1.0, 13.0).reshape(4, 3)
    values[0, 1] = 0.0
    tuned = replace(tuning(1.0), computing_factor=3.0).applied(prediction(targets=Targets(values)))
    assert tuned.iteration_time_s == 20.0


def test_what_the_factor_leaves_widens_the_interval_of_the_step_time() -> None:
    """Never narrower than the inspector's own."""
    known = [prediction(iteration_time_s=time) for time in np.linspace(0.1, 1.0, len(NAMES))]
    times = np.array([one.iteration_time_s for one in known])
    uneven = times * np.exp([0.4, -0.4, 0.3, -0.3, 0.0, 0.1])
    tuned = host_tuning(SETTING, NAMES, known, uneven).applied(prediction())
    assert tuned.ends is not None
    assert tuned.ends[-1, 1] / tuned.iteration_time_s > 1.5
    narrow = tuning(1.0).applied(prediction())
    assert narrow.ends is not None
    np.testing.assert_allclose(narrow.ends, prediction().ends)


def test_intervals_for_any_host_hold_what_hosts_differ_by() -> None:
    """Times alone, and never less than before."""
    usual, widened = prediction(), on_any_host(prediction())
    assert widened.ends is not None and usual.ends is not None
    assert widened.targets.values.tolist() == usual.targets.values.tolist()
    np.testing.assert_allclose(widened.ends[0], usual.ends[0])  # an amount
    assert (widened.ends[:, 0] <= usual.ends[:, 0]).all()
    assert (widened.ends[:, 1] >= usual.ends[:, 1]).all()
    assert widened.ends[-1, 1] >= 20.0 * np.exp(1.645 * HOSTS_DIFFER)
    assert on_any_host(prediction(ends=None)).ends is None
    endless = usual.ends.copy()
    endless[-1, 1] = np.inf
    kept = on_any_host(prediction(ends=endless)).ends
    assert kept is not None and kept[-1].tolist() == endless[-1].tolist()


def test_the_constant_is_what_was_measured() -> None:
    """On the workloads that were measured on two hosts."""
    name = SETTING.replace("/", "_")
    logs = logs_of(
        read_times(DATASETS / "runs" / "other-hosts" / f"{name}.csv"),
        read_dataset(DATASETS / "settings" / name),
    )
    assert len(logs) == 12
    assert np.sqrt(np.mean(logs**2)) == pytest.approx(HOSTS_DIFFER, abs=0.005)


def test_the_file_is_read_as_written(tmp_path: Path) -> None:
    """Anything else is refused in one line."""
    file = tmp_path / "host.json"
    write_host(tuning(0.8), file)
    assert read_host(file) == tuning(0.8)
    for text in ("", "[]", "{}", file.read_text().replace('"net0"', "7")):
        file.write_text(text)
        with pytest.raises(ConfigError, match="driple measure --calibrate"):
            read_host(file)
    with pytest.raises(ConfigError, match="cannot read the host"):
        read_host(tmp_path / "none.json")


def test_what_no_host_has_is_refused() -> None:
    """Few workloads, times of nothing, and the answer for another setting."""
    known, times = [prediction()] * 3, np.ones(3)
    with pytest.raises(ConfigError, match="by 4 workloads or more, got 3"):
        host_tuning(SETTING, NAMES[:3], known, times)
    with pytest.raises(ConfigError, match="above 0"):
        host_tuning(SETTING, NAMES[:3], known, 0 * times)
    with pytest.raises(ConfigError, match="computing_factor"):
        replace(tuning(1.0), computing_factor=0.0)
    with pytest.raises(ConfigError, match="the answer is for CPU-P2w2"):
        tuning(1.0).applied(prediction(setting="CPU-P2w2/ho-200M"))
