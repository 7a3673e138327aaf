"""Which changes are tried, and which of them are named: by offers whose hours the tests choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from driple.catalog import shipped_catalog
from driple.cluster.setting import Setting
from driple.graph.cost.convolutions import CHANNELS_LAST
from driple.graph.datatypes import NUMBER_OF
from driple.graph.signature import OpSignature, Tensor
from driple.planning.changes import Change, helpful_changes
from driple.planning.evaluator import Evaluator
from driple.planning.offers import Offer
from driple.planning.places import Candidate, Refused, place_of_setting, places_of
from driple.planning.variants import JobVariants, Variant
from driple.remarks import Remark, remark
from tests.planning.offers import made_up

Hours = Callable[[Candidate], float | Refused]
VARIANT = Variant(batch_size=8, precision="amp-bf16", compiled=True, cuda_graphs=True)
FLOAT = NUMBER_OF["DT_FLOAT"]


@dataclass
class Table(Evaluator):
    """Answers each candidate by a rule, so that no job is read; keeps what was tried.

    Attributes:
        hours: of a candidate, at a dollar an hour for each machine.
        model: whether the job is a PyTorch model.
        optimizer: its own.
        signatures: of its ops.
    """

    hours: Hours = lambda _: 0.5
    model: bool = True
    optimizer: str = "lion"
    signatures: Sequence[OpSignature] = ()

    def __post_init__(self) -> None:
        graph = SimpleNamespace(signatures=self.signatures)
        given = SimpleNamespace(optimizer=self.optimizer, graph=graph)
        self.variants = cast("JobVariants", SimpleNamespace(can_vary=self.model, given=given))
        self.catalog = None
        self.tried: list[Candidate] = []

    def offer(self, candidate: Candidate) -> Offer | Refused:
        """The offer of a candidate, or why there is none."""
        self.tried.append(candidate)
        hours = self.hours(candidate)
        return hours if isinstance(hours, Refused) else offer_of(candidate, hours)


def offer_of(candidate: Candidate, hours: float, fits: str = "yes") -> Offer:
    offer = made_up(candidate.place.name, hours, hours * candidate.place.machines, fits)
    return replace(offer, candidate=candidate, devices=candidate.place.num_devices)


def candidate_of(setting: str, scheme: str | None = None, **variant: Any) -> Candidate:
    """A way to train on a setting of the user's own."""
    place = place_of_setting(Setting.parse(setting))
    chosen = place.setting if scheme is None else place.setting.with_scheme(scheme)
    return Candidate(place=place, setting=chosen, variant=replace(VARIANT, **variant))


def rented(name: str, machines: int, **variant: Any) -> Candidate:
    """A way to train on rented machines."""
    (place,), refused = places_of([shipped_catalog().instances[name]], [machines])
    assert not refused
    return Candidate(place=place, setting=place.setting, variant=replace(VARIANT, **variant))


def tried(
    table: Table, candidate: Candidate, *, keeps_batch: bool = False
) -> dict[Remark, Candidate]:
    """All changes of an offer of ten hours, each of which saves some time."""
    number = count()
    table.hours = lambda _: 5 - 0.15 * next(number)
    changes = helpful_changes(
        table, offer_of(candidate, 10), [], keeps_batch=keeps_batch, most=1000
    )
    by_time = sorted(changes, key=lambda change: -change.time_ratio)
    used = table.tried
    assert all(change.time_ratio < 1 for change in changes)
    ratios = [(5 - 0.15 * i) / 10 for i in range(len(used))]
    return {
        change.what: used[min(range(len(used)), key=lambda i: abs(ratios[i] - change.time_ratio))]
        for change in by_time
    }


def in_place(new: str, old: str) -> Remark:
    return remark("in_place", new=new, old=old)


@pytest.mark.parametrize(
    ("precision", "other"),
    [
        ("fp32", "amp-bf16"), ("tf32", "amp-bf16"), ("amp-fp16", "amp-bf16"),
        ("fp16-mixed", "bf16-mixed"), ("amp-bf16", None), ("bf16", None),
    ],
)  # fmt: skip
def test_half_precision_without_a_scaler_is_tried(precision: str, other: str | None) -> None:
    candidate = candidate_of("1xA100", precision=precision)
    changes = tried(Table(), candidate)
    expected = {remark("batch_of_device", batch_size=16)}
    if other is not None:
        expected.add(in_place(other, precision))
        after = changes[in_place(other, precision)]
        assert after == replace(candidate, variant=replace(candidate.variant, precision=other))
    assert set(changes) == expected


def test_a_fixed_graph_can_only_be_as_it_is() -> None:
    assert tried(Table(model=False), candidate_of("1xA100", precision="fp32")) == {}


def test_less_work_for_the_host() -> None:
    """The compiler, graphs of compiled steps, and a fused optimizer; none of them twice."""
    plain = candidate_of("1xA100", compiled=False, cuda_graphs=False)
    changes = tried(Table(optimizer="adamw"), plain)
    fused = in_place("adamw-fused", "adamw")
    assert set(changes) == {
        remark("compiles"), remark("replays_graphs"), fused,
        remark("batch_of_device", batch_size=16),
    }  # fmt: skip
    assert changes[remark("compiles")].variant == replace(plain.variant, compiled=True)
    graphs = replace(plain.variant, compiled=True, cuda_graphs=True)
    assert changes[remark("replays_graphs")].variant == graphs
    assert changes[fused].variant == replace(plain.variant, optimizer="adamw-fused")
    again = replace(plain, variant=replace(VARIANT, optimizer="adamw-fused"))
    assert set(tried(Table(optimizer="adamw"), again)) == {remark("batch_of_device", batch_size=16)}
    own = replace(plain, variant=replace(VARIANT, optimizer="adam"))  # not that of the job
    assert in_place("adam-fused", "adam") in tried(Table(optimizer="adamw"), own)


@pytest.mark.parametrize(
    ("scheme", "is_replayed"), [("ddp", True), ("zero1", True), ("fsdp", False)]
)
def test_parameters_in_shards_are_not_replayed(scheme: str, is_replayed: bool) -> None:
    candidate = candidate_of("2xA100/NVLink", scheme, cuda_graphs=False)
    assert (remark("replays_graphs") in tried(Table(), candidate)) is is_replayed


def convolution(
    shape: tuple[int, ...] | None, kind: str = "conv", numbers: Any = None
) -> OpSignature:
    result = Tensor(shape, FLOAT)
    return OpSignature(kind, (), (result,), **({} if numbers is None else {"numbers": numbers}))


@pytest.mark.parametrize(
    ("signature", "is_tried"),
    [
        (convolution((8, 64, 16, 16)), True),
        (convolution((8, 64, 16)), False),
        (convolution(None), False),
        (convolution((8, 64, 16, 16), kind="matmul"), False),
        (convolution((8, 64, 16, 16), numbers=(CHANNELS_LAST,)), False),
    ],
)
def test_images_of_convolutions_may_have_their_channels_last(
    signature: OpSignature, is_tried: bool
) -> None:
    candidate = candidate_of("1xA100")
    what = in_place("channels_last", "NCHW")
    changes = tried(Table(signatures=[convolution((8, 3)), signature]), candidate)
    assert (what in changes) is is_tried
    if is_tried:
        assert changes[what].variant == replace(VARIANT, channels_last=True)
    used = candidate_of("1xA100", channels_last=True)
    assert what not in tried(Table(signatures=[signature]), used)


@pytest.mark.parametrize("kind", ["full", "selective", "none"])
def test_checkpointing_may_be_left_out(kind: str) -> None:
    candidate = candidate_of("1xA100", activation_checkpointing=kind)
    changes = tried(Table(), candidate)
    assert (remark("checkpoints_nothing") in changes) is (kind != "none")
    if kind != "none":
        assert changes[remark("checkpoints_nothing")].variant == VARIANT


@pytest.mark.parametrize(
    ("keeps_batch", "passes", "expected"),
    [
        (False, 1, (16, 1)),
        (False, 4, (16, 4)),
        (True, 4, (16, 2)),
        (True, 3, None),
        (True, 1, None),
    ],
)
def test_twice_the_samples_of_a_device(
    keeps_batch: bool, passes: int, expected: tuple[int, int] | None
) -> None:
    """With half of the passes where the samples of an update must stay, if they can be halved."""
    changes = tried(
        Table(), candidate_of("1xA100", grad_accumulation=passes), keeps_batch=keeps_batch
    )
    what = remark("batch_of_device", batch_size=16)
    if expected is None:
        assert changes == {}
    else:
        assert set(changes) == {what}
        variant = changes[what].variant
        assert (variant.batch_size, variant.grad_accumulation) == expected


def test_other_schemes_are_tried_where_none_was_asked_for() -> None:
    candidate = candidate_of("2xA100/NVLink", "ddp")
    changes = tried(Table(), candidate)
    schemes = {what.values["new"] for what in changes if what.code == "in_place"}
    assert {"fsdp", "zero2"} <= schemes and "ddp" not in schemes
    after = changes[in_place("fsdp", "ddp")]
    assert after.setting == candidate.place.setting.with_scheme("fsdp")
    assert (after.place, after.variant) == (candidate.place, candidate.variant)
    asked = candidate_of("2xA100/NVLink@fsdp")
    assert not [what for what in tried(Table(), asked) if what.code == "in_place"]
    alone = tried(Table(), candidate_of("1xA100"))
    assert not [what for what in alone if what.code == "in_place"]


def test_twice_the_network_at_the_same_price() -> None:
    """Two p3.2xlarge have 10 Gbit/s; 20 are tried, on the same instances."""
    candidate = rented("p3.2xlarge", 2)
    changes = tried(Table(), candidate)
    (what,) = [what for what in changes if what.code == "network_at_same_price"]
    assert what.values["name"] == "20G"
    after = changes[what]
    assert after.place.instance is candidate.place.instance and after.place.machines == 2
    assert after.setting.scheme == candidate.setting.scheme
    assert after.setting.num_workers == 2
    old, new = (way.setting.cluster.network for way in (candidate, after))
    assert old is not None and old.bytes_per_s == pytest.approx(10e9 / 8)
    assert new is not None and new.bytes_per_s == pytest.approx(20e9 / 8)
    assert after.place.setting.cluster.network == new
    for other in (rented("p3.2xlarge", 1), candidate_of("2x1xV100/10G")):
        codes = {what.code for what in tried(Table(), other)}
        assert not codes & {"network_at_same_price", "joined_by"}


def test_nvlink_in_place_of_pcie_where_the_device_has_it() -> None:
    known = shipped_catalog().instances
    slow = [
        name for name, one in known.items()
        if one.interconnect == "PCIe" and one.num_devices > 1
        and one.device in {"V100", "T4", "A100", "H100"}
    ]  # fmt: skip
    assert slow
    for name in slow:
        candidate = rented(name, 1)
        changes = tried(Table(), candidate)
        has_links = candidate.setting.worker.nvlink is not None
        assert (remark("joined_by", name="NVLink") in changes) is has_links
        assert not any(what.code == "network_at_same_price" for what in changes)
    joined = next(name for name, one in known.items() if one.interconnect == "NVLink")
    assert not any(what.code == "joined_by" for what in tried(Table(), rented(joined, 1)))


@pytest.mark.parametrize(
    ("keeps_batch", "model", "passes", "batch", "expected"),
    [
        (False, True, 1, 8, (8, 1)),
        (True, True, 4, 8, (8, 2)),
        (True, True, 3, 8, (4, 3)),
        (True, True, 3, 7, None),
        (True, False, 3, 8, None),
        (True, False, 2, 8, (8, 1)),
        (False, False, 3, 7, (7, 3)),
    ],
)
def test_twice_the_machines(
    keeps_batch: bool, model: bool, passes: int, batch: int, expected: tuple[int, int] | None
) -> None:
    """The best scheme stands for all; a batch that must stay is halved, by passes or samples."""
    candidate = rented("p3.2xlarge", 1, grad_accumulation=passes, batch_size=batch)
    changes = tried(Table(model=model), candidate, keeps_batch=keeps_batch)
    more = [(what, after) for what, after in changes.items() if what.code == "twice_the_machines"]
    if expected is None:
        assert more == []
        return
    ((what, after),) = more
    assert (after.variant.batch_size, after.variant.grad_accumulation) == expected
    assert after.place.name == what.values["name"] and after.place.machines == 2
    assert after.setting == after.place.setting.with_scheme(str(what.values["scheme"]))


def test_machines_of_ones_own_are_not_doubled() -> None:
    changes = tried(Table(), candidate_of("2xA100/NVLink"))
    assert not any(what.code == "twice_the_machines" for what in changes)


def named(
    hours: Hours, others: Sequence[Offer] = (), most: int = 3, **variant: Any
) -> list[Change]:
    """What is named of changes of an offer of one hour for a dollar."""
    best = offer_of(candidate_of("1xA100", **variant), 1)
    table = Table(hours=hours, optimizer="adamw")
    return helpful_changes(table, best, others, keeps_batch=False, most=most)


def test_the_largest_gains_come_first() -> None:
    """The batch saves a half, the fused optimizer a fifth: ratios of time, and of cost."""
    changes = named(lambda candidate: 0.8 if candidate.variant.optimizer else 0.5)
    batch = remark("batch_of_device", batch_size=16)
    assert [change.what for change in changes] == [batch, in_place("adamw-fused", "adamw")]
    assert [change.time_ratio for change in changes] == pytest.approx([0.5, 0.8])
    assert [change.cost_ratio for change in changes] == pytest.approx([0.5, 0.8])
    assert (
        named(lambda candidate: 0.8 if candidate.variant.optimizer else 0.5, most=1) == changes[:1]
    )


@pytest.mark.parametrize(
    ("hours", "is_named"), [(0.98, True), (0.9899, True), (0.99, False), (1.2, False)]
)
def test_less_than_a_hundredth_is_not_named(hours: float, is_named: bool) -> None:
    assert bool(named(lambda _: hours)) is is_named


def test_what_is_refused_or_does_not_fit_is_not_named() -> None:
    assert named(lambda _: Refused(name="a", reason="b")) == []
    fits = Table(hours=lambda _: 0.5)
    fits.offer = lambda candidate: offer_of(candidate, 0.5, "no")  # type: ignore[method-assign]
    best = offer_of(candidate_of("1xA100"), 1)
    assert helpful_changes(fits, best, [], keeps_batch=False) == []
    measured = replace(made_up("m", 1, 1), provenance="measured")
    assert helpful_changes(Table(), measured, [], keeps_batch=False) == []


@pytest.mark.parametrize(
    ("graphs", "is_named"), [(0.6, True), (0.689, True), (0.69, False), (0.8, False)]
)
def test_graphs_must_save_more_than_the_compiler(graphs: float, is_named: bool) -> None:
    def hours(candidate: Candidate) -> float:
        if candidate.variant.cuda_graphs:
            return graphs
        return 0.7 if candidate.variant.compiled else 2.0

    codes = [change.what.code for change in named(hours, compiled=False, cuda_graphs=False)]
    assert codes == (["replays_graphs", "compiles"] if is_named else ["compiles"])


def test_another_device_is_named_where_it_is_as_many() -> None:
    """The fastest one of another kind that fits."""

    def other(setting: str, hours: float, fits: str = "yes") -> Offer:
        return offer_of(candidate_of(setting), hours, fits)

    others = [
        other("1xA100", 0.1), other("1xH100", 0.6), other("1xB200", 0.3, "no"),
        other("2xH100/NVLink", 0.2), other("1xL40S", 0.7), made_up("m", 0.1, 0.1),
    ]  # fmt: skip
    (change,) = named(lambda _: 2.0, others)
    assert change.what == in_place("1xH100", "1xA100")
    assert change.time_ratio == pytest.approx(0.6)
    assert named(lambda _: 2.0, [others[0]]) == []


def test_without_prices_there_is_no_ratio_of_cost() -> None:
    best = offer_of(candidate_of("1xA100"), 1)
    other = offer_of(candidate_of("1xH100"), 0.5)
    refuses = Table(hours=lambda _: Refused(name="a", reason="b"))
    for before, after in ((best, replace(other, price=None)), (replace(best, price=None), other)):
        (change,) = helpful_changes(refuses, before, [after], keeps_batch=False)
        assert change.cost_ratio is None and change.time_ratio == pytest.approx(0.5)
