"""What ships, by the stage that makes it: the table that `scripts.build` follows.

A path is a glob below the root; `FILE#A/B` is a part of a JSON file, as several stages write parts
of one. Stages stand in the order in which they run. Code is no input: whether a program still
writes what ships is seen by running it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BY_HAND", "SHIPPED", "STAGES", "Stage"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A program, what it reads and what it writes.

    Attributes:
        name: by which `--from` knows it.
        command: after `python -m`.
        reads: what it is made of, of this repository.
        writes: what it makes.
        takes: how long, in words.
        needs: what no checkout has, in words; empty if it runs on a clone.
        sample: a shorter command for a stage of hours; it makes a part of what the stage writes.
        sample_writes: a file of that part.
        fills: whether it fills in pages that people write: one that is gone comes from the last
            commit first.
    """

    name: str
    command: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...]
    takes: str
    needs: str = ""
    sample: str = ""
    sample_writes: str = ""
    fills: bool = False


def _page(
    name: str,
    *,
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
    takes: str = "a minute",
    fills: bool = False,
    sample: str = "",
) -> Stage:
    """A program of scripts/pages; it writes the page of its name, if nothing else is stated.

    `sample` has the options of a shorter command.
    """
    return Stage(
        name=f"{name.replace('_', '-')}-page",
        command=f"scripts.pages.{name}",
        reads=reads,
        writes=writes or (f"docs/{name}.md",),
        takes=takes,
        fills=fills,
        sample=f"scripts.pages.{name} {sample}" if sample else "",
        sample_writes=f"docs/{name}.md" if sample else "",
    )


_PUBLISHED = "datasets/runs/published"
_GPU, _CPU = "driple/simulate/calibration-gpu.json", "driple/simulate/calibration-cpu.json"
_ROWS = (f"{_PUBLISHED}/pytorch_rows.csv.gz", f"{_PUBLISHED}/pytorch_forward.csv.gz")
_STEPS = (f"{_PUBLISHED}/steps/*",)
_FOLDS = (f"{_PUBLISHED}/folds.csv",)
_TENSORFLOW = tuple(
    f"{_PUBLISHED}/{name}"
    for name in (
        "azure_*.csv.gz",
        "lambda_*.csv.gz",
        "neusight_*.csv.gz",
        "pytorch_dataparallel_*.csv.gz",
        "single_gpu_*.csv.gz",
        "tf_cnn_*.csv.gz",
        "zeng_*.csv.gz",
        "driple_paper.csv",
    )
)
_MEMORY = (f"{_PUBLISHED}/memory_rows.csv.gz", f"{_PUBLISHED}/memory_steps.xz")
_OWN = ("datasets/runs/measured-h100/[!R]*", "datasets/runs/measured-h200/[!R]*")  # no README
_GRAPHS = ("datasets/graphs/calibration/*", "datasets/graphs/paper/*")
_KERNELS = ("datasets/runs/kernels/*.csv.xz",)
_FIT = tuple(f"{_GPU}#{part}" for part in ("model/kernels", "model/devices", "links"))
_CPU_FIT = tuple(
    f"{_CPU}#{part}" for part in ("model", "links", "apply_s_per_byte", "memory_activity", "errors")
)
_PARTS = ("scripts/fits/parts/*.xz",)  # fits with a part left out
_HOSTS, _PRESENT = "scripts/fits/hosts.json", "scripts/fits/present.json"
# What every fit with something left out is made of.
_FITTED = (*_ROWS, *_STEPS, *_TENSORFLOW, *_FOLDS, _GRAPHS[0], *_OWN[:1])
_ANSWERS = (
    "driple/analytic/*.json",
    "driple/answers/*.json",
    "driple/catalog/*.toml",
    "driple/memory/*.json",
    "driple/simulate/*.json",
)
_HELD_OUT = (
    f"{_PUBLISHED}/heldout.csv.gz",
    f"{_PUBLISHED}/heldout_tensorflow.csv.gz",
    "driple/answers/checked_runs.json",
    "driple/answers/error_scale.json",
    f"{_GPU}#errors",
)
_SIMULATED_SETTINGS = ("datasets/settings/[!Cs]*/*", "datasets/settings/simulated-cpu/*/*")
_MEASURED_SETTINGS = ("datasets/settings/CPU*/*",)
_BENCHMARK = "datasets/runs/benchmark"
_GATHERED = f"tables gathered from public sources, which {_PUBLISHED}/README.md names"

STAGES = (
    Stage(
        name="kernel-tables",
        command="scripts.published.kernel_tables WHEEL",
        writes=_KERNELS,
        takes="a minute",
        needs="the wheel aiconfigurator-core 0.12.0",
    ),
    Stage(
        name="pytorch-rows",
        command="scripts.published.pytorch_rows FOLDER",
        writes=(
            *_ROWS,
            *_FOLDS,
            f"{_PUBLISHED}/timm_*.csv.gz",
            f"{_PUBLISHED}/pytorch_ops.csv.gz",
            f"{_PUBLISHED}/utilisation_runs.csv.gz",
        ),
        takes="minutes",
        needs=_GATHERED,
    ),
    Stage(
        name="cluster-rows",
        command="scripts.published.cluster_rows FOLDER",
        writes=(f"{_PUBLISHED}/cluster_rows.csv.gz",),
        takes="a minute",
        needs="clones of the public repositories of that table",
    ),
    Stage(
        name="memory-rows",
        command="scripts.published.memory_rows FOLDER",
        reads=_ROWS[:1],
        writes=_MEMORY[:1],
        takes="a minute",
        needs=_GATHERED,
    ),
    Stage(
        name="pytorch-steps",
        command="scripts.published.pytorch_steps --work build/pytorch-steps",
        reads=_ROWS,
        writes=_STEPS,
        takes="hours",
        sample="scripts.published.pytorch_steps --work build/pytorch-steps --part own-train",
        sample_writes=f"{_PUBLISHED}/steps/own-train.steps.xz",
    ),
    Stage(
        name="memory-steps",
        command="scripts.published.memory_steps --work build/memory-steps",
        reads=_MEMORY[:1],
        writes=(*_MEMORY[1:], f"{_PUBLISHED}/memory_failures.csv"),
        takes="hours",
        sample="scripts.published.memory_steps --work build/memory-steps --every 25",
        sample_writes=_MEMORY[1],
    ),
    Stage(
        name="calibration-graphs",
        command="scripts.published.calibration_graphs",
        writes=_GRAPHS,
        takes="half an hour",
        sample="scripts.published.calibration_graphs",  # of what is there, nothing is built again
        sample_writes="datasets/graphs/calibration/shard-62ff5ea97b4fc9ba.parquet",
    ),
    Stage(
        name="gpu-runs",
        command="scripts.runs.gpu_tables FILE... --out FOLDER",
        writes=_OWN,
        takes="two hours",
        needs="an H100 or H200, for scripts.runs.measure_gpu",
    ),
    Stage(
        name="cpu-runs",
        command="scripts.settings.measured_graphs",
        writes=_MEASURED_SETTINGS,
        takes="days",
        needs="driple measure on the machine that datasets/README.md describes",
    ),
    Stage(
        name="other-hosts",
        command="scripts.runs.other_hosts DATASET",
        writes=("datasets/runs/other-hosts/*.csv",),
        takes="an hour",
        needs="driple measure on another machine",
    ),
    Stage(
        name="memory-fit",
        command="scripts.fits.calibration_memory",
        reads=(*_MEMORY, *_FOLDS),
        writes=("driple/memory/calibration-memory.json",),
        takes="minutes",
    ),
    Stage(
        name="part-fits",
        command="scripts.fits.part_fits",
        reads=(*_FITTED, *_KERNELS),
        writes=_PARTS,
        takes="two hours; some minutes for a fit that is missing",
    ),
    Stage(
        name="gpu-fit",
        command="scripts.fits.calibration_gpu",
        reads=(*_PARTS, *_FITTED),
        writes=_FIT,
        takes="a minute",
    ),
    Stage(
        name="present-kernels",
        command="scripts.fits.present_kernels",
        reads=(*_PARTS, *_FITTED),
        writes=(_PRESENT, f"{_GPU}#model/present"),
        takes="minutes",
    ),
    Stage(
        name="host-factors",
        command="scripts.fits.host_factors",
        reads=(*_FIT, f"{_GPU}#model/present", *_OWN, "scripts/studies/own_jobs/*.csv"),
        writes=(_HOSTS, f"{_GPU}#model/host"),
        takes="seven minutes",
    ),
    Stage(
        name="heldout",
        command="scripts.fits.heldout",
        reads=(*_PARTS, *_FIT, *_FITTED, _HOSTS, _PRESENT, f"{_PUBLISHED}/split_runs.json"),
        writes=_HELD_OUT,
        takes="half an hour",
        sample="scripts.fits.heldout --only family --part 'fold 0'",
        sample_writes=_HELD_OUT[0],
    ),
    Stage(
        name="tuned-errors",
        command="scripts.fits.tuned_errors",
        reads=(*_PARTS, *_FITTED, *_OWN[1:], _HOSTS, _PRESENT),
        writes=("driple/answers/tuned_steps.json",),
        takes="minutes",
    ),
    Stage(
        name="cpu-fit",
        command="scripts.fits.calibration_cpu",
        reads=_MEASURED_SETTINGS,
        writes=_CPU_FIT,  # its program starts from the file, whose other parts stay
        takes="an hour",
        sample="scripts.fits.calibration_cpu --sharing",
        sample_writes=f"{_CPU}#errors",
    ),
    Stage(
        name="closed-forms",
        command="scripts.fits.closed_forms",
        reads=(f"{_PUBLISHED}/zeng_*.csv.gz", _GRAPHS[0], *_MEASURED_SETTINGS, _CPU, *_FIT),
        writes=("driple/analytic/closed_forms.json",),
        takes="minutes",
    ),
    Stage(
        name="settings",
        command="scripts.settings.simulate",
        reads=(*_FIT, f"{_GPU}#model/host", f"{_GPU}#model/present", _CPU),
        writes=_SIMULATED_SETTINGS,
        takes="five hours",
        sample="scripts.settings.simulate --what gpu --settings V100-P1w2",
        sample_writes="datasets/settings/V100-P1w2_ho-PCIe/examples.parquet",
    ),
    Stage(
        name="measured-checkpoints",
        command="scripts.settings.checkpoints --labels measured",
        reads=_MEASURED_SETTINGS,
        writes=("checkpoints/CPU*/*.safetensors",),
        takes="hours",
        sample="scripts.settings.checkpoints --settings CPU-P2w2 --presets default",
        sample_writes="checkpoints/CPU-P2w2_ho-200M/default.safetensors",
    ),
    Stage(
        name="simulated-checkpoints",
        command="scripts.settings.checkpoints --labels simulated",
        reads=_SIMULATED_SETTINGS,
        writes=("checkpoints/[!C]*/*.safetensors",),
        takes="hours",
        sample="scripts.settings.checkpoints --labels simulated --settings V100-P1w2 "
        "--presets default",
        sample_writes="checkpoints/V100-P1w2_ho-PCIe/default.safetensors",
    ),
    Stage(
        name="folds",
        command="driple evaluate -o datasets/runs/evaluation",
        reads=_MEASURED_SETTINGS,
        writes=("datasets/runs/evaluation/folds/*",),
        takes="a day",
        sample="driple evaluate -o datasets/runs/evaluation --against default",
        sample_writes="datasets/runs/evaluation/folds/default-650f4bd4955962b0.json.gz",
    ),
    Stage(
        name="own-jobs",
        command="scripts.studies.own_jobs.run",
        reads=("scripts/studies/own_jobs/*.csv", *_ANSWERS),
        writes=("scripts/studies/own_jobs/results.jsonl",),
        takes="two minutes",
    ),
    Stage(
        name="own-jobs-page",
        command="scripts.studies.report own_jobs",
        reads=("scripts/studies/own_jobs/results.jsonl",),
        writes=("scripts/studies/own_jobs/page.md",),
        takes="seconds",
    ),
    Stage(
        name="benchmark-rows",
        command="scripts.entries.rows",
        reads=(*_ROWS, *_STEPS, *_FOLDS),
        writes=(f"{_BENCHMARK}/rows.csv.gz",),
        takes="a minute",
    ),
    Stage(
        name="benchmark-baselines",
        command="scripts.entries.baselines",
        reads=(*_ROWS, *_STEPS, *_FOLDS, *_ANSWERS[2:3]),
        writes=tuple(
            f"{_BENCHMARK}/entries/{name}.csv.gz"
            for name in ("data-sheet", "flops-ratio", "roofline", "boosted-trees", "extra-trees")
        ),
        takes="ten minutes",
    ),
    Stage(
        name="benchmark-inspector",
        command="scripts.entries.inspector",
        reads=(*_ROWS, "checkpoints/8xH100_NVLink/*"),
        writes=(f"{_BENCHMARK}/entries/inspector*",),
        takes="five minutes",
    ),
    Stage(
        name="benchmark-llm-analysis",
        command="scripts.entries.llm_analysis",
        reads=_ROWS[:1],
        writes=(f"{_BENCHMARK}/entries/llm-analysis*",),
        takes="a minute",
        needs="the package llm-analysis 0.2.2",
    ),
    Stage(
        name="benchmark-runtime-estimator",
        command="scripts.entries.runtime_estimator --work build/runtime-estimator",
        reads=_ROWS[:1],
        writes=(f"{_BENCHMARK}/entries/torch-runtime-estimator*",),
        takes="two hours",
    ),
    _page("schema", writes=("driple/api/schema.json",), takes="seconds"),
    _page(
        "memory",
        reads=(*_MEMORY, "driple/memory/calibration-memory.json", *_OWN),
        writes=(
            "docs/memory.md",
            "docs/pictures/memory-*",
            "scripts/studies/memory/published/*.csv",
        ),
    ),
    _page(
        "accuracy",
        reads=(
            "scripts/studies/memory/published/summary.csv",
            "scripts/studies/published/*_rows.csv",
            "scripts/studies/own_jobs/results.jsonl",
            "scripts/studies/accuracy/unseen-families.json",
            "scripts/studies/accuracy/coverage.csv",
            "datasets/runs/evaluation/folds/paper-*",
            *_FOLDS,
            *_TENSORFLOW,
            *_HELD_OUT[:2],
            *_ANSWERS,
            *_ROWS,
            *_STEPS,
            f"{_PUBLISHED}/utilisation_runs.csv.gz",
        ),
        writes=(
            "docs/accuracy.md",
            "docs/pictures/accuracy*",
            "scripts/studies/published/[!ls]*.csv",
        ),
    ),
    _page(
        "benchmark",
        reads=(
            f"{_BENCHMARK}/entries/*",
            f"{_BENCHMARK}/entries.csv",
            "scripts/pages/benchmark*.in.md",
            *_HELD_OUT[:1],
            *_ROWS,
            *_FOLDS,
        ),
        writes=(
            "docs/benchmark.md",
            f"{_BENCHMARK}/README.md",
            f"{_BENCHMARK}/scores.csv",
        ),
        takes="seconds",
    ),
    _page(
        "architecture",
        writes=("docs/architecture.md", "docs/pictures/architecture.png"),
        takes="seconds",
        fills=True,
    ),
    _page("training_configs", takes="seconds", fills=True),
    _page(
        "commands",
        reads=_ANSWERS,
        writes=("docs/questions.md", "docs/cluster.md", "docs/schedulers.md"),
        fills=True,
    ),
    _page("models", reads=_ANSWERS, takes="five minutes", sample="--first 3"),
    _page(
        "gallery",
        reads=_ANSWERS,
        writes=("docs/gallery.md", "docs/pictures/gallery-*"),
    ),
    _page(
        "reliability",
        reads=("scripts/checks/*.json", "scripts/checks/mutation/share.json"),
        takes="seconds",
    ),
    _page("scaling", reads=("scripts/pages/scaling.json", "scripts/checks/chaos.json")),
    _page("quickstart", reads=("scripts/checks/extras.json",), takes="seconds", fills=True),
    _page("own_machine", reads=("docs/machine.toml", *_ANSWERS), fills=True),
    _page("web", reads=("scripts/pages/web.in.md", *_ANSWERS)),
    _page(
        "readme",
        reads=(
            *_ANSWERS,
            "checkpoints/V100-P1w2_ho-PCIe/*",
            *_HELD_OUT[:2],
            "scripts/studies/own_jobs/results.jsonl",
        ),
        writes=("README.md", "docs/pictures/resnet50.png"),
        fills=True,
    ),
)

# Data that people wrote, or gathered from sources that their READMEs name: no program makes it.
BY_HAND = (
    "driple/catalog/*.toml",
    "driple/answers/processor_steps.json",
    "datasets/README.md",
    "datasets/*/*/README.md",
    "datasets/settings/zoo/graphs.parquet",
    "datasets/settings/simulated-cpu/zoo/graphs.parquet",
    "datasets/examples/*.pbtxt",
    f"{_PUBLISHED}/*.csv.gz",
    f"{_PUBLISHED}/*.csv",
    f"{_BENCHMARK}/entries.csv",
    f"{_PUBLISHED}/fine_tuning_models.json",
    f"{_PUBLISHED}/split_runs.json",
)
# What must have a maker or be named above.
SHIPPED = ("datasets/*", "checkpoints/*", "driple/*.json", "driple/*.toml")
