"""Page and pictures from results.jsonl: Figures 11, 12, 15 and 16 of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from driple.training.config import preset_named
from driple.training.transfer import transfer_config
from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, mean_and_std, pick, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.transfer.figures import bars, curves
from scripts.studies.transfer.run import LAYERS, MOVED, PAPERS, RESULTS, SHARES, SIZES

HOME = Path(__file__).parent
PRESETS = ("default", "paper")
ALL_LABELS = 96  # to train and to validate on; 24 of the 120 workloads of a setting are the test
TUNED, SHARE, ALIGNED = "layers", "shares", "aligned"
TITLES = {
    TUNED: "What is tuned (Figure 11)",
    SHARE: "Share of phi_r (layers of it) that is tuned, beside the MLP (Figure 12)",
    ALIGNED: "Targets aligned with the new level first, or not",
}


def stored() -> tuple[list[Row], list[str]]:
    """All trainings with their seconds to the best epoch, and their settings."""
    rows = [
        {
            **row,
            "layers": tuple(row["layers"]),
            # Epochs take the same time and count from 1.
            "seconds_to_best": row["seconds"] * row["best_epoch"] / max(row["epochs"], 1),
        }
        for row in read_results(RESULTS)
    ]
    settings = {row["target"] for row in rows}
    return rows, sorted(settings, key=lambda name: (name.startswith("CPU25"), name))


def savings(rows: list[Row], targets: list[str]) -> list[str]:
    """The fewest labels with which a transfer is as good as training anew on all."""
    lines = []
    for preset in PRESETS:
        for target in targets:
            same = pick(rows, target=target, preset=preset)
            anew, few = pick(same, size=0, layers=()), pick(same, size=SIZES[0], **MOVED[preset])
            nrmse = mean_and_std(anew, "nrmse")[0]
            cells = [target, preset, f"{nrmse:.4f}"]
            for size in (*SIZES, 0):
                moved = pick(same, size=size, **MOVED[preset])
                error = mean_and_std(moved, "nrmse")[0]
                if error <= nrmse:
                    cells += [
                        str(size or ALL_LABELS),
                        f"{error:.4f}",
                        f"{ALL_LABELS / (size or ALL_LABELS):.1f} x",
                        f"{less_time(anew, moved, 'seconds_to_best'):.1f} x",
                        f"{less_time(anew, moved, 'seconds'):.1f} x",
                    ]
                    break
            else:
                cells += ["none", *"----"]
            lines.append([*cells, f"{mean_and_std(few, 'nrmse')[0] / nrmse:.2f}"])
    head = ["setting", "preset", "NRMSE anew, all labels", "fewest labels as good by transfer",
            "NRMSE then", "data saved", "time saved to the best epoch", "time saved in all",
            f"NRMSE with {SIZES[0]} labels, over that anew"]  # fmt: skip
    return markdown(head, lines)


def less_time(anew: list[Row], moved: list[Row], name: str) -> float:
    """Ratio of the mean seconds."""
    return mean_and_std(anew, name)[0] / mean_and_std(moved, name)[0]


def shares_apart(preset: str) -> dict[str, float]:
    """The shares of Figure 12 that tune different layers, by label; others are one training."""
    definition = preset_named(preset)
    num_layers = definition.inspector.num_layers(definition.input.num_groups)
    alike: dict[int, list[float]] = {}
    for share in SHARES:
        config = transfer_config(preset, layers=PAPERS, tuned_share=share)
        alike.setdefault(config.num_tuned(num_layers), []).append(share)
    return {
        " to ".join(f"{share:g}" for share in dict.fromkeys((some[0], some[-1])))
        + f" ({count} of {num_layers - 1})": some[-1]
        for count, some in alike.items()
    }


def options(rows: list[Row], preset: str, figure: str) -> dict[str, list[Row]]:
    """Trainings of each option of a comparison, by label."""
    same = pick(rows, preset=preset)
    aligned = MOVED[preset]["aligned"]
    if figure == TUNED:
        tuned = {
            ", ".join(layers): pick(same, layers=layers, share=0.5, aligned=aligned, size=0)
            for layers in LAYERS
        }
        return {**tuned, "all, anew": pick(same, layers=(), size=0)}
    if figure == SHARE:
        return {
            words: pick(same, layers=PAPERS, share=share, aligned=aligned, size=0)
            for words, share in shares_apart(preset).items()
        }
    return {
        f"{size or 'all'} labels, {words}": pick(
            same, **{**MOVED[preset], "aligned": way}, size=size
        )
        for size in (*SIZES, 0)
        for words, way in (("aligned", True), ("not aligned", False))
    }


def presets_of(figure: str) -> Iterable[str]:
    """The presets that a comparison was made with."""
    return [name for name in PRESETS if figure != ALIGNED or MOVED[name]["aligned"]]


def comparison(rows: list[Row], targets: list[str], figure: str) -> list[str]:
    """NRMSE of some options on every setting, the best of each in bold."""
    lines = []
    for preset in presets_of(figure):
        chosen = options(rows, preset, figure)
        table = np.array(
            [
                [mean_and_std(pick(some, target=target), "nrmse")[0] for target in targets]
                for some in chosen.values()
            ]
        )
        table = np.concatenate([table, table.mean(axis=1, keepdims=True)], axis=1)
        for name, row in zip(chosen, table, strict=True):
            cells = [
                f"**{value:.4f}**" if value == best else f"{value:.4f}"
                for value, best in zip(row, table.min(axis=0), strict=True)
            ]
            lines.append([preset, name, *cells])
    return markdown(["preset", "option", *targets, "mean"], lines)


def speed(rows: list[Row]) -> list[str]:
    """Median and longest seconds of a transfer with all labels."""
    lines = []
    for preset in PRESETS:
        moved = pick(rows, preset=preset, size=0, **MOVED[preset])
        cells = [
            f"{np.median(values):.1f}, {max(values):.1f}"
            for name in ("seconds_to_best", "seconds")
            if (values := [row[name] for row in moved])
        ]
        lines.append([preset, str(len(moved)), *cells])
    return markdown(["preset", "transfers", "seconds to the best epoch", "seconds in all"], lines)


def parts() -> Parts:
    """Tables of the page."""
    rows, targets = stored()
    return {
        "seeds": str(len({row["seed"] for row in rows})),
        "savings": savings(rows, targets),
        "speed": speed(rows),
        **{figure: comparison(rows, targets, figure) for figure in TITLES},
    }


def pictures() -> None:
    """Draw the pictures."""
    rows, targets = stored()
    curves(rows, targets, dict.fromkeys(targets, ALL_LABELS), HOME / "sizes.png")
    for figure, title in TITLES.items():
        for preset in presets_of(figure):
            chosen = options(rows, preset, figure)
            bars(chosen, targets, f"{preset}: {title}", HOME / f"{figure}-{preset}.png")
