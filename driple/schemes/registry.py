"""Schemes by name: a scheme is one file and its row here.

"ddp" -> Ddp      "fsdp" -> Fsdp      "ps" -> ParameterServers

Schemes of installed plug-ins join them when a name is unknown, or all schemes are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from driple.cluster.schemes import SchemeChoice
from driple.errors import ConfigError, SettingError
from driple.plugins import SCHEMES, plug_ins
from driple.schemes.ddp import Ddp
from driple.schemes.fsdp import Fsdp
from driple.schemes.hierarchical import Hierarchical
from driple.schemes.hsdp import Hsdp
from driple.schemes.ps import ParameterServers
from driple.schemes.scheme import Scheme
from driple.schemes.split import SplitScheme
from driple.schemes.zero1 import Zero1
from driple.schemes.zero2 import Zero2

__all__ = [
    "added_scheme",
    "register_scheme",
    "registered_schemes",
    "replica_schemes",
    "scheme_asked",
    "scheme_named",
    "scheme_names",
    "scheme_that_holds_least",
]

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
        SplitScheme(),
    )
}


def scheme_named(name: str) -> Scheme:
    """The scheme of this name.

    Raises:
        SettingError: no scheme has this name.
    """
    if name not in _SCHEMES:
        _plug_in()
    scheme = _SCHEMES.get(name)
    if scheme is None:
        names = ", ".join(known for known in _SCHEMES if known != SplitScheme.name)
        raise SettingError(
            f"no scheme is called '{name}'; there are {names}, and degrees such as tp2-pp4"
        )
    return scheme


def scheme_asked(text: str) -> Scheme:
    """The scheme that a user names: `fsdp`, or degrees such as `tp2-pp4`.

    Raises:
        SettingError: no scheme has this name, or degrees that do not go together.
    """
    name = text.lower()
    return _SCHEMES[name] if name in _SCHEMES else scheme_named(SchemeChoice.parse(text).name)


def scheme_names() -> tuple[str, ...]:
    """Names of all registered schemes."""
    return tuple(_SCHEMES)


def replica_schemes() -> tuple[str, ...]:
    """Names of the schemes under which each device computes a batch of its own, without servers."""
    return tuple(
        scheme.name
        for scheme in _SCHEMES.values()
        if not scheme.uses_servers and scheme.name != SplitScheme.name
    )


def registered_schemes() -> tuple[Scheme, ...]:
    """All schemes, in the order in which `plan` tries them; those of plug-ins come last."""
    _plug_in()
    return tuple(_SCHEMES.values())


def scheme_that_holds_least() -> Scheme:
    """The first scheme under which all devices together hold the parameters once."""
    return next(
        scheme
        for scheme in _SCHEMES.values()
        if scheme.sharding is not None
        and scheme.sharding.shards_parameters
        and not scheme.sharding.within_machine
    )


def register_scheme(scheme: Scheme) -> None:
    """Register a scheme under its name.

    Raises:
        SettingError: the name is taken.
    """
    known = _SCHEMES.get(scheme.name)
    if known is not None and type(known) is not type(scheme):
        raise SettingError(f"a scheme called '{scheme.name}' is registered already; rename one")
    _SCHEMES[scheme.name] = scheme


@contextmanager
def added_scheme(scheme: Scheme) -> Iterator[None]:
    """A scheme that is registered for as long as the block runs.

    Raises:
        SettingError: the name is taken.
    """
    before = _SCHEMES.get(scheme.name)
    register_scheme(scheme)
    try:
        yield
    finally:
        if before is None:
            del _SCHEMES[scheme.name]
        else:
            _SCHEMES[scheme.name] = before


@cache
def _plug_in() -> None:
    """Register the schemes of installed plug-ins.

    Raises:
        ConfigError: a plug-in cannot be loaded, or its name is taken.
    """
    for plug_in in plug_ins(SCHEMES, "an object with what Scheme has", _is_scheme):
        try:
            register_scheme(plug_in.value)
        except SettingError as error:
            raise ConfigError(f"{plug_in.name}: {error}") from error


def _is_scheme(value: object) -> bool:
    members = [*Scheme.__annotations__, *(name for name in dir(Scheme) if name[0] != "_")]
    return not isinstance(value, type) and all(hasattr(value, name) for name in members)
