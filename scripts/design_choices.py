"""Make docs/design-choices.md and its pictures: Figures 10, 13, 14, 19 and 20 of the paper.

    python scripts/design_choices.py                       run what is missing, then report
    python scripts/design_choices.py --labels simulated    run these only, report nothing
    python scripts/design_choices.py --report-only

On measured labels (the first measured setting, and it beside another) and on simulated ones (the
paper's first setting, and it beside another), five seeds. Stop it at any time, the same command
goes on; several may run at once, with different labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from design_experiments import (
    APART,
    BASE,
    CHOICES,
    HOME,
    MOST_LABELS,
    SEEDS,
    TOGETHER,
    TOLD,
    Change,
    Choice,
    Trial,
    load_results,
    run_missing,
    trials,
)
from matplotlib import pyplot as plt
from shipped import (
    DOCS,
    FIRST,
    FIRST_SIMULATED,
    inspector_file,
    markdown,
    measured_folders,
    plain,
    save,
    simulated_folders,
)

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.store import read_datasets
from driple.errors import DripleError
from driple.files import write_whole
from driple.inspector.checkpoint import load_checkpoint

# Each setting that is studied, and the one beside it for Figure 10: another device.
PAIRS = {
    "measured": (FIRST, "CPU25-P1w2/ho-200M"),
    "simulated": (FIRST_SIMULATED, "2080Ti-P1w2/ho-PCIe"),
}
COLOURS = {"measured": "#3b6ea8", "simulated": "#c8612c"}
Errors = dict[str, list[float]]


def read_pairs(labels: Sequence[str]) -> dict[str, Dataset]:
    """The data sets of the pairs, by setting."""
    folders = {**measured_folders(), **simulated_folders()}
    names = [name for label in labels for name in PAIRS[label]]
    return dict(zip(names, read_datasets([folders[name] for name in names]), strict=True))


class Results:
    """NRMSE of finished trials, to be picked by what was tried."""

    def __init__(self, datasets: dict[str, Dataset]) -> None:
        self.marks = {name: fingerprint(dataset) for name, dataset in datasets.items()}
        self.rows = load_results()

    def _rows(self, setting: str, change: Change, way: str = "") -> list[dict[str, Any]]:
        """Those of all seeds that are there."""
        wanted = [Trial(setting=setting, change=change, seed=seed, way=way) for seed in SEEDS]
        keys = [trial.key(self.marks) for trial in wanted]
        return [self.rows[key] for key in keys if key in self.rows]

    def errors(self, choice: Choice, setting: str) -> Errors:
        """NRMSE over seeds, by option of a choice."""
        return {
            label: [row["nrmse"][setting] for row in self._rows(setting, change)]
            for label, change in choice.options.items()
        }

    def together(self, label: str) -> tuple[dict[str, Errors], dict[str, float]]:
        """Figure 10: NRMSE over seeds, by setting and way; mean seconds of training by way."""
        first, second = PAIRS[label]
        both = f"{first} + {second}"
        rows = {way: self._rows(both, {}, way) for way in (TOGETHER, TOLD)}
        alone = {name: self._rows(name, {}) for name in (first, second)}
        errors = {
            name: {
                **{way: [row["nrmse"][name] for row in found] for way, found in rows.items()},
                APART: [row["nrmse"][name] for row in alone[name]],
            }
            for name in (first, second)
        }
        seconds = {way: _mean([row["seconds"] for row in found]) for way, found in rows.items()}
        seconds[APART] = sum(_mean([row["seconds"] for row in found]) for found in alone.values())
        return errors, seconds


def table(found: dict[str, Errors], paper: str) -> list[str]:
    """A row per option, a column per kind of labels; the least error bold."""
    labels = list(found)
    options = list(found[labels[0]])
    rows = []
    best = {label: min(map(_mean, errors.values())) for label, errors in found.items()}
    for option in options:
        cells = []
        for label in labels:
            values = found[label][option]
            text = f"{_mean(values):.4f} ± {_spread(values):.4f}" if values else "-"
            cells.append(f"**{text}**" if values and _mean(values) == best[label] else text)
        name = f"{option} (paper)" if option == paper else option
        rows.append([name, *cells])
    return markdown(["", *labels], rows)


def verdict(found: dict[str, Errors], paper: str) -> str:
    """Whether each kind of labels agrees with the paper, in words."""
    words = []
    for label, errors in found.items():
        best = min(errors, key=lambda option: _mean(errors[option]))
        gap = [a - b for a, b in zip(errors[paper], errors[best], strict=False)]
        more = 100 * (_mean(errors[paper]) / _mean(errors[best]) - 1)
        if best == paper:
            rest = {option: values for option, values in errors.items() if option != paper}
            second = min(rest, key=lambda option: _mean(rest[option]))
            ahead = 100 * (_mean(rest[second]) / _mean(errors[paper]) - 1)
            words.append(
                f"{label} labels agree with the paper: {paper} is best, {second} comes next "
                f"({ahead:.0f} % more error)"
            )
        elif _mean(gap) <= _spread(gap):
            words.append(
                f"{label} labels do not decide: {best} is best, {paper} has {more:.0f} % more "
                "error, which is within the spread over seeds"
            )
        else:
            words.append(
                f"{label} labels disagree with the paper: {best} is best, {paper} has {more:.0f} % "
                "more error"
            )
    return ". ".join(word[0].upper() + word[1:] for word in words) + "."


def picture(found: dict[str, Errors], title: str, name: str) -> list[str]:
    """A dot for each seed, a line at the mean, a panel for each kind of labels."""
    options = list(next(iter(found.values())))
    drawn, axes = plt.subplots(
        1, len(found), figsize=(4.6 * len(found), 1.1 + 0.32 * len(options)), sharey=True,
        squeeze=False,
    )  # fmt: skip
    for axis, (label, errors) in zip(axes[0], found.items(), strict=True):
        colour = COLOURS.get(label, "#3b6ea8")
        for row, option in enumerate(options):
            values = errors[option]
            axis.plot(values, [row] * len(values), "o", color=colour, markersize=4, alpha=0.5)
            if values:
                middle = _mean(values)
                axis.plot([middle] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=2)
        axis.set_yticks(range(len(options)), options, fontsize=8)
        axis.set_xlim(left=0)
        axis.set_xlabel("average NRMSE", fontsize=8)
        axis.set_title(label, fontsize=9, loc="left")
        plain(axis)
    axes[0, 0].invert_yaxis()
    drawn.suptitle(f"{title}: a dot per seed, lines at the means", fontsize=9)
    drawn.tight_layout()
    save(drawn, HOME / f"{name}.png")
    return ["", f"![{title}](design-choices/{name}.png)", ""]


def figure_10(results: Results) -> list[str]:
    """One inspector for two settings, or two."""
    lines = [
        "## One inspector of two settings (Figure 10)",
        "",
        f"*{TOGETHER}*: workloads of both, nothing tells them apart. *{TOLD}*: one more input, "
        f"-1 or 1. *{APART}*: as everywhere else.",
        "",
    ]
    rows = []
    found: dict[str, Errors] = {}
    for label in PAIRS:
        errors, seconds = results.together(label)
        for name, by_way in errors.items():
            cells = [f"{_mean(v):.4f} ± {_spread(v):.4f}" if v else "-" for v in by_way.values()]
            rows.append([label, name, *cells])
            found[name] = by_way
        cells = [f"{seconds[way]:.0f} s" for way in (TOGETHER, TOLD, APART)]
        rows.append([label, "seconds to train, in all", *cells])
    ratios = {
        way: _mean([_mean(by_way[way]) / _mean(by_way[APART]) for by_way in found.values()])
        for way in (TOGETHER, TOLD)
    }
    lines += [
        *markdown(["labels", "setting", TOGETHER, TOLD, APART], rows),
        "",
        "In the paper one inspector had 2.1 to 2.7 times the error of two. Here it has "
        f"{ratios[TOGETHER]:.1f} times (mean over the settings), and {ratios[TOLD]:.2f} times once "
        "it is told which setting a workload is of.",
        *picture(found, "One inspector of two settings", "figure-10"),
    ]
    return lines


def figure_20() -> list[str]:
    """NRMSE of the shipped inspectors by what differs between settings."""
    measured = measured_folders()
    errors = {
        name: load_checkpoint(inspector_file(name, "default")).metrics["test_nrmse"]
        for name in (*measured, *simulated_folders())
    }
    by: dict[str, dict[str, list[float]]] = {"servers and workers": {}, "network": {}, "device": {}}
    for name, error in errors.items():
        kind = "measured" if name in measured else "simulated"
        where, _, network = name.partition("/")
        device, _, machines = where.partition("-")
        parts = (machines, network.partition("-")[2], device)
        for groups, value in zip(by.values(), parts, strict=True):
            groups.setdefault(f"{kind}: {value}", []).append(error)
    lines = [
        "## What differs between settings (Figure 20)",
        "",
        "Average NRMSE on test workloads (random split of seed 0) of the shipped inspectors of "
        "preset `default`; all but the first of each kind of labels were transferred.",
    ]
    for title, groups in by.items():
        rows = [
            [value, f"{len(some)}", f"{np.median(some):.4f}", f"{min(some):.4f} to {max(some):.4f}"]
            for value, some in sorted(groups.items())
        ]
        lines += ["", *markdown([title, "settings", "NRMSE, median", "least to largest"], rows)]
    return lines


def report() -> None:
    """Write the page from what is there."""
    results = Results(read_pairs(list(PAIRS)))
    changed = BASE.input.num_groups, BASE.train.max_epochs
    lines = [
        "# Design choices of the inspector",
        "",
        "Made by `python scripts/design_choices.py`: the paper's comparisons (section 5.2, "
        "appendices A and B) on our measured and simulated labels. The inspector is the paper's "
        "(GCN and GRU, set2set, K = m/2, width 64, MLP of three layers, three sums for each "
        f"group) with M = {changed[0]} in place of 100, and it learns as preset `default` does "
        f"(targets in logarithms), for {changed[1]} epochs: some hundreds of trainings on a CPU. "
        f"Average NRMSE on the test part; mean ± standard deviation over {len(SEEDS)} seeds, "
        f"of split, weights and batches alike; at most {MOST_LABELS} labels to learn from.",
        "",
        "Measured: " + " and ".join(PAIRS["measured"]) + "; simulated: "
        + " and ".join(PAIRS["simulated"]) + " (the first of each unless it says otherwise).",
        "",
        *figure_10(results),
    ]  # fmt: skip
    for choice in CHOICES:
        found = {label: results.errors(choice, PAIRS[label][0]) for label in PAIRS}
        name = f"figure-{choice.figure}" if " " not in choice.figure else "width"
        where = choice.figure if " " in choice.figure else f"Figure {choice.figure}"
        lines += [
            f"## {choice.title} ({where})",
            "",
            *table(found, choice.paper),
            "",
            verdict(found, choice.paper),
            *picture(found, choice.title, name),
        ]
    lines += figure_20()
    write_whole(DOCS / "design-choices.md", "\n".join([*lines, ""]).encode(), error=DripleError)


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", choices=tuple(PAIRS), help="run these only, report nothing")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    labels = [arguments.labels] if arguments.labels else list(PAIRS)
    if not arguments.report_only:
        datasets = read_pairs(labels)
        for label in labels:
            run_missing(trials(*PAIRS[label]), datasets, arguments.threads)
    if not arguments.labels:
        report()


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _spread(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
