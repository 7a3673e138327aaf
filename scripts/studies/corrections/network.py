"""A network that corrects simulated step times group by group; needs torch.

CorrectionInputs, logarithms of measured over simulated --network--> logarithms for other steps

A step is the sum of its groups of ops. A small network, the same for all groups, gives each a
factor.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scripts.studies.corrections.inputs import CorrectionInputs

__all__ = ["MOST", "RowSplit", "network", "scaled"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
RowSplit = tuple[IntArray, IntArray]  # places of rows to learn, and of rows to correct

MOST = 0.7  # of a logarithm that is learned: beyond, a row is odd, not the model
_EPOCHS, _WIDTH, _BATCH, _RATE, _DECAY, _TOLERANCE = 12, 24, 128, 3e-3, 0.1, 0.05


def scaled(values: FloatArray, train: IntArray) -> FloatArray:
    """Each column in standard deviations of the training rows, within four of the mean."""
    mean, spread = values[train].mean(axis=0), values[train].std(axis=0) + 1e-6
    columns: FloatArray = np.clip((values - mean) / spread, -4, 4)
    return columns


def network(
    inputs: CorrectionInputs, off: FloatArray, weights: FloatArray, part: RowSplit, seed: int
) -> FloatArray:
    """A factor for each group of ops, by a network that all groups share; the step is their sum."""
    import torch  # an extra, loaded when something is fitted
    from torch import nn

    train, test = part
    count, groups = inputs.groups.shape[:2]
    names = np.broadcast_to(np.eye(groups), (count, groups, groups))
    steps = np.broadcast_to(inputs.steps[:, None], (count, groups, inputs.steps.shape[1]))
    nodes = np.concatenate([inputs.groups, steps], axis=2)
    flat = scaled(nodes.reshape(count, -1), train).reshape(
        nodes.shape
    )  # a column for each group: where a group is missing it stays 0
    features = torch.tensor(np.concatenate([names, flat], axis=2), dtype=torch.float32)
    shares = torch.tensor(inputs.shares, dtype=torch.float32)
    wanted = torch.tensor(off, dtype=torch.float32)
    weight = torch.tensor(weights, dtype=torch.float32)
    torch.manual_seed(seed)
    last = nn.Linear(_WIDTH, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    net = nn.Sequential(
        nn.Linear(features.shape[2], _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(),
        last,
    )  # fmt: skip

    def logs(some: IntArray) -> torch.Tensor:
        factors = (MOST * torch.tanh(net(features[some])[..., 0])).exp()
        return (shares[some] * factors).sum(1).clamp(min=1e-6).log()

    optimizer = torch.optim.AdamW(net.parameters(), _RATE, weight_decay=_DECAY)
    total = _EPOCHS * -(-len(train) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=total)
    random = np.random.default_rng(seed)
    for _ in range(_EPOCHS):
        order = random.permutation(train)
        for begin in range(0, len(order), _BATCH):
            some = order[begin : begin + _BATCH]
            error = (logs(some) - wanted[some]) / _TOLERANCE
            loss = (weight[some] * ((1 + error**2).sqrt() - 1)).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        factor_logs: FloatArray = logs(test).numpy().astype(np.float64)
    return factor_logs
