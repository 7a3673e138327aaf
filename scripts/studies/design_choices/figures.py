"""Pictures of the page: errors by option of a choice, and by part of a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.studies.design_choices.verdict import Errors, mean
from scripts.studies.kit.pictures import plain, save

HOME = Path(__file__).parent
COLOURS = {"measured": "#3b6ea8", "simulated": "#c8612c"}


def by_option(
    by_labels: Mapping[str, Mapping[str, Errors]],
    title: str,
    name: str,
    means: Mapping[str, Sequence[float]],
) -> None:
    """A dot for each seed and a line at the mean; a panel for each kind of labels.

    Args:
        by_labels: NRMSE over seeds, by panel, number of epochs and option.
        title: of the picture.
        name: of its file, without an ending.
        means: NRMSE of predicting the mean, by panel; a dotted line.
    """
    options = list(next(iter(next(iter(by_labels.values())).values())))
    width = 4.6 if len(by_labels) == 2 else 3.4
    size = width * len(by_labels), 1.3 + 0.36 * len(options)
    figure, axes = plt.subplots(1, len(by_labels), figsize=size, sharey=True, squeeze=False)
    for axis, (label, by_epochs) in zip(axes[0], by_labels.items(), strict=True):
        colour = COLOURS.get(label, "#3b6ea8")
        for number, (epochs, errors) in enumerate(by_epochs.items()):
            last = number == len(by_epochs) - 1
            shift = 0.18 * (2 * number - len(by_epochs) + 1)
            for row, option in enumerate(options):
                values, place = errors[option], row + shift
                if not values:
                    continue
                shown = "full" if last else "none"
                axis.plot(values, [place] * len(values), "o", color=colour, markersize=4,
                          alpha=0.6, fillstyle=shown, label=epochs)  # fmt: skip
                middle = mean(values)
                axis.plot([middle] * 2, [place - 0.16, place + 0.16], color=colour, linewidth=2)
        if label in means:
            axis.axvline(mean(means[label]), color="#777777", linewidth=1, linestyle=":",
                         label="mean of the training labels")  # fmt: skip
        axis.set_yticks(range(len(options)), options, fontsize=8)
        _finish(axis, label)
    axes[0, 0].invert_yaxis()
    _legend(figure, axes[0, 0])
    figure.suptitle(f"{title}: a dot per seed, lines at the means", fontsize=9)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    save(figure, HOME / f"{name}.png")


def by_part(by: Mapping[str, Mapping[str, Errors]], title: str, name: str) -> None:
    """A dot for each setting and a line at the median; a panel for each part of its name.

    Args:
        by: NRMSE of settings, by what differs, its value, and the kind of labels.
        title: of the picture.
        name: of its file, without an ending.
    """
    figure, axes = plt.subplots(1, len(by), figsize=(11, 3.4), sharex=True)
    for axis, (part, groups) in zip(axes, by.items(), strict=True):
        rows = [
            (kind, value, kinds[kind])
            for kind in COLOURS
            for value, kinds in sorted(groups.items())
            if kind in kinds
        ]
        for row, (kind, _, errors) in enumerate(rows):
            axis.plot(errors, [row] * len(errors), "o", color=COLOURS[kind], markersize=5,
                      alpha=0.6, label=kind)  # fmt: skip
            middle = float(np.median(errors))
            axis.plot([middle] * 2, [row - 0.3, row + 0.3], color=COLOURS[kind], linewidth=2)
        axis.set_yticks(range(len(rows)), [value for _, value, _ in rows], fontsize=8)
        axis.invert_yaxis()
        _finish(axis, part)
    _legend(figure, axes[0])
    figure.suptitle(f"{title}: a dot per setting, lines at the medians", fontsize=9)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    save(figure, HOME / f"{name}.png")


def _finish(axis: Axes, title: str) -> None:
    """An axis of errors, from 0."""
    axis.set_xlim(left=0)
    axis.locator_params(axis="x", nbins=5)
    axis.set_xlabel("average NRMSE", fontsize=8)
    axis.set_title(title, fontsize=9, loc="left")
    plain(axis)


def _legend(figure: Figure, axis: Axes) -> None:
    """Each name once, below."""
    handles, labels = axis.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once, loc="lower center", ncol=3, fontsize=8, frameon=False)
