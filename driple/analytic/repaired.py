"""Zeng's model, repaired: measured efficiency in place of peaks.

forward and backward seconds of each worker -> queue at the servers' links -> seconds in all

`zeng` has the model as published. This one adds: measured device speed in place of the peak, a
backward pass that grows with the batch, copies between host and device, a fixed cost of every push,
several servers, and an end that waits for the slowest worker. Without the repairs it equals the
published model (tested). All functions take arrays or numbers; workers are the last axis. Section
numbers refer to Zeng et al.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from driple.analytic.arrays import FloatArray, Numbers, as_array, positive
from driple.errors import ConfigError

__all__ = [
    "Parts",
    "TransferCosts",
    "iteration_parts",
    "repaired_transfer_s",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferCosts:
    """Cost of transferring gradients and parameters.

    Attributes:
        share: goodput of a link as a fraction of its nominal rate.
        server_s_per_byte: time of a server per byte received or sent, serialised, seconds.
        push_s: fixed cost of every push (and pull) of a tensor, seconds.
        copy_s_per_byte: time of a worker to copy one byte between host and device, seconds.
        exposed: fraction of the transfers that computation cannot hide, from 0 to 1.
    """

    share: float = 1.0
    server_s_per_byte: float = 0.0
    push_s: float = 0.0
    copy_s_per_byte: float = 0.0
    exposed: float = 0.0

    def __post_init__(self) -> None:
        """Raise ConfigError on values out of range."""
        if not 0 < self.share <= 1:
            raise ConfigError(f"share of a link's rate must be in (0, 1], got {self.share}")
        if not 0 <= self.exposed <= 1:
            raise ConfigError(f"exposed share must be from 0 to 1, got {self.exposed}")
        for name in ("server_s_per_byte", "push_s", "copy_s_per_byte"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """Seconds of an iteration; the parts sum to the whole.

    Attributes:
        total_s: iteration time.
        compute_s: compute time of the fastest worker until its first gradient; its whole compute
            time if the workers, not the network, are the bottleneck.
        push_s: transfer of all workers' gradients over the servers' links.
        pull_s: transfer of parameters to all workers.
        wait_s: wait for workers slower than the fastest.
        aggregate_s: processing of received and sent bytes on the servers.
    """

    total_s: FloatArray
    compute_s: FloatArray
    push_s: FloatArray
    pull_s: FloatArray
    wait_s: FloatArray
    aggregate_s: FloatArray


def repaired_transfer_s(
    nbytes: Numbers, bytes_per_s: Numbers, num_pushes: Numbers, how: TransferCosts
) -> tuple[FloatArray, FloatArray]:
    """Transfer time of one worker's gradients or parameters with one server (equations 30, 31).

    Returns:
        Seconds on the link, including the fixed cost of every push; seconds in the server.
    """
    size = as_array(nbytes)
    rate = positive("bytes_per_s", bytes_per_s) * how.share
    return size / rate + as_array(num_pushes) * how.push_s, size * how.server_s_per_byte


def iteration_parts(
    forward_s: Numbers,
    backward_s: Numbers,
    link_s: Numbers,
    server_s: Numbers,
    *,
    num_pushes: Numbers = 1.0,
    num_servers: Numbers = 1.0,
    copy_s: Numbers = 0.0,
    exposed: float = 0.0,
) -> Parts:
    """Time of a synchronous iteration: algorithm 2 with the repairs, seconds.

    The bottleneck is either the servers' links, where the gradients of all workers queue from their
    first gradient on (algorithm 2), or the slowest worker, whose last gradients leave when they are
    computed and whose computation hides all but a fraction of the transfers.

    Args:
        forward_s: shape [..., workers].
        backward_s: shape [..., workers].
        link_s: shape [...], transfer of one worker's gradients over the link of a single server.
        server_s: shape [...], the same in the server.
        num_pushes: number of pieces that gradients are sent in; 1: all after the backward pass, as
            on the CPUs of algorithm 1.
        num_servers: servers, with an even share of the gradients each.
        copy_s: shape [..., workers], copy of gradients from device to host, piece by piece.
        exposed: fraction of the transfers that computation cannot hide.

    Raises:
        ConfigError: no worker, or a count that is not positive.
    """
    forward, backward, copied = np.broadcast_arrays(
        as_array(forward_s), as_array(backward_s), as_array(copy_s)
    )
    count = forward.shape[-1] if forward.ndim else 0
    if count < 1:
        raise ConfigError("an iteration needs one worker or more; give their times")
    pushes = positive("num_pushes", num_pushes)[..., None]
    servers = positive("num_servers", num_servers)[..., None]
    # Number of workers yet to push. Pieces for several servers travel in parallel, up to the rate
    # of a worker's own link.
    behind = np.arange(count, 0, -1) / servers
    on_links = as_array(link_s)[..., None] * np.maximum(behind, 1.0)
    in_servers = as_array(server_s)[..., None] * behind
    first = np.sort(forward + (backward + copied) / pushes, axis=-1)
    done = np.sort(forward + backward + copied, axis=-1)
    network = _queued(first, on_links, in_servers)
    workers = _queued(done, exposed * on_links, exposed * in_servers)
    decides = workers.total_s > network.total_s
    return Parts(
        **{
            field.name: np.where(
                decides, getattr(workers, field.name), getattr(network, field.name)
            )
            for field in fields(Parts)
        }
    )


def _queued(times: FloatArray, on_links: FloatArray, in_servers: FloatArray) -> Parts:
    """Times of pushes that queue in the order of `times`, shape [..., workers], then of pulls.

    Args:
        times: time at which each worker joins the queue, sorted.
        on_links: busy time of the servers' links with this worker's and all later pushes.
        in_servers: the same of the servers themselves.
    """
    ends = (times + on_links + in_servers).max(axis=-1)
    begin, link_s, server_s = np.broadcast_arrays(
        times[..., 0], on_links[..., 0], in_servers[..., 0]
    )
    return Parts(
        total_s=as_array(ends + link_s + server_s),
        compute_s=begin,
        push_s=link_s,
        pull_s=link_s,
        wait_s=as_array(ends - begin - link_s - server_s),
        aggregate_s=as_array(2 * server_s),
    )
