"""Functions of a user by name, for other processes and for the command line.

function <-> `MODULE:NAME` or `FILE.py:NAME`;  an exception of the user's code -> one line
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from driple.errors import ConfigError, DripleError

__all__ = ["advice_on", "exception_words", "function_named", "own_code", "reference_of"]

_HERE = Path(__file__).resolve().parent.parent


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
        ConfigError: there is no such file, module or name, or importing it fails.
    """
    place, _, name = reference.rpartition(":")
    if not place:
        raise ConfigError(f"'{reference}' names no function; give FILE.py:FUNCTION")
    with own_code(reference):  # an import runs the file
        member: Any = _module_of_file(Path(place)) if place.endswith(".py") else _module(place)
    for part in name.split("."):
        if not hasattr(member, part):
            raise ConfigError(_unknown_name(place, name, member))
        member = getattr(member, part)
    return member


@contextmanager
def own_code(reference: str) -> Iterator[None]:
    """Turn whatever the user's code raises within the block into one line that names its place.

    Errors of Driple pass. A traceback of the user's code alone is had by running it in Python.

    Args:
        reference: `FILE.py:NAME` or `MODULE:NAME` that runs.

    Raises:
        ConfigError: the code raised something, or ended the program.
    """
    try:
        yield
    except DripleError:
        raise
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise ConfigError(
            f"{reference} failed: {exception_words(error)}; {advice_on(error)}"
        ) from error


def exception_words(error: BaseException) -> str:
    """Type and first line of an exception, and the line of the user's code that it comes from.

    That is the last line outside of Driple and of installed packages. A first line that announces
    the next one, as it ends in a colon, stands with it.
    """
    first, *others = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    message = f"{first} {others[0]}" if first.endswith(":") and others else first
    words = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError):  # the file that cannot be read is not on the stack
        words = f"{type(error).__name__}: {error.msg}"
        return f"{words} ({error.filename}, line {error.lineno})" if error.filename else words
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame.filename)]
    return f"{words} ({own[-1].filename}, line {own[-1].lineno})" if own else words


def advice_on(error: BaseException) -> str:
    """What to do about an exception of the user's code; the usual causes have their own advice."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    if {type(one).__name__ for one in chain} & _DOWNLOADS:
        return _NO_DOWNLOAD
    if isinstance(error, SystemExit):
        return (
            "it must only define and build the model: put what trains, and what reads the command "
            'line, under if __name__ == "__main__":'
        )
    return next((advice for part, advice in _ADVICE if part in str(error)), _CORRECT)


_CORRECT = "correct it, and run again"
_NO_DOWNLOAD = (
    "nothing need be downloaded: build the model without its weights (weights=None, "
    "pretrained=False, or from its config)"
)
_DOWNLOADS = frozenset(
    {"URLError", "HTTPError", "ConnectionError", "ConnectError", "ConnectTimeout", "gaierror",
     "MaxRetryError", "LocalEntryNotFoundError", "OfflineModeIsEnabled"}
)  # fmt: skip
_ADVICE = (
    ("CUDA", "Driple uses no GPU: leave out calls of torch.cuda there"),
    ("NVIDIA", "Driple uses no GPU: leave out calls of torch.cuda there"),
    (
        "attempted relative import",
        "name it as a module of its package: PACKAGE.MODULE:FUNCTION, from the folder above",
    ),
    (
        "process group",
        "build the model alone: --setting states how many devices train it",
    ),
)


def _unknown_name(place: str, name: str, module: Any) -> str:
    """Which functions and classes a file has in place of the one that it does not have."""
    own = [
        known
        for known, value in vars(module).items()
        if callable(value)
        and not known.startswith("_")
        and getattr(value, "__module__", "") == getattr(module, "__name__", None)
    ]
    has = f"; it has {', '.join(own[:_SHOWN])}" if own else ""
    if len(own) > _SHOWN:
        has += f" and {len(own) - _SHOWN} more"
    what = f"no '{name}'" if name else "to be followed by the name of a function"
    verb = "has" if name else "is"
    return f"{place} {verb} {what}{has}; give a function at its top"


_SHOWN = 8


def _is_own(file: str) -> bool:
    """Whether a file is the user's: not Driple's, not of the standard library, not installed."""
    if file.startswith("<"):
        return False
    library = Path(os.__file__).resolve().parent
    path = Path(file).resolve()
    if path.is_relative_to(_HERE) or "site-packages" in path.parts:
        return False
    return not path.is_relative_to(library)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a module that it imports itself
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
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # half of a module is none
        raise
    return module
