"""Degrees that a plan tries: tensor groups in a machine, stages over machines, experts."""

from __future__ import annotations

import pytest

from driple.cluster.setting import Setting
from driple.planning.degrees import degrees_to_try
from driple.step.splittable import Splittable, splittable
from tests.simulate.jobs import net
from tests.step.mixtures import EXPERTS, HEADS, LAYERS, dense, mixture

DENSE = Splittable(heads=32, layers=32)
SPARSE = Splittable(heads=128, layers=61, experts=256)


def tried(name: str, model: Splittable) -> list[str]:
    return degrees_to_try(Setting.parse(name).cluster, model)


def test_counts_of_a_model() -> None:
    assert splittable(dense()) == Splittable(heads=HEADS, layers=LAYERS)
    assert splittable(mixture()) == Splittable(heads=HEADS, layers=LAYERS, experts=EXPERTS)
    assert splittable(net(4)) == Splittable()


@pytest.mark.parametrize(
    ("name", "model", "wanted"),
    [
        ("8xH100", DENSE, ["tp8", "tp2-zero1"]),
        ("8xH100", Splittable(heads=12, layers=12), ["tp4-zero1", "tp2-zero1"]),
        ("4x8xH100/NVLink+400G", DENSE, ["tp8-zero1", "tp2-zero1", "tp8-pp4", "pp4-zero1"]),
        (
            "8x8xB200/NVLink+400G",
            SPARSE,
            ["tp8-zero1", "tp2-zero1", "tp8-pp8", "pp8-zero1", "ep8-zero1", "ep64-zero1",
             "ep8-pp8-zero1", "tp2-ep8-pp8-zero1"],
        ),
        ("32x8xB200/NVLink+400G", Splittable(layers=4), ["pp4-zero1"]),
        ("32x8xB200/NVLink+400G", Splittable(layers=3), []),  # two stages would have 2 and 1
        ("8x8xB200/NVLink+400G", Splittable(layers=12), ["pp4-zero1"]),
        ("8xH100", Splittable(), []),
    ],
)  # fmt: skip
def test_degrees_fit_machines_and_model(name: str, model: Splittable, wanted: list[str]) -> None:
    assert tried(name, model) == wanted
    setting = Setting.parse(name)
    for scheme in wanted:  # each is a scheme of these machines
        assert setting.with_scheme(scheme).scheme.suffix == scheme
