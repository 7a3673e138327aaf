"""Functions of a user by name, for other processes and for the command line.

function <-> `MODULE:NAME` or `FILE.py:NAME`
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from driple.errors import ConfigError

__all__ = ["function_named", "reference_of"]


def reference_of(name: str, function: Callable[..., Any]) -> str:
    """How another process finds a function: `MODULE:NAME`, or `FILE.py:NAME` of the main script.

    Raises:
        ConfigError: it has no name there, such as a lambda or a function within another.
    """
    inner = getattr(function, "__qualname__", "<no name>")
    module = getattr(function, "__module__", "")
    if "<" in inner:
        raise ConfigError(
            f"{name} is {inner} of {module or 'no module'}, which other processes cannot find; "
            "give a function that is defined at the top of a module"
        )
    if module != "__main__":
        return f"{module}:{inner}"
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None:
        raise ConfigError(f"{name} was typed in by hand; put it into a file, and import it")
    return f"{Path(file).resolve()}:{inner}"


def function_named(reference: str) -> Any:
    """The function that `MODULE:NAME` or `FILE.py:NAME` names; its file is run, but not as main.

    Raises:
        ConfigError: there is no such file, module or name.
    """
    place, _, name = reference.rpartition(":")
    if not place:
        raise ConfigError(f"'{reference}' names no function; give FILE.py:FUNCTION")
    found: Any = _module_of_file(Path(place)) if place.endswith(".py") else _module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{place} has no '{name}'; give a function at its top")
        found = getattr(found, part)
    return found


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"module {name} cannot be imported ({error})") from error


def _module_of_file(file: Path) -> Any:
    """The file as a module, run once however many of its functions are wanted."""
    path = file.resolve()
    name = f"driple_user_{path.stem}_{abs(hash(path)):x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError(f"{file} is not there, or no Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module
