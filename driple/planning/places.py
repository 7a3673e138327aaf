"""What may be rented or used: instances and settings of the user's own, and how many of each.

Catalog, names, numbers -> Machines (with their devices);  with scheme and variant: Candidate
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driple.catalog import Instance, shipped_hardware
from driple.catalog.catalog import Catalog
from driple.cluster.names import instance_cluster_setting
from driple.cluster.schemes import SchemeChoice, divisors_near
from driple.cluster.setting import Setting
from driple.errors import CatalogError, ConfigError, DripleError, SettingError
from driple.planning.variants import Variant
from driple.schemes.registry import registered_schemes

__all__ = [
    "ANY_SCHEME",
    "Candidate",
    "Machines",
    "Refused",
    "bare_name",
    "check_degrees_fit",
    "chosen_instances",
    "full_name",
    "lacking_facts",
    "least_needed",
    "place_of_setting",
    "places_of",
    "schemes_for",
]

_GIB = 2.0**30
_MOST_NAMED = 20  # instances that an error lists
ANY_SCHEME = "any"
"""What a user asks for who leaves schemes and degrees to a plan."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """Something that cannot run the job, cannot be simulated, or has no price.

    Attributes:
        name: of instance and count, such as `2xp3.8xlarge`.
        reason: the job's requirement, and what the instance offers.
        needed_bytes: memory of a device that it lacks; None of other reasons.
    """

    name: str
    reason: str
    needed_bytes: float | None = None


def least_needed(refused: Sequence[Refused]) -> list[Refused]:
    """Each reason once; where memory lacks, only that of the way that needs least."""
    least: dict[str, Refused] = {}
    for refusal in refused:
        known = least.get(refusal.name)
        if refusal.needed_bytes is not None and (
            known is None or refusal.needed_bytes < (known.needed_bytes or 0.0)
        ):
            least[refusal.name] = refusal
    return list(dict.fromkeys(one for one in refused if least.get(one.name, one) is one))


@dataclass(frozen=True, kw_only=True, slots=True)
class Machines:
    """Machines to train on.

    Attributes:
        name: as settings are named: `p3.8xlarge`, `2xp3.8xlarge`, `4x8xH100/NVLink+400G`.
        priced_name: name of what a price is for: one instance, or all machines of a setting.
        instance: that is rented; None for a setting of the user's own.
        machines: how often the price of `priced_name` is paid.
        setting: cluster, with all-reduce.
    """

    name: str
    priced_name: str
    instance: Instance | None
    machines: int
    setting: Setting

    @property
    def num_devices(self) -> int:
        """Devices of all machines."""
        return self.setting.num_workers

    @property
    def capacity_bytes(self) -> float | None:
        """Memory of each device as the provider states it; None leaves it to the catalogue.

        Providers write GB where memory comes in GiB, have devices of more than one size, and count
        the codes of ECC.
        """
        if self.instance is None or self.instance.device_memory_gb is None:
            return None
        each_gb = self.instance.device_memory_gb / self.instance.num_devices
        return each_gb * _GIB * self.setting.worker.share_without_codes


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One way to train a job, not yet looked at.

    Attributes:
        place: the machines.
        setting: these with a scheme.
        variant: batch, passes, recomputation and precision.
    """

    place: Machines
    setting: Setting
    variant: Variant

    @property
    def samples_per_step(self) -> int:
        """Samples of all devices per update."""
        return self.variant.samples_per_update * self.setting.num_replicas


def chosen_instances(
    known: Mapping[str, Instance],
    names: Sequence[str],
    devices: Sequence[str],
    catalog: Catalog | None = None,
) -> list[Instance]:
    """Instances of these names and with these devices; `p3` selects all that begin with `p3.`.

    Args:
        known: instances by name.
        names: of instances; any if empty.
        devices: names of devices; any if empty.
        catalog: devices; as installed by default.

    Raises:
        ConfigError: no instance has a name, or none of them such a device.
        SettingError: no such device.
    """
    chosen: dict[str, Instance] = {} if names else dict(known)
    for name in names:
        fitting = [key for key in known if key == name or key.startswith(f"{name}.")]
        if not fitting:
            raise ConfigError(
                f"no instance is called '{name}'; there are {', '.join([*known][:_MOST_NAMED])} "
                "and others, and you can add your own with --catalog FILE.toml"
            )
        chosen |= {key: known[key] for key in fitting}
    if not devices:
        return [*chosen.values()]
    hardware = catalog or shipped_hardware()
    wanted = [hardware.device(name).name for name in devices]
    instances = [one for one in chosen.values() if one.device in wanted]
    for device in wanted:
        if not any(one.device == device for one in instances):
            if any(one.device == device for one in known.values()):
                raise ConfigError(
                    f"of the instances {', '.join(names)} none has {device}; leave out --instance "
                    "or --devices"
                )
            raise ConfigError(
                f"no instance has {device}; name machines of your own (--setting 8x{device}), or "
                "add an instance with --catalog FILE.toml"
            )
    return instances


def lacking_facts(
    instance: Instance, machines: int, catalog: Catalog | None = None
) -> Refused | None:
    """Why an instance cannot be simulated: fields that the catalogue lacks; None if it has all."""
    known = catalog or shipped_hardware()
    missing = known.missing_for_simulation(known.device(instance.device))
    facts = [f"{name} of a {instance.device}" for name in missing]
    if machines > 1 and instance.network_gbps is None:
        facts.append("its network_gbps")
    if not facts:
        return None
    reason = f"the catalogue does not state {', '.join(facts)}; add it in a file of your own"
    return Refused(name=_counted(instance.name, machines), reason=reason)


def places_of(
    instances: Sequence[Instance], counts: Sequence[int], catalog: Catalog | None = None
) -> tuple[list[Machines], list[Refused]]:
    """Every number of every instance, and those that cannot be simulated."""
    hardware = catalog or shipped_hardware()
    places, refused = [], []
    for instance in instances:
        for count in counts:
            lacking = lacking_facts(instance, count, catalog)
            if lacking is not None:
                refused.append(lacking)
                continue
            try:
                setting = instance_cluster_setting(hardware, instance, count)
            except (SettingError, CatalogError) as error:
                refused.append(Refused(name=_counted(instance.name, count), reason=str(error)))
                continue
            places.append(
                Machines(
                    name=setting.name,
                    priced_name=instance.name,
                    instance=instance,
                    machines=count,
                    setting=setting,
                )
            )
    return places, refused


def bare_name(setting: Setting) -> str:
    """The name of a setting's machines: prices do not depend on the scheme."""
    return setting.name.partition("@")[0]


def full_name(given: str, known: Mapping[str, Instance], catalog: Catalog | None) -> str | None:
    """The name that places have of machines that a user names; None if there are none.

    Args:
        given: name of an instance, or of a setting in any of its forms.
        known: instances by name.
        catalog: devices, links and instances; as installed by default.
    """
    if given in known:
        return given
    try:
        return bare_name(Setting.parse(given, catalog=catalog))
    except DripleError:
        return None


def place_of_setting(setting: Setting) -> Machines:
    """Machines of the user's own, or of any name of a setting.

    Raises:
        SettingError: a setting with parameter servers, or of unlike devices.
    """
    if setting.num_servers:
        raise SettingError(
            f"setting {setting.name} has parameter servers, and a plan is of schemes without; name "
            f"devices, such as {setting.num_workers}x{setting.device}"
        )
    _ = setting.cluster  # raises what is not known of it
    machines = bare_name(setting)
    return Machines(
        name=setting.name, priced_name=machines, instance=None, machines=1, setting=setting
    )


def schemes_for(place: Machines, asked: Sequence[str], *, is_model: bool) -> list[str]:
    """Schemes to try on some machines.

    One device needs no scheme, but degrees that were asked for are not answered without them:
    machines that they do not fit are refused with the reason.

    Args:
        place: the machines.
        asked: by the user; if empty those that are tried of their own accord.
        is_model: whether the job is a PyTorch model.
    """
    own = place.setting.scheme
    if not own.is_usual:
        return [own.suffix]
    only_degrees = bool(asked) and all(SchemeChoice.parse(name).is_split for name in asked)
    if place.num_devices == 1 and not only_degrees:
        return [own.suffix]
    if asked:
        return list(dict.fromkeys(asked))
    cluster = place.setting.cluster
    return [
        scheme.name
        for scheme in registered_schemes()
        if scheme.is_planned(cluster, is_model=is_model)
    ]


def check_degrees_fit(places: Sequence[Machines], asked: Sequence[str]) -> None:
    """Refuse degrees that fit none of the machines.

    Args:
        places: the machines.
        asked: schemes that a user names.

    Raises:
        SettingError: no number of devices is a multiple of the group, or no stage of the experts'.
    """
    free = [place.setting for place in places if place.setting.scheme.is_usual]
    if not free or len(free) < len(places):
        return  # a setting that states its scheme is checked where it is read
    for name in asked:
        if name == ANY_SCHEME or not SchemeChoice.parse(name).is_split:
            continue
        errors = [_error_of(setting, name) for setting in free]
        if None not in errors:
            raise SettingError(_fits_none(free, name, [one for one in errors if one is not None]))


def _error_of(setting: Setting, name: str) -> SettingError | None:
    """Why a scheme does not fit a setting; None if it does."""
    try:
        setting.with_scheme(name)
    except SettingError as error:
        return error
    return None


def _fits_none(settings: Sequence[Setting], name: str, errors: Sequence[SettingError]) -> str:
    """Which groups of devices fit, where no number of devices is a multiple of a scheme's."""
    group = SchemeChoice.parse(name).degrees.of_replica
    counts = sorted({setting.num_workers for setting in settings})
    fitting = [
        error
        for setting, error in zip(settings, errors, strict=True)
        if setting.num_workers % group == 0
    ]
    if fitting or len(counts) == 1:
        return str((fitting or errors)[0])
    near = divisors_near(counts, group, least=2)
    *first, last = [str(count) for count in counts]
    return (
        f"--scheme {name} needs groups of {group} devices (tp x cp x pp), which divide none of "
        f"these machines ({', '.join(first)} or {last} devices); a group of {near} does"
    )


def _counted(name: str, count: int) -> str:
    return name if count == 1 else f"{count}x{name}"
