"""Cluster settings: a cluster and a scheme, with a name.

    V100-P1w2/ho-PCIe     V100 GPUs, 1 parameter server, 2 workers, all alike, co-located over PCIe
    2080Ti-P4w4/he-40G    the 2080 Ti worker of a cluster of unlike GPUs, 40 Gbit/s Ethernet
    CPU-P1w2/ho-200M      CPU workers (0.4 of a core each), links of 200 Mbit/s
    CPU25-P1w2/he-200M    the worker with 0.25 of a core, beside one with 0.4
    V100-R4/ho-PCIe       ring all-reduce over 4 workers; R1 is one device and no exchange
    4x8xH100/NVLink+400G  4 machines of 8 devices: the link within a machine, and the network
    4x8xH100+8x400G       the usual link within a machine, and 8 network interfaces of each machine
    8xA100@tp2-pp4        another scheme than all-reduce: `fsdp`, degrees of parallelism
    p5.48xlarge           an instance of the catalogue; 4xp5.48xlarge are four of them
    cluster.yaml          a file that describes a cluster (`driple.cluster.cluster_file`)

Names are case-insensitive and take their spelling from the catalogue. `Setting.parse` also takes
short names: a device stands for its declared default (`V100`), else for one device (`H100` is
`1xH100`); the beginning of a known name stands for the only one that begins so (`CPU-P1w2`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from driple.catalog import Device, read_catalog
from driple.catalog.catalog import Catalog
from driple.catalog.machine_file import read_machine
from driple.cluster.cluster import Cluster
from driple.cluster.schemes import SchemeChoice, divisors_near
from driple.errors import CatalogError, SettingError
from driple.units import counted, find_rate

__all__ = ["KNOWN_SETTINGS", "SIMULATED_SETTINGS", "Setting", "UnknownCluster", "parse_setting"]


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownCluster:
    """Why the machines of a setting are not known: unlike workers, or a missing fact.

    Data measured on such a setting can be learned from; it cannot be simulated.

    Attributes:
        reason: one line for the user.
        lacks_fact: whether the catalogue lacks a fact about a device.
    """

    reason: str
    lacks_fact: bool = False

    def error(self) -> SettingError | CatalogError:
        """The error to raise where the machines are needed."""
        return CatalogError(self.reason) if self.lacks_fact else SettingError(self.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One cluster setting (paper, section 2.5 and Table 6).

    Attributes:
        name: the full name, such as `V100-P1w2/ho-PCIe`.
        scheme: how the work is distributed.
        worker: the device that answers are about.
        num_workers: devices that train.
        homogeneous: whether all workers have the same device.
        network: what joins them, as the name says it: `PCIe` when co-located, `40G`, `NVLink+400G`;
            empty for a device alone.
        described: the machines, or why they are not known.
        states_scheme: whether the user named the scheme, so that no training config does.
    """

    name: str
    scheme: SchemeChoice
    worker: Device
    num_workers: int
    homogeneous: bool = True
    network: str = ""
    described: Cluster | UnknownCluster = field(repr=False)
    states_scheme: bool = field(default=False, repr=False, compare=False)

    @property
    def cluster(self) -> Cluster:
        """The machines.

        Raises:
            SettingError: what the other workers are is not known, or a link does not fit.
            CatalogError: the catalogue lacks a fact about the device.
        """
        if isinstance(self.described, UnknownCluster):
            raise self.described.error()
        return self.described

    @property
    def device(self) -> str:
        """Name of the worker's device, such as `V100` or `CPU`."""
        return self.worker.name

    @property
    def num_servers(self) -> int:
        """Parameter servers; 0 for schemes without."""
        return self.scheme.num_servers

    @property
    def num_replicas(self) -> int:
        """Copies of the model that compute on samples of their own."""
        return self.num_workers // self.scheme.degrees.of_replica

    @property
    def file_name(self) -> str:
        """The name as a part of a path: `/` is written `_`."""
        return self.name.replace("/", "_")

    @property
    def on_cpu(self) -> bool:
        """Whether workers compute on shares of CPU cores."""
        return self.worker.is_cpu

    @property
    def bits_per_s(self) -> float | None:
        """Rate of a worker's link in bit/s, if the network's name is a rate."""
        return find_rate(self.network)

    def with_scheme(self, name: str) -> Setting:
        """The same machines with another scheme, which the name then ends with.

        Args:
            name: a scheme without parameter servers, such as `fsdp`, or degrees of tensor and
                pipeline parallelism, such as `tp2-pp4`.

        Raises:
            SettingError: the scheme needs parameter servers, whose number a name such as
                V100-P1w2/ho-PCIe gives, or the setting has them; or the degrees do not divide the
                devices, or these differ.
        """
        choice = self.scheme if name == self.scheme.name else SchemeChoice.parse(name)
        if choice == self.scheme:
            return replace(self, states_scheme=True)
        if self.num_servers:
            raise SettingError(
                f"setting {self.name} has parameter servers, so that its scheme is ps, not {name}; "
                f"give machines and devices, such as {self.num_workers}x{self.device}"
            )
        if choice.is_split:
            self._check_degrees(choice)
        bare = self.name.partition("@")[0]
        suffix = "" if choice.is_usual else f"@{choice.suffix}"
        return replace(self, name=f"{bare}{suffix}", scheme=choice, states_scheme=True)

    def with_usual_scheme(self, name: str) -> Setting:
        """The same machines with the scheme of a training config, where the user names none.

        Args:
            name: as for `with_scheme`; nothing changes if empty.

        Raises:
            SettingError: as `with_scheme`.
        """
        if self.states_scheme or not name or self.num_workers < 2:
            return self
        return replace(self.with_scheme(name), states_scheme=False)

    def check_scheme(self, asked: Sequence[str]) -> None:
        """Refuse schemes of --scheme of which none is the one that the name ends with.

        Args:
            asked: names, in small letters; any will do if empty.

        Raises:
            SettingError: the name states another scheme, such as `8xA100@fsdp`.
        """
        _, given, own = self.name.partition("@")
        if given and asked and own not in asked:
            raise SettingError(
                f"setting {self.name} states the scheme {own}, and {','.join(asked)} was asked "
                "for; leave one of them out"
            )

    def _check_degrees(self, choice: SchemeChoice) -> None:
        """Refuse degrees that do not fit the devices."""
        degrees, count = choice.degrees, self.num_workers
        devices = f"{counted(count, 'device')} of {self.name}"
        if count % degrees.of_replica:
            raise SettingError(
                f"{choice.suffix} needs groups of {degrees.of_replica} devices (tp x cp x pp), "
                f"which must divide the {devices}; a group of "
                f"{divisors_near(count, degrees.of_replica)} does"
            )
        of_stage = count // degrees.pipeline
        if of_stage % degrees.expert:
            raise SettingError(
                f"ep{degrees.expert} does not divide the {of_stage} devices of a stage, of the "
                f"{devices}; ep {divisors_near(of_stage, degrees.expert)} does"
            )
        if not self.homogeneous:
            raise SettingError(
                f"setting {self.name} has unlike devices; {choice.suffix} needs devices of one kind"
            )

    @classmethod
    def parse(cls, text: str, *, catalog: Catalog | None = None) -> Setting:
        """The setting with this full or short name, or in this file.

        Args:
            text: a name, or the path of a `.yaml` file.
            catalog: devices, links and instances; as installed by default.

        Raises:
            SettingError: no such setting; the message offers the nearest known names.
            ConfigError: a file that cannot be read.
        """
        from driple.cluster.names import setting_named

        return setting_named(text, catalog)


def parse_setting(text: str, catalogs: Sequence[Path] = (), machine: Path | None = None) -> Setting:
    """The setting with this name, with devices, links and instances of the user's own files.

    Args:
        text: as `Setting.parse` takes it.
        catalogs: TOML files, as `driple.catalog.read_catalog` reads them; later ones take
            precedence.
        machine: file of `driple measure --machine`, whose devices take precedence over all.

    Raises:
        SettingError: no such setting.
        ConfigError: a file that cannot be read.
    """
    if not catalogs and machine is None:
        return Setting.parse(text)
    measured = None if machine is None else read_machine(machine)
    return Setting.parse(text, catalog=read_catalog(catalogs, measured))


# Settings that have a data set with simulated labels: Table 6 of the paper, and GPUs of today.
SIMULATED_SETTINGS = (
    "V100-P1w2/ho-PCIe",
    "V100-P2w2/ho-PCIe",
    "2080Ti-P1w2/ho-PCIe",
    "2080Ti-P1w3/ho-PCIe",
    "2080Ti-P2w2/he-PCIe",
    "TitanRTX-P2w2/he-PCIe",
    "2080Ti-P2w2/he-40G",
    "TitanRTX-P2w2/he-40G",
    "2080Ti-P4w4/he-40G",
    "TitanRTX-P4w4/he-40G",
    "V100-P5w5/he-1G",
    "2080Ti-P5w5/he-1G",
    "V100-P5w10/he-1G",
    "2080Ti-P5w10/he-1G",
    "1x4090",
    "8xA100/NVLink",
    "8xH100/NVLink",
    "8xB200/NVLink",
    "4x8xH100/NVLink+400G",
)
# All that a short name may stand for: rings, and the settings that this project measured itself.
KNOWN_SETTINGS = (
    *SIMULATED_SETTINGS,
    "H100-R8/ho-NVLink",
    "A100-R8/ho-NVLink",
    "2080Ti-R4/ho-PCIe",
    "CPU-P1w2/ho-200M",
    "CPU25-P1w2/ho-200M",
    "CPU-P2w2/ho-200M",
    "CPU-P1w3/ho-200M",
    "CPU-P1w2/ho-400M",
    "CPU-P1w2/he-200M",
    "CPU25-P1w2/he-200M",
)
