"""What `plan` is asked to look at: machines and prices, and what the catalogue knows of them.

PlacesAsked -> Machines, ..., Refused, ...;  PricesAsked -> PriceBook;  profiles -> Offer, ...
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driple.api.arguments import PathLike, paths_of, settings_of
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.planning.amount import AmountAsked
from driple.planning.places import Refused

if TYPE_CHECKING:
    from driple.catalog import Catalog, Instance
    from driple.catalog.machine_file import MachineFile
    from driple.jobs.load import JobOptions
    from driple.planning.offers import Offer
    from driple.planning.places import Machines
    from driple.planning.prices import PriceBook

__all__ = [
    "MOST_MACHINES",
    "PlacesAsked",
    "PricesAsked",
    "book_of",
    "measured_offers",
    "places_of",
    "profiles_of",
]

ANY, OWN = "any", "own"
MOST_MACHINES = 1024  # instances of a kind


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacesAsked:
    """Which machines to look at.

    Attributes:
        instances: names; `p3` is all of P3; all known if empty.
        devices: names of devices; `any` for all, `own` for instances of the user's own files.
        machines: numbers of instances of a kind.
        settings: the user's own machines, in place of instances: names of settings, or settings.
        catalogs: own devices, links, instances and prices (TOML), which take precedence.
        options: of the job, whose training config may state the scheme.
        machine: what was measured of `settings`.
    """

    instances: Sequence[str] = ()
    devices: Sequence[str] = ()
    machines: Sequence[int] = (1,)
    settings: Sequence[str | Setting] = ()
    catalogs: Sequence[Path] = ()
    options: JobOptions | None = None
    machine: MachineFile | None = None

    def __post_init__(self) -> None:
        if self.settings and (self.instances or self.devices or tuple(self.machines) != (1,)):
            raise ConfigError(
                "--setting names all machines; leave out --instance, --devices and --machines, or "
                "leave out --setting"
            )
        if self.machine is not None and not self.settings:
            raise ConfigError(
                f"--machine {self.machine.file} is of your own machine, and no setting says which: "
                "it names no GPU, or instances were asked for; give --setting, such as 8xH100"
            )
        if OWN in self.devices and not self.catalogs:
            raise ConfigError(
                "--devices own is for instances of your own; give them with --catalog FILE.toml"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class PricesAsked:
    """Which prices count.

    Attributes:
        files: of the user (TOML, CSV, or a SkyPilot catalogue), which take precedence.
        day: last day of a price; the newest if None.
        region: of prices; any if None.
        spot: whether machines are spot machines.
    """

    files: Sequence[Path] = ()
    day: datetime.date | None = None
    region: str | None = None
    spot: bool = False


def book_of(
    asked: PricesAsked, known: Mapping[str, Instance], catalog: Catalog | None
) -> PriceBook:
    """Prices of the user's files, and the shipped ones.

    Raises:
        ConfigError: a file that cannot be read, or no price of the region that is asked for.
    """
    from driple.planning.places import full_name
    from driple.planning.prices import PriceBook, check_region, read_prices

    files = [read_prices(path) for path in asked.files]
    check_region(asked.region, files, known.values())

    def name_of(given: str) -> str | None:
        return full_name(given, known, catalog)

    return PriceBook(
        files=tuple(file.with_names(name_of) for file in files),
        date=asked.day,
        region=asked.region,
        spot=asked.spot,
    )


def profiles_of(profiles: Sequence[tuple[PathLike, str]]) -> list[tuple[Path, str]]:
    """Folders of stall profiles, and the instances that they were taken on.

    Raises:
        ConfigError: something else than such pairs.
    """
    pairs = []
    for pair in profiles:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ConfigError(
                "profiles are pairs of a folder and the name of an instance, such as "
                f"[('runs/profile', 'p3.8xlarge')], got {pair!r:.80}"
            )
        (folder,) = paths_of("--profile", [pair[0]])
        pairs.append((folder, pair[1]))
    return pairs


def measured_offers(
    profiles: Sequence[tuple[Path, str]],
    known: Mapping[str, Instance],
    book: PriceBook,
    amount: AmountAsked,
) -> list[Offer]:
    """Offers of instances whose stall profiles were measured.

    Raises:
        ConfigError: a profile of an instance that nobody knows.
    """
    from driple.planning.offers import measured_offer
    from driple.profiler.stall_profile import read_profile

    for folder, name in profiles:
        if name not in known:
            raise ConfigError(
                f"--profile needs FOLDER=INSTANCE with an instance such as p3.8xlarge (there are "
                f"{', '.join(known)}), got '{folder}={name}'"
            )
    return [
        measured_offer(read_profile(folder), known[name], book, amount) for folder, name in profiles
    ]


def places_of(
    asked: PlacesAsked,
    known: Mapping[str, Instance],
    catalog: Catalog | None,
    measured: set[str],
    schemes: Sequence[str],
) -> tuple[list[Machines], list[Refused]]:
    """Machines to simulate, without those that were measured; and those that cannot be."""
    from driple.planning.places import chosen_instances, place_of_setting
    from driple.planning.places import places_of as places_with

    if asked.settings:
        settings = settings_of(asked.settings, catalog, asked.options, asked.machine)
        for setting in settings:
            setting.check_scheme([name for name in schemes if name != ANY])
        return [place_of_setting(one) for one in {one.name: one for one in settings}.values()], []
    devices = [name for name in asked.devices if name not in {ANY, OWN}]
    some: Mapping[str, Instance] = known
    if OWN in asked.devices:
        some = _own_instances(known)
    chosen = chosen_instances(some, asked.instances, devices, catalog)
    places, refused = places_with(chosen, asked.machines, catalog)
    return [place for place in places if place.name not in measured], refused


def _own_instances(known: Mapping[str, Instance]) -> dict[str, Instance]:
    """Instances that a user's file adds or changes.

    Raises:
        ConfigError: there are none.
    """
    from driple.catalog import shipped_catalog

    shipped = shipped_catalog().instances
    own = {name: one for name, one in known.items() if shipped.get(name) != one}
    if not own:
        raise ConfigError(
            "--devices own: no file of --catalog has an [[instances]] row; add one with device, "
            "num_devices and interconnect"
        )
    return own
