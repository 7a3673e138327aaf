"""How the arena of page.md trains preset `paper`, and what its shorter trainings cost.

The preset waits 1,000 epochs for a better one: an hour or more for each of the twelve folds of a
family split. There, and on simulated labels, it is given less patience.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from driple.training.arena import SplitKind
from driple.training.config import PRESETS, Preset
from scripts.shipped import SHORTER_PAPER, less_patient
from scripts.studies.accuracy.compared import Compared
from scripts.studies.transfer.run import load_results


def presets_of(split: SplitKind, *, measured: bool) -> Mapping[str, Preset]:
    """Presets as they are trained; `paper` has its own patience on random splits of real labels."""
    if split == "random" and measured:
        return PRESETS
    return {**PRESETS, "paper": less_patient(PRESETS["paper"])}


def patience_told(found: Sequence[Compared]) -> list[str]:
    """Where `paper` waits less long, and what both ways come to where both were made."""
    full = PRESETS["paper"].train
    marks = {item.setting: item.results["random"].fingerprint for item in found}
    shorter = {
        row["target"]: row["smape_pct"]
        for row in load_results(marks).values()
        if (row["preset"], row["layers"], row["size"], row["seed"]) == ("paper", [], 0, 0)
    }
    pairs = [
        (shorter[item.setting], error.mean)
        for item in found
        if item.is_measured
        and item.setting in shorter
        and (error := item.smape("random", "paper", (0,))) is not None
    ]
    words = (
        f"**The patience of `paper`.** On random splits of measured settings it waits "
        f"{full.patience_epochs:,} epochs for a better one, as the preset has it. On family "
        f"splits and on simulated labels it waits {SHORTER_PAPER['patience_epochs']}, and learns "
        f"for {SHORTER_PAPER['max_epochs']} epochs at most"
    )
    if pairs:
        short, long = np.mean(pairs, axis=0)
        worse = sum(one > 1.01 * other for one, other in pairs)
        words += (
            f". Random splits of seed 0 were made both ways on {len(pairs)} settings "
            f"([transfer.md](transfer.md)): SMAPE is {short:.1f} % so, {long:.1f} % with all its "
            f"patience (means), and more on {worse} of them"
        )
    return [f"{words}.{_stopped_told(found)}"]


def _stopped_told(found: Sequence[Compared]) -> str:
    """When its trainings on simulated labels had their best epoch, and when they ended."""
    ends = [
        f"{item.setting} {fold.best_epoch} of {fold.num_epochs}"
        for item in found
        if not item.is_measured
        for fold in item.results["random"].folds_of("paper")
    ]
    if not ends:
        return ""
    return (
        f" On random splits of simulated labels its best epoch was {', '.join(ends)}; what all its "
        "patience would gain was not tried there. It learns the squared error of targets over "
        "their largest label, where small ones count little; SMAPE counts all alike."
    )
