"""Turns of the stages of a pipeline: 1F1B, and Megatron-LM's interleaved schedule.

    seconds of each stage's passes, micro-batches -> when each device begins and ends

A device passes as many micro-batches forward as stages follow it, then takes one forward and one
backward in turn, then the rest backward (PipeDream's 1F1B with a flush; Narayanan et al., SC 2021).
With v stages for each of p devices, device r has stages r, p + r, 2 p + r, ... and takes p
micro-batches through one of them before the next (section 2.2): the bubble is v times shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driple.errors import GraphError

__all__ = ["StageTurn", "check_interleaved", "device_turns", "first_and_last_s", "passes_in_flight"]


@dataclass(frozen=True, slots=True)
class StageTurn:
    """One pass of one micro-batch through one stage.

    Attributes:
        is_back: whether it is a backward pass.
        chunk: which of the device's stages, from 0.
        micro_batch: from 0.
    """

    is_back: bool
    chunk: int
    micro_batch: int


def check_interleaved(devices: int, chunks: int, passes: int) -> None:
    """Refuse micro-batches that the interleaved schedule cannot take in groups.

    Raises:
        GraphError: several stages a device, and micro-batches that devices do not divide.
    """
    if chunks > 1 and passes % devices:
        below, above = passes // devices * devices, (passes // devices + 1) * devices
        near = f"{below} or {above}" if below else f"{above}"
        raise GraphError(
            f"vpp{chunks} takes micro-batches in groups of the {devices} devices of its pipeline, "
            f"and a step has {passes}; take {near} passes of accumulation"
        )


def device_turns(device: int, devices: int, chunks: int, passes: int) -> list[StageTurn]:
    """Passes of a device in order.

    Args:
        device: its place in the pipeline.
        devices: of the pipeline.
        chunks: stages of each device.
        passes: micro-batches; a multiple of the devices where there are several chunks.
    """
    total = passes * chunks
    ahead = devices - 1 - device
    if chunks > 1:
        ahead = total if passes == devices else 2 * ahead + (chunks - 1) * devices
    ahead = min(ahead, total)
    order = [_placed(k, devices, chunks) for k in range(total)]
    forward = [StageTurn(False, chunk, i) for chunk, i in order]
    backward = [StageTurn(True, chunks - 1 - chunk, i) for chunk, i in order]
    turns = forward[:ahead]
    for k in range(total - ahead):
        turns += [forward[ahead + k], backward[k]]
    return turns + backward[total - ahead :]


def _placed(number: int, devices: int, chunks: int) -> tuple[int, int]:
    """Chunk and micro-batch of a forward pass by its number."""
    if chunks == 1:
        return 0, number
    group, within = divmod(number, devices * chunks)
    return within // devices, group * devices + within % devices


def passes_in_flight(device: int, devices: int, chunks: int, passes: int) -> list[int]:
    """Most micro-batches of each of a device's stages whose activations wait at the same time.

    They are counted where the device keeps most of all stages together.
    """
    alive, most = [0] * chunks, [0] * chunks
    for turn in device_turns(device, devices, chunks, passes):
        alive[turn.chunk] += -1 if turn.is_back else 1
        if sum(alive) > sum(most):
            most = list(alive)
    return most


def first_and_last_s(
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    passes: int,
    *,
    chunks: int = 1,
    handing_s: Sequence[float] = (),
) -> tuple[list[float], list[float]]:
    """When each device begins its first forward and its last backward pass, seconds of the step.

    Args:
        forward_s: of each stage and micro-batch, with what its device waits for meanwhile.
        backward_s: the same.
        passes: micro-batches.
        chunks: stages of each device.
        handing_s: seconds on the way from each stage to the next, in which devices compute; one
            fewer than stages, or none.
    """
    count = len(forward_s)
    devices = count // chunks
    way_s = [*(handing_s or [0.0] * (count - 1)), 0.0]
    queues = [device_turns(device, devices, chunks, passes) for device in range(devices)]
    free_s, at = [0.0] * devices, [0] * devices
    ends_s: dict[tuple[bool, int, int], float] = {}
    first_s: list[float | None] = [None] * devices
    last_s = [0.0] * devices
    moved = True
    while moved:
        moved = False
        for device, queue in enumerate(queues):
            while at[device] < len(queue):
                turn = queue[at[device]]
                stage = turn.chunk * devices + device
                came_s = _came_s(turn, stage, count, ends_s, way_s)
                if came_s is None:
                    break
                begin_s = max(free_s[device], came_s)
                if first_s[device] is None:
                    first_s[device] = begin_s
                last_s[device] = begin_s
                free_s[device] = begin_s + (backward_s if turn.is_back else forward_s)[stage]
                ends_s[turn.is_back, stage, turn.micro_batch] = free_s[device]
                at[device] += 1
                moved = True
    return [one or 0.0 for one in first_s], last_s


def _came_s(
    turn: StageTurn,
    stage: int,
    count: int,
    ends_s: dict[tuple[bool, int, int], float],
    way_s: Sequence[float],
) -> float | None:
    """When what a pass reads has come; None if it was not yet computed."""
    near = stage + 1 if turn.is_back else stage - 1
    if not 0 <= near < count:
        if not turn.is_back:
            return 0.0
        return ends_s.get((False, stage, turn.micro_batch))
    end_s = ends_s.get((turn.is_back, near, turn.micro_batch))
    return None if end_s is None else end_s + way_s[min(near, stage)]
