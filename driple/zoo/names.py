"""From what a user typed to a workload of the zoo, or to the names that were meant.

name -> workload_named -> Workload            name, names -> nearest_names -> the most alike
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from driple.errors import ConfigError
from driple.zoo.catalogue import model_of
from driple.zoo.lists import cpu_workloads, paper_workloads
from driple.zoo.workload import Workload

__all__ = ["nearest_names", "workload_named"]

_NUM_OFFERED = 2
_ALIKE = 0.3  # least similarity of what is offered, from 0 to 1


def workload_named(name: str) -> Workload:
    """The workload with this name, of a model that reads its data set.

    Raises:
        ConfigError: there is none; where the name has another form, the message offers the nearest.
    """
    try:
        workload = Workload.parse(name)
    except ConfigError as error:
        listed = [job.name for job in (*paper_workloads(), *cpu_workloads())]
        near = nearest_names(name, listed)
        offer = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"{error}{offer}") from error
    model_of(workload)
    return workload


def nearest_names(typed: str, names: Iterable[str]) -> list[str]:
    """At most two names, the nearest first: those that start with what was typed, or else alike.

    A name that goes on with another part, as resnet20/... does, comes before one of a longer word,
    such as resnet20_v2/...; names alike are of the model that was typed, if there is one.

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
    model = wanted.partition("/")[0] + "/"
    same = [name for name in by_lower if name.startswith(model)]
    near = begun or difflib.get_close_matches(wanted, same or by_lower, _NUM_OFFERED, _ALIKE)
    return [by_lower[name] for name in near[:_NUM_OFFERED]]
