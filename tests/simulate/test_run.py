"""A graph on a setting: same seed same traces, and what more of everything must change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.cluster.setting import Setting
from driple.codec import to_dict
from driple.dataset import graph_hash, read_dataset, read_datasets
from driple.dataset.graph_store import GraphStore
from driple.dataset.graphtable import graphs_to_table
from driple.dataset.simulated import SimulationPlan, simulate_store
from driple.dataset.tables import write_table
from driple.errors import (
    CatalogError,
    ConfigError,
    DatasetError,
    GraphError,
    SettingError,
)
from driple.simulate.calibration import (
    Calibration,
    ClusterErrors,
    LinkEfficiency,
    shipped_calibration,
)
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import Simulation, simulate, simulated_step_s
from driple.trace.provenance import TimeError
from driple.trace.targets import TARGET_NAMES
from tests.simulate.jobs import CALIBRATION, net


def on(name: str, **more: object) -> Simulation:
    graph = net(32, sync=bool(more.pop("sync", False)))
    return simulate(graph, Setting.parse(name), CALIBRATION, num_steps=20, **more)  # type: ignore[arg-type]


def test_same_seed_same_traces_other_seed_others() -> None:
    first, again, other = (on("V100-P1w2/ho-1G", seed=seed) for seed in (3, 3, 4))
    for name, trace in first.traces.items():
        np.testing.assert_array_equal(trace.amount, again.traces[name].amount)
    assert first.targets.flat.tolist() == again.targets.flat.tolist()
    assert first.iteration_time_s != other.iteration_time_s


def test_targets_are_finite_and_the_iteration_takes_time() -> None:
    simulation = on("V100-P1w2/ho-1G", sync=True)
    assert np.isfinite(simulation.targets.flat).all()
    assert (simulation.targets.flat >= 0).all()
    assert simulation.targets.iteration_time_s == pytest.approx(
        simulation.iteration_time_s, rel=0.15
    )


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("2080Ti-P5w5/he-1G", {0: 1, 3: 1, 4: 1}), ("2080Ti-P5w10/he-1G", {0: 1, 5: 1, 6: 2, 8: 2})],
)
def test_targets_are_the_mean_over_workers_beside_other_servers(
    name: str, kinds: dict[int, int]
) -> None:
    """Some 2080 Ti are beside the server that holds nearly all; the first is not."""
    simulation = on(name)
    times_s = [simulation.records[worker].iteration_time_s for worker in kinds]
    assert max(times_s) > 3 * min(times_s)
    mean_s = float(np.average(times_s, weights=list(kinds.values())))
    assert mean_s < 0.8 * times_s[0]
    assert simulation.iteration_time_s == pytest.approx(mean_s)
    # Where workers come one after another, a step may show two bursts.
    assert 0.6 * mean_s < simulation.targets.iteration_time_s < 1.1 * mean_s


@pytest.mark.parametrize("name", ["V100-P1w2/ho-1G", "V100-P1w3/ho-1G", "2080Ti-P5w5/he-1G"])
@pytest.mark.parametrize("sync", [False, True])
def test_two_steps_are_enough(name: str, sync: bool) -> None:
    """However unlike the workers are, each has a step after its first."""
    for seed in range(4):
        simulation = simulate(
            net(32, sync=sync), Setting.parse(name), CALIBRATION, num_steps=2, seed=seed
        )
        assert simulation.iteration_time_s > 0
        assert min(len(record.step_ends_s) for record in simulation.records) >= 2


def test_bytes_on_the_wire_are_those_of_the_graph() -> None:
    simulation = on("V100-P1w2/ho-1G")
    record = simulation.records[0]
    ends = record.step_ends_s
    steps, start_s, end_s = len(ends) - 1, ends[0], ends[-1]
    for meter, nbytes in ((record.tx, "sent_bytes"), (record.rx, "received_bytes")):
        times = np.array([time for time, _ in meter] + [end_s])
        rates = np.array([rate for _, rate in meter])
        spans = np.clip(np.diff(np.clip(times, start_s, end_s)), 0, None)
        passed = float((spans * rates).sum())
        assert steps > 15
        assert passed == pytest.approx(steps * getattr(net(32), nbytes), rel=0.02)


def test_a_slower_link_takes_longer_and_two_servers_less_long() -> None:
    slow, fast = on("V100-P1w2/ho-1G", sync=True), on("V100-P1w2/ho-10G", sync=True)
    two = on("V100-P2w2/ho-1G", sync=True)
    assert slow.iteration_time_s > fast.iteration_time_s
    assert two.iteration_time_s < slow.iteration_time_s


def test_copies_take_most_of_the_time_of_a_fast_link() -> None:
    """A hundred times the rate from 100G on saves what 100G takes, and not the copies."""
    slow, fast, endless = (on(f"V100-P1w2/ho-{rate}G") for rate in (10, 100, 9999))
    assert endless.iteration_time_s < fast.iteration_time_s < slow.iteration_time_s
    both = 1 / (1 / (0.9 * 12.5e9) + 1 / CALIBRATION.role_copy_bytes_per_s)
    assert fast.traces["net_rx"].amount.max() <= 1.001 * both / 1e6  # MB/s


def test_labels_of_a_fast_job_do_not_depend_on_how_long_it_is_watched() -> None:
    """Steps much shorter than a window of NVML: the device is as busy all the time."""
    setting, still = Setting.parse("V100-R4/ho-PCIe"), replace(CALIBRATION, jitter=0.0)
    for steps in (10, 40):
        simulation = simulate(net(32), setting, still, num_steps=steps)
        assert simulation.iteration_time_s < 0.02
        assert simulation.patterns["device_util"] == "B"
        _, burst_s, idle_s = simulation.targets.values[0]
        assert (burst_s, idle_s) == (pytest.approx(simulation.iteration_time_s), 0.0)


def test_memory_is_seen_in_use_longer_than_its_bytes_take_but_never_without_a_kernel() -> None:
    device = CALIBRATION.device("V100")
    times = PreparedJob(net(32)).times(device)
    still = replace(device, efficiency=replace(device.efficiency, memory_activity=1.0))
    assert times.memory_s.sum() > 1.2 * PreparedJob(net(32)).times(still).memory_s.sum()
    assert (times.memory_s <= times.busy_s).all()


def test_rings_have_no_servers_and_one_worker_no_traffic() -> None:
    ring, alone = on("V100-R4/ho-10G"), on("V100-R1/ho-PCIe")
    assert ring.iteration_time_s > alone.iteration_time_s
    assert not alone.traces["net_tx"].amount.any()
    assert ring.traces["net_tx"].amount.any()


def test_sync_workers_end_their_steps_together() -> None:
    records = on("V100-P1w2/ho-1G", sync=True).records
    assert records[0].step_ends_s == records[1].step_ends_s
    records = on("V100-P1w2/ho-1G").records
    assert records[0].step_ends_s != records[1].step_ends_s


def test_unmeasured_devices_take_the_efficiency_of_their_generation_or_the_usual_one() -> None:
    assert CALIBRATION.device("V100").measured_on == "V100"
    assert CALIBRATION.device("V100-SXM2").measured_on == "Volta"
    assert CALIBRATION.device("2080Ti").measured_on == ""
    assert on("2080Ti-P1w2/ho-1G").iteration_time_s > 0


def test_odd_input_is_refused() -> None:
    graph, setting = net(8), Setting.parse("V100-P1w2/ho-1G")
    with pytest.raises(ConfigError, match="num_steps"):
        simulate(graph, setting, CALIBRATION, num_steps=1)
    bare = replace(graph, signatures=(), signature_of=np.zeros(0, dtype=np.int32))
    with pytest.raises(GraphError, match="read it from its GraphDef again"):
        simulate(bare, setting, CALIBRATION)
    with pytest.raises(SettingError, match="no setting is called 'Abacus"):
        simulate(graph, Setting.parse("Abacus-P1w2/ho-1G"), CALIBRATION)


def test_a_calibration_comes_back_from_its_file() -> None:
    text = json.dumps(CALIBRATION.to_dict())
    assert Calibration.from_json(text) == CALIBRATION
    error = CALIBRATION.error_of(Setting.parse("V100"), "PCIe3")
    assert error is not None
    assert error.rows == 20
    assert CALIBRATION.error_of(Setting.parse("V100-R1/ho-PCIe"), "PCIe3") is None
    for odd in (
        "{}",
        "[]",
        "no json",
        text.replace("V100", "Abacus"),
        text.replace('"saving"', '"r"'),
    ):
        with pytest.raises(ConfigError):
            Calibration.from_json(odd)


def test_the_error_that_is_stated_is_the_nearest_that_was_checked() -> None:
    """One of the setting, of the device, of other devices; never less than a device's by itself."""
    p90s = {"one": 20.0, "new": 40.0, "servers": 10.0, "small": 5.0, "here": 30.0}
    of = {
        name: TimeError(rows=9, median_pct=p90 / 4, p90_pct=p90, devices=("V100",))
        for name, p90 in p90s.items()
    }
    checked = ClusterErrors(
        rows=9, median_pct=5.0, p90_pct=p90s["one"], devices=("V100",), new_device=of["new"]
    )
    errors = {
        "single": checked,
        "ring": checked,
        "servers": ClusterErrors(
            rows=9,
            median_pct=2.5,
            p90_pct=p90s["servers"],
            devices=("GTX1060",),
            new_device=of["small"],
            settings={"CPU-P1w3/ho-200M": of["here"]},
        ),
    }
    calibration = replace(CALIBRATION, errors=errors)

    def stated(setting: str, link: str = "PCIe3") -> tuple[float, set[str]]:
        error = calibration.error_of(Setting.parse(setting), link)
        assert error is not None
        return error.p90_pct, set(to_dict(error)) & {"new_device", "one_device", "setting"}

    assert stated("GTX1060-P1w2/ho-1G") == (10.0, set())
    assert stated("V100-P1w2/ho-1G") == (20.0, {"one_device"})
    assert stated("H100-P1w2/ho-1G") == (40.0, {"one_device", "new_device"})
    assert stated("CPU-P1w3/ho-200M") == (30.0, {"setting"})
    assert stated("V100-R4/ho-PCIe") == (20.0, set())
    assert stated("V100-R4/ho-PCIe", "NVLink-H100") == (40.0, {"new_device"})


def test_cpus_and_gpus_have_calibrations_of_their_own() -> None:
    """Kernels of one say nothing of the other's."""
    gpu, cpu = (shipped_calibration(Setting.parse(name)) for name in ("V100", "CPU-P1w3"))
    assert gpu == shipped_calibration()
    assert gpu.model.kernels != cpu.model.kernels
    assert cpu.device("CPU").measured_on == "CPU"
    with pytest.raises(SettingError):
        shipped_calibration(Setting.parse("Abacus-P1w2/ho-1G"))


@pytest.fixture
def store(tmp_path: Path) -> GraphStore:
    """Two workloads of the zoo's names, with small graphs."""
    folder = tmp_path / "graphs"
    folder.mkdir()
    names = ("resnet50/imagenet/b32/sgd/sync", "alexnet/imagenet/b64/adam/async")
    places = {}
    for i, name in enumerate(names):
        graph = net(16 * (i + 1), sync=not i)
        table, encodings = graphs_to_table({graph_hash(graph): graph})
        write_table(table, folder / f"shard-{i}.parquet", encodings)
        places[name] = [f"shard-{i}.parquet", graph_hash(graph)]
    index = {"format": 1, "setting": "V100-P1w2/ho-PCIe", "workloads": places}
    (folder / "index.json").write_text(json.dumps(index))
    return GraphStore.open(folder)


def test_every_graph_on_every_setting(store: GraphStore, tmp_path: Path) -> None:
    settings = tuple(map(Setting.parse, ("V100-P1w2/ho-1G", "V100-P2w2/ho-1G")))
    plan = SimulationPlan(settings=settings, num_steps=20)
    seen: list[tuple[int, int]] = []
    out = tmp_path / "sets"
    folders = simulate_store(
        store,
        plan,
        out,
        calibration=CALIBRATION,
        processes=1,
        progress=lambda *now: seen.append(now),
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]
    assert (out / "zoo" / "graphs.parquet").exists()
    sets = read_datasets(folders)
    assert sets[0].examples[0].graph is sets[1].examples[0].graph
    for setting, folder, data in zip(settings, folders, sets, strict=True):
        assert data.setting == setting.name
        assert {item.label_source for item in data.examples} == {"simulated"}
        assert {item.family for item in data.examples} == {"resnet", "alexnet"}
        assert not (folder / "graphs.parquet").exists()
        assert data.about.iteration_time_error is not None
        assert data.about.iteration_time_error.median_pct == 8.0
        job = next(item for item in data.examples if item.family == "alexnet")
        simulation = simulate(PreparedJob(net(32)), setting, CALIBRATION, num_steps=20)
        assert dict(zip(TARGET_NAMES, job.targets.flat, strict=True)) == pytest.approx(
            dict(zip(TARGET_NAMES, simulation.targets.flat, strict=True))
        )
    assert {path.name for path in out.iterdir()} == {"zoo", *(path.name for path in folders)}


def test_what_was_simulated_before_a_stop_is_not_simulated_again(
    store: GraphStore, tmp_path: Path
) -> None:
    plan = SimulationPlan(settings=(Setting.parse("V100-P1w2/ho-1G"),), num_steps=20)

    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    restated = replace(CALIBRATION, errors={})  # stated errors decide no part
    with pytest.raises(KeyboardInterrupt):
        simulate_store(store, plan, tmp_path, calibration=CALIBRATION, processes=1, progress=stop)
    seen: list[tuple[int, int]] = []
    simulate_store(
        store,
        plan,
        tmp_path,
        calibration=restated,
        processes=1,
        progress=lambda *now: seen.append(now),
    )
    assert seen == [(1, 2), (2, 2)]


def test_labels_of_counters_that_nobody_knows_are_refused() -> None:
    with pytest.raises(CatalogError, match="MI300X has no counter_window_s"):
        SimulationPlan(settings=(Setting.parse("1xMI300X"),))


def test_shared_graphs_lie_beside_the_data_set_or_nowhere(
    store: GraphStore, tmp_path: Path
) -> None:
    plan = SimulationPlan(settings=(Setting.parse("V100-P1w2/ho-1G"),), num_steps=20)
    (folder,) = simulate_store(store, plan, tmp_path / "sets", calibration=CALIBRATION, processes=1)
    about = json.loads((folder / "dataset.json").read_text())
    for odd in ("../zoo", "..", "", "/etc", 3):
        (folder / "dataset.json").write_text(json.dumps({**about, "graphs_in": odd}))
        with pytest.raises(DatasetError, match="a folder beside it"):
            read_dataset(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"jitter": -0.1}, "jitter must be a number at least 0"),
        ({"bridge_bytes_per_s": 0}, "bridge_bytes_per_s must be a number above 0"),
        ({"role_copy_bytes_per_s": 0.0}, "role_copy_bytes_per_s must be above 0"),
        ({"memory_activity": None}, "memory_activity must be a finite number, got None"),
        ({"errors": {"servers": 3}}, "errors.servers must be an object, got 3"),
        ({"errors": {"ring": {"rows": 3, "p90_pct": 1}}}, "errors.ring.median_pct is missing"),
        (
            {"errors": {"single": {"rows": 1, "median_pct": 1, "p90_pct": 1, "new_device": {}}}},
            "errors.single.new_device.rows is missing",
        ),
        (
            {"errors": {"servers": {"settings": {"CPU-P1w2/ho-1G": {"rows": 1, "p90_pct": 1}}}}},
            "errors.servers.rows is missing",
        ),
    ],
)
def test_a_calibration_with_odd_numbers_is_refused(change: dict[str, object], words: str) -> None:
    """When it is read, not when an answer needs them."""
    text = json.dumps({**CALIBRATION.to_dict(), **change})
    with pytest.raises(ConfigError, match=words):
        Calibration.from_json(text)


def test_a_link_that_reaches_nothing_is_refused() -> None:
    for numbers in ((0.0, 0.0, 0.0), (0.5, -1.0, 0.0), (0.5, 0.0, float("nan"))):
        with pytest.raises(ConfigError, match="of a link"):
            LinkEfficiency(*numbers)


@pytest.mark.parametrize("name", ["V100-P1w2/ho-PCIe", "V100-R4/ho-NVLink", "1xA100"])
def test_the_time_of_a_step_alone_is_that_of_the_whole_simulation(name: str) -> None:
    job, setting, calibration = PreparedJob(net(32)), Setting.parse(name), CALIBRATION
    whole = simulate(job, setting, calibration, num_steps=20)
    assert simulated_step_s(job, setting, calibration, num_steps=20) == whole.iteration_time_s
