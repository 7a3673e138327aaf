"""From what a user typed to a workload of the zoo, or to the names that were meant.

name -> workload_named -> Workload            name, names -> nearest_names -> the most alike
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import product

from driple.errors import ConfigError
from driple.jobs.catalogue import MODELS, model_of
from driple.jobs.fuzzy_match import alike
from driple.jobs.lists import cpu_workloads, paper_workloads
from driple.jobs.workload import DATA_SETS, OPTIMIZERS, Workload

__all__ = ["nearest_names", "workload_named"]

_NUM_OFFERED = 2
_NUM_PARTS = 5  # of a workload's name, but for what may follow
_ALIKE = 0.3  # least similarity of two names of one model, from 0 to 1


def workload_named(name: str) -> Workload:
    """The workload with this name, of a model that reads its data set.

    Raises:
        ConfigError: there is none; the message offers the nearest, with every part that was right.
    """
    try:
        workload = Workload.parse(name)
    except ConfigError as error:
        listed = [job.name for job in (*paper_workloads(), *cpu_workloads())]
        near = _mended(name) or nearest_names(name, listed)
        offer = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"{error}{offer}") from error
    if workload.model not in MODELS and (near := _mended(name)):
        raise ConfigError(
            f"no model is called '{workload.model}'; did you mean {' or '.join(near)}?"
        )
    model_of(workload)
    return workload


def _mended(name: str) -> list[str]:
    """Workloads that can be built, with each part of the name the nearest that there is."""
    model, *others = name.lower().split("/")
    if len(others) < _NUM_PARTS - 1:
        return []
    model, mark, width = model.partition("-x")
    data_set, batch, optimizer, sync, *rest = others
    parts = (
        [near + mark + width for near in alike(model, MODELS, _NUM_OFFERED)],
        alike(data_set, DATA_SETS),
        [f"b{batch.removeprefix('b')}"],
        alike(optimizer, OPTIMIZERS, 1),
        alike(sync, ("sync", "async"), 1),
    )
    return [
        "/".join([*choice, *rest])
        for choice in product(*parts)
        if _can_be_built("/".join([*choice, *rest]))
    ][:_NUM_OFFERED]


def _can_be_built(name: str) -> bool:
    try:
        model_of(Workload.parse(name))
    except ConfigError:
        return False
    return True


def nearest_names(typed: str, names: Iterable[str]) -> list[str]:
    """At most two names, the nearest first: those that start with what was typed, or else alike.

    A name that goes on with another part, as resnet20/... does, comes before one of a longer word,
    such as resnet20_v2/...; names alike are of the model that was typed, or of one much like it.

    Args:
        typed: what was typed; upper and lower case count as one.
        names: that there are.
    """
    wanted = typed.lower()
    by_lower = {name.lower(): name for name in names}
    begun = sorted(
        (name for name in by_lower if wanted and name.startswith(wanted)),
        key=lambda name: (name[len(wanted) :][:1] not in ("", "/", "-"), len(name), name),
    )
    models = alike(wanted.partition("/")[0], {name.partition("/")[0] for name in by_lower})
    same = [name for name in by_lower if name.partition("/")[0] in models]
    near = begun or difflib.get_close_matches(wanted, same, _NUM_OFFERED, _ALIKE)
    return [by_lower[name] for name in near[:_NUM_OFFERED]]
