"""What would make a job fit, if it fits nowhere: smaller batch, recomputation, shards, 8 bits.

Evaluator, places -> a remark, in which every number was worked out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from driple.errors import CatalogError, DripleError
from driple.memory.last_that import last_that
from driple.memory.place import MemoryPlace
from driple.planning.evaluator import Evaluator
from driple.planning.places import Candidate, Machines
from driple.planning.variants import Variant
from driple.remarks import Remark, RemarkValue, remark
from driple.schemes.registry import scheme_that_holds_least

__all__ = ["remedy_of"]

_EIGHT_BIT = "adam8bit"
_WITH_EIGHT_BIT = ("adam", "adamw", "adam-fused", "adamw-fused")


def remedy_of(evaluator: Evaluator, places: Sequence[Machines]) -> Remark | None:
    """What would make the job fit on the roomiest of some machines; None if it is unknown.

    Args:
        evaluator: of the job.
        places: machines on which it does not fit.
    """
    roomy = [(place, least) for place in places if (least := _least_memory(place)) is not None]
    if not roomy:
        return None
    place, least = max(roomy, key=lambda pair: (pair[1].nbytes, -pair[0].num_devices))
    usual = evaluator.variants.usual
    where: dict[str, RemarkValue] = {
        "place": place.name,
        "device": least.device or place.setting.worker.name,
        "has_least": bool(least.device),
        "room_bytes": least.nbytes,
    }
    if not evaluator.variants.can_vary:
        return remark("graph_is_as_it_is", **where)
    own = Candidate(place=place, setting=place.setting, variant=usual)
    ways = {
        **_batch_ways(evaluator, own),
        **_shard_ways(evaluator, roomy, usual),
        **_state_ways(evaluator, own),
    }
    if not ways:
        return remark("nothing_makes_it_fit", scheme=scheme_that_holds_least().name, **where)
    return remark("would_fit", **where, **ways)


@dataclass(frozen=True, kw_only=True, slots=True)
class _LeastMemory:
    """Memory of the device of some machines that has least.

    Attributes:
        nbytes: of the device.
        device: its name where others have more; empty where all are alike.
    """

    nbytes: float
    device: str


def _least_memory(place: Machines) -> _LeastMemory | None:
    """The least memory of a device of some machines; None if no source states it."""
    try:
        kinds = MemoryPlace.of_kinds(place.setting, place.capacity_bytes)
    except CatalogError:
        return None
    stated = [
        _LeastMemory(nbytes=kind.capacity_bytes, device=kind.device)
        for kind in kinds
        if kind.capacity_bytes is not None
    ]
    return min(stated, key=lambda least: least.nbytes, default=None)


def _fits(evaluator: Evaluator, candidate: Candidate) -> bool:
    """Whether a candidate fits; one that cannot be worked out does not."""
    try:
        memory = evaluator.memory(candidate)
    except DripleError:
        return False
    return memory is not None and memory.fits == "yes"


def _largest_batch(evaluator: Evaluator, candidate: Candidate) -> int:
    """The largest batch that fits, up to the candidate's own; 0 if none does."""

    def of_size(size: int) -> Candidate:
        return replace(candidate, variant=replace(candidate.variant, batch_size=size))

    try:
        size = 1 + last_that(
            lambda number: evaluator.may_fit(of_size(number + 1)), candidate.variant.batch_size
        )
    except DripleError:  # such as a model without blocks to recompute
        return 0
    while size and not _fits(evaluator, of_size(size)):
        size = size * 9 // 10  # what grows in proportion is not quite all
    return size


def _batch_ways(evaluator: Evaluator, candidate: Candidate) -> dict[str, RemarkValue]:
    """A smaller batch, without and with full checkpointing."""
    usual = candidate.variant
    ways: dict[str, RemarkValue] = {}
    size = _largest_batch(evaluator, candidate)
    if size:
        ways["batch_size"] = size
    if usual.activation_checkpointing != "full":
        full = replace(candidate, variant=replace(usual, activation_checkpointing="full"))
        larger = _largest_batch(evaluator, full)
        if larger > size:
            ways["checkpointed_batch_size"] = larger
            ways["keeps_batch"] = larger == usual.batch_size
    return ways


def _shard_ways(
    evaluator: Evaluator, roomy: Sequence[tuple[Machines, _LeastMemory]], usual: Variant
) -> dict[str, RemarkValue]:
    """Shards over as many devices as there are, of the batch as it is."""
    most, _ = max(roomy, key=lambda pair: (pair[0].num_devices, pair[1].nbytes))
    if most.num_devices < 2:
        return {}
    scheme = scheme_that_holds_least().name
    setting = most.setting.with_scheme(scheme)
    if not _fits(evaluator, Candidate(place=most, setting=setting, variant=usual)):
        return {}
    return {"scheme": scheme, "num_devices": most.num_devices, "shard_place": most.name}


def _state_ways(evaluator: Evaluator, candidate: Candidate) -> dict[str, RemarkValue]:
    """States of the optimizer in 8 bits, of the batch as it is."""
    if evaluator.variants.given.optimizer not in _WITH_EIGHT_BIT:
        return {}
    variant = replace(candidate.variant, optimizer=_EIGHT_BIT)
    if not _fits(evaluator, replace(candidate, variant=variant)):
        return {}
    return {"optimizer": _EIGHT_BIT}
