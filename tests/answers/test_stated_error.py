"""The stated error belongs to the answer: same task, network, cluster, precision, device."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from random import Random

import numpy as np
import pytest

from driple.answers.checked_runs import (
    CheckedRun,
    RunColumns,
    shipped_run_columns,
    size_class,
)
from driple.answers.error_scale import ErrorScale, shipped_scale
from driple.answers.op_mix import MIX_KINDS, distance_of, network_of
from driple.answers.stated_error import JobKind, StatedError, job_kind, stated_error
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.graph import read_graph
from driple.jobs.load import JobOptions, load_job
from driple.remarks import Remark
from driple.render.errors_stated import stated_error_sentence
from driple.render.remarks import sentence
from scripts.fits.checked import with_distances, without_repeats
from scripts.fits.checked_files import runs_to_json
from scripts.fits.coverage import coverage_of, cross_conformal
from tests.answers.checked import CONV, checked_run, mix_of

ROOT = Path(__file__).parents[2]


def runs_of(text: str) -> tuple[CheckedRun, ...]:
    """Runs of a file."""
    return RunColumns.from_json(text).runs()


ATTENTION = mix_of(matmul=0.6, attention=0.2, norm=0.1, elementwise=0.1)
CNN, HALF = JobKind(mix=CONV), JobKind(half=True, mix=CONV)


FAMILIES = ("resnet", "vgg", "alexnet", "inception", "densenet", "googlenet")
RUNS = [
    run
    for family, share in zip(FAMILIES, (0.5, 0.7, 0.9, 1.1, 1.3, 1.5), strict=True)
    for run in (
        checked_run("single", "V100", 4 * share, family=family),
        checked_run("single", "K80", 40 * share, family=family),
        checked_run("single", "K80", 80 * share, family=family, half=True),
        checked_run("single", "V100", 20 * share, family=family, held_out="device"),
        checked_run("ring", "K80", 10 * share, family=family, workers=4, link="PCIe3"),
        checked_run("ring", "K80", 30 * share, family=family, workers=8, several=True, link="10G"),
        checked_run("servers", "K80", 12 * share, family=family, workers=2, servers=1, several=True,
               link="10G"),
        checked_run("single", "V100", 6 * share, family=f"{family}-vit", mix=ATTENTION),
    )
]  # fmt: skip


def stated(name: str, job: JobKind = CNN) -> StatedError:
    setting = Setting.parse(name if "/" in name else f"{name}-R1/ho-PCIe")
    return stated_error(setting, job, runs=RUNS)


def test_each_device_states_its_own_error_in_any_order() -> None:
    shuffled = Random(0).sample(RUNS, len(RUNS))
    errors = {device: stated(device) for device in ("V100", "K80", "H100")}
    medians = [errors[device].median_pct or 0.0 for device in ("V100", "H100", "K80")]
    assert medians == sorted(medians)
    for device, error in errors.items():
        alone = Setting.parse(f"{device}-R1/ho-PCIe")
        assert stated_error(alone, CNN, runs=shuffled).p90_pct == pytest.approx(error.p90_pct)
        low, high = error.interval_of(2.0) or (0.0, 0.0)
        assert low < 2.0 <= high
    assert "too few are of H100" in stated_error_sentence(errors["H100"])
    assert "one device (K80)" in stated_error_sentence(errors["K80"])


def test_precision_scheme_and_number_of_devices_count() -> None:
    assert (stated("K80", HALF).median_pct or 0) > (stated("K80").median_pct or 0)
    ring, network = stated("K80-R4/ho-PCIe"), stated("K80-R8/ho-10G")
    assert (network.median_pct or 0) > (ring.median_pct or 0)
    assert "in one machine" in stated_error_sentence(ring)
    # A step with servers holds one of a device alone, whose error is larger here.
    assert stated("K80-P1w2/ho-10G").p90_pct == pytest.approx(stated("K80").p90_pct)
    for name, why in (
        ("K80-R8/ho-PCIe", "no published run of rings in one machine has more than 4 devices"),
        ("K80-R8/ho-40G", "faster network than 10G"),
        ("H100-R4/ho-NVLink", "go over PCIe, this one over NVLink-H100"),
        ("K80-P2w2/ho-10G", "up to 1 of them and 2 workers, this setting 2 and 2"),
        ("K80-P1w2/ho-PCIe", "parameter servers are on several machines"),
        ("K80-P1w2/ho-40G", "networks of up to 10G"),
    ):
        error = stated(name)
        assert not error.is_checked and error.to_dict()["checked"] is False, name
        assert error.nearest_because is not None
        reason = sentence(error.nearest_because)
        assert why in reason
        assert stated_error_sentence(error).startswith(f"{reason}; of the nearest kind: ")
    assert "in this precision" in stated_error_sentence(stated("K80-R4/ho-PCIe", HALF))
    assert "in this precision" in stated_error_sentence(stated("K80-P1w2/ho-10G", HALF))


def test_another_framework_tells_where_a_jobs_own_has_no_such_ring() -> None:
    """Rings in half precision of PyTorch state the error of TensorFlow's, which has none."""
    own = [run for run in RUNS if not run.half]
    other = [
        checked_run(
            "ring",
            "V100",
            30.0,
            workers=4,
            link="PCIe3",
            half=True,
            family=family,
            framework="pytorch",
        )
        for family in FAMILIES
    ]
    setting, job = Setting.parse("4xV100/PCIe3"), replace(HALF, framework="tensorflow")
    assert not stated_error(setting, job, runs=own).is_checked
    error = stated_error(setting, job, runs=[*own, *other])
    assert error.runs_median_pct == pytest.approx(30.0)
    assert "of all frameworks, as tensorflow has none such" in sentence(error.runs)
    mine = [
        replace(run, run=replace(run.run, framework="tensorflow"), log_ratio=log(1.1))
        for run in other
    ]
    assert stated_error(setting, job, runs=[*own, *other, *mine]).runs_median_pct == pytest.approx(
        10.0
    )


def width_of(error: StatedError) -> float:
    low, high = error.interval_of(1.0) or (1.0, 1.0)
    return high / low


def test_a_published_job_is_no_surer_than_new_sizes_of_known_families() -> None:
    """Families whose ops others have are predicted well without them; their new sizes are not."""
    alone = Setting.parse("V100-R1/ho-PCIe")
    families = [
        checked_run("single", "V100", sign * (2 if at < 10 else 20), family=f"family{at}",
               distance=0.0 if at < 10 else 0.2)
        for at in range(20) for sign in (1, -1)
    ]  # fmt: skip
    sizes = [
        checked_run("single", "V100", sign * 30, family=f"family{at}", held_out="size",
                    end="largest")
        for at in range(10) for sign in (1, -1)
    ]  # fmt: skip
    sure = stated_error(alone, CNN, runs=families)
    error = stated_error(alone, CNN, runs=[*families, *sizes])
    assert log(width_of(sure)) < 0.5 * log(width_of(error))
    low, high = error.interval_of(1.0) or (1.0, 1.0)
    assert low <= 1.01 / 1.3 and high >= 0.99 / 0.7  # all errors of sizes are in it
    assert (error.p90_pct or 0) >= 29.9
    assert error.num_runs == sure.num_runs  # a run counts once
    # Sizes that are predicted as well as families leave the error as it is.
    close = [replace(run, log_ratio=run.log_ratio / 15) for run in sizes]
    assert width_of(stated_error(alone, CNN, runs=[*families, *close])) < width_of(sure)


def test_a_device_without_runs_is_no_surer_than_one_with_runs() -> None:
    """New sizes of its runs' families were not left out of the fits without a device."""
    unknown = [
        checked_run("single", "K80", sign * 1, family=family, held_out="device")
        for family in FAMILIES for sign in (1, -1)
    ]  # fmt: skip
    known = [
        checked_run("single", "K80", sign * 25, family=family, held_out=held_out)
        for family in FAMILIES for sign in (1, -1) for held_out in ("model", "size")
    ]  # fmt: skip
    new, old = (
        stated_error(Setting.parse(f"{device}-R1/ho-PCIe"), CNN, runs=[*unknown, *known])
        for device in ("H100", "K80")
    )
    assert "too few are of H100" in stated_error_sentence(new)
    assert "too few" not in stated_error_sentence(old)
    assert width_of(new) >= 0.99 * width_of(old) > 1.5
    assert width_of(stated_error(Setting.parse("H100-R1/ho-PCIe"), CNN, runs=unknown)) < 1.1


def test_runs_of_a_card_speak_for_the_same_card_with_more_memory() -> None:
    """The V100 of 32 GB is the one of 16 GB in all that decides the time of a step."""
    more, less = stated("V100-PCIe-32G"), stated("V100")
    assert more.interval_of(1.0) == less.interval_of(1.0) != stated("H100").interval_of(1.0)


def test_the_nearest_of_few_families_does_not_speak_for_all_near_jobs() -> None:
    """Of six families, the one whose ops others have happened to be predicted well."""
    alone = Setting.parse("V100-R1/ho-PCIe")
    runs = [
        checked_run("single", "V100", error, family=family, distance=distance)
        for family, error, distance in zip(
            FAMILIES, (1, -30, 40, -35, 30, -40), (0.0, 0.1, 0.1, 0.1, 0.1, 0.1), strict=True
        )
        for _ in range(5)
    ]
    nearest = stated_error(alone, CNN, runs=runs)
    assert width_of(nearest) > 1.4 / 0.65
    assert (nearest.median_pct or 0) > 20


def test_many_runs_of_one_family_are_no_evidence_of_a_device() -> None:
    """A device's own runs draw the error of all towards theirs by how many families they are of."""
    others = [
        checked_run("single", "T4", sign * 30, family=f"family{at}")
        for at in range(12) for sign in (1, -1)
    ]  # fmt: skip
    alone = Setting.parse("V100-R1/ho-PCIe")

    def of_own(families: int, each: int) -> float:
        own = [
            checked_run("single", "V100", sign, family=family)
            for family in FAMILIES[:families] for _ in range(each) for sign in (1, -1)
        ]  # fmt: skip
        return width_of(stated_error(alone, CNN, runs=[*others, *own]))

    assert of_own(2, 3) > 1.25 > of_own(6, 3)
    assert of_own(2, 50) > of_own(6, 50)


def test_a_device_alone_is_known_by_two_families_of_networks_like_the_jobs() -> None:
    """Runs of one device mostly do not speak for another that ran something else."""
    alone = Setting.parse("H100-R1/ho-PCIe")

    def on_h100(families: int) -> StatedError:
        transformers = [
            checked_run("single", "H100", 5, family=f"{family}-vit", mix=ATTENTION)
            for family in FAMILIES
        ]
        own = [checked_run("single", "H100", 4, family=family) for family in FAMILIES[:families]]
        return stated_error(alone, CNN, runs=[*RUNS, *transformers, *own])

    left_out = stated("H100").runs_median_pct
    assert left_out == pytest.approx(20, abs=5)
    assert [on_h100(n).runs_median_pct for n in (0, 1)] == [left_out, left_out]
    assert "too few are of H100" in stated_error_sentence(on_h100(1))
    assert (on_h100(2).runs_median_pct or 99) < 20
    assert width_of(on_h100(2)) < width_of(on_h100(1))
    assert "too few" not in stated_error_sentence(on_h100(2))


def test_few_families_on_such_clusters_are_seen_among_those_of_their_scheme() -> None:
    """Two families alone would look surer than all of one device."""
    few = [
        checked_run("ring", "K80", off, family=family, workers=8, several=True, link="10G")
        for family, off in (("a", 3.0), ("b", 3.5), ("a", 3.2), ("b", 3.4), ("a", 3.3))
    ]
    cluster = Setting.parse("K80-R8/ho-10G")
    alone = stated_error(cluster, CNN, runs=few)
    inside = [run for run in RUNS if run.kind == "ring" and not run.several_machines]
    error = stated_error(cluster, CNN, runs=[*few, *inside])
    assert (error.p90_pct or 0) > 1.5 * (alone.p90_pct or 0)
    assert error.num_runs == 5
    assert "on several machines" in sentence(error.runs)


def test_a_tuned_device_states_no_smaller_error_than_its_own_runs() -> None:
    setting = Setting.parse("1xV100")
    usual = stated_error(setting, CNN, runs=RUNS)
    for tuned_pct, is_larger in ((60.0, True), (0.1, False)):
        facts = {**setting.worker.facts, "tuned_p90_pct": tuned_pct}
        tuned = replace(setting, worker=replace(setting.worker, facts=facts))
        error = stated_error(tuned, CNN, runs=RUNS)
        assert error.p90_pct == pytest.approx(tuned_pct if is_larger else usual.p90_pct)
        assert error.low_factor is not None and usual.low_factor is not None
        assert (error.low_factor < usual.low_factor) == is_larger
        assert (error.high_factor == pytest.approx(2.5)) == is_larger
        assert ("left out of the tuning" in stated_error_sentence(error)) == is_larger
        assert error.tuned == (("p90_pct",) if is_larger else ())
        own = (usual.runs_median_pct, usual.runs_p90_pct)
        assert (error.runs_median_pct, error.runs_p90_pct) == own


def test_a_tuned_device_states_no_smaller_median_than_its_own_runs() -> None:
    alone = Setting.parse("V100-R1/ho-PCIe")
    tuned = replace(
        alone, worker=replace(alone.worker, facts={**alone.worker.facts, "tuned_median_pct": 42.0})
    )
    usual = stated_error(alone, CNN, runs=RUNS).median_pct
    assert usual is not None and usual < 42
    error = stated_error(tuned, CNN, runs=RUNS)
    assert (error.median_pct, error.tuned) == (42.0, ("median_pct",))
    assert "(the median is that of the runs that the device is tuned to" in stated_error_sentence(
        error
    )


def test_an_interval_that_says_nothing_is_not_stated() -> None:
    """Its ends are beyond what any step could take; that it is a guess is said all the same."""
    wide = StatedError(
        num_runs=9,
        runs=Remark.of_text("runs"),
        median_pct=300,
        p90_pct=3600,
        low_factor=1e-3,
        high_factor=2.0,
    )
    assert wide.interval_of(1.0) is None and wide.is_guess
    assert replace(wide, low_factor=1e-2).interval_of(1.0) == (0.01, 2.0)


def test_a_guess_is_an_answer_like_badly_predicted_ones() -> None:
    usual = StatedError(
        num_runs=9,
        runs=Remark.of_text("runs"),
        median_pct=30,
        p90_pct=90,
        low_factor=0.5,
        high_factor=2,
    )
    assert not usual.is_guess
    assert replace(usual, high_factor=10.1).is_guess
    assert replace(usual, median_pct=101).is_guess
    assert not StatedError(runs=Remark.of_text("none")).is_guess


def test_a_transformer_states_an_error_of_a_cnn_as_that_of_the_nearest_kind() -> None:
    vit = JobKind(network="transformer", mix=ATTENTION)
    error = stated("V100", vit)
    assert (error.num_runs, "of transformer networks" in sentence(error.runs)) == (6, True)
    only_cnns = [run for run in RUNS if run.mix == CONV]
    none = stated_error(Setting.parse("1xV100"), vit, runs=only_cnns)
    assert not none.is_checked
    assert "are of convolutional networks, this one is transformer" in stated_error_sentence(none)
    assert "is compiled" in stated_error_sentence(stated("V100", replace(CNN, compiled=True)))


@pytest.mark.parametrize(
    ("name", "job", "nearest"),
    [
        ("K80-R8/ho-10G", replace(CNN, compiled=True), "K80-R8/ho-10G"),
        ("K80-R4/ho-PCIe", replace(CNN, compiled=True), "K80-R4/ho-PCIe"),
        ("K80-R8/ho-PCIe", CNN, "K80-R4/ho-PCIe"),
        ("K80-P2w2/ho-10G", CNN, "K80-P1w2/ho-10G"),
    ],
)
def test_the_nearest_kind_states_a_wider_interval(name: str, job: JobKind, nearest: str) -> None:
    """Both ends are further off than those of the kind that stands in."""
    far, near = stated(name, job), stated(nearest, CNN)
    assert far.nearest_because and near.is_checked
    assert far.low_factor and far.high_factor and near.low_factor and near.high_factor
    assert far.low_factor <= near.low_factor and far.high_factor >= near.high_factor
    assert far.high_factor / far.low_factor > near.high_factor / near.low_factor


def test_more_devices_than_any_run_widen_the_interval_further() -> None:
    eight, thousand = stated("K80-R8/ho-PCIe"), stated("K80-R800/ho-PCIe")
    assert eight.high_factor and thousand.high_factor and eight.low_factor and thousand.low_factor
    assert thousand.high_factor / thousand.low_factor > eight.high_factor / eight.low_factor


def test_a_forward_pass_never_stands_in_for_training() -> None:
    forward = stated("V100", replace(CNN, task="forward"))
    assert (forward.num_runs, forward.low_factor, forward.nearest_because) == (0, None, None)
    assert "is of forward passes" in stated_error_sentence(forward)


def test_intervals_widen_with_the_distance() -> None:
    runs = [
        checked_run("single", "V100", sign * (3 + 100 * distance), family=f"{family}{distance}",
               distance=distance)
        for family in FAMILIES for distance in (0.0, 0.1, 0.2, 0.3) for sign in (1, -1)
    ]  # fmt: skip
    widths = []
    for other in (0.0, 0.1, 0.3, 0.6):
        mix = mix_of(dense_conv=0.7 * (1 - other), norm=0.2 * (1 - other),
                     elementwise=0.1 * (1 - other), depthwise_conv=other)  # fmt: skip
        job = replace(CNN, mix=mix)
        widths.append(width_of(stated_error(Setting.parse("V100-R1/ho-PCIe"), job, runs=runs)))
    assert widths == sorted(widths)
    assert widths[-1] > widths[0] * 1.5


def test_cpus_were_measured_by_setting() -> None:
    error = stated("CPU-P1w2/ho-200M")
    assert error.num_runs == 67
    assert "measured on CPU-P1w2/ho-200M" in stated_error_sentence(error)
    assert (error.runs_median_pct, error.runs_p90_pct) == (error.median_pct, error.p90_pct)
    assert stated_error_sentence(error).startswith("the simulator's error on 67 workloads")
    assert "CPU-P1w3/ho-200M" in stated_error_sentence(stated("CPU-P1w2/ho-1G"))


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("bert-base", "transformer"),
        ("mobilenet_v2", "convolutional"),
        ("timm:vit_tiny_patch16_224", "transformer"),
        ("resnet50", "convolutional"),
    ],
)
def test_a_job_is_known_by_its_ops(name: str, network: str) -> None:
    pytest.importorskip("torch")
    if name.startswith("timm:") and find_spec("timm") is None:
        pytest.skip("timm is not installed")
    kind = job_kind(load_job(name, JobOptions(batch_size=2)).graph)
    assert (kind.network, kind.task, kind.framework) == (network, "train", "pytorch")
    assert sum(kind.mix) == pytest.approx(1)
    depthwise = kind.mix[MIX_KINDS.index("depthwise_conv")]
    assert (depthwise > 0.05) == (name == "mobilenet_v2")


def test_a_tensorflow_graph_is_of_its_framework() -> None:
    kind = job_kind(read_graph(ROOT / "datasets/examples/resnet50.pbtxt"))
    assert (kind.framework, kind.network, kind.half) == ("tensorflow", "convolutional", False)


def test_half_precision_is_that_of_the_products() -> None:
    torch = pytest.importorskip("torch")
    from driple.graph.torch.torch_graph import graph_of_step

    with torch.device("meta"):
        model = torch.nn.Conv2d(64, 256, 3).bfloat16()
        images = torch.zeros(32, 64, 56, 56, dtype=torch.bfloat16)
    graph = graph_of_step(model, images, lambda outputs: outputs.sum())
    assert job_kind(graph).half
    bare = replace(
        graph, signatures=tuple(replace(one, kind="mul") for one in graph.signatures),
    )  # fmt: skip
    assert "no convolution or matrix product" in sentence(job_kind(bare).unlike)


@pytest.mark.parametrize(
    ("dtype", "words"),
    [("float64", "float64, timed as float32"), ("complex64", "complex numbers, timed as real")],
)
def test_products_that_no_rate_is_known_of_state_no_error(dtype: str, words: str) -> None:
    torch = pytest.importorskip("torch")
    from driple.graph.torch.torch_graph import graph_of_step

    with torch.device("meta"):
        model = torch.nn.Linear(64, 64, dtype=getattr(torch, dtype))
        inputs = torch.zeros(8, 64, dtype=getattr(torch, dtype))
    graph = graph_of_step(model, inputs, lambda outputs: outputs.abs().sum())
    assert words in sentence(job_kind(graph).unlike)
    assert words in stated_error_sentence(stated_error(Setting.parse("1x3090"), graph))


def test_distances_by_hand() -> None:
    assert distance_of(CONV, np.array([CONV, ATTENTION])) == pytest.approx([0, 0.8])
    assert network_of(ATTENTION) == "transformer"
    assert network_of(mix_of(matmul=0.9, elementwise=0.1)) == "other"
    assert network_of(mix_of(matmul=0.9, softmax=0.001, elementwise=0.099)) == "other"  # its loss
    assert network_of(mix_of(matmul=0.87, softmax=0.03, elementwise=0.1)) == "transformer"
    assert network_of(mix_of(matmul=0.5, recurrent=0.4)) == "recurrent"
    near = mix_of(dense_conv=0.6, norm=0.3, elementwise=0.1)
    runs = [
        checked_run("single", "V100", 1, family="a"),
        checked_run("single", "V100", 1, family="a", mix=near),
        checked_run("single", "V100", 1, family="b", mix=near),
        checked_run("single", "V100", 1, family="c", mix=ATTENTION),
    ]  # fmt: skip
    assert [run.distance for run in with_distances(runs)] == pytest.approx([0.1, 0, 0, 0.8])
    far = mix_of(dense_conv=0.2, norm=0.6, elementwise=0.2)
    family = [
        checked_run("single", "V100", 1, family="a", mix=mix, held_out=held_out, end=end)
        for held_out in ("model", "size")
        for mix, end in ((CONV, "largest"), (near, ""), (far, "smallest"))
        if held_out == "model" or end
    ]
    other = checked_run("single", "V100", 1, family="c", mix=ATTENTION)
    distances = {
        (run.held_out, run.end): run.distance
        for run in with_distances([*family, other])
        if run.family == "a"
    }
    # Without its family a job is far from all others; without its size, near the one between.
    assert distances["model", "largest"] == pytest.approx(0.8)
    assert distances["size", "largest"] == pytest.approx(0.1)
    assert distances["size", "smallest"] == pytest.approx(0.4)
    (merged,) = without_repeats([runs[0], replace(runs[0], log_ratio=log(1.21))])
    assert exp(merged.log_ratio) == pytest.approx((1.01 * 1.21) ** 0.5)
    assert merged.weight == 2
    assert [size_class(n) for n in (1, 2, 8, 9, 65)] == [
        "one device", "2 to 8 devices", "2 to 8 devices", "9 to 64 devices",
        "more than 64 devices",
    ]  # fmt: skip


def scale_of(runs: Sequence[CheckedRun]) -> ErrorScale:
    return ErrorScale.of(RunColumns.of(runs))


def test_ends_are_quantiles_of_residuals_that_grow_with_the_distance() -> None:
    """Normal residuals of a size exp(-3 + 4 distance): the ends are 1.645 sizes from 1."""
    random = np.random.default_rng(1)
    runs = [
        replace(
            checked_run("single", "V100", 0, family=f"family{at}", distance=distance),
            log_ratio=float(random.normal() * np.exp(-3 + 4 * distance)),
        )
        for at, distance in enumerate(random.uniform(0, 0.4, 1200))
    ]
    scale = scale_of(runs)
    for distance in (0.1, 0.3):
        spread = scale.spread("train", (), distance, known=True)
        size = np.exp(-3 + 4 * distance)
        assert np.log(spread.high) == pytest.approx(1.645 * size, rel=0.2)
        assert np.log(spread.low) == pytest.approx(-1.645 * size, rel=0.2)
        assert spread.p90 == pytest.approx(1.645 * size, rel=0.3)
        assert spread.median == pytest.approx(0.674 * size, rel=0.3)


def test_a_device_that_no_fit_has_seen_adds_what_devices_left_out_are_off_by() -> None:
    """Runs on left-out devices are 40 % off, others 10 %: nine of ten of the former are inside."""
    known = [
        checked_run("single", "V100", sign * 10, family=f"family{at}")
        for at in range(20) for sign in (1, -1)
    ]  # fmt: skip
    left_out = [
        checked_run("single", device, sign * 40, family=family, held_out="device")
        for device, sign in (("K80", 1), ("T4", -1)) for family in FAMILIES
    ]  # fmt: skip
    scale = scale_of([*known, *left_out])
    seen = scale.spread("train", (), 0.0, known=True)
    unseen = scale.spread("train", (), 0.0, known=False)
    assert 0.8 < seen.low < 1 < seen.high < 1.25
    assert unseen.low <= 1 / 1.4 and unseen.high >= 1 / 0.6
    assert unseen.p90 > 2 * seen.p90
    assert scale_of(known).unseen_device == 0


def test_no_run_is_judged_by_a_scale_that_it_decides() -> None:
    """A trait of one family alone: its large residuals lie outside, as its size is not known."""
    usual = [
        checked_run("single", "V100", sign * 5, family=f"family{at}")
        for at in range(60) for sign in (1, -1)
    ]  # fmt: skip
    odd = [
        checked_run("single", "K80", sign * 60, family="odd") for sign in (1, -1) for _ in range(10)
    ]
    scale = scale_of([*usual, *odd]).tasks["train"]
    assert scale.high > 3 and scale.effects["device K80"] > 0  # one in seven runs is of the odd one


def test_the_shipped_scale_is_that_of_the_shipped_runs() -> None:
    fitted, shipped = ErrorScale.of(shipped_run_columns()), shipped_scale()
    assert shipped.unseen_device == pytest.approx(fitted.unseen_device, abs=1e-4)
    for task, scale in fitted.tasks.items():
        known = shipped.tasks[task]
        for name in ("base", "slope", "low", "high", "median", "p90"):
            assert getattr(known, name) == pytest.approx(getattr(scale, name), abs=1e-3)
        for trait, effect in scale.effects.items():
            assert known.effects.get(trait, 0.0) == pytest.approx(effect, abs=1e-3)


def test_intervals_of_held_out_families_hold_in_nine_of_ten() -> None:
    """Errors grow with the distance; each family is new to the intervals that it is checked by."""
    random = np.random.default_rng(3)
    runs = []
    for number in range(120):
        other = random.uniform(0, 0.4)
        mix = mix_of(dense_conv=0.9 - other, depthwise_conv=other, norm=0.1)
        of_family = random.normal() * (0.03 + 0.2 * other)
        runs += [
            replace(
                checked_run("single", "V100", 0, family=f"family{number}", mix=mix),
                log_ratio=float(of_family + 0.02 * random.normal()),
                distance=other,
            )
            for _ in range(3)
        ]
    (coverage,) = [one for one in coverage_of(cross_conformal(runs)) if one.by == "all"]
    assert coverage.runs == 360
    assert 85 <= coverage.coverage_pct <= 95
    assert 85 <= coverage.below_p90_pct <= 95


def test_a_size_is_checked_without_any_error_of_its_family() -> None:
    """The interval of a new size comes from other families, at the distance from known sizes."""
    families = [f"family{number}" for number in range(12)]
    runs = [
        checked_run("single", "V100", sign * 10, family=family, held_out=held_out, end=end)
        for family in families
        for held_out, end in (("model", "largest"), ("size", "largest"), ("model", ""))
        for sign in (1, -1)
    ]
    odd = [
        replace(run, log_ratio=10 * run.log_ratio) if run.family == "family0" else run
        for run in runs
    ]
    folds = {family: number for number, family in enumerate(families)}
    checks = [one for one in cross_conformal(odd, folds) if one.run.held_out == "size"]
    assert len(checks) == 24
    inside = {family: {one.is_inside for one in checks if one.run.family == family}
              for family in families}  # fmt: skip
    assert inside["family0"] == {False}
    assert all(inside[family] == {True} for family in families[1:])
    usual = cross_conformal(runs, folds)
    (before,) = {one.stated for one in usual if one.run.family == "family0"
                 and one.run.held_out == "size"}  # fmt: skip
    (after,) = {one.stated for one in checks if one.run.family == "family0"}
    assert before == after
    (line,) = [one for one in coverage_of(checks) if one.by == "family" and one.group == "family0"]
    assert (line.held_out, line.runs, line.coverage_pct) == ("size", 2, 0.0)


def test_a_size_is_asked_at_its_distance_from_the_sizes_that_its_fit_had_seen() -> None:
    runs = [
        checked_run("single", "V100", sign * (5 if near else 50), family=f"family{number}",
               distance=0.0 if near else 0.3)
        for number in range(24) for sign in (1, -1) for near in (number % 2,)
    ]  # fmt: skip
    folds = {f"family{number}": number for number in range(24)}
    widths = []
    for distance in (0.0, 0.3):
        new = checked_run("single", "V100", 5, family="family0", held_out="size", end="largest",
                     distance=distance)  # fmt: skip
        (check,) = [one for one in cross_conformal([*runs, new], folds) if one.run == new]
        widths.append(width_of(check.stated))
    assert widths[1] > 1.5 * widths[0]


def test_a_file_without_sizes_still_loads() -> None:
    """Files made before sizes were left out lack the column, and answers state errors by them."""
    values = json.loads(runs_to_json(RUNS))
    values["columns"].pop("end")
    back = runs_of(json.dumps(values))
    assert {run.end for run in back} == {""}
    alone = Setting.parse("V100-R1/ho-PCIe")
    assert stated_error(alone, CNN, runs=back).num_runs == stated("V100").num_runs > 0


def test_runs_come_back_from_the_file_and_a_wrong_one_is_refused() -> None:
    back = runs_of(runs_to_json(RUNS))
    assert [run.family for run in back] == [run.family for run in RUNS]
    assert [run.log_ratio for run in back] == pytest.approx(
        [run.log_ratio for run in RUNS], abs=1e-4
    )
    assert back[0].mix == pytest.approx(CONV)
    for odd in ("", "[]", json.dumps({"format": 1}), runs_to_json(RUNS).replace("half", "other")):
        with pytest.raises(ConfigError, match=r"checked_runs\.json"):
            runs_of(odd)


def test_the_installed_runs_hold_every_kind_of_cluster_and_of_held_out_part() -> None:
    runs: Sequence[CheckedRun] = shipped_run_columns().runs()
    assert {"single", "ring", "servers"} <= {run.kind for run in runs}
    assert {run.held_out for run in runs} - {"size"} == {"model", "device"}
    assert {run.end for run in runs if run.held_out == "size"} <= {"largest", "smallest"}
    assert {run.framework for run in runs} <= {"tensorflow", "pytorch"}
    assert all(len(run.mix) == len(MIX_KINDS) and run.weight > 0 for run in runs)


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("device", ["A100", "V100", "H100"])
def test_several_machines_are_never_surer_than_one(device: str, half: bool) -> None:
    """Neither end of the interval is nearer, by the published runs themselves."""
    mixes = {run.mix for run in shipped_run_columns().runs() if run.kind == "ring"}
    compared = 0
    for mix in sorted(mixes)[:40]:
        kind = JobKind(framework="pytorch", network=network_of(mix), half=half, mix=mix)
        single, four = (
            stated_error(Setting.parse(name), kind)
            for name in (f"8x{device}/NVLink", f"4x8x{device}/NVLink+100G")
        )
        if single.low_factor is None or four.low_factor is None:
            continue
        assert single.high_factor is not None and four.high_factor is not None
        assert four.low_factor <= single.low_factor and four.high_factor >= single.high_factor
        compared += 1
    assert compared or device == "V100"


def test_the_error_of_one_job_on_one_setting_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each method of `--method all` needs it; the second asks for no table."""
    first = stated_error(Setting.parse("A100-R8/ho-NVLink"), CNN)

    def never(*_: object) -> None:
        raise AssertionError("looked up again")

    monkeypatch.setattr("driple.answers.stated_error._shipped_table", never)
    assert stated_error(Setting.parse("A100-R8/ho-NVLink"), CNN) == first
