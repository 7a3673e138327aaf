"""Arguments of the questions as people write them: one or several, paths and days as text.

one value, or a sequence of them -> tuple;  what is neither is refused with the name of its option
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from driple.checks import check_whole
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.jobs.load import JobOptions, JobSource
from driple.jobs.options import options_of
from driple.remarks import Remark, remark
from driple.schemes.registry import scheme_named

if TYPE_CHECKING:
    from driple.catalog.catalog import Catalog
    from driple.catalog.machine_file import MachineFile

__all__ = [
    "PathLike",
    "batches_remarks",
    "catalog_of",
    "day_of",
    "jobs_of",
    "machine_of",
    "measured_over",
    "names_of",
    "own_setting",
    "path_of",
    "paths_of",
    "scheme_remarks",
    "settings_of",
    "unread_settings_of",
    "whole_numbers_of",
    "with_asked_scheme",
]

_HALVES = ("bf16", "fp16")  # of the whole model, or by autocast

PathLike = Path | str


def jobs_of(jobs: JobSource | Iterable[JobSource]) -> list[JobSource]:
    """One or several jobs; `load_job` refuses what is none, such as a module."""
    is_one = isinstance(jobs, JobSource) or callable(jobs) or not isinstance(jobs, Iterable)
    return [cast("JobSource", jobs)] if is_one else list(cast("Iterable[JobSource]", jobs))


def settings_of(
    settings: str | Setting | Sequence[str | Setting],
    catalog: Catalog | None = None,
    options: JobOptions | None = None,
    machine: MachineFile | None = None,
) -> list[Setting]:
    """One or several settings, by name or as they are.

    A training config gives the scheme of those that name none.

    Args:
        settings: which.
        catalog: devices, links and instances that names stand for; as installed by default.
        options: of the job, with its training config.
        machine: what was measured of the devices' hosts, kernels and links.

    Raises:
        ConfigError: neither names nor settings, or none at all; a machine of other GPUs.
        SettingError: an unknown setting.
    """
    given = unread_settings_of(settings)
    if not given:
        raise ConfigError(
            "settings is empty; give one or more, or leave it out for the setting that each job is "
            "made for"
        )
    read = [
        one if isinstance(one, Setting) else Setting.parse(one, catalog=catalog) for one in given
    ]
    scheme = options_of(options).config.scheme
    with_schemes = [setting.with_usual_scheme(scheme) for setting in read]
    if machine is None:
        return with_schemes
    from driple.simulate.own_machine import with_machine

    return [with_machine(setting, machine) for setting in with_schemes]


def with_asked_scheme(settings: Sequence[Setting], scheme: str) -> list[Setting]:
    """The settings with a scheme that a user names.

    Raises:
        SettingError: no such scheme, or one that does not fit a setting.
    """
    from driple.schemes.registry import scheme_asked

    scheme_asked(scheme)
    for setting in settings:
        setting.check_scheme([scheme.lower()])
    return [setting.with_scheme(scheme.lower()) for setting in settings]


def machine_of(file: PathLike | None) -> MachineFile | None:
    """The content of a machine file; None without one.

    Raises:
        ConfigError: something else than a path, or a file that cannot be read.
    """
    path = path_of("--machine", file)
    if path is None:
        return None
    from driple.catalog.machine_file import read_machine

    return read_machine(path)


def own_setting(machine: MachineFile | None) -> str | None:
    """Name of the setting of a measured machine, all its GPUs; None if the file has no GPU.

    One GPU of a `device.toml`, which states a device and not how many there are.
    """
    if machine is None:
        return None
    facts = machine.machine
    if facts is not None and facts.device is not None:
        return f"{facts.num_devices or 1}x{facts.device}"
    return f"1x{machine.rows[0].name}" if len(machine.rows) == 1 else None


def measured_over(machine: MachineFile, catalog_files: Sequence[Path]) -> tuple[Remark, ...]:
    """Which devices a catalogue file of the user's and the machine file both state."""
    from driple.catalog.rows import read_file

    measured = {row.name for row in machine.rows}
    return tuple(
        remark("measured_over_catalog", device=row.name, machine=machine.file, file=str(path))
        for path in catalog_files
        for row in read_file(path)["devices"]
        if row.name in measured
    )


def scheme_remarks(options: JobOptions | None, setting: Setting) -> tuple[Remark, ...]:
    """What a user's scheme or precision contradicts, and counts before: a config, an engine.

    A scheme with a buffer of its own is DeepSpeed's, which updates a copy in fp32.
    """
    given, own = options_of(options), setting.scheme.suffix
    config, remarks = given.config, [*batches_remarks(options, setting.num_replicas)]
    if setting.num_workers < 2:
        return tuple(remarks)
    if config.scheme and config.scheme != own:
        remarks.append(remark("other_scheme", file=config.file, scheme=config.scheme, asked=own))
    sharding = scheme_named(setting.scheme.name).sharding
    half = (given.precision or "").removeprefix("amp-")
    if half in _HALVES and sharding is not None and sharding.bucket_elements is not None:
        remarks.append(
            remark("engine_keeps_masters", scheme=own, asked=given.precision, usual=f"{half}-mixed")
        )
    return tuple(remarks)


def batches_remarks(options: JobOptions | None, replicas: int | None) -> tuple[Remark, ...]:
    """The devices on which a config's samples per update, batch and passes agree.

    Args:
        options: of the job, with its training config.
        replicas: devices of the answer, which say nothing where they are those; None if these
            are to be chosen.
    """
    given = options_of(options)
    config, agreed = given.config, given.agreed_replicas
    if agreed is None or agreed == replicas:
        return ()
    return (
        remark(
            "batches_agree_on",
            file=config.file,
            tool=config.tool,
            global_batch=config.global_batch,
            batch_size=config.batch_size,
            passes=config.grad_accumulation,
            num_devices=int(agreed) if agreed == int(agreed) else None,
        ),
    )


def unread_settings_of(
    settings: str | Setting | Sequence[str | Setting],
) -> tuple[str | Setting, ...]:
    """One or several settings, whose names are not looked up yet.

    Raises:
        ConfigError: neither names nor settings.
    """
    is_one = isinstance(settings, str | Setting) or not isinstance(settings, Sequence)
    given = (cast("str", settings),) if is_one else tuple(cast("Sequence[str]", settings))
    for setting in given:
        if not isinstance(setting, str | Setting):
            raise ConfigError(
                f"settings are names such as V100-P1w2, got {type(setting).__name__}; give a "
                "checkpoint as checkpoint=..."
            )
    return given


def names_of(flag: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """One or several names.

    Raises:
        ConfigError: something else than names.
    """
    return _several(flag, value, str, "names")


def whole_numbers_of(flag: str, value: int | Sequence[int], *, most: int) -> tuple[int, ...]:
    """One or several whole numbers from 1 to `most`.

    Raises:
        ConfigError: something else than such numbers.
    """
    numbers = _several(flag, value, int, "whole numbers")
    for number in numbers:
        check_whole(flag, number, 1, most)
    return numbers


def path_of(flag: str, value: PathLike | None) -> Path | None:
    """A path, from text too; None if there is none.

    Raises:
        ConfigError: something else than a path.
    """
    return None if value is None else paths_of(flag, [value])[0]


def paths_of(flag: str, value: PathLike | Sequence[PathLike]) -> tuple[Path, ...]:
    """One or several paths, from text too.

    Raises:
        ConfigError: something else than paths.
    """
    return tuple(Path(one) for one in _several(flag, value, (str, Path), "paths"))


def catalog_of(
    catalogs: PathLike | Sequence[PathLike], machine: MachineFile | None = None
) -> Catalog | None:
    """The catalogue with files of the user's own; None if there are none.

    Args:
        catalogs: TOML files, of which later ones take precedence.
        machine: measured devices, which take precedence over all files.

    Raises:
        ConfigError: something else than paths, or a file that cannot be read.
    """
    files = paths_of("--catalog", catalogs)
    if not files and machine is None:
        return None
    from driple.catalog import read_catalog

    return read_catalog(files, machine)


def day_of(flag: str, value: datetime.date | str | None) -> datetime.date | None:
    """A day, from text such as 2026-01-31 too; None if there is none.

    Raises:
        ConfigError: something else than a day.
    """
    if isinstance(value, datetime.datetime):
        return value.date()
    if value is None or isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{flag} needs a day such as 2022-12-31, got {value!r:.80}") from error


def _several(
    flag: str, value: object, kinds: type | tuple[type, ...], needed: str
) -> tuple[Any, ...]:
    """One or several values of these kinds."""
    if isinstance(value, kinds):
        return (value,)
    values = tuple(value) if isinstance(value, Iterable) else ()
    odd = [one for one in values if not isinstance(one, kinds)]
    if odd or not isinstance(value, Iterable):
        raise ConfigError(f"{flag} needs {needed}, got {odd[0] if odd else value!r:.80}")
    return values
