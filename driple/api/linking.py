"""`profile links`: links fitted to measured stalls, and the stalls of other jobs.

folders of stall profiles -> LinksResult (a fit per link)      JOB, setting -> StallResult
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driple.api.arguments import PathLike, path_of, paths_of, settings_of
from driple.api.results import Cell, Result, job_facts
from driple.codec import Json, to_dict
from driple.errors import ConfigError
from driple.estimate import estimate, optional_estimate
from driple.jobs.load import Job, JobOptions, JobSource, load_job

if TYPE_CHECKING:
    from driple.api.json_types.links import LinksJson, StallsJson
    from driple.catalog import Catalog, Link
    from driple.cluster.setting import Setting
    from driple.profiler.communication import Channel
    from driple.profiler.linkfit import LinkFit, Observation

__all__ = ["LinksResult", "StallResult", "fit_links", "predict_stalls"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class LinksResult(Result):
    """What was fitted to each link.

    Attributes:
        fits: a fit per link.
    """

    fits: tuple[LinkFit, ...]

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple profile links --json` prints for profiles."""
        links: LinksJson = {
            "question": "links",
            "links": {
                fit.channel.name: {
                    "name": fit.channel.name,
                    "latency_s": fit.channel.latency_s,
                    "bytes_per_s": fit.channel.bytes_per_s,
                    "latency_per": fit.channel.latency_per,
                    "overlap": fit.channel.overlap,
                    "left_out_error_pct": fit.error_pct,
                    "errors_pct": fit.errors_pct,
                    "left_out_s": fit.left_out,
                }
                for fit in self.fits
            },
        }
        return to_dict(links)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per link."""
        return [
            {
                "link": fit.channel.name,
                "latency_s": fit.channel.latency_s,
                "latency_per": fit.channel.latency_per,
                "bytes_per_s": fit.channel.bytes_per_s,
                "overlap": fit.channel.overlap,
                "left_out_error_pct": fit.error_pct,
            }
            for fit in self.fits
        ]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class StallResult(Result):
    """The time that the exchange of gradients adds to a step of a job.

    Attributes:
        job: the training job.
        setting: a ring on one machine.
        num_gradients: gradients of a step.
        gradient_bytes: their bytes.
        num_buckets: buckets of DistributedDataParallel that they travel in.
        iteration_time_s: of a step on one device, simulated.
        interconnect_stall_s: what the link of the machine adds to it.
        network_stall_s: what the network between machines adds to that; None without a network.
        channels: the links.
    """

    job: Job
    setting: Setting
    num_gradients: int
    gradient_bytes: float
    num_buckets: int
    iteration_time_s: float
    interconnect_stall_s: float
    network_stall_s: float | None
    channels: tuple[Channel, ...]

    @property
    def interconnect_stall_pct(self) -> float:
        """Share of a step on one device."""
        return 100 * self.interconnect_stall_s / self.iteration_time_s

    @property
    def network_stall_pct(self) -> float | None:
        """Share of a step on one machine; None without a network."""
        if self.network_stall_s is None:
            return None
        return 100 * self.network_stall_s / (self.iteration_time_s + self.interconnect_stall_s)

    def to_dict(self) -> dict[str, Json]:
        """The object that `driple profile links --json` prints for a job."""
        stalls: StallsJson = {
            "question": "stalls",
            "job": job_facts(self.job),
            "setting": self.setting.name,
            "gradients": self.num_gradients,
            "gradient_bytes": self.gradient_bytes,
            "buckets": self.num_buckets,
            "iteration_time_s": estimate(self.iteration_time_s, "simulator"),
            "interconnect_stall_s": estimate(self.interconnect_stall_s, "simulator"),
            "interconnect_stall_pct": estimate(self.interconnect_stall_pct, "simulator"),
            "network_stall_s": optional_estimate(self.network_stall_s, "simulator"),
            "network_stall_pct": optional_estimate(self.network_stall_pct, "simulator"),
            "channels": self.channels,
        }
        return to_dict(stalls)

    def rows(self) -> list[dict[str, Cell]]:
        """One row per stall."""
        waits = (
            ("interconnect", self.interconnect_stall_s, self.interconnect_stall_pct),
            ("network", self.network_stall_s, self.network_stall_pct),
        )
        return [
            {"stall": name, "link": channel.name, "seconds": seconds, "pct": pct}
            for (name, seconds, pct), channel in zip(waits, self.channels, strict=False)
        ]


def fit_links(
    folders: PathLike | Sequence[PathLike], *, interconnect: str = "interconnect"
) -> LinksResult:
    """Fit latency and rate of each link to measured stalls.

    Args:
        folders: stall profiles of three models or more.
        interconnect: name of what joins the devices of the machine.

    Raises:
        ConfigError: a folder without what a fit needs, or too few models.
        MissingExtraError: scipy is not installed.
    """
    from driple.profiler.linkfit import fit_channel, observations_of
    from driple.profiler.stall_profile import read_profile

    by_link: dict[str, list[Observation]] = {}
    for folder in paths_of("PROFILE", folders):
        profile = read_profile(folder)
        model = " ".join(profile.about.command)
        for seen in observations_of(profile, model, interconnect):
            by_link.setdefault(seen.link, []).append(seen)
    return LinksResult(fits=tuple(fit_channel(seen) for seen in by_link.values()))


def predict_stalls(
    job: JobSource,
    setting: str | Setting,
    *,
    options: JobOptions | None = None,
    network_bits_per_s: float | None = None,
    links: PathLike | None = None,
    catalog: Catalog | None = None,
) -> StallResult:
    """The stalls of a job, with the buckets of DistributedDataParallel.

    Args:
        job: JOB as on the command line, a graph or a `Job`.
        setting: a ring on one machine, or its name.
        options: batch size, shapes of inputs and the like.
        network_bits_per_s: rate of the network between machines; None for one machine.
        links: file of fitted links; others take what published rings reached.
        catalog: names the network; as installed by default.

    Raises:
        ConfigError: the setting is no ring of two or more, or no such job.
        GraphError: a job that cannot be read, or sends no gradients.
    """
    from driple.catalog import shipped_hardware
    from driple.cluster.topology import topology_of
    from driple.profiler.communication import (
        bucketed,
        calibrated_channel,
        communication_stall,
        gradients_of_job,
    )
    from driple.profiler.linkfit import read_channels
    from driple.schemes.registry import scheme_named
    from driple.simulate.calibration import shipped_calibration
    from driple.simulate.prepared_job import PreparedJob
    from driple.units import format_rate

    (setting,) = settings_of([setting])
    topology, workers = topology_of(setting), setting.num_workers
    within = topology.joined_by
    no_ring = scheme_named(setting.scheme.name).uses_servers or setting.num_replicas < workers
    if no_ring or workers < 2 or within is None:
        raise ConfigError(
            f"--setting must be a ring of two or more, such as V100-R8/ho-NVLink, got "
            f"{setting.name}"
        )
    calibration = shipped_calibration()
    file = path_of("--links", links)
    fitted = {} if file is None else read_channels(file)

    def channel_of(link: Link) -> Channel:
        known = fitted.get(link.name.lower())
        return known or calibrated_channel(link, workers, calibration)

    loaded = load_job(job, options, setting=setting)
    prepared = PreparedJob.of_job(loaded)
    gradients = gradients_of_job(prepared, calibration.device(topology.workers[0]))
    buckets = bucketed(gradients)
    channels = [channel_of(within)]
    if network_bits_per_s is not None:
        known = catalog or shipped_hardware()
        channels.append(channel_of(known.link(format_rate(network_bits_per_s))))
    waits = [communication_stall(gradients, buckets, one, workers) for one in channels]
    return StallResult(
        job=loaded,
        setting=setting,
        num_gradients=len(gradients.nbytes),
        gradient_bytes=float(gradients.nbytes.sum()),
        num_buckets=len(buckets.nbytes),
        iteration_time_s=gradients.end_s,
        interconnect_stall_s=waits[0],
        # The ring crosses both links; the slower one holds it up (section IV-B2).
        network_stall_s=None if len(waits) == 1 else max(waits[1] - waits[0], 0.0),
        channels=tuple(channels),
    )
