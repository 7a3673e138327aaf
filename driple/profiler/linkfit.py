"""Channels fitted to measured stalls, with leave-one-model-out errors.

Profile, Profile, ... -> Observation (gradients, stall) of each link -> Channel, left-out errors

Four forms are fitted for each link: latency per gradient or per bucket, overlapped with the
backward pass or not. The form with the smallest leave-one-out error is used; the errors of all are
reported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.codec import from_json, to_dict
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.profiler.communication import (
    BUCKET_MIB,
    FIRST_BUCKET_MIB,
    LATENCIES,
    Buckets,
    Channel,
    Gradients,
    LatencyPer,
    bucketed,
    communication_stall,
)
from driple.profiler.stall_profile import StallProfile
from driple.runs.solver import least_squares
from driple.storedfiles import read_json
from driple.units import counted, format_rate

__all__ = ["LinkFit", "Observation", "fit_channel", "observations_of", "read_channels",
           "write_channels"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]

FORMAT = 1
_LEAST_MODELS = 3  # minimum for leaving one out and fitting two parameters to the rest
_RELATIVE = 0.1  # relative deviation of a stall that the model cannot explain
_OF_STEP = 0.01  # the same relative to the step
# Latency in seconds, bytes/s: start values and bounds of the fits. Start values are slow links,
# since the gradient is zero where the overlap hides the whole exchange.
_STARTS = ((1e-3, 1e7), (1e-3, 1e9), (1e-5, 1e7), (1e-5, 1e9))
_LEAST, _MOST = (1e-8, 1e5), (1.0, 1e12)
_INSIDE = 1e-3  # of the logarithms: a start value must not lie on a bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """Measured stall of one model on one link.

    Attributes:
        model: name of the model, as in the profile's command.
        link: name of the link.
        gradients: gradients of a step.
        buckets: DDP's buckets of them.
        workers: number of workers.
        stall_s: time that the exchange added to a step, seconds.
        step_s: step time on one device, seconds.
    """

    model: str
    link: str
    gradients: Gradients
    buckets: Buckets
    workers: int
    stall_s: float
    step_s: float

    def predicted_s(self, channel: Channel) -> float:
        """Predicted stall on a channel, seconds."""
        return communication_stall(self.gradients, self.buckets, channel, self.workers)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkFit:
    """Result of a fit to one link.

    Attributes:
        channel: fit to all models.
        left_out: stall of each model, measured and predicted by a fit without it, seconds.
        errors_pct: median leave-one-out error of each form.
    """

    channel: Channel
    left_out: Mapping[str, tuple[float, float]]
    errors_pct: Mapping[str, float]

    @property
    def error_pct(self) -> float:
        """Median leave-one-out error of the selected form."""
        return self.errors_pct[_form(self.channel)]


def observations_of(profile: StallProfile, model: str, interconnect: str) -> list[Observation]:
    """The communication stalls in a profile.

    Args:
        profile: a profile with steps 1 and 2, or 1 and 5.
        model: name of its model.
        interconnect: name of the link between the devices of a machine.

    Raises:
        ConfigError: the profile has no step 1, or no gradients in it.
    """
    times, seen = profile.times, profile.gradients
    if 1 not in times or seen is None:
        raise ConfigError(
            f"{profile.folder} has no step 1 with gradients, which a fit needs; profile the script "
            "with steps 1, 2 and 5"
        )
    step_s = float(np.mean([*times[1].values()]))
    gradients = Gradients.measured(seen, step_s)
    launch = next(item for (step, _), item in sorted(profile.launches.items()) if step != 1)
    most = launch.bucket_mib or BUCKET_MIB
    buckets = bucketed(gradients, first_mib=min(FIRST_BUCKET_MIB, most), most_mib=most)
    plan = profile.about.plan
    rate = plan.network_bits_per_s
    links = {2: interconnect}
    if rate is not None:
        links[5] = format_rate(rate)
    return [
        Observation(
            model=model,
            link=link,
            gradients=gradients,
            buckets=buckets,
            workers=plan.processes,
            stall_s=float(np.mean([*times[step].values()])) - step_s,
            step_s=step_s,
        )
        for step, link in links.items()
        if step in times
    ]


def fit_channel(seen: Sequence[Observation]) -> LinkFit:
    """Fit latency and rate of one link to its observations.

    Raises:
        ConfigError: fewer than three models.
        MissingExtraError: scipy is not installed.
    """
    models = sorted({item.model for item in seen})
    if len(models) < _LEAST_MODELS:
        raise ConfigError(
            f"link {seen[0].link} was measured with {counted(len(models), 'model')}; fitting it, "
            f"and leaving each out in turn, needs {_LEAST_MODELS} or more"
        )
    forms = [
        Channel(
            name=seen[0].link,
            latency_s=0.0,
            bytes_per_s=1.0,
            latency_per=_latency(per),
            overlap=overlap,
        )
        for per in LATENCIES
        for overlap in (True, False)
    ]
    fits = {_form(form): _fit(form, seen, _STARTS) for form in forms}
    left_out = {name: _left_out(fitted, seen, models) for name, fitted in fits.items()}
    errors = {name: _median_error(pairs) for name, pairs in left_out.items()}
    best = min(errors, key=lambda name: errors[name])
    return LinkFit(channel=fits[best], left_out=left_out[best], errors_pct=errors)


def _left_out(
    fitted: Channel, seen: Sequence[Observation], models: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Measured and predicted stall of each model, by a fit to all others.

    Each fit starts from the fit to all models.
    """
    stalls = {}
    start = [(fitted.latency_s, fitted.bytes_per_s)]
    for model in models:
        channel = _fit(fitted, [item for item in seen if item.model != model], start)
        mine = [item for item in seen if item.model == model]
        stalls[model] = (
            float(np.mean([item.stall_s for item in mine])),
            float(np.mean([item.predicted_s(channel) for item in mine])),
        )
    return stalls


def _fit(
    form: Channel, seen: Sequence[Observation], starts: Sequence[tuple[float, float]]
) -> Channel:
    """The form with the best latency and rate over several start values."""
    measured = np.array([item.stall_s for item in seen])
    steps = np.array([item.step_s for item in seen])
    scale = _RELATIVE * np.abs(measured) + _OF_STEP * steps

    def channel_of(logs: FloatArray) -> Channel:
        latency_s, bytes_per_s = np.exp(logs).tolist()
        return replace(form, latency_s=latency_s, bytes_per_s=bytes_per_s)

    def residuals(logs: FloatArray) -> FloatArray:
        channel = channel_of(logs)
        predicted = np.array([item.predicted_s(channel) for item in seen])
        return np.asarray((predicted - measured) / scale)

    low, high = np.log(_LEAST), np.log(_MOST)
    fits = [
        least_squares(
            residuals,
            np.clip(np.log(start), low + _INSIDE, high - _INSIDE),
            extra="profiler",
            bounds=(low, high),
            loss="soft_l1",
            diff_step=0.01,
        )
        for start in starts
    ]
    return channel_of(min(fits, key=lambda fit: float(fit.cost)).x)


def _median_error(pairs: Mapping[str, tuple[float, float]]) -> float:
    """Median error in percent of the measured stall."""
    errors = [abs(found - true) / abs(true) for true, found in pairs.values() if true]
    return 100 * float(np.median(errors)) if errors else 0.0


def _form(channel: Channel) -> str:
    """Description of the form of a channel."""
    return f"per {channel.latency_per}, {'hidden by' if channel.overlap else 'after'} backward"


def _latency(text: str) -> LatencyPer:
    return "gradient" if text == "gradient" else "bucket"


def write_channels(fits: Sequence[LinkFit], file: Path) -> None:
    """Write fitted channels for `driple profile links --links`.

    Raises:
        ConfigError: the file cannot be written.
    """
    links = [
        {**to_dict(fit.channel), "left_out_error_pct": fit.error_pct, "models": len(fit.left_out)}
        for fit in fits
    ]
    text = json.dumps({"format": FORMAT, "links": links}, indent=1)
    atomic_write(file, text.encode(), error=ConfigError)


def read_channels(file: Path) -> dict[str, Channel]:
    """Channels by the names of their links, without case.

    Raises:
        ConfigError: the file cannot be read, or holds no channels.
    """
    try:
        stored = read_json(file)
        if stored["format"] != FORMAT:
            raise ConfigError(f"{file} has format {stored['format']}, this Driple reads {FORMAT}")
        extra = ("left_out_error_pct", "models")
        channels = [
            from_json(
                Channel,
                {key: value for key, value in item.items() if key not in extra},
                where="channel",
            )
            for item in stored["links"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{file} holds no fitted links ({error}); make one with driple profile "
            f"links PROFILE... --links {file}"
        ) from error
    return {channel.name.lower(): channel for channel in channels}
