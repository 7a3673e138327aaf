"""What would help most: one change of the recommended offer at a time, each simulated.

Evaluator, Offer, other offers -> Change (what, time, cost), the largest gain first
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from driple.cluster.names import machines_setting
from driple.cluster.setting import Setting
from driple.errors import DripleError
from driple.graph.cost.convolutions import CHANNELS_LAST
from driple.graph.torch.options import OPTIMIZERS
from driple.jobs.job import Job
from driple.planning.evaluator import Evaluator
from driple.planning.offers import Offer
from driple.planning.places import Candidate, places_of, schemes_for
from driple.planning.ranking import ranked
from driple.remarks import Remark, remark
from driple.schemes.registry import scheme_named
from driple.units import format_rate

__all__ = ["MOST_CHANGES", "Change", "helpful_changes"]

MOST_CHANGES = 3
_LEAST_GAIN = 0.01  # share of the time that a change must save to be named
_HALF = "amp-bf16"
_FULL = ("fp32", "tf32")
_WITHOUT_SCALER = {"amp-fp16": _HALF, "fp16-mixed": "bf16-mixed"}
_IMAGE_RANK = 4  # of a batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One change, and what it brings.

    Attributes:
        what: what is changed.
        time_ratio: time of the whole training after it over that before.
        cost_ratio: the same of the cost; None without prices.
    """

    what: Remark
    time_ratio: float
    cost_ratio: float | None


def helpful_changes(
    evaluator: Evaluator,
    best: Offer,
    offers: Sequence[Offer],
    *,
    keeps_batch: bool,
    most: int = MOST_CHANGES,
) -> list[Change]:
    """The changes that save most time, each by itself.

    Args:
        evaluator: of the job.
        best: the recommended offer.
        offers: all others.
        keeps_batch: whether the samples of all devices per update must stay the same.
        most: how many are returned.
    """
    if best.candidate is None:
        return []
    changes = []
    tried = [*_ways(evaluator, best.candidate, keeps_batch=keeps_batch)]
    for what, candidate in tried:
        offer = evaluator.offer(candidate)
        if isinstance(offer, Offer) and offer.may_be_recommended:
            changes.append(_change(what, best, offer))
    other = _other_device(best, offers)
    if other is not None:
        changes.append(_change(_in_place(other.name, best.name), best, other))
    compiled = min((one.time_ratio for one in changes if one.what.code == "compiles"), default=1.0)
    gains = [change for change in changes if change.time_ratio < _most_ratio(change, compiled)]
    ordered = sorted(gains, key=lambda change: (change.time_ratio, repr(change.what)))
    first = {_same(change): change for change in reversed(ordered)}
    return [change for change in ordered if first[_same(change)] is change][:most]


def _most_ratio(change: Change, compiled: float) -> float:
    """Times of changes worth naming are below this; CUDA graphs save more than the compiler."""
    return (compiled if change.what.code == "replays_graphs" else 1.0) - _LEAST_GAIN


def _same(change: Change) -> Remark | str:
    """The best scheme of more machines stands for all of them."""
    return change.what.code if change.what.code == "twice_the_machines" else change.what


def _in_place(new: str, old: str) -> Remark:
    return remark("in_place", new=new, old=old)


def _change(what: Remark, before: Offer, after: Offer) -> Change:
    both = before.cost is not None and after.cost is not None
    return Change(
        what=what,
        time_ratio=after.training_s / before.training_s,
        cost_ratio=(after.cost or 0.0) / (before.cost or 1.0) if both else None,
    )


def _ways(
    evaluator: Evaluator, candidate: Candidate, *, keeps_batch: bool
) -> Iterator[tuple[Remark, Candidate]]:
    """Changes of the way of training, of the scheme, of the links and of the number of machines."""
    variant, variants = candidate.variant, evaluator.variants
    if variants.can_vary:
        half = _HALF if variant.precision in _FULL else _WITHOUT_SCALER.get(variant.precision)
        if half is not None:
            yield (
                _in_place(half, variant.precision),
                replace(candidate, variant=replace(variant, precision=half)),
            )
        yield from _host_ways(candidate, optimizer=variant.optimizer or variants.given.optimizer)
        if not variant.channels_last and _has_channels_first(variants.given):
            yield (
                _in_place("channels_last", "NCHW"),
                replace(candidate, variant=replace(variant, channels_last=True)),
            )
        if variant.activation_checkpointing != "none":
            yield (
                remark("checkpoints_nothing"),
                replace(candidate, variant=replace(variant, activation_checkpointing="none")),
            )
        larger = replace(variant, batch_size=2 * variant.batch_size)
        if keeps_batch and variant.grad_accumulation % 2 == 0:
            larger = replace(larger, grad_accumulation=variant.grad_accumulation // 2)
        if not keeps_batch or variant.grad_accumulation % 2 == 0:
            what = remark("batch_of_device", batch_size=larger.batch_size)
            yield what, replace(candidate, variant=larger)
    own = candidate.setting.scheme.suffix
    if candidate.setting.num_workers > 1 and candidate.place.setting.scheme.is_usual:
        for scheme in schemes_for(candidate.place, (), is_model=variants.can_vary):
            if scheme != own:
                yield (
                    _in_place(scheme, own),
                    replace(candidate, setting=candidate.place.setting.with_scheme(scheme)),
                )
    yield from _links(evaluator, candidate)
    yield from _more_machines(evaluator, candidate, keeps_batch=keeps_batch)


def _host_ways(candidate: Candidate, *, optimizer: str) -> Iterator[tuple[Remark, Candidate]]:
    """Less work for the host: fewer kernels, or all of a step's at once."""
    variant = candidate.variant
    if not variant.compiled:
        compiled = replace(variant, compiled=True)
        yield remark("compiles"), replace(candidate, variant=compiled)
    # Shards are gathered into memory that is freed after its use, which a graph cannot replay.
    sharding = scheme_named(candidate.setting.scheme.name).sharding
    is_whole = sharding is not None and not sharding.shards_parameters
    if not variant.cuda_graphs and (is_whole or candidate.setting.num_workers == 1):
        replayed = replace(variant, compiled=True, cuda_graphs=True)
        yield remark("replays_graphs"), replace(candidate, variant=replayed)
    if f"{optimizer}-fused" in OPTIMIZERS:
        fused = replace(variant, optimizer=f"{optimizer}-fused")
        yield _in_place(fused.optimizer, optimizer), replace(candidate, variant=fused)


def _has_channels_first(job: Job) -> bool:
    """Whether a job convolves images whose channels are not side by side in memory."""
    return any(
        op.kind == "conv"
        and CHANNELS_LAST not in op.numbers
        and any(len(one.shape or ()) == _IMAGE_RANK for one in op.outputs)
        for op in job.graph.signatures
    )


def _links(evaluator: Evaluator, candidate: Candidate) -> Iterator[tuple[Remark, Candidate]]:
    """Faster links at the same price: twice the network, NVLink between devices."""
    from driple.catalog import shipped_hardware

    known = evaluator.catalog or shipped_hardware()
    setting, instance = candidate.place.setting, candidate.place.instance
    machines = setting.cluster.machines
    each = len(machines[0].devices)
    if instance is None or setting.num_workers < 2:
        return
    within = instance.interconnect if each > 1 else ""
    network = "" if len(machines) < 2 or instance.network_gbps is None else (
        f"{instance.network_gbps:g}G"
    )  # fmt: skip
    wanted = []
    if network:
        faster = format_rate(2e9 * (instance.network_gbps or 0.0))
        wanted.append((remark("network_at_same_price", name=faster), within, faster))
    if within == "PCIe" and setting.worker.nvlink is not None:
        wanted.append((remark("joined_by", name="NVLink"), "NVLink", network))
    for what, inner, outer in wanted:
        links = "+".join(part for part in (inner, outer) if part)
        try:
            with_links = machines_setting(known, setting.worker, len(machines), each, links)
            place = replace(candidate.place, setting=with_links)
            yield (
                what,
                replace(candidate, place=place, setting=_like(with_links, candidate.setting)),
            )
        except DripleError:  # a link that the device does not have
            continue


def _like(setting: Setting, other: Setting) -> Setting:
    return setting.with_scheme(other.scheme.suffix)


def _more_machines(
    evaluator: Evaluator, candidate: Candidate, *, keeps_batch: bool
) -> Iterator[tuple[Remark, Candidate]]:
    """Twice the machines; to keep the batch, each device has half of the passes or samples."""
    place, variant = candidate.place, candidate.variant
    if place.instance is None:
        return
    more, _ = places_of([place.instance], [2 * place.machines], evaluator.catalog)
    if keeps_batch:
        if variant.grad_accumulation % 2 == 0:
            variant = replace(variant, grad_accumulation=variant.grad_accumulation // 2)
        elif variant.batch_size % 2 == 0 and evaluator.variants.can_vary:
            variant = replace(variant, batch_size=variant.batch_size // 2)
        else:
            return
    for machines in more:
        for scheme in schemes_for(machines, (), is_model=evaluator.variants.can_vary):
            yield (
                remark("twice_the_machines", name=machines.name, scheme=scheme),
                Candidate(
                    place=machines, setting=machines.setting.with_scheme(scheme), variant=variant
                ),
            )


def _other_device(best: Offer, offers: Sequence[Offer]) -> Offer | None:
    """The fastest offer of another device, with as many devices; None if there is none."""
    if best.candidate is None:
        return None
    device = best.candidate.setting.device
    some = [
        offer
        for offer in offers
        if offer.candidate is not None
        and offer.devices == best.devices
        and offer.candidate.setting.device != device
        and offer.may_be_recommended
    ]
    return ranked(some, "time")[0] if some else None
