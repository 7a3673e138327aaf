"""Page and picture from results.jsonl."""

from __future__ import annotations

from matplotlib import pyplot as plt

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


def pictures() -> None:
    """Test SMAPE by epoch, a panel for each setting; loss of the preset, on the measured one."""
    rows = read_results(RESULTS)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    trained = pick(pick(rows, what="training"), variant="preset paper", setting=SETTINGS[1])[-1]
    for part, style in (("train", ":"), ("val", "-")):
        loss = trained[f"{part}_loss"]
        axes[2].plot(range(1, len(loss) + 1), loss, color=COLOURS[3], linestyle=style, label=part)
    axes[2].set_title(f"preset paper, {SETTINGS[1]}", fontsize=9)
    axes[2].set_ylabel("loss (2 layers, then 50)", fontsize=8)
    axes[2].set_xlabel("epoch", fontsize=8)
    axes[2].legend(fontsize=6, frameon=False)
    plain(axes[2])
    for axis, setting in zip(axes[:2], SETTINGS, strict=True):
        for row, colour in zip(pick(rows, what="curve", setting=setting), COLOURS, strict=False):
            axis.plot(row["epoch"], row["test_pct"], color=colour, label=row["variant"])
            axis.plot(row["epoch"], row["train_pct"], color=colour, linestyle=":", linewidth=0.8)
        shipped = pick(rows, what="labels", setting=setting)[-1]["shipped_test_pct"]
        axis.axhline(shipped, color="#999999", linestyle="--", label="authors' settings, shipped")
        axis.axhline(GOAL_PCT, color="black", linewidth=0.6)
        axis.set_title(setting, fontsize=9)
        axis.set_xlabel("epoch", fontsize=8)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=6, frameon=False)
        plain(axis)
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
        words = "authors' settings, 50 layers (shipped)"
        lines.append(["", words, f"{known['shipped_epochs']:,}", train, "", test])
        for row in pick(rows, setting=setting):
            if row["what"] in ("training", "curve"):
                variant = str(row["variant"])
                lines.append(["", _NAMES.get(variant, variant), *_errors(row)])
    return {"table": markdown(_HEAD, lines)}


def _errors(row: Row) -> list[str]:
    """Epochs, then SMAPE of the three parts at the end."""
    is_curve = row["what"] == "curve"
    epochs = row["epoch"][-1] if is_curve else row["epochs"]
    ends = (row[f"{part}_pct"] for part in ("train", "validation", "test"))
    return [f"{epochs:,}", *(f"{end[-1] if is_curve else end:.1f}" for end in ends)]
