"""Page and picture from results.jsonl."""

from __future__ import annotations

from matplotlib import pyplot as plt

from driple.trace.targets import TARGET_NAMES
from scripts.studies.kit.page import Parts
from scripts.studies.kit.pictures import COLOURS, plain, save
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.paper_inspector.run import RESULTS, SETTINGS

_NAMES = {
    "scaled": "log scales, 50 layers",
    "open gates": "the same, gates half open (bias -2)",
    "preset paper": "**preset paper**",
}
_HEAD = ("setting", "variant", "epochs", "train", "validation", "test")
GOAL_PCT = 20
TOP_PCT = 60


def pictures() -> None:
    """SMAPE by epoch: of variants on the test part, a panel for each setting; of the preset."""
    rows = read_results(RESULTS)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for setting, colour in zip(SETTINGS, COLOURS, strict=False):
        trained = pick(rows, what="training", variant="preset paper", setting=setting)[-1]
        for part, style in (("train", ":"), ("val", "-")):
            errors = [100 * loss for loss in trained[f"{part}_loss"]]
            label = setting if part == "val" else None
            axes[2].plot(
                range(1, len(errors) + 1), errors, color=colour, linestyle=style, label=label
            )
        grown = int(trained["growth_share"] * trained["planned_epochs"])
    axes[2].axvline(grown, color="#999999", linestyle="--", label="all layers themselves")
    axes[2].axhline(GOAL_PCT, color="black", linewidth=0.6)
    axes[2].set_title("preset paper", fontsize=9)
    axes[2].set_ylabel("SMAPE, %: validation, train dotted", fontsize=8)
    axes[2].set_xlabel("epoch", fontsize=8)
    axes[2].set_ylim(0, TOP_PCT)
    axes[2].legend(fontsize=6, frameon=False)
    plain(axes[2])
    for axis, setting in zip(axes[:2], SETTINGS, strict=True):
        curves = pick(rows, what="curve", setting=setting)
        for i, row in enumerate(curves):
            colour, style = COLOURS[i % len(COLOURS)], ("-", "-.", "--")[i // len(COLOURS)]
            label = row["variant"]
            axis.plot(row["epoch"], row["test_pct"], style, color=colour, label=label)
            axis.plot(row["epoch"], row["train_pct"], color=colour, linestyle=":", linewidth=0.8)
        shipped = pick(rows, what="labels", setting=setting)[-1]["shipped_test_pct"]
        axis.axhline(shipped, color="#999999", linestyle="--", label="authors' settings")
        axis.axhline(GOAL_PCT, color="black", linewidth=0.6)
        axis.set_title(setting, fontsize=9)
        axis.set_xscale("log")
        axis.set_xlabel("epoch, log scale", fontsize=8)
        axis.set_ylim(bottom=0)
        plain(axis)
    axes[0].legend(fontsize=5.5, frameon=False, loc="upper right", bbox_to_anchor=(1.0, 0.97))
    axes[1].legend(fontsize=6, frameon=False)
    axes[0].set_ylabel("SMAPE, %: test, train dotted", fontsize=8)
    save(figure, RESULTS.with_name("curves.png"))


def parts() -> Parts:
    """The table of the page."""
    rows = read_results(RESULTS)
    lines: list[list[str]] = []
    for setting in SETTINGS:
        known = pick(rows, what="labels", setting=setting)[-1]
        floor = f"{known['median_pct']:.1f}; {known['least_pct']:.1f}"
        lines.append([setting, "median label; least possible with equal inputs", "", "", "", floor])
        shipped = (f"{known[f'shipped_{part}_pct']:.1f}" for part in ("train", "test"))
        train, test = shipped
        words = "authors' settings, 50 layers (formerly shipped)"
        lines.append(["", words, f"{known['shipped_epochs']:,}", train, "", test])
        for row in pick(rows, what="trees", setting=setting):
            lines.append(["", f"{row['variant']} on pooled groups", "", *_errors(row)[1:]])
        for row in pick(rows, setting=setting):
            if row["what"] in ("training", "curve"):
                variant = str(row["variant"])
                lines.append(["", _NAMES.get(variant, variant), *_errors(row)])
    return {"table": markdown(_HEAD, lines), "targets": _targets(rows)}


def _targets(rows: list[Row]) -> list[str]:
    """Labels of 0 and errors by target, on the test part of the simulated setting."""
    known = pick(rows, what="targets", setting=SETTINGS[0])[-1]
    trees = pick(rows, what="trees", setting=SETTINGS[0], variant="extra trees")[-1]
    columns = (known["zero_pct"], known["median_pct"], trees["targets_pct"])
    return markdown(
        ("target", "labels of 0, %", "median label", "extra trees"),
        [
            [name, *(f"{number:.1f}" for number in numbers)]
            for name, *numbers in zip(TARGET_NAMES, *columns, strict=True)
        ],
    )


def _errors(row: Row) -> list[str]:
    """Epochs, then SMAPE of the three parts at the end."""
    is_curve = row["what"] == "curve"
    epochs = row["epoch"][-1] if is_curve else row.get("epochs", 0)
    ends = (row[f"{part}_pct"] for part in ("train", "validation", "test"))
    return [f"{epochs:,}", *(f"{end[-1] if is_curve else end:.1f}" for end in ends)]
