"""Schemes by name: a scheme is one file and its row here.

"ddp" -> Ddp      "fsdp" -> Fsdp      "ps" -> ParameterServers
"""

from __future__ import annotations

from driple.cluster.schemes import SPLIT
from driple.errors import SettingError
from driple.schemes.ddp import Ddp
from driple.schemes.hierarchical import Hierarchical
from driple.schemes.ps import ParameterServers
from driple.schemes.scheme import Scheme
from driple.schemes.sharded import Fsdp, Hsdp, Zero1, Zero2
from driple.schemes.split import Split

__all__ = ["register_scheme", "scheme_named", "scheme_names"]

_SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        ParameterServers(),
        Ddp(),
        Zero1(),
        Zero2(),
        Fsdp(),
        Hsdp(),
        Hierarchical(),
        Split(),
    )
}


def scheme_named(name: str) -> Scheme:
    """The scheme of this name.

    Raises:
        SettingError: no scheme has this name.
    """
    found = _SCHEMES.get(name)
    if found is None:
        names = ", ".join(one for one in _SCHEMES if one != SPLIT)
        raise SettingError(
            f"no scheme is called '{name}'; there are {names}, and degrees such as tp2-pp4"
        )
    return found


def scheme_names() -> tuple[str, ...]:
    """Names of all registered schemes."""
    return tuple(_SCHEMES)


def register_scheme(scheme: Scheme) -> None:
    """Register a scheme under its name.

    Raises:
        SettingError: the name is taken.
    """
    known = _SCHEMES.get(scheme.name)
    if known is not None and type(known) is not type(scheme):
        raise SettingError(f"a scheme called '{scheme.name}' is registered already; rename one")
    _SCHEMES[scheme.name] = scheme
