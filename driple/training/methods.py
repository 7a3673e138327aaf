"""Which methods the arena can compare on a data set, and why it cannot the others.

    Dataset, names or `all`  ->  Chosen: names, reasons of those left out

A method is a baseline (`baselines.BASELINES`), `simulator`, or a preset (`config.PRESETS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driple.dataset.example import Dataset
from driple.dataset.lookup import StoredLabels
from driple.errors import ConfigError
from driple.training.baselines import BASELINES, ON_SUMMARIES
from driple.training.config import PRESETS, Preset

__all__ = ["SIMULATOR", "Chosen", "choose_methods"]

SIMULATOR = "simulator"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """What can be compared.

    Attributes:
        methods: names, in the order of the table.
        left_out: reason of each method that cannot.
    """

    methods: tuple[str, ...]
    left_out: dict[str, str]


def choose_methods(
    dataset: Dataset,
    against: str = "all",
    *,
    simulated: StoredLabels | None = None,
    presets: Mapping[str, Preset] = PRESETS,
) -> Chosen:
    """The methods that are named, or all that apply to a data set.

    Args:
        dataset: on which they are compared.
        against: `all`, or names with commas.
        simulated: what the simulator says of the data set's workloads, if anything is known.
        presets: presets by method name.

    Raises:
        ConfigError: an unknown method, one twice, or one that is named and does not apply.
    """
    known = (*BASELINES, SIMULATOR, *presets)
    if against == "all":
        reasons = {name: _reason_against(name, dataset, simulated) for name in known}
        return Chosen(
            methods=tuple(name for name, reason in reasons.items() if not reason),
            left_out={name: reason for name, reason in reasons.items() if reason},
        )
    named = tuple(name.strip() for name in against.split(","))
    for name in named:
        if name not in known:
            raise ConfigError(f"--against: {name!r} is none of all, {', '.join(known)}")
        reason = _reason_against(name, dataset, simulated)
        if reason:
            raise ConfigError(f"--against: {name} cannot be compared on {dataset.name}: {reason}")
    return Chosen(methods=named, left_out={})


def _reason_against(method: str, dataset: Dataset, simulated: StoredLabels | None) -> str:
    """Why a method cannot be compared on a data set; empty if it can."""
    if method in ON_SUMMARIES and dataset.is_grouped:
        return "its graphs are known by their groups alone, which tell no FLOPs and no op counts"
    return _reason_against_simulator(dataset, simulated) if method == SIMULATOR else ""


def _reason_against_simulator(dataset: Dataset, simulated: StoredLabels | None) -> str:
    if any(example.label_source == "simulated" for example in dataset.examples):
        return "the simulator made its labels"
    if simulated is None:
        return (
            f"no simulated labels of {dataset.setting} are there; make them (driple simulate "
            "--all), and give --simulated FOLDER"
        )
    if simulated.setting != dataset.setting:
        return f"the simulated labels are of {simulated.setting}, needed is {dataset.setting}"
    missing = [name for name in dataset.workloads if name not in simulated.targets]
    if missing:
        return (
            f"{len(missing)} of its workloads were not simulated, the first is {missing[0]}; "
            "simulate them too, and give --simulated FOLDER"
        )
    return ""
