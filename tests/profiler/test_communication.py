"""The model of section VI-A: closed forms, limits, monotony; fits give back what made the data."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.errors import ConfigError
from driple.profiler.communication import (
    MIB,
    Channel,
    Gradients,
    bucketed,
    communication_stall,
)
from driple.profiler.linkfit import (
    Observation,
    fit_channel,
    read_channels,
    write_channels,
)


def gradients_of(nbytes: list[float], backward_s: float = 1.0) -> Gradients:
    ready = np.linspace(0, backward_s, len(nbytes) + 1)[1:]
    return Gradients(nbytes=np.array(nbytes, float), ready_s=ready, end_s=backward_s)


def stall(gradients: Gradients, channel: Channel, workers: int = 2) -> float:
    return communication_stall(gradients, bucketed(gradients), channel, workers)


@given(
    st.lists(st.floats(1.0, 1e8), min_size=1, max_size=60),
    st.floats(0, 1e-2),
    st.floats(1e6, 1e11),
)
def test_without_overlap_it_is_the_papers_formula(
    nbytes: list[float], latency_s: float, rate: float
) -> None:
    """Two workers, a latency for each gradient: T = L (tau + G / (L B)), however bucketed."""
    channel = Channel(name="x", latency_s=latency_s, bytes_per_s=rate, overlap=False)
    expected = len(nbytes) * (latency_s + sum(nbytes) / (len(nbytes) * rate))
    assert stall(gradients_of(nbytes), channel) == pytest.approx(expected, rel=1e-9)


def test_buckets_are_those_of_ddp() -> None:
    """The first closes at 1 MiB, the others at 25 MiB, each with the gradient that fills it."""
    sizes = [0.5, 0.6, 20, 6, 24, 0.5, 3, 1]
    buckets = bucketed(gradients_of([size * MIB for size in sizes]))
    assert (buckets.nbytes / MIB).tolist() == pytest.approx([1.1, 26, 27.5, 1])
    assert buckets.count.tolist() == [2, 2, 3, 1]
    assert buckets.ready_s.tolist() == pytest.approx([2 / 8, 4 / 8, 7 / 8, 1])


def test_buckets_of_real_ddp() -> None:
    """PyTorch itself puts gradients of these sizes into as many buckets."""
    from torch import distributed as dist

    sizes = [4 * n for n in (3000, 200_000, 90_000, 7_000_000, 100, 5_000_000, 2_000_000, 10)]
    import torch

    tensors = [torch.empty(size // 4, device="meta") for size in sizes]
    assigned, _ = dist._compute_bucket_assignment_by_size(  # type: ignore[attr-defined]
        tensors, [int(MIB), int(25 * MIB)]
    )
    ours = bucketed(gradients_of([float(size) for size in sizes]))
    assert ours.count.tolist() == [len(bucket) for bucket in assigned]


def test_overlap_hides_what_fits_into_the_backward_pass() -> None:
    """Only the last bucket's exchange is seen on a fast link; on a slow one all but the first."""
    gradients = gradients_of([30 * MIB] * 4)
    fast = Channel(name="x", latency_s=0.0, bytes_per_s=30 * MIB / 0.1)
    slow = Channel(name="x", latency_s=0.0, bytes_per_s=30 * MIB / 10)
    assert stall(gradients, fast) == pytest.approx(0.1)
    assert stall(gradients, slow) == pytest.approx(0.25 + 4 * 10 - 1)


def test_more_workers_more_latency_and_less_rate_never_help() -> None:
    """Monotony, and one worker exchanges nothing."""
    gradients = gradients_of([1e6] * 50)
    base = Channel(name="x", latency_s=1e-3, bytes_per_s=1e8)
    assert stall(gradients, base, 1) == 0
    assert stall(gradients, base, 8) > stall(gradients, base, 2) > 0
    for worse in ({"latency_s": 2e-3}, {"bytes_per_s": 5e7}, {"overlap": False}):
        assert stall(gradients, replace(base, **worse)) > stall(gradients, base)


def test_the_papers_two_conclusions_follow_from_the_model() -> None:
    """Many small gradients wait longer on a fast link, few large ones on a slow link."""
    deep, wide = gradients_of([2e5] * 300, 0.001), gradients_of([2.5e7] * 20, 0.001)
    fast = Channel(name="nvlink", latency_s=1e-3, bytes_per_s=1e13)
    slow = Channel(name="network", latency_s=1e-3, bytes_per_s=1e8)
    assert stall(deep, fast) > stall(wide, fast)
    assert stall(deep, slow) < stall(wide, slow)


def observations(channel: Channel, noise: float = 0.0) -> list[Observation]:
    random = np.random.default_rng(0)
    seen = []
    for model, (count, nbytes) in enumerate([(60, 2e5), (160, 1.6e5), (20, 6e6), (16, 3e6),
                                             (300, 2e5), (170, 1e4)]):  # fmt: skip
        gradients = gradients_of([nbytes] * count, 0.3)
        buckets = bucketed(gradients)
        true = communication_stall(gradients, buckets, channel, 2)
        seen.append(
            Observation(
                model=f"m{model}",
                link=channel.name,
                gradients=gradients,
                buckets=buckets,
                workers=2,
                stall_s=true * (1 + noise * random.standard_normal()),
                step_s=0.4,
            )
        )
    return seen


@pytest.mark.parametrize("per", ["gradient", "bucket"])
@pytest.mark.parametrize("overlap", [True, False])
def test_a_fit_gives_back_the_channel_that_made_the_stalls(per: str, overlap: bool) -> None:
    """Form, rate and latency; left-out models are predicted as well."""
    true = Channel(
        name="200M",
        latency_s=4e-3,
        bytes_per_s=2.4e7,
        latency_per=per,  # type: ignore[arg-type]
        overlap=overlap,
    )
    fit = fit_channel(observations(true))
    assert fit.error_pct < 2
    assert fit.channel.bytes_per_s == pytest.approx(true.bytes_per_s, rel=0.05)
    assert (fit.channel.latency_per, fit.channel.overlap) == (per, overlap)
    assert fit.channel.latency_s == pytest.approx(true.latency_s, rel=0.2)


def test_noise_of_the_stalls_is_about_the_error_of_left_out_ones() -> None:
    """5 % of noise gives some percent of error, no less and not many times more."""
    true = Channel(name="200M", latency_s=2e-3, bytes_per_s=2.4e7, overlap=False)
    assert 0.5 < fit_channel(observations(true, noise=0.05)).error_pct < 15


def test_too_few_models_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 model"):
        fit_channel(observations(Channel(name="x", latency_s=0, bytes_per_s=1e8))[:2])


def test_channels_are_written_and_read(tmp_path: Path) -> None:
    """Round trip, by the link's name in any case; what is no file of channels is refused."""
    fit = fit_channel(observations(Channel(name="200M", latency_s=4e-3, bytes_per_s=2.4e7)))
    file = tmp_path / "links.json"
    write_channels([fit], file)
    assert read_channels(file) == {"200m": fit.channel}
    for text in ("{", "{}", json.dumps({"format": 1, "links": [{"name": "x"}]})):
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"no fitted links"):
            read_channels(file)
