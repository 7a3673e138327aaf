"""Configurations name the flag that is wrong; the preset `paper` is the paper's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from driple.errors import ConfigError
from driple.training.config import AUTHORS, PRESETS, Preset, TrainConfig, preset_named


@pytest.mark.parametrize(
    ("field", "value", "flag"),
    [
        ("learning_rate", 0.0, "learning_rate"),
        ("learning_rate", float("nan"), "learning_rate"),
        ("huber_delta", -1.0, "huber_delta"),
        ("weight_decay", -1e-6, "weight_decay"),
        ("clip_norm", float("inf"), "clip_norm"),
        ("final_rate_share", 1.5, "final_rate_share"),
        ("warmup_epochs", -1, "warmup_epochs"),
        ("plateau_epochs", 0, "plateau_epochs"),
        ("batch_size", 0, "batch_size"),
        ("batch_size", 2.5, "batch_size"),
        ("patience_epochs", 0, "patience_epochs"),
        ("max_epochs", True, "max_epochs"),
        ("seed", -1, "seed"),
        ("loss", "l1", "loss"),
        ("optimizer", "sgd", "optimizer"),
        ("schedule", "step", "schedule"),
        ("input_scaling", "max", "input_scaling"),
        ("target_scaling", "none", "target_scaling"),
    ],
)
def test_errors_name_the_flag(field: str, value: Any, flag: str) -> None:
    """What makes no sense is refused under the name that the command line has for it."""
    with pytest.raises(ConfigError, match=f"^{flag} must be"):
        TrainConfig(**{field: value})


def test_preset_paper_has_the_papers_structure() -> None:
    """What sections 3.1 to 3.3 and 5.2 give, but for batch and set2set; the rest is left open."""
    ours, authors = PRESETS["paper"], AUTHORS
    assert replace(ours.input, features="paper") == authors.input
    assert replace(ours.inspector, output="leaky_relu", set2set_steps="m") == authors.inspector
    for field in ("optimizer", "learning_rate", "weight_decay"):
        assert getattr(ours.train, field) == getattr(authors.train, field)


def test_layers_are_added_in_closed_form() -> None:
    """Up to all 49 in 60 % of the growth epochs, then they take part themselves."""
    config = TrainConfig(max_epochs=125, start="pass", growth_share=0.8)
    assert [config.num_passed(epoch, 49) for epoch in (1, 30, 60, 100)] == [1, 24, 49, 49]
    assert config.num_passed(101, 49) is None
    assert TrainConfig().num_passed(1, 49) is None


def test_combinations_that_make_no_sense() -> None:
    """The closed form is that of layers that pass embeddings on; SMAPE is of logarithms here."""
    with pytest.raises(ConfigError, match="use start pass"):
        TrainConfig(growth_share=0.5)
    with pytest.raises(ConfigError, match="needs target_scaling log"):
        TrainConfig(loss="smape")


def test_later_fields_are_left_out_if_unused() -> None:
    """Folders of runs from before they were added still resume."""
    later = {"start", "shared_rate_share", "growth_share"}
    assert not later & set(AUTHORS.to_dict()["train"])
    assert later <= set(PRESETS["paper"].to_dict()["train"])


def test_the_authors_settings() -> None:
    """Every choice of sections 3.1 to 3.3 and 5.2, and of the public code."""
    preset = AUTHORS
    assert (preset.input.policy, preset.input.num_groups) == ("uniform", 100)
    assert (preset.input.components, preset.input.features) == ("largest", "paper")
    assert preset.input.context == "none"
    model = preset.inspector
    assert (model.layer, model.update, model.depth, model.hidden) == ("gcn", "gru", "m/2", 64)
    assert (model.readout, model.mlp_layers, model.output) == ("set2set", 3, "leaky_relu")
    settings = preset.train
    assert (settings.optimizer, settings.learning_rate, settings.weight_decay) == (
        "adam",
        0.003,
        1e-6,
    )
    assert (settings.batch_size, settings.patience_epochs, settings.loss) == (32, 1000, "mse")
    assert (settings.target_scaling, settings.input_scaling) == ("max", "identity")
    assert settings.schedule == "constant"


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_plain_json(name: str) -> None:
    """A preset knows its name, and writes itself down without loss."""
    preset = preset_named(name)
    assert preset.name == name
    assert json.loads(json.dumps(preset.to_dict())) == preset.to_dict()


def test_config_hash_is_of_the_content() -> None:
    """The name does not count; any field of any part does."""
    preset = Preset(name="a")
    assert preset.config_hash() == Preset(name="b").config_hash()
    others = [
        replace(preset, train=replace(preset.train, seed=1)),
        replace(preset, input=replace(preset.input, seed=1)),
        replace(preset, inspector=replace(preset.inspector, hidden=32)),
    ]
    assert len({one.config_hash() for one in [preset, *others]}) == 4
    five_servers = replace(preset, input=replace(preset.input, num_servers=5))
    assert five_servers.config_hash() == preset.config_hash()  # the data set's, no choice


def test_the_sums_that_are_read_are_of_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another cost law trains another inspector; preset `paper` reads no costs."""
    default, paper = preset_named("default"), preset_named("paper")
    known = [preset.config_hash() for preset in (default, paper)]
    assert "sums" not in paper.to_dict()
    monkeypatch.setattr("driple.training.config.LAW_NAMES", (("num_nodes",),))
    assert default.to_dict()["sums"]["law"] == [["num_nodes"]]
    assert [default.config_hash() == known[0], paper.config_hash() == known[1]] == [False, True]


def test_residuals_are_of_the_content_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another grid trains another `default`; preset `paper` is what it was without them."""
    default, paper = preset_named("default"), preset_named("paper")
    known = [preset.config_hash() for preset in (default, paper)]
    assert "residuals" not in {*paper.to_dict(), *paper.to_dict()["train"]}
    monkeypatch.setattr("driple.training.config.RIDGES", (0.5,))
    assert default.to_dict()["residuals"]["ridges"] == [0.5]
    assert [default.config_hash() == known[0], paper.config_hash() == known[1]] == [False, True]
    with pytest.raises(ConfigError, match="residuals must be one of none, kernel"):
        TrainConfig(residuals="trees")  # type: ignore[arg-type]


def test_an_unknown_preset_is_refused() -> None:
    """The line lists the known ones."""
    with pytest.raises(ConfigError, match="preset must be one of paper, default, got 'best'"):
        preset_named("best")
