"""Methods that can be compared on a data set, and the reasons against the others.

    Dataset, names or `all`  ->  Chosen: names, reasons of those left out

A method is a baseline (`baselines.BASELINES`), `simulator`, a preset (`config.PRESETS`), or
`transferred`: preset `default` of another setting, tuned (`transferred.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driple.dataset.example import Dataset
from driple.dataset.lookup import StoredLabels
from driple.errors import ConfigError
from driple.evaluation.baselines import BASELINES, ON_SUMMARIES
from driple.training.config import PRESETS, Preset

__all__ = ["SIMULATOR", "TRANSFERRED", "Chosen", "choose_methods"]

SIMULATOR = "simulator"
TRANSFERRED = "transferred"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """A method that can be compared.

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
    source: Dataset | None = None,
    presets: Mapping[str, Preset] = PRESETS,
) -> Chosen:
    """The methods that are named, or all that apply to a data set.

    Args:
        dataset: on which they are compared.
        against: `all`, or names with commas.
        simulated: simulated labels of the data set's workloads, if available.
        source: labels of the setting that `transferred` starts from.
        presets: presets by method name.

    Raises:
        ConfigError: an unknown method, one twice, or one that is named and does not apply.
    """
    known = (*BASELINES, SIMULATOR, *presets, TRANSFERRED)
    reasons = {name: _reason_against(name, dataset, simulated, source) for name in known}
    if against == "all":
        return Chosen(
            methods=tuple(name for name, reason in reasons.items() if not reason),
            left_out={name: reason for name, reason in reasons.items() if reason},
        )
    named = tuple(name.strip() for name in against.split(","))
    for name in named:
        if name not in known:
            raise ConfigError(f"--against: {name!r} is none of all, {', '.join(known)}")
        if reasons[name]:
            raise ConfigError(
                f"--against: {name} cannot be compared on {dataset.name}: {reasons[name]}"
            )
    return Chosen(methods=named, left_out={})


def _reason_against(
    method: str, dataset: Dataset, simulated: StoredLabels | None, source: Dataset | None
) -> str:
    """Reason why a method cannot be compared on a data set; empty if it can."""
    if method in {*ON_SUMMARIES, TRANSFERRED} and dataset.is_grouped:
        return "its graphs are known by their groups alone, without FLOPs and op counts"
    if method == TRANSFERRED:
        return _reason_against_source(dataset, source)
    return _reason_against_simulator(dataset, simulated) if method == SIMULATOR else ""


def _reason_against_source(dataset: Dataset, source: Dataset | None) -> str:
    if source is None:
        return (
            "it starts from another setting; give the folder of its data set, --set source=FOLDER"
        )
    if source.setting == dataset.setting:
        return f"--set source={source.name} is of the same setting; give another"
    if source.is_grouped:
        return f"the graphs of --set source={source.name} are known by their groups alone"
    return ""


def _reason_against_simulator(dataset: Dataset, simulated: StoredLabels | None) -> str:
    if any(example.label_source == "simulated" for example in dataset.examples):
        return "the simulator made its labels"
    if simulated is None:
        return (
            f"no simulated labels of {dataset.setting} are there; make them (driple data "
            "simulate), and give --set simulated=FOLDER"
        )
    if simulated.setting != dataset.setting:
        return f"the simulated labels are of {simulated.setting}, needed is {dataset.setting}"
    missing = [name for name in dataset.workloads if name not in simulated.targets]
    if missing:
        return (
            f"{len(missing)} of its workloads were not simulated, the first is {missing[0]}; "
            "simulate them too, and give --set simulated=FOLDER"
        )
    return ""
