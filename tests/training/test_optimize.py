"""Learning rates by hand, and schedules that can be replayed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from driple.inspector.scaling import TargetScaler
from driple.trace.targets import NUM_TARGETS
from driple.training.config import TrainConfig
from driple.training.metrics import smape_pct
from driple.training.optimize import RateSchedule, loss_of, make_optimizer, set_rate


def test_constant_rate() -> None:
    """The paper's: the same in every epoch."""
    schedule = RateSchedule(TrainConfig(learning_rate=0.003))
    assert [schedule.rate(epoch) for epoch in (1, 50, 1000)] == [0.003] * 3


def test_warm_up_rises_in_equal_steps() -> None:
    """Four epochs to warm up: a fifth, two fifths, ... and the whole rate in the fifth epoch."""
    schedule = RateSchedule(TrainConfig(learning_rate=1.0, warmup_epochs=4))
    rates = [schedule.rate(epoch) for epoch in range(1, 7)]
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])


def test_cosine_falls_from_the_whole_rate_to_its_least_share() -> None:
    """Half-way it is half-way between both ends."""
    config = TrainConfig(learning_rate=1.0, schedule="cosine", final_rate_share=0.1, max_epochs=100)
    schedule = RateSchedule(config)
    assert schedule.rate(1) == pytest.approx(1.0)
    assert schedule.rate(51) == pytest.approx(0.55)
    assert schedule.rate(100) == pytest.approx(0.1, abs=1e-3)
    assert all(schedule.rate(e) >= schedule.rate(e + 1) for e in range(1, 100))


def test_plateau_halves_after_enough_epochs_without_a_better_loss() -> None:
    """Two epochs of patience: halved after each two epochs that are no better, down to a least."""
    config = TrainConfig(
        learning_rate=1.0, schedule="plateau", plateau_epochs=2, final_rate_share=0.3
    )
    schedule = RateSchedule(config)
    rates = []
    for epoch, loss in enumerate([5.0, 4.0, 4.0, 4.5, 3.0, 3.0, 3.0, 3.0, 3.0], start=1):
        rates.append(schedule.rate(epoch))
        schedule.observe(loss)
    assert rates == [1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.3, 0.3]


def test_a_schedule_is_its_history() -> None:
    """Replaying the losses gives the same rate as having lived through them."""
    config = TrainConfig(schedule="plateau", plateau_epochs=2)
    losses = [3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.5, 1.5]
    lived = RateSchedule(config)
    for loss in losses:
        lived.observe(loss)
    assert RateSchedule(config, losses).rate(9) == lived.rate(9) < config.learning_rate


def test_all_layers_begin_at_a_tenth() -> None:
    """Ten epochs in closed form, ten with all layers: the same shape twice, the second lower."""
    config = TrainConfig(
        learning_rate=1.0,
        schedule="cosine",
        warmup_epochs=2,
        max_epochs=20,
        start="pass",
        growth_share=0.5,
    )
    rates = [RateSchedule(config).rate(epoch) for epoch in range(1, 21)]
    assert rates[:3] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert rates[10:] == pytest.approx([0.1 * rate for rate in rates[:10]])


def test_losses_by_hand() -> None:
    """Errors 1 and 3: mean square 5; Huber with delta 1: (0.5 + 2.5) / 2."""
    predicted, target, scale = torch.tensor([[1.0, 3.0]]), torch.zeros(1, 2), np.ones(2)
    assert float(loss_of(TrainConfig(), predicted, target, scale)) == pytest.approx(5.0)
    huber = TrainConfig(loss="huber")
    assert float(loss_of(huber, predicted, target, scale)) == pytest.approx(1.5)


def test_loss_smape_is_the_error() -> None:
    """That of the targets in their units, which the scaled logarithms stand for."""
    labels = np.random.default_rng(0).lognormal(size=(20, NUM_TARGETS))
    predicted = labels * np.random.default_rng(1).lognormal(size=labels.shape)
    scaler = TargetScaler.fit(labels, "log")
    config = TrainConfig(loss="smape", target_scaling="log")
    outputs, targets = (
        torch.from_numpy(scaler.transform(values)) for values in (predicted, labels)
    )
    loss = loss_of(config, outputs, targets, scaler.scale)
    assert 100 * float(loss) == pytest.approx(smape_pct(predicted, labels).mean())


@pytest.mark.parametrize(("name", "kind"), [("adam", "Adam"), ("adamw", "AdamW")])
def test_optimizers(name: str, kind: str) -> None:
    """The configured one, with its rate and decay."""
    config = TrainConfig(optimizer=name, weight_decay=0.25)  # type: ignore[arg-type]
    optimizer = make_optimizer(config, [torch.nn.Parameter(torch.zeros(1))])
    assert type(optimizer).__name__ == kind
    assert optimizer.param_groups[0]["weight_decay"] == 0.25


def test_repeated_layers_take_their_share_of_the_rate() -> None:
    """The first of two weights is repeated."""
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = make_optimizer(TrainConfig(shared_rate_share=0.25), weights, weights[:1])
    set_rate(optimizer, 0.4)
    rates = {id(w): group["lr"] for group in optimizer.param_groups for w in group["params"]}
    assert [rates[id(weight)] for weight in weights] == [0.1, 0.4]
    set_rate(optimizer, 0.4, shared=False)
    assert sorted(group["lr"] for group in optimizer.param_groups) == [0.0, 0.4]
