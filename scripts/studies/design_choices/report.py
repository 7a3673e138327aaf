"""Page and pictures from stored results: Figures 10, 13, 14, 19 and 20 of the paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from scripts.studies.design_choices.figures import by_option, by_part
from scripts.studies.design_choices.run import (
    APART,
    BASE,
    CHOICES,
    MORE_EPOCHS,
    PAIRS,
    RESULTS,
    SEEDS,
    TOGETHER,
    TOLD,
    Change,
    Choice,
    longer,
)
from scripts.studies.design_choices.verdict import Errors, Verdict, compared, mean, spread
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import least, markdown, read_rows

HOME = Path(__file__).parent
USUAL = f"{BASE.train.max_epochs} epochs"
MORE = f"{MORE_EPOCHS} epochs"
EPOCHS: dict[str, Change] = {USUAL: {}, MORE: longer({})}
PARTS = ("servers and workers", "network", "device")


class Results:
    """NRMSE of finished trials, to be picked by what was tried."""

    def __init__(self) -> None:
        self.rows = read_results(RESULTS)

    def _rows(self, setting: str, change: Change, way: str = "") -> list[Row]:
        """Those of all seeds that are there, in the order of seeds."""
        change = json.loads(json.dumps(change))
        return sorted(
            pick(self.rows, setting=setting, change=change, way=way), key=lambda row: row["seed"]
        )

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
        by_epochs = {}
        for epochs, change in EPOCHS.items():
            errors, _ = self.together(label, change)
            first, other = errors.values()
            by_epochs[epochs] = {
                way: [mean(pair) for pair in zip(first[way], other[way], strict=False)]
                for way in (TOGETHER, TOLD, APART)
            }
        return by_epochs


def table(by_label: dict[str, dict[str, Errors]], paper: str) -> list[str]:
    """A row per option, a column per kind of labels and number of epochs; the least error bold."""
    columns = {
        f"{label}, {epochs}": errors
        for label, by_epochs in by_label.items()
        for epochs, errors in by_epochs.items()
    }
    rows = []
    for option in next(iter(columns.values())):
        cells = []
        for errors in columns.values():
            best = least({name: mean(some) for name, some in compared(errors).items()})
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


def untaught(by_label: dict[str, dict[str, Errors]], means: Mapping[str, float]) -> list[str]:
    """Options that predict no better than the mean of the training labels, in words."""
    words = [
        f"{label}, {epochs}: {', '.join(names)}"
        for label, by_epochs in by_label.items()
        for epochs, errors in by_epochs.items()
        if (names := [name for name, some in errors.items() if mean(some) > 0.97 * means[label]])
    ]
    text = "No better than the mean of the training labels (above 0.97 of its NRMSE): "
    return ["", f"{text}{'; '.join(words)}."] if words else []


def summary(errors: dict[str, dict[str, dict[str, Errors]]], results: Results) -> list[str]:
    """A row per choice: what the paper took, and what each kind of labels says of it."""
    both = {label: results.together_of_both(label) for label in PAIRS}
    all_found = [("One inspector of two settings", APART, both)]
    all_found += [(choice.title, choice.paper, errors[choice.figure]) for choice in CHOICES]
    rows = []
    for title, paper, by_label in all_found:
        verdicts = [Verdict.of(by_label[label], paper) for label in PAIRS]
        cells = [verdict.cell(paper) if verdict else "-" for verdict in verdicts]
        rows.append([title, paper, *cells])
    return markdown(["choice", "the paper's", *PAIRS], rows)


def together(results: Results) -> tuple[list[str], dict[str, dict[str, Errors]]]:
    """Figure 10: one inspector for two settings, or two; the table, and errors by setting."""
    rows = []
    by_setting: dict[str, dict[str, Errors]] = {}
    for label in PAIRS:
        for epochs, change in EPOCHS.items():
            errors, seconds = results.together(label, change)
            for name, by_way in errors.items():
                rows.append([label, name, epochs, *map(cell, by_way.values())])
                by_setting.setdefault(name, {})[epochs] = by_way
            cells = [f"{seconds[way]:.0f} s" for way in (TOGETHER, TOLD, APART)]
            rows.append([label, "seconds to train, in all", epochs, *cells])
    return markdown(["labels", "setting", "trained for", TOGETHER, TOLD, APART], rows), by_setting


def ratios(errors: dict[str, dict[str, Errors]]) -> dict[str, str]:
    """Figure 10: error of one inspector over that of two, mean over the settings."""
    found_ratios = {}
    for number, epochs in enumerate(EPOCHS):
        for name, way in (("together", TOGETHER), ("told", TOLD)):
            some = [mean(by[epochs][way]) / mean(by[epochs][APART]) for by in errors.values()]
            found_ratios[f"{name}_{number}"] = f"{mean(some):.2f}"
    return found_ratios


def by_parts() -> dict[str, dict[str, Errors]]:
    """Figure 20: NRMSE of the shipped inspectors by part of the setting, its value and labels."""
    by: dict[str, dict[str, Errors]] = {part: {} for part in PARTS}
    for row in read_rows(HOME / "settings.csv"):
        where, _, network = row["setting"].partition("/")
        device, _, machines = where.partition("-")
        parts = (machines, network.partition("-")[2], device)
        for groups, value in zip(by.values(), parts, strict=True):
            groups.setdefault(value, {}).setdefault(row["labels"], []).append(float(row["nrmse"]))
    return by


def parts_table(by: dict[str, dict[str, Errors]]) -> list[str]:
    """Figure 20 in numbers."""
    rows = [
        [part, f"{kind}: {value}", f"{len(some)}", f"{median(some):.4f}",
         f"{min(some):.4f} to {max(some):.4f}"]
        for part, groups in by.items()
        for kind in PAIRS
        for value, kinds in sorted(groups.items())
        if (some := kinds.get(kind))
    ]  # fmt: skip
    return markdown(["part", "value", "settings", "NRMSE, median", "least to largest"], rows)


def found_errors(results: Results) -> dict[str, dict[str, dict[str, Errors]]]:
    """NRMSE over seeds, by figure, kind of labels, number of epochs and option."""
    return {
        choice.figure: {label: results.errors(choice, PAIRS[label][0]) for label in PAIRS}
        for choice in CHOICES
    }


def mean_predictors() -> dict[str, dict[str, float]]:
    """NRMSE of predicting the mean of the training labels: mean and deviation over seeds."""
    errors: dict[str, dict[str, float]] = json.loads((HOME / "mean-predictor.json").read_bytes())
    return errors


def parts() -> Parts:
    """Tables and sentences of the page."""
    results = Results()
    by_figure, means = found_errors(results), mean_predictors()
    table_10, errors_10 = together(results)
    tables: dict[str, str | Sequence[str]] = {
        "summary": summary(by_figure, results),
        "figure_10": table_10,
        "figure_20": parts_table(by_parts()),
        **ratios(errors_10),
        **{f"mean_{label}": f"{m['mean']:.4f} ± {m['std']:.4f}" for label, m in means.items()},
    }
    for choice in CHOICES:
        errors = by_figure[choice.figure]
        verdicts = {label: Verdict.of(some, choice.paper) for label, some in errors.items()}
        tables["figure_" + choice.figure.replace(".", "_")] = [
            choice.claim,
            "",
            *table(errors, choice.paper),
            "",
            " ".join(v.sentence(label, choice.paper) for label, v in verdicts.items() if v),
            *untaught(errors, {label: m["mean"] for label, m in means.items()}),
        ]
    return tables


def pictures() -> None:
    """Draw the pictures."""
    results = Results()
    means = {label: [m["mean"]] for label, m in mean_predictors().items()}
    by_option(together(results)[1], "One inspector of two settings", "figure-10", {})
    for choice in CHOICES:
        name = f"figure-{choice.figure}" if "." not in choice.figure else "width"
        by_option(found_errors(results)[choice.figure], choice.title, name, means)
    by_part(by_parts(), "What differs", "figure-20")
