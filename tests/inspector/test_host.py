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
    write_host,
)
from driple.inspector.predict import Prediction
from driple.inspector.trained_on import TrainedOn
from driple.trace.targets import Targets
from scripts.make_other_hosts import logs_of, read_times

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
SETTING = "CPU-P1w2/ho-200M"
NAMES = [f"net{i}" for i in range(6)]


def prediction(**fields: object) -> Prediction:
    """One with intervals of a tenth to each side."""
    values = np.arange(1.0, 13.0).reshape(4, 3)
    every = np.append(values.ravel(), 20.0)
    made = Prediction(
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
    return replace(made, **fields)  # type: ignore[arg-type]


def tuning(factor: float) -> HostTuning:
    """Of a host that takes a factor for every workload."""
    times = np.linspace(0.1, 1.0, len(NAMES))
    return host_tuning(SETTING, NAMES, times, factor * times)


def test_a_host_that_is_slower_throughout_is_found() -> None:
    """And nothing is left once its factor is known."""
    found = tuning(1.5)
    assert found.time_factor == pytest.approx(1.5)
    assert found.before_pct == pytest.approx(100 / 3)
    assert found.after_pct == pytest.approx(0, abs=1e-9)


def test_durations_scale_and_amounts_stay() -> None:
    """So that amount times duration grows with the step, and gaps too."""
    usual, made = prediction(), tuning(0.5).applied(prediction())
    assert made.targets.values[:, 0].tolist() == usual.targets.values[:, 0].tolist()
    np.testing.assert_allclose(made.targets.values[:, 1:], 0.5 * usual.targets.values[:, 1:])
    assert made.iteration_time_s == pytest.approx(10.0)
    assert made.closed_form_s == pytest.approx(9.0)
    assert made.ends is not None and usual.ends is not None
    np.testing.assert_allclose(made.ends[0], usual.ends[0])
    np.testing.assert_allclose(made.ends[1], 0.5 * usual.ends[1])


def test_what_the_factor_leaves_widens_the_interval_of_the_step_time() -> None:
    """Never narrower than the inspector's own."""
    times = np.linspace(0.1, 1.0, len(NAMES))
    uneven = times * np.exp([0.4, -0.4, 0.3, -0.3, 0.0, 0.1])
    made = host_tuning(SETTING, NAMES, times, uneven).applied(prediction())
    assert made.ends is not None
    assert made.ends[-1, 1] / made.iteration_time_s > 1.5
    narrow = tuning(1.0).applied(prediction())
    assert narrow.ends is not None
    np.testing.assert_allclose(narrow.ends, prediction().ends)


def test_intervals_for_any_host_hold_what_hosts_differ_by() -> None:
    """Times alone, and never less than before."""
    usual, made = prediction(), on_any_host(prediction())
    assert made.ends is not None and usual.ends is not None
    assert made.targets.values.tolist() == usual.targets.values.tolist()
    np.testing.assert_allclose(made.ends[0], usual.ends[0])  # an amount
    assert (made.ends[:, 0] <= usual.ends[:, 0]).all()
    assert (made.ends[:, 1] >= usual.ends[:, 1]).all()
    assert made.ends[-1, 1] >= 20.0 * np.exp(1.645 * HOSTS_DIFFER)
    assert on_any_host(prediction(ends=None)).ends is None
    endless = usual.ends.copy()
    endless[-1, 1] = np.inf
    kept = on_any_host(prediction(ends=endless)).ends
    assert kept is not None and kept[-1].tolist() == endless[-1].tolist()


def test_the_constant_is_what_was_measured() -> None:
    """On the workloads that were measured on two hosts."""
    name = SETTING.replace("/", "_")
    logs = logs_of(
        read_times(DATASETS / "other-hosts" / f"{name}.csv"), read_dataset(DATASETS / name)
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
    times = np.ones(3)
    with pytest.raises(ConfigError, match="by 4 workloads or more, got 3"):
        host_tuning(SETTING, NAMES[:3], times, times)
    with pytest.raises(ConfigError, match="above 0"):
        host_tuning(SETTING, NAMES[:3], times, 0 * times)
    with pytest.raises(ConfigError, match="time_factor"):
        replace(tuning(1.0), time_factor=0.0)
    with pytest.raises(ConfigError, match="the answer is for CPU-P2w2"):
        tuning(1.0).applied(prediction(setting="CPU-P2w2/ho-200M"))
