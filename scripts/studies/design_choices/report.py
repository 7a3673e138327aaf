"""Make page.md and its pictures: Figures 10, 13, 14, 19 and 20 of the paper.

    python -m scripts.studies.design_choices.report                       run what is missing, then report
    python -m scripts.studies.design_choices.report --figures 14a,14b     run what these need, then report
    python -m scripts.studies.design_choices.report --labels simulated    run these labels only, report nothing
    python -m scripts.studies.design_choices.report --report-only

On measured labels (the first measured setting, and it beside another) and on simulated ones (the
paper's first setting, and it beside another), five seeds. Stop it at any time, the same command
goes on; several may run at once, with different labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.store import read_datasets
from driple.errors import DripleError
from driple.files import write_whole
from driple.inspector.checkpoint import load_checkpoint
from scripts.shipped import (
    DOCS,
    FIRST,
    FIRST_SIMULATED,
    OLD_NUMBERS,
    inspector_file,
    measured_folders,
    simulated_folders,
)
from scripts.studies.design_choices.figures import by_option, by_part
from scripts.studies.design_choices.run import (
    APART,
    BASE,
    CHOICES,
    FIGURES,
    MORE_EPOCHS,
    MOST_LABELS,
    SEEDS,
    TOGETHER,
    TOLD,
    Change,
    Choice,
    Trial,
    load_results,
    longer,
    mean_errors,
    run_missing,
    trials,
)
from scripts.studies.design_choices.verdict import Errors, Verdict, compared, mean, spread
from scripts.studies.kit.tables import markdown

# Each setting that is studied, and the one beside it for Figure 10: another device.
PAIRS = {
    "measured": (FIRST, "CPU25-P1w2/ho-200M"),
    "simulated": (FIRST_SIMULATED, "2080Ti-P1w2/ho-PCIe"),
}
USUAL = f"{BASE.train.max_epochs} epochs"
MORE = f"{MORE_EPOCHS} epochs"
EPOCHS: dict[str, Change] = {USUAL: {}, MORE: longer({})}


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

    def errors(self, choice: Choice, setting: str) -> dict[str, Errors]:
        """NRMSE over seeds, by number of epochs and option of a choice."""
        changed = {USUAL: choice.options}
        if choice.longer:
            changed[MORE] = {name: longer(change) for name, change in choice.options.items()}
        return {
            epochs: {
                name: [row["nrmse"][setting] for row in self._rows(setting, change)]
                for name, change in options.items()
            }
            for epochs, options in changed.items()
        }

    def together(self, label: str, change: Change) -> tuple[dict[str, Errors], dict[str, float]]:
        """Figure 10: NRMSE over seeds, by setting and way; mean seconds of training by way."""
        first, second = PAIRS[label]
        both = f"{first} + {second}"
        rows = {way: self._rows(both, change, way) for way in (TOGETHER, TOLD)}
        alone = {name: self._rows(name, change) for name in (first, second)}
        errors = {
            name: {
                **{way: [row["nrmse"][name] for row in found] for way, found in rows.items()},
                APART: [row["nrmse"][name] for row in alone[name]],
            }
            for name in (first, second)
        }
        seconds = {way: mean([row["seconds"] for row in found]) for way, found in rows.items()}
        seconds[APART] = sum(mean([row["seconds"] for row in found]) for found in alone.values())
        return errors, seconds

    def together_of_both(self, label: str) -> dict[str, Errors]:
        """Figure 10: mean NRMSE of the two settings over seeds, by number of epochs and way."""
        found = {}
        for epochs, change in EPOCHS.items():
            errors, _ = self.together(label, change)
            one, other = errors.values()
            found[epochs] = {
                way: [mean(pair) for pair in zip(one[way], other[way], strict=False)]
                for way in (TOGETHER, TOLD, APART)
            }
        return found


def table(found: dict[str, dict[str, Errors]], paper: str) -> list[str]:
    """A row per option, a column per kind of labels and number of epochs; the least error bold."""
    columns = {
        f"{label}, {epochs}": errors
        for label, by_epochs in found.items()
        for epochs, errors in by_epochs.items()
    }
    rows = []
    for option in next(iter(columns.values())):
        cells = []
        for errors in columns.values():
            best = min(compared(errors), key=lambda name, e=errors: mean(e[name]), default="")
            text = cell(errors[option])
            cells.append(f"**{text}**" if option == best else text)
        rows.append([f"{option} (paper)" if option == paper else option, *cells])
    return markdown(["", *columns], rows)


def cell(values: Sequence[float]) -> str:
    """Mean and standard deviation over seeds; how many seeds, where some lack."""
    if not values:
        return "-"
    if len(values) < len(SEEDS):
        return f"{mean(values):.4f} ({len(values)} seed{'s' if len(values) > 1 else ''})"
    return f"{mean(values):.4f} ± {spread(values):.4f}"


def untaught(found: dict[str, dict[str, Errors]], means: dict[str, list[float]]) -> list[str]:
    """Options that predict no better than the mean of the training labels, in words."""
    words = []
    for label, by_epochs in found.items():
        for epochs, errors in by_epochs.items():
            names = [
                option
                for option, values in errors.items()
                if values and mean(values) > 0.97 * mean(means[label][: len(values)])
            ]
            if names:
                words.append(f"on {label} labels after {epochs}: {', '.join(names)}")
    if not words:
        return []
    text = "No better than the mean of the training labels (NRMSE within 3 % of its, or above it)"
    return ["", f"{text}: {'; '.join(words)}."]


def summary(found: dict[str, dict[str, dict[str, Errors]]], results: Results) -> list[str]:
    """A row per choice: what the paper took, and what each kind of labels says of it."""
    both = {label: results.together_of_both(label) for label in PAIRS}
    all_found = [("One inspector of two settings", APART, both)]
    all_found += [(choice.title, choice.paper, found[choice.figure]) for choice in CHOICES]
    rows = []
    for title, paper, by_label in all_found:
        verdicts = [Verdict.of(by_label[label], paper) for label in PAIRS]
        cells = [verdict.cell(paper) if verdict else "-" for verdict in verdicts]
        rows.append([title, paper, *cells])
    return markdown(["choice", "the paper's", *PAIRS], rows)


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
    found: dict[str, dict[str, Errors]] = {}
    for label in PAIRS:
        for epochs, change in EPOCHS.items():
            errors, seconds = results.together(label, change)
            for name, by_way in errors.items():
                rows.append([label, name, epochs, *map(cell, by_way.values())])
                found.setdefault(name, {})[epochs] = by_way
            cells = [f"{seconds[way]:.0f} s" for way in (TOGETHER, TOLD, APART)]
            rows.append([label, "seconds to train, in all", epochs, *cells])
    lines += markdown(["labels", "setting", "trained for", TOGETHER, TOLD, APART], rows)
    ratios = []
    for epochs in EPOCHS:
        at, told = (
            mean([mean(by[epochs][way]) / mean(by[epochs][APART]) for by in found.values()])
            for way in (TOGETHER, TOLD)
        )
        ratios.append(
            f"after {epochs} {at:.2f} times, and {told:.2f} times once it is told which setting a "
            "workload is of"
        )
    return [
        *lines,
        "",
        "In the paper one inspector had 2.1 to 2.7 times the error of two, and learned in 0.66 of "
        f"the time. Here, as a mean over the settings, it has {'; '.join(ratios)}.",
        *by_option(found, "One inspector of two settings", "figure-10", {}),
    ]


def figure_20() -> list[str]:
    """NRMSE of the shipped inspectors by what differs between settings."""
    measured = measured_folders()
    errors = {
        name: load_checkpoint(inspector_file(name, "default")).metrics["test_nrmse"]
        for name in (*measured, *simulated_folders())
    }
    by: dict[str, dict[str, Errors]] = {"servers and workers": {}, "network": {}, "device": {}}
    for name, error in errors.items():
        kind = "measured" if name in measured else "simulated"
        where, _, network = name.partition("/")
        device, _, machines = where.partition("-")
        parts = (machines, network.partition("-")[2], device)
        for groups, value in zip(by.values(), parts, strict=True):
            groups.setdefault(value, {}).setdefault(kind, []).append(error)
    lines = [
        "## What differs between settings (Figure 20)",
        "",
        "Average NRMSE on test workloads (random split of seed 0) of the shipped inspectors of "
        "preset `default`; all but the first of each kind of labels were transferred.",
    ]
    for title, groups in by.items():
        rows = [
            [f"{kind}: {value}", f"{len(some)}", f"{median(some):.4f}",
             f"{min(some):.4f} to {max(some):.4f}"]
            for kind in PAIRS
            for value, kinds in sorted(groups.items())
            if (some := kinds.get(kind))
        ]  # fmt: skip
        lines += ["", *markdown([title, "settings", "NRMSE, median", "least to largest"], rows)]
    return [*lines, "", *_beside_figure_20(by), *by_part(by, "What differs", "figure-20")]


def _beside_figure_20(by: dict[str, dict[str, Errors]]) -> list[str]:
    """The paper's orders of medians, and ours on simulated labels."""
    paper = {
        "servers and workers": ("P5w5, P2w2, P3w3, P5w10", "sees no tendency"),
        "network": ("PCIe, 1G, 40G", "finds bandwidth little correlated to the error"),
        "device": ("2080Ti, V100, TitanRTX", "finds no relation to the number of cores"),
    }
    lines = []
    for title, (order, finding) in paper.items():
        names = [name for name in order.split(", ") if "simulated" in by[title].get(name, {})]
        ours = sorted(names, key=lambda name: median(by[title][name]["simulated"]))
        lines.append(
            f"- {title}: in the paper the medians rise in the order {order}, and it {finding}. "
            f"Here, of those that were simulated, in the order {', '.join(ours)}."
        )
    return lines


def report() -> None:
    """Write the page from what is there."""
    datasets = read_pairs(list(PAIRS))
    results = Results(datasets)
    means = {label: mean_errors(datasets[PAIRS[label][0]]) for label in PAIRS}
    found = {
        choice.figure: {label: results.errors(choice, PAIRS[label][0]) for label in PAIRS}
        for choice in CHOICES
    }
    lines = [
        "# Design choices of the inspector",
        "",
        OLD_NUMBERS,
        "",
        "Made by `python -m scripts.studies.design_choices.report`: the paper's comparisons (section 5.2, "
        "appendices A and B) on our measured and simulated labels. The inspector is the paper's "
        "(GCN and GRU, set2set, K = m/2, width 64, MLP of three layers, three sums for each "
        f"group) with M = {BASE.input.num_groups} in place of 100, and it learns as preset "
        f"`default` does (targets in logarithms), for {BASE.train.max_epochs} and, since deep "
        f"inspectors learn late, {MORE_EPOCHS} epochs: hundreds of trainings on a CPU. "
        f"Average NRMSE on the test part; mean ± standard deviation over {len(SEEDS)} seeds, of "
        f"split, weights and batches alike; at most {MOST_LABELS} labels to learn from. Labels do "
        "not decide where the mean gap to the best is no larger than its standard deviation over "
        "the seeds.",
        "",
        "Measured: " + " and ".join(PAIRS["measured"]) + "; simulated: "
        + " and ".join(PAIRS["simulated"]) + " (the first of each unless it says otherwise). "
        "Predicting the mean of the training labels errs by "
        + " and ".join(f"{cell(values)} ({label})" for label, values in means.items()) + ".",
        "",
        "## Where our labels agree with the paper",
        "",
        *summary(found, results),
        "",
        *figure_10(results),
    ]  # fmt: skip
    for choice in CHOICES:
        errors = found[choice.figure]
        verdicts = {
            label: Verdict.of(by_epochs, choice.paper) for label, by_epochs in errors.items()
        }
        where = ("section " if "." in choice.figure else "Figure ") + choice.figure
        name = f"figure-{choice.figure}" if "." not in choice.figure else "width"
        lines += [
            f"## {choice.title} ({where})",
            "",
            choice.claim,
            "",
            *table(errors, choice.paper),
            "",
            " ".join(v.sentence(label, choice.paper) for label, v in verdicts.items() if v),
            *untaught(errors, means),
            *by_option(errors, choice.title, name, means),
        ]
    lines += figure_20()
    write_whole(DOCS / "design-choices.md", "\n".join([*lines, ""]).encode(), error=DripleError)


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", choices=tuple(PAIRS), help="run these only, report nothing")
    parser.add_argument(
        "--figures", default=",".join(FIGURES), help="whose trials are run (default: all)"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    figures = arguments.figures.split(",")
    unknown = sorted(set(figures) - set(FIGURES))
    if unknown:
        raise SystemExit(f"--figures: {unknown[0]!r} is none of {', '.join(FIGURES)}")
    labels = [arguments.labels] if arguments.labels else list(PAIRS)
    if not arguments.report_only:
        datasets = read_pairs(labels)
        for label in labels:
            run_missing(trials(*PAIRS[label], figures), datasets, arguments.threads)
    if not arguments.labels:
        report()


if __name__ == "__main__":
    main()
