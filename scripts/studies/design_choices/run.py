"""Train the variants of the inspector that the paper compares, and write down their errors.

    python -m scripts.studies.design_choices.run [--figures 14a,14b] [--labels simulated]

    variant of the study's preset, data set, seed  ->  NRMSE on the test part, seconds

The paper's inspector (GCN + GRU, set2set, K = m/2, width 64, MLP of three layers) on its three sums
of each group. So that some hundreds of trainings can be made on a CPU, graphs have 20 groups in
place of 100, and it learns as preset `default` does, for 100 epochs. Stop it at any time, the same
command goes on; several may run at once, with different labels.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from driple.dataset.example import Dataset, Example, fingerprint
from driple.dataset.split import Split, limited_split, random_split
from driple.dataset.store import read_datasets
from driple.features import Groupings, InputConfig
from driple.inspector.config import InspectorConfig
from driple.inspector.ensemble import make_inspector
from driple.training.config import PRESETS, Preset
from driple.training.metrics import Scores, score
from driple.training.prepare import PreparedData, PreparedPart, prepare
from driple.training.run import RunOptions, fit
from scripts.settings.shipped import FIRST, FIRST_SIMULATED, measured_folders, simulated_folders
from scripts.studies.design_choices.convolutional import ConvolutionalInspector
from scripts.studies.kit.results import add_result, read_results

RESULTS = Path(__file__).parent / "results.jsonl"
# Each setting that is studied, and the one beside it for Figure 10: another device.
PAIRS = {
    "measured": (FIRST, "CPU25-P1w2/ho-200M"),
    "simulated": (FIRST_SIMULATED, "2080Ti-P1w2/ho-PCIe"),
}
SEEDS = (0, 1, 2, 3, 4)
# Labels to learn from, where a data set has more: as many as the first measured setting.
MOST_LABELS = 268
GROUPS, LAYERS = 20, 10

BASE = Preset(
    name="study",
    input=InputConfig(num_groups=GROUPS, components="all", features="log"),
    inspector=InspectorConfig(output="linear"),
    train=replace(
        PRESETS["default"].train,
        base="none",
        residuals="none",
        family_folds=0,
        batch_size=32,
        max_epochs=100,
        patience_epochs=100,
    ),
)

Change = dict[str, dict[str, Any]]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One design choice: what the paper took, and what else there is.

    Attributes:
        figure: of the paper.
        title: in words.
        paper: label of what the paper found best, and of what stands for it here.
        claim: what the paper says of it.
        options: change of the study's preset, by label; an empty one is the preset itself.
        longer: whether all is made again with `MORE_EPOCHS`, since deep inspectors learn late.
    """

    figure: str
    title: str
    paper: str
    claim: str
    options: dict[str, Change] = field(default_factory=dict)
    longer: bool = True


def _choice(figure: str, title: str, claim: str, name: str, *values: str | int) -> Choice:
    """Values of one field of the inspector; the study's preset has the paper's."""
    paper = getattr(BASE.inspector, name)
    return Choice(
        figure=figure,
        title=title,
        paper=str(paper),
        claim=claim,
        options={
            str(value): {} if value == paper else {"inspector": {name: value}} for value in values
        },
    )


def _grouped(num_groups: int, **train: int) -> Change:
    change: Change = {"input": {"num_groups": num_groups}, "inspector": {"depth": LAYERS}}
    return {**change, **({"train": train} if train else {})}


def _with_networks(choice: Choice) -> Choice:
    """Layers of an MLP, and the convolutional networks that may stand in its place."""
    layers = {f"MLP of {label} layers": change for label, change in choice.options.items()}
    networks: dict[str, Change] = {
        f"{network} with {name}": {"cnn": {"network": network, "activation": activation}}
        for name, activation in (("ReLU", "relu"), ("sigmoid", "sigmoid"))
        for network in ("AlexNet", "VGG16")
    }
    paper = f"MLP of {choice.paper} layers"
    return replace(choice, paper=paper, options={**layers, **networks})


MORE_EPOCHS = 300

CHOICES = (
    Choice(
        figure="13",
        title="Grouping of the nodes",
        longer=False,
        paper="uniform, M = 100",
        claim="In the paper proportional grouping had 46 % less error than graphs that are not "
        "grouped, one in a step, and uniform grouping 12 % less than proportional. A graph of "
        "thousands of nodes with K = m/2 layers is out of reach of a CPU, so that *one graph a "
        "step* stands for what the paper blames: batches of one. By number of groups the number "
        f"of layers stays {LAYERS}.",
        options={
            "uniform, M = 5": _grouped(5),
            f"uniform, M = {GROUPS}": {},
            "uniform, M = 50": _grouped(50),
            "uniform, M = 100": _grouped(100),
            f"uniform, M = {GROUPS}, one graph a step": _grouped(GROUPS, batch_size=1),
            "proportional": {"input": {"policy": "proportional"}},
        },
    ),
    _choice(
        "14a", "Graph convolution",
        "In the paper the median error of GCN was 45 % lower than the others'.",
        "layer", "gcn", "gat", "gin", "mpnn",
    ),
    _choice(
        "14b", "Number of graph layers K",
        "In the paper m/2 was best: 1.1 times better than m, 1.2 times than the logarithms.",
        "depth", "m", "m/2", "log2", "log3", "log4", "log5",
    ),
    _choice(
        "14c", "Readout",
        "In the paper set2set had 57.8, 1.5 and 1.5 % less error than add, mean and sort; max is "
        "ours.",
        "readout", "set2set", "add", "mean", "sort", "max",
    ),
    _choice(
        "5.2.2", "Width of the embeddings",
        "In the paper 64 had 8 % less error than 16, and 1 % less than 32.",
        "hidden", 16, 32, 64,
    ),
    _with_networks(
        _choice(
            "19", "Second part of the inspector",
            "In the paper an MLP of three layers was better than longer ones (all the same from "
            "five on) and than AlexNet and VGG16 with sigmoid and with ReLU. Here both are of one "
            "dimension and narrow (`convolutional.py`), for the paper gives no "
            "sizes; two layers are ours.",
            "mlp_layers", 2, 3, 4, 5,
        )
    ),
)  # fmt: skip

# Figure 10: one inspector of two settings, or one for each.
TOGETHER_FIGURE = "10"
TOGETHER = "one for both settings"
TOLD = "one for both, told which setting"
APART = "one for each setting"
FIGURES = (TOGETHER_FIGURE, *(choice.figure for choice in CHOICES))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training.

    Attributes:
        setting: of the labels; two, joined by ` + `, for Figure 10.
        change: of the study's preset.
        way: of Figure 10; empty otherwise.
        seed: of split, weights and batches.
    """

    setting: str
    change: Change
    seed: int
    way: str = ""

    def key(self, marks: dict[str, str]) -> str:
        """Key of the trial, as one string; `marks` are the fingerprints of the data sets."""
        data = [marks[name] for name in self.setting.split(" + ")]
        return json.dumps([data, BASE.config_hash(), asdict(self)], sort_keys=True)


def longer(change: Change) -> Change:
    """The same change, trained for `MORE_EPOCHS`."""
    train = {"max_epochs": MORE_EPOCHS, "patience_epochs": MORE_EPOCHS}
    return {**change, "train": {**change.get("train", {}), **train}}


def trials(first: str, second: str, figures: Collection[str] = FIGURES) -> list[Trial]:
    """All that some figures need of a setting, and of it beside a second one; none twice.

    What is trained for longer comes last. Networks that learn nothing in `BASE`'s epochs are
    trained for longer with one seed alone, to see that they learn nothing then, either.
    """
    chosen = [choice for choice in CHOICES if choice.figure in figures]
    wanted = [
        Trial(setting=first, change=change, seed=seed)
        for seed in SEEDS
        for choice in chosen
        for change in choice.options.values()
    ]
    wanted += _together(first, second, {}) if TOGETHER_FIGURE in figures else []
    wanted += [
        Trial(setting=first, change=longer(change), seed=seed)
        for seed in SEEDS
        for choice in chosen
        if choice.longer
        for change in choice.options.values()
        if "cnn" not in change or seed == SEEDS[0]
    ]
    wanted += _together(first, second, longer({})) if TOGETHER_FIGURE in figures else []
    return [trial for i, trial in enumerate(wanted) if trial not in wanted[:i]]


def _together(first: str, second: str, change: Change) -> list[Trial]:
    """Trials of Figure 10: one inspector of two settings, and one of each."""
    wanted = []
    for seed in SEEDS:
        wanted += [
            Trial(setting=f"{first} + {second}", change=change, seed=seed, way=way)
            for way in (TOGETHER, TOLD)
        ]
        wanted += [Trial(setting=name, change=change, seed=seed) for name in (first, second)]
    return wanted


def preset_of(trial: Trial) -> Preset:
    """The study's preset with the change and the seed."""
    change = trial.change
    return replace(
        BASE,
        input=replace(BASE.input, **change.get("input", {})),
        inspector=replace(BASE.inspector, **change.get("inspector", {})),
        train=replace(BASE.train, **{**change.get("train", {}), "seed": trial.seed}),
    )


def run(
    trial: Trial, datasets: dict[str, Dataset], groupings: Groupings, threads: int
) -> dict[str, object]:
    """Train and score; NRMSE of each setting of the trial, and seconds."""
    settings = trial.setting.split(" + ")
    parts = {name: learned_split(datasets[name], trial.seed) for name in settings}
    preset = preset_of(trial)
    if len(settings) == 1:
        dataset, split = datasets[settings[0]], parts[settings[0]]
    else:
        dataset, split = joined([datasets[name] for name in settings], list(parts.values()))

    def inputs() -> PreparedData:
        data = prepare(dataset, split, preset, progress=_quiet, groupings=groupings)
        return told_setting(data) if trial.way == TOLD else data

    with tempfile.TemporaryDirectory(prefix="driple-design-") as folder:
        fitted = fit(
            Path(folder),
            {"trial": asdict(trial), "data_set": fingerprint(dataset)},
            preset.train,
            RunOptions(threads=threads),
            prepare=inputs,
            make_model=lambda made: _model(trial, made),
        )
    part, predicted = fitted.prepared.parts["test"], fitted.predictions["test"]
    return {
        **asdict(trial),
        "nrmse": {
            name: _scores(
                part, predicted, name if len(settings) > 1 else "", datasets[name], parts[name]
            ).mean_nrmse
            for name in settings
        },
        "seconds": sum(record.seconds for record in fitted.history),
    }


def _model(trial: Trial, data: PreparedData) -> torch.nn.Module:
    """The inspector of a trial."""
    if "cnn" in trial.change:
        return ConvolutionalInspector(data.inspector, data.num_groups, **trial.change["cnn"])
    return make_inspector(data.inspector, data.num_groups)


def joined(datasets: list[Dataset], splits: list[Split]) -> tuple[Dataset, Split]:
    """Data sets of several settings as one; workloads are called WORKLOAD@SETTING."""
    examples: list[Example] = []
    rows: dict[str, list[int]] = {name: [] for name in ("train", "validation", "test")}
    for dataset, split in zip(datasets, splits, strict=True):
        for name, indices in rows.items():
            indices += [len(examples) + int(i) for i in getattr(split, name)]
        examples += [
            replace(
                item,
                workload=f"{item.workload}@{dataset.setting}",
                setting=datasets[0].setting,
            )
            for item in dataset.examples
        ]
    whole = replace(datasets[0], examples=tuple(examples))
    return whole, Split(**{name: np.array(found) for name, found in rows.items()})


def told_setting(prepared: PreparedData) -> PreparedData:
    """The same with the setting as one more number of the context: -1 or 1."""
    settings = sorted({_setting_of(name) for name in prepared.parts["train"].workloads})

    def with_setting(part: PreparedPart) -> PreparedPart:
        sign = [[-1.0 if _setting_of(name) == settings[0] else 1.0] for name in part.workloads]
        context = torch.cat([part.batch.context, torch.tensor(sign)], dim=1)
        return replace(part, batch=replace(part.batch, context=context))

    inspector = prepared.inspector
    return replace(
        prepared,
        parts={name: with_setting(part) for name, part in prepared.parts.items()},
        inspector=replace(inspector, num_context=inspector.num_context + 1),
    )


def run_missing(wanted: Iterable[Trial], datasets: dict[str, Dataset], threads: int) -> None:
    """Run what has no result yet, and write it down at once."""
    marks = {name: fingerprint(dataset) for name, dataset in datasets.items()}
    groupings = Groupings()
    for trial in wanted:
        key = trial.key(marks)
        if any(row["key"] == key for row in read_results(RESULTS)):
            continue  # read anew: another process may have run it
        row = {"key": key, **run(trial, datasets, groupings, threads)}
        add_result(RESULTS, row)
        print(f"{trial.setting}, {trial.way or json.dumps(trial.change)}, seed {trial.seed}: "
              f"{row['nrmse']}", flush=True)  # fmt: skip


def learned_split(dataset: Dataset, seed: int) -> Split:
    """The random split of a seed, with at most `MOST_LABELS` to learn from."""
    split = random_split(dataset.workloads, seed)
    if len(split.train) + len(split.validation) <= MOST_LABELS:
        return split
    return limited_split(split, dataset.workloads, MOST_LABELS, seed)


def _scores(
    part: PreparedPart, predicted: FloatArray, setting: str, dataset: Dataset, split: Split
) -> Scores:
    """Errors on the workloads of one setting, over its own largest training labels."""
    end = f"@{setting}" if setting else ""
    rows = [i for i, name in enumerate(part.workloads) if name.endswith(end)]
    return score(
        predicted[rows],
        part.labels[rows],
        true_times_s=part.times_s[rows],
        train_labels=dataset.targets()[split.train],
    )


def _setting_of(workload: str) -> str:
    return workload.rpartition("@")[2]


def _quiet(done: int, total: int) -> None:
    """Report to nobody."""


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", choices=tuple(PAIRS), help="run these only (default: both)")
    parser.add_argument(
        "--figures", default=",".join(FIGURES), help="whose trials are run (default: all)"
    )
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    figures = arguments.figures.split(",")
    if unknown := set(figures) - set(FIGURES):
        raise SystemExit(f"--figures: {', '.join(unknown)} is none of {', '.join(FIGURES)}")
    folders = {**measured_folders(), **simulated_folders()}
    for label in (arguments.labels,) if arguments.labels else PAIRS:
        names = PAIRS[label]
        datasets = dict(zip(names, read_datasets([folders[name] for name in names]), strict=True))
        run_missing(trials(*names, figures), datasets, arguments.threads)


if __name__ == "__main__":
    main()
