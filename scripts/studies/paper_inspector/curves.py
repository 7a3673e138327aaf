"""Learning curves of variants of preset `paper`, in SMAPE, as its layers, start and loss change.

    python -m scripts.studies.paper_inspector.curves [NAME ...]     # default: all, hours

Appends to results.jsonl. One thread; a variant is not resumed.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from driple.dataset.store import read_datasets
from driple.inspector.model import Inspector
from driple.training.loop import predict_scaled
from driple.training.optimize import loss_of
from driple.training.prepare import PreparedData, select
from scripts.settings.shipped import measured_folders, simulated_folders
from scripts.studies.kit.results import Row, add_result
from scripts.studies.paper_inspector.run import (
    RESULTS,
    SETTINGS,
    mean_smape_pct,
    prepared_for,
    scaled_paper,
)

SIMULATED, MEASURED = SETTINGS
LEARNING_RATE = 0.003
WARMUP_STEPS = 50
NUM_REPEATED = 49


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """What differs from the paper's inspector with standardised logarithms.

    Attributes:
        setting: whose data set is learned.
        epochs: epochs in all.
        depths: (share of the epochs done, graph layers from there on).
        set2set_steps: steps of the readout; None for one per group.
        embedding_share: size of the initial embeddings as a share of torch's.
        update_bias: bias of the update gate of the repeated layer.
        reset_bias: bias of its reset gate.
        loss: `mse`, `huber` or `smape`.
        huber_delta: in scaled targets.
        weight_decay: of AdamW; 0 for Adam with the authors' 1e-6.
        shared_rate_share: learning rate of the repeated layer as a share.
        batch_size: graphs a step.
        rise_share: the 49 repeated layers are in closed form, added in this share of the epochs (0:
            all at once), and set2set has 10 steps; None: the layers themselves.
    """

    setting: str
    epochs: int
    depths: tuple[tuple[float, int], ...]
    set2set_steps: int | None = None
    embedding_share: float = 0.3
    update_bias: float = -5.0
    reset_bias: float = -2.0
    loss: str = "mse"
    huber_delta: float = 0.3
    weight_decay: float = 0.0
    shared_rate_share: float = 0.02
    batch_size: int = 32
    rise_share: float | None = None


ONE_LAYER = ((0.0, 1),)
_SMAPE: dict[str, Any] = {
    "setting": SIMULATED,
    "epochs": 40,
    "depths": ONE_LAYER,
    "set2set_steps": 10,
    "embedding_share": 1.0,
    "loss": "smape",
    "batch_size": 16,
}
VARIANTS = {
    "one layer, measured": Variant(
        setting=MEASURED, epochs=120, depths=ONE_LAYER, set2set_steps=10, embedding_share=1.0
    ),
    "one layer, simulated": Variant(
        setting=SIMULATED, epochs=120, depths=ONE_LAYER, set2set_steps=10, embedding_share=1.0
    ),
    "50 layers, open gates": Variant(setting=MEASURED, epochs=30, depths=((0.0, 50),)),
    "1, 5, 50 layers": Variant(
        setting=MEASURED, epochs=150, depths=((0.0, 1), (0.6, 5), (0.8, 50))
    ),
    "one layer, Huber, simulated": Variant(
        setting=SIMULATED, epochs=120, depths=ONE_LAYER, set2set_steps=10, loss="huber"
    ),
    "one layer, weight decay, simulated": Variant(
        setting=SIMULATED, epochs=120, depths=ONE_LAYER, set2set_steps=10, weight_decay=0.3
    ),
    "one layer, 300 epochs of batch 16": Variant(
        setting=SIMULATED,
        epochs=300,
        depths=ONE_LAYER,
        set2set_steps=10,
        embedding_share=1.0,
        batch_size=16,
    ),
    "one layer, SMAPE, 150 epochs of batch 16": Variant(**{**_SMAPE, "epochs": 150}),
    "one layer, SMAPE, 40 epochs of batch 16": Variant(**_SMAPE),
    "the same, 49 layers in closed form": Variant(**_SMAPE, rise_share=0),
    "the same, added one by one": Variant(**_SMAPE, rise_share=0.6),
    "50 layers in closed form, 25 times the budget": Variant(
        **{**_SMAPE, "epochs": 10_000}, rise_share=0
    ),
}


def untrained(variant: Variant, prepared: PreparedData) -> Inspector:
    """The inspector with gates that pass embeddings on."""
    torch.manual_seed(0)
    config = replace(
        prepared.inspector,
        depth=max(depth for _, depth in variant.depths),
        set2set_steps=variant.set2set_steps or "m",
    )
    model, width = Inspector(config, prepared.num_groups), config.hidden
    share, linear = variant.embedding_share, cast(nn.Linear, model.first.conv.linear)
    first = cast(nn.GRUCell, model.first.gru)
    with torch.no_grad():
        first.weight_ih.mul_(math.sqrt(width / config.num_features))
        for bias in (first.bias_ih, first.bias_hh):
            bias.zero_()
        for weight in (first.weight_ih[2 * width :], first.weight_hh[2 * width :]):
            weight.mul_(share)
        for weight in (linear.weight, linear.bias):
            weight.mul_(share)
        cast(nn.Linear, model.mlp[0]).weight.div_(share)
        if model.shared is not None:
            _open(cast(nn.GRUCell, model.shared.gru), variant)
    return model


def _open(gru: nn.GRUCell, variant: Variant) -> None:
    width = gru.hidden_size
    gru.weight_ih[2 * width :] = torch.eye(width)
    gru.weight_ih[: 2 * width].mul_(0.3)
    gru.weight_hh[: 2 * width].mul_(0.3)
    gru.bias_ih.zero_()
    gru.bias_hh.zero_()
    gru.bias_ih[:width] = variant.reset_bias
    gru.bias_ih[width : 2 * width] = variant.update_bias


def curve(name: str, variant: Variant, prepared: PreparedData) -> Row:
    """Train; SMAPE of each part every 10 epochs, or 500 times."""
    every = max(10, variant.epochs // 500)
    model, part = untrained(variant, prepared), prepared.parts["train"]
    shared = [] if model.shared is None else list(model.shared.parameters())
    others = [p for p in model.parameters() if all(p is not repeated for repeated in shared)]
    groups = [{"params": others, "share": 1.0}]
    if shared:
        groups.append({"params": shared, "share": variant.shared_rate_share})
    kind = torch.optim.AdamW if variant.weight_decay else torch.optim.Adam
    optimizer = kind(groups, lr=LEARNING_RATE, weight_decay=variant.weight_decay or 1e-6)
    config = replace(
        scaled_paper(1).train,
        loss=variant.loss,  # type: ignore[arg-type]
        huber_delta=variant.huber_delta,
    )
    steps = variant.epochs * math.ceil(len(part.scaled) / variant.batch_size)
    done, began = 0, time.process_time()
    row: Row = {"what": "curve", "variant": name, "setting": variant.setting, "epoch": []}
    for epoch in range(1, variant.epochs + 1):
        depths = [depth for share, depth in variant.depths if epoch > share * variant.epochs]
        model.num_kept = depths[-1] - 1
        if variant.rise_share is not None:
            done_share = epoch / (variant.rise_share * variant.epochs or 1)
            model.num_passed = round(NUM_REPEATED * min(1, done_share))
        model.train()
        for rows in torch.split(torch.randperm(len(part.scaled)), variant.batch_size):
            cosine = (1 + math.cos(math.pi * done / steps)) / 2
            done += 1
            rate = LEARNING_RATE * min(1, done / WARMUP_STEPS) * cosine
            for group in optimizer.param_groups:
                group["lr"] = rate * group["share"]
            optimizer.zero_grad()
            outputs: Tensor = model(select(part.batch, rows))
            loss = loss_of(config, outputs, part.scaled[rows], prepared.target_scaler.scale)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        if epoch % every == 0:
            row["epoch"].append(epoch)
            for part_name, scored in prepared.parts.items():
                predicted = prepared.target_scaler.inverse(predict_scaled(model, scored.batch))
                error = mean_smape_pct(predicted, scored.labels)
                row.setdefault(f"{part_name}_pct", []).append(error)
    return {**row, "processor_s": time.process_time() - began}


def main() -> None:
    """Write the curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(VARIANTS))
    names = parser.parse_args().names or list(VARIANTS)
    if unknown := set(names) - set(VARIANTS):
        parser.error(f"no variants {sorted(unknown)}; choose from {', '.join(VARIANTS)}")
    torch.set_num_threads(1)
    folders = measured_folders() | simulated_folders()
    prepared: dict[str, PreparedData] = {}
    for name in names:
        setting = VARIANTS[name].setting
        if setting not in prepared:
            dataset = read_datasets([folders[setting]])[0]
            prepared[setting] = prepared_for(dataset, scaled_paper(1))
        add_result(RESULTS, curve(name, VARIANTS[name], prepared[setting]))


if __name__ == "__main__":
    main()
