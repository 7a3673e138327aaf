"""The registry of readers of jobs: what a user may type, and who turns it into a `Job`.

    JOB --first reader that claims it--> refuse options that it has no use for --> Job

A kind of JOB is one file with a `JobReader`, and its row in `driple.jobs.load`. The first that
claims a JOB reads it: readers of prefixes such as `hf:` come before those of files, and names come
last. What none of them claims for certain, readers of installed plug-ins are asked for first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.files import is_nameable
from driple.jobs.job import Job, JobOrigin
from driple.jobs.options import JobOptions
from driple.plugins import READERS, PlugIn, plug_ins

__all__ = [
    "JobReader",
    "JobRequest",
    "added_reader",
    "capability_for",
    "kernels_on",
    "nothing_of",
    "one_at_a_time",
    "reader_of",
    "reading",
    "register_reader",
    "registered_readers",
]

_In = TypeVar("_In")
_Out = TypeVar("_Out")

reading = threading.RLock()
"""Held while a model is built and traced here: PyTorch's dispatcher is one for all threads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRequest:
    """What a reader gets.

    Attributes:
        text: JOB as typed.
        options: that the user added, all of which the reader takes.
        setting: cluster that the job is for; None if the question has none.
        training: whether a graph without a training step is refused.
        content: of the file, where it is in memory; None to read it at `text`.
    """

    text: str
    options: JobOptions
    setting: Setting | None = None
    training: bool = True
    content: bytes | None = None

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Of the devices of the setting; an A100's without a setting, None of other makers."""
        return capability_for(self.setting)


def capability_for(setting: Setting | None) -> tuple[int, int] | None:
    """Compute capability of a setting's worker; an A100's without one, None of other makers."""
    from driple.graph.torch.options import compute_capability_of

    return (8, 0) if setting is None else compute_capability_of(setting.worker.generation)


def one_at_a_time(read: Callable[[JobRequest], Job]) -> Callable[[JobRequest], Job]:
    """A reader that builds its model in this process, for programs with several threads."""

    def locked(request: JobRequest) -> Job:
        with reading:
            return read(request)

    return locked


def kernels_on(setting: Setting) -> Hashable:
    """What a PyTorch model takes of a setting: the kernels of attention of its worker."""
    from driple.graph.torch.options import kernels_like

    return kernels_like(setting.worker.generation, half=True)


def nothing_of(setting: Setting) -> None:
    """What a file takes of a setting: it is the same job on all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobReader:
    """One kind of JOB.

    Attributes:
        origin: what its jobs are made from.
        name: of the kind, for messages: `a workload of the catalogue`.
        form: how a user types it, such as `hf:PATH`; the help lists it.
        claims: whether a text is of this kind; it reads no more than the begin of a file.
        flags: of the options that it takes, as `JobOptions.given` names them.
        read: makes the job.
        decided_by: what of a setting decides the job; one job serves all settings that have the
            same of it.
        refuse: raises an error for what it claims but cannot be read with any option; it comes
            before options are looked at.
        is_certain: whether what it claims can be of no other kind; else plug-ins are asked first.
    """

    origin: JobOrigin
    name: str
    form: str
    claims: Callable[[str], bool]
    flags: frozenset[str]
    read: Callable[[JobRequest], Job]
    decided_by: Callable[[Setting], Hashable] = lambda setting: setting
    refuse: Callable[[str], None] | None = None
    is_certain: Callable[[str], bool] = lambda text: True


_READERS: list[JobReader] = []


def register_reader(reader: JobReader, *, first: bool = False) -> None:
    """Add a kind of JOB, behind all others or before them.

    Raises:
        ConfigError: a reader with this form is registered.
    """
    if any(known.form == reader.form for known in _READERS):
        raise ConfigError(f"a reader of {reader.form} is registered already; give another form")
    _READERS.insert(0 if first else len(_READERS), reader)


@contextmanager
def added_reader(reader: JobReader) -> Iterator[None]:
    """A kind of JOB that comes before all others, for as long as the block runs."""
    register_reader(reader, first=True)
    try:
        yield
    finally:
        _READERS.remove(reader)


def registered_readers() -> tuple[JobReader, ...]:
    """All readers, in the order in which they are asked."""
    return tuple(_READERS)


def reader_of(text: str, options: JobOptions) -> JobReader:
    """The first reader that claims a JOB.

    Args:
        text: JOB as typed.
        options: that the user added; the reader takes all of them.

    Raises:
        ConfigError: no reader claims it, or it has no use for one of the options.
    """
    _check_text(text)
    reader = _first(_READERS, text)
    if reader is None or not reader.is_certain(text):
        reader = _first(_plugged_in(), text) or reader
    if reader is None:
        forms = ", ".join(known.form for known in (*_READERS, *_plugged_in()))
        raise ConfigError(f"'{text[:200]}' names no job; give {forms}")
    if reader.refuse is not None:
        reader.refuse(text)
    odd = [flag for flag in options.given if flag not in reader.flags]
    if odd:
        raise ConfigError(_odd_words(odd, text, reader))
    return reader


def _first(readers: Iterable[JobReader], text: str) -> JobReader | None:
    """The first of some readers that claims a text; None if none does."""
    return next((reader for reader in readers if reader.claims(text)), None)


@cache
def _plugged_in() -> tuple[JobReader, ...]:
    """Readers of installed plug-ins, whose failures name the plug-in.

    Raises:
        ConfigError: a plug-in cannot be loaded, or has a form that another reader has.
    """
    readers: list[JobReader] = []
    for plug_in in plug_ins(READERS, "a driple.jobs.readers.JobReader", _is_reader):
        reader: JobReader = plug_in.value
        if any(known.form == reader.form for known in (*_READERS, *readers)):
            raise ConfigError(
                f"{plug_in.name} reads {reader.form}, which another reader does; uninstall one"
            )
        readers.append(
            replace(
                reader,
                claims=_blaming(plug_in, reader.claims),
                read=_blaming(plug_in, reader.read),
                decided_by=_blaming(plug_in, reader.decided_by),
                refuse=None if reader.refuse is None else _blaming(plug_in, reader.refuse),
            )
        )
    return tuple(readers)


def _is_reader(value: object) -> bool:
    return isinstance(value, JobReader)


def _blaming(plug_in: PlugIn, call: Callable[[_In], _Out]) -> Callable[[_In], _Out]:
    """A function of a plug-in, whose errors name it."""

    def called(value: _In) -> _Out:
        with plug_in.blamed():
            return call(value)

    return called


def _check_text(text: str) -> None:
    """Refuse what names nothing on this machine, and paths that no system can look up.

    Raises:
        ConfigError: which.
    """
    forms = ", ".join(one.form for one in _READERS)
    if not text.strip():
        raise ConfigError(f"JOB is empty; give {forms}")
    if "://" in text:
        raise ConfigError(
            f"'{text[:200]}' is an address, and Driple downloads nothing; save the file, and give "
            "its path"
        )
    if not is_nameable(text):
        raise ConfigError(
            f"'{text[:60]}...' has {len(text)} characters, which no file's path has; give {forms}"
        )


def _odd_words(odd: list[str], text: str, reader: JobReader) -> str:
    """Which options the reader has no use for, who has, and what it takes in place of them."""
    words = {flag.split()[0] for flag in odd} - {"--set"}
    instead = sorted(flag for flag in reader.flags if flag.split()[0] in words)
    advice = f"give {' or '.join(instead)}" if instead else "leave it out"
    if len(odd) > 1 and not instead:
        advice = "leave them out"
    others = list(dict.fromkeys(one.name for one in _READERS if set(odd) <= one.flags))
    uses = f"for {' or '.join(others)}, and" if others else "not for this job:"
    return f"{' and '.join(odd)}: {uses} {text[:200]} is {reader.name}; {advice}"
