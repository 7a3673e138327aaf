"""Zeng's model with its weak points repaired: what a cluster reaches, not what it could.

forward and backward seconds of each worker -> queue at the servers' links -> seconds in all

Beside `zeng`, which stays as published, this one has: the speed that a device was measured at in
place of its peak, a backward pass that grows with the batch, copies between host and device, a
start-up cost of every push, several servers, and an end that waits for the slowest worker too.
Without the repairs it is the published model (a test says so). All functions take arrays as well as
numbers; workers are the last axis. Section numbers are those of Zeng et al.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from driple.analytic.arrays import FloatArray, Numbers, as_array, positive
from driple.errors import ConfigError

__all__ = [
    "BACKWARD_RATIO",
    "Exchange",
    "Parts",
    "backward_seconds",
    "forward_seconds",
    "iteration_parts",
    "repaired_transfer_s",
]

# The gradient of a product is two products of its size: for its weights, and for its input.
BACKWARD_RATIO = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """How gradients and parameters travel.

    Attributes:
        share: of the link's nominal rate that payload reaches.
        server_s_per_byte: seconds of a server for each byte that comes or goes, one after another.
        push_s: seconds that every push (and pull) of a tensor takes besides its bytes.
        copy_s_per_byte: seconds of a worker to copy a byte between its host and its device.
        exposed: share of the transfers that computing cannot hide, from 0 to 1.
    """

    share: float = 1.0
    server_s_per_byte: float = 0.0
    push_s: float = 0.0
    copy_s_per_byte: float = 0.0
    exposed: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no exchange can be."""
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
        total_s: the iteration.
        compute_s: of the fastest worker, until its first gradient; all of it where the workers
            decide, not the network.
        push_s: gradients of all workers on the servers' links.
        pull_s: parameters of all workers.
        wait_s: for workers that are slower than the fastest.
        aggregate_s: servers take in and hand out bytes.
    """

    total_s: FloatArray
    compute_s: FloatArray
    push_s: FloatArray
    pull_s: FloatArray
    wait_s: FloatArray
    aggregate_s: FloatArray


def forward_seconds(
    batch_size: Numbers,
    forward_flops: Numbers,
    flops_per_s: Numbers,
    *,
    copied_bytes: Numbers = 0.0,
    copy_s_per_byte: Numbers = 0.0,
) -> FloatArray:
    """Seconds of a forward pass at the speed that the device was measured at (section 5.3).

    Args:
        batch_size: examples of a worker.
        forward_flops: of one example (equation 21).
        flops_per_s: what the device reaches, not its peak.
        copied_bytes: examples and parameters, from the host to the device.
        copy_s_per_byte: of that copy.
    """
    work = as_array(batch_size) * as_array(forward_flops) / positive("flops_per_s", flops_per_s)
    return work + as_array(copied_bytes) * as_array(copy_s_per_byte)


def backward_seconds(
    batch_size: Numbers,
    forward_flops: Numbers,
    flops_per_s: Numbers,
    *,
    parameters: Numbers = 0.0,
    parameter_s: Numbers = 0.0,
) -> FloatArray:
    """Seconds of a backward pass: it grows with the batch, updates with the parameters.

    Equation 22 has only the parameters; what each example costs is twice its forward pass.

    Args:
        batch_size: examples of a worker.
        forward_flops: of one example.
        flops_per_s: what the device reaches.
        parameters: weights and biases.
        parameter_s: seconds of the device for each of them.
    """
    work = BACKWARD_RATIO * as_array(batch_size) * as_array(forward_flops)
    return work / positive("flops_per_s", flops_per_s) + as_array(parameters) * as_array(
        parameter_s
    )


def repaired_transfer_s(
    nbytes: Numbers, bytes_per_s: Numbers, num_pushes: Numbers, how: Exchange
) -> tuple[FloatArray, FloatArray]:
    """Seconds of one worker's gradients, or parameters, with one server (equations 30 and 31).

    Returns:
        On the link, start-up of every push included; and in the server.
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
    """Seconds of a synchronous iteration (algorithm 2, and what it leaves out).

    Two things can decide. The servers' links: gradients of all workers queue there from each one's
    first gradient on, as in algorithm 2. Or the workers: the last gradients of the slowest leave
    when it has computed them, and of its transfers computing hides all but a share.

    Args:
        forward_s: shape [..., workers].
        backward_s: shape [..., workers].
        link_s: shape [...], one worker's gradients on the link of one server that takes all.
        server_s: shape [...], the same in the server.
        num_pushes: in how many pieces gradients leave; 1: after the backward pass, as on the CPUs
            of algorithm 1.
        num_servers: that share the gradients evenly.
        copy_s: shape [..., workers], gradients from a device to its host, piece by piece.
        exposed: share of the transfers that computing cannot hide.

    Raises:
        ConfigError: no worker, or a count that is not above 0.
    """
    forward, backward, copied = np.broadcast_arrays(
        as_array(forward_s), as_array(backward_s), as_array(copy_s)
    )
    count = forward.shape[-1] if forward.ndim else 0
    if count < 1:
        raise ConfigError("an iteration needs one worker or more; give their times")
    pushes = positive("num_pushes", num_pushes)[..., None]
    servers = positive("num_servers", num_servers)[..., None]
    # With so many workers still to push. Pieces for several servers travel side by side, until a
    # worker's own link is full.
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
    """Pushes queue in the order of `times`, shape [..., workers]; then all workers pull.

    Args:
        times: when each worker joins the queue, in order.
        on_links: links of the servers, busy with this worker's and all later pushes.
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
