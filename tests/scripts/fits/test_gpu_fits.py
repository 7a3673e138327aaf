"""What a fit leaves out does not touch it."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from driple.codec import to_dict
from driple.errors import ConfigError
from driple.runs.measured_run import fold_of
from driple.runs.steps import LoadedSteps
from driple.runs.tensorflow_runs import TensorFlowRun
from driple.runs.validation.shipped import Shipped
from scripts.fits import gpu_fits
from scripts.fits.batched import BatchedGraph
from scripts.fits.device_fit import FitOptions
from scripts.fits.family_sizes import FamilySizes, work_of_sample
from scripts.fits.gpu_fits import GpuFits, LeftOut, Tag
from scripts.fits.links import program_of
from scripts.fits.measured_kernels import kernel_steps
from scripts.fits.op_rows import OPS_FILE
from scripts.fits.sizes import RowSizes
from tests.simulate.jobs import net

DEPTHS = {"thin": 2, "thick": 8}
FOLDS = {"thin": 0, "thick": 1}
GRAPHS = {
    (name, False): BatchedGraph.of((16, net(16, depth=depth)), (32, net(32, depth=depth)))
    for name, depth in DEPTHS.items()
}
RUNS = [
    TensorFlowRun(
        source=source, kind="single", job=model, batch_size=16, precision="fp32", compiled=False,
        devices=(device,), num_servers=0, per_machine=1, link="10G", overlapped=True,
        step_s=0.01 * DEPTHS[model],
    )
    for model in DEPTHS
    for device in ("V100", "T4")
    for source in ("one", "other")
]  # fmt: skip


MEASURED = Path(__file__).resolve().parents[3] / "datasets" / "runs" / "measured-h100"


@pytest.fixture(scope="module")
def own() -> list[tuple[str, float]]:
    """Family and work of a sample of all measured kernels."""
    return [(family, work) for family, work, *_ in kernel_steps(MEASURED, 1.0)]


def fits_of(runs: list[TensorFlowRun], folder: Path, cache: Path | None = None) -> GpuFits:
    """Fits to runs of TensorFlow alone, a few steps of the optimizer long."""
    with gzip.open(folder / OPS_FILE, "wt", encoding="utf-8") as file:
        file.write("op,device,dtype,inputs,output,forward_s\n")
    return GpuFits(
        shipped=Shipped(rows=(), folds=FOLDS, held_out=None, steps=LoadedSteps()),
        runs=runs,
        graphs=GRAPHS,
        published=folder,
        cache=cache,
        options=FitOptions(steps=30, width=4),
    )


@pytest.mark.parametrize(
    ("left_out", "field", "value"),
    [
        (LeftOut(fold=1), "job", "thick"),
        (LeftOut(device="T4"), "device", "T4"),
        (LeftOut(source="other"), "source", "other"),
    ],
)
def test_times_that_are_left_out_change_nothing(
    left_out: LeftOut, field: str, value: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    odd = [
        replace(run, step_s=run.step_s * (9 if getattr(run, field) == value else 1)) for run in RUNS
    ]
    plain, changed = (fits_of(runs, tmp_path) for runs in (RUNS, odd))
    before, after = (to_dict(one.without(left_out), where="fit") for one in (plain, changed))
    assert before == after
    before, after = (to_dict(one.without(), where="fit") for one in (plain, changed))
    assert before != after


def test_runs_of_a_size_that_is_left_out_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of TensorFlow have a size among the PyTorch rows of their family, by their work."""
    pytest.importorskip("torch")
    job = GRAPHS["thin", False].job(16, program_of(RUNS[0]))
    thin = work_of_sample(job.kinds, samples=16, task="train")
    known = FamilySizes({"net": (0.5 * thin, 2.0 * thin)})
    monkeypatch.setattr(gpu_fits, "sizes_of", lambda rows, steps: RowSizes(known, ()))
    monkeypatch.setattr(gpu_fits, "FAMILY_OF_TENSORFLOW", dict.fromkeys(DEPTHS, "net"))
    fold = fold_of("net", FOLDS)

    def fit_of(runs: list[TensorFlowRun], left_out: LeftOut) -> object:
        return to_dict(fits_of(runs, tmp_path).without(left_out), where="fit")

    odd = [replace(run, step_s=run.step_s * (9 if run.job == "thick" else 1)) for run in RUNS]
    without_largest, without_smallest = LeftOut(largest=fold), LeftOut(smallest=fold)
    assert fit_of(RUNS, without_largest) == fit_of(odd, without_largest)
    assert fit_of(RUNS, without_smallest) != fit_of(odd, without_smallest)  # thin is no such size


def test_single_ops_are_seen_by_every_fit_but_those_without_their_device() -> None:
    op = Tag(fold=-1, device="V100", source="NeuSight")
    assert not LeftOut(fold=0).hides(op)
    assert LeftOut(device="V100").hides(op)
    assert not LeftOut().hides(op)


def test_nothing_left_to_fit_is_refused(tmp_path: Path) -> None:
    fits = fits_of([run for run in RUNS if run.job == "thick"], tmp_path)
    with pytest.raises(ConfigError, match="no published step is left without fold-1"):
        fits.without(LeftOut(fold=1))


@pytest.fixture(scope="module")
def measured(own: list[tuple[str, float]], tmp_path_factory: pytest.TempPathFactory) -> list[Tag]:
    """What can be left out of runs and measured kernels, sizes being those of the kernels."""
    works = [work for family, work in own if family == "resnet"]
    known = FamilySizes({"resnet": (min(works), max(works))})
    folder = tmp_path_factory.mktemp("measured")
    with gzip.open(folder / OPS_FILE, "wt", encoding="utf-8") as file:
        file.write("op,device,dtype,inputs,output,forward_s\n")
    fits = GpuFits(
        shipped=Shipped(rows=(), folds={}, held_out=None, steps=LoadedSteps()),
        runs=RUNS,
        graphs=GRAPHS,
        published=folder,
        measured=MEASURED,
        spread=False,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_fits, "sizes_of", lambda rows, steps: RowSizes(known, ()))
        table, tags = fits._made()
    assert len(tags) == len(table.rows)
    return tags


def test_measured_kernels_are_left_out_with_their_family_or_device(
    measured: list[Tag], own: list[tuple[str, float]]
) -> None:
    """A fold of families hides its parts of steps, and the device all of them."""
    kernels = [tag for tag in measured if tag.source == "measured"]
    assert len(kernels) == len(measured) - len(RUNS) > 1000
    assert {tag.device for tag in kernels} == {"H100"}
    assert all(LeftOut(device="H100").hides(tag) for tag in kernels)
    hidden = [tag for tag in kernels if LeftOut(fold=3).hides(tag)]
    assert 0 < len(hidden) < len(kernels)
    assert [tag.fold for tag in kernels] == [fold_of(family, {}) for family, _ in own]


def test_measured_kernels_have_the_size_of_their_step(
    measured: list[Tag], own: list[tuple[str, float]]
) -> None:
    works = [work for family, work in own if family == "resnet"]
    assert max(works) > 2 * min(works) > 0
    counts = Counter(tag.end for tag in measured if tag.source == "measured")
    assert counts["largest"] == works.count(max(works))
    assert counts["smallest"] == works.count(min(works))
    fold = fold_of("resnet", {})
    hidden = [tag for tag in measured if LeftOut(largest=fold).hides(tag)]
    assert len(hidden) == counts["largest"]
