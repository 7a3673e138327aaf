"""Sentences on the published runs that an error rests on, or why there are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.quantities import rounded
from driple.render.remarks.lists import named
from driple.units import counted

__all__ = ["SENTENCES", "kind_words"]

_KINDS = {
    "single": "one device",
    "ring": "rings",
    "sharded": "sharded training",
    "split": "tensor, context, expert or pipeline parallelism",
    "servers": "parameter servers",
}
_TASKS = {"train": "training", "forward": "forward passes"}
_OF_FIT = {"model": "model family", "device": "device"}
_NOT_TIMED = {
    "float64": (
        "float64, timed as float32: by their FP64 units, GPUs take from as long to 64 times as long"
    ),
    "complex": "complex numbers, timed as real ones: they take about four times as long",
}


def kind_words(kind: str) -> str:
    """A kind of runs in words; a scheme's own kind is in words already."""
    return _KINDS.get(kind, kind)


def _on(kind: str, several_machines: bool) -> str:
    return f"{kind_words(kind)} {'on several machines' if several_machines else 'in one machine'}"


def _where(kind: str, devices: Sequence[str], several_machines: bool) -> str:
    """Devices and cluster of some runs."""
    if kind == "single":
        return f"one device ({named(devices)})"
    if kind == "servers":
        return f"parameter servers with {named(devices)}"
    machines = "on several machines" if several_machines else "in one machine"
    return f"{kind_words(kind)} of {named(devices)} {machines}"


def _published(
    *,
    network: str,
    task: str,
    kind: str,
    devices: Sequence[str],
    several_machines: bool,
    held_out: str,
    too_few_of: str | None,
) -> str:
    words = (
        f"published runs of {network} networks, {_TASKS[task]}, "
        f"{_where(kind, devices, several_machines)}, without their {_OF_FIT[held_out]} in the fit"
    )
    if too_few_of is not None:
        words += f", as too few are of {too_few_of}"
    return words


def _more_servers(num_servers: int, num_workers: int, most_servers: int, most_workers: int) -> str:
    return (
        f"published runs with parameter servers have up to {most_servers} of them and "
        f"{counted(most_workers, 'worker')}, this setting {num_servers} and {num_workers}"
    )


_WIDER = {
    "network": "by what its network reaches",
    "host": "by what its host takes",
    "other_kind": "as a job of another kind",
    "tail": "for one in twenty",
}


def _wider(because: str, factor: float) -> str:
    """How far an interval reaches beyond the stated error: `for one in twenty over 8.1 times`."""
    up, down = ("over", "under") if because == "tail" else ("up to", "down to")
    words = f"{up} {rounded(factor, 2)} times" if factor > 1 else f"{down} {rounded(factor, 2)} of"
    return f"{_WIDER[because]} {words} the step"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "published_runs": _published,
    "of_all_frameworks": "{runs} (of all frameworks, as {framework} has none such)",
    "runs_in_short": lambda network, left_out: (
        f"runs of {network} networks; "
        f"{'each family left out' if left_out is None else f'{left_out} itself left out'}"
    ),
    "steps_of_tuned_devices": lambda devices, num_runs: (
        f"steps that we measured on {' and '.join(devices)}, each predicted by {num_runs} of other "
        "models that the device was tuned to"
    ),
    "steps_of_tuned_devices_short": lambda devices, num_runs: (
        f"measured steps on {' and '.join(devices)}, tuned to {num_runs} others"
    ),
    "interval_wider": _wider,
    "processor_steps": "training steps of PyTorch on one core of ours, each left out in turn",
    "cores_not_measured": (
        "what these cores reach was not measured (driple measure --machine, predict --machine)"
    ),
    "measured_workloads": "workloads of the catalogue, measured on {setting}",
    "measured_cpu_settings": lambda settings: (
        f"settings of CPUs that were measured are {', '.join(settings)}"
    ),
    # why there are none
    "no_run_of_scheme": "no published run in the stated errors uses {kind}",
    "no_run_of_kind": lambda kind, compiled: (
        f"no published {'compiled ' if compiled else ''}run of this kind of network is of "
        f"{kind_words(kind)}"
    ),
    "no_run_on_machines": lambda kind, several_machines: (
        f"no published run of {_on(kind, several_machines)} of this kind of network"
    ),
    "more_devices": lambda kind, several_machines, num_devices, most: (
        f"no published run of {_on(kind, several_machines)} has more than "
        f"{counted(most, 'device')}, this one has {num_devices}"
    ),
    "faster_network": lambda kind, several_machines, link, fastest: (
        f"no published run of {_on(kind, several_machines)} has a faster network than {fastest}, "
        f"this one has {link}"
    ),
    "other_links": lambda kind, several_machines, link, families: (
        f"published {_on(kind, several_machines)} go over {named(families)}, this one over {link}"
    ),
    "no_run_with_servers": (
        "there is no published run with parameter servers of this kind of network"
    ),
    "more_servers": _more_servers,
    "servers_on_one_machine": "published runs with parameter servers are on several machines",
    "faster_network_of_servers": (
        "published runs with parameter servers have networks of up to {fastest}"
    ),
    "no_run_of_task": lambda task: f"no published run is of {_TASKS[task]}",
    "other_networks": lambda task, networks, network: (
        f"published runs of {_TASKS[task]} are of {named(networks)} networks, this one is {network}"
    ),
    "no_run_so_compiled": lambda task, network, compiled: (
        f"no published run of {_TASKS[task]} of a {network} network is "
        f"{'compiled' if compiled else 'not compiled'}"
    ),
    "no_run_in_precision": lambda kind: (
        f"no published run of {kind_words(kind)} is in this precision"
    ),
    "none_left_out": lambda kind, held_out: (
        f"no published run of {kind_words(kind)} was predicted without its {_OF_FIT[held_out]}"
    ),
    "no_products": "it has no convolution or matrix product of a known size",
    "products_not_timed": lambda number_format: f"its products are in {_NOT_TIMED[number_format]}",
}
