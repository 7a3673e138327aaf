"""What of a setting decides a device's memory: shards, kinds of devices, room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.cluster.schemes import Degrees
from driple.cluster.setting import Setting, parse_setting
from driple.estimate import NEAREST_KIND_WIDER
from driple.jobs.training_config.config import USUAL_REUSE_ELEMENTS
from driple.memory.place import MemoryPlace, gpu_kinds, modelled_schemes
from driple.schemes.registry import scheme_names


def place(name: str, capacity_bytes: float | None = None) -> MemoryPlace:
    return MemoryPlace.of(Setting.parse(name), capacity_bytes)


@pytest.mark.parametrize(
    ("name", "shards", "replicas", "copies"),
    [
        ("1xH100", 1, 1, 1),
        ("8xH100", 8, 8, 8),
        ("8xH100@fsdp", 8, 8, 8),
        ("4x8xH100/NVLink+400G@fsdp", 32, 32, 32),
        ("4x8xH100/NVLink+400G@hsdp", 8, 32, 32),
        ("8xH100@tp2", 4, 8, 4),
        ("4x8xH100/NVLink+400G@tp8-pp2-zero1", 2, 32, 2),
        ("4x8xH100/NVLink+400G@cp8-pp2-zero1", 16, 32, 16),
    ],
)
def test_devices_that_share_out_what_is_sharded(
    name: str, shards: int, replicas: int, copies: int
) -> None:
    there = place(name)
    assert (there.shards, there.replicas, there.copies) == (shards, replicas, copies)
    assert isinstance(there.shards, int)
    assert there.scheme == Setting.parse(name).scheme.name


def test_room_is_that_of_the_catalogue_or_what_is_known_better() -> None:
    device = Setting.parse("8xH100").worker
    assert place("8xH100").capacity_bytes == device.capacity_bytes
    assert place("8xH100", 5e9).capacity_bytes == 5e9
    assert place("8xH100").generation == device.generation
    assert place("8xH100").per_machine == 8
    assert place("2xCPU").capacity_bytes is None


def test_machines_that_nobody_described_have_one_device_each() -> None:
    unknown = place("H100-P3w3/he-10G")
    assert (unknown.per_machine, unknown.host_capacity_bytes, unknown.shards) == (1, None, 3)
    assert MemoryPlace.of_kinds(Setting.parse("H100-P3w3/he-10G")) == (unknown,)


def unlike(folder: Path, text: str) -> Setting:
    file = folder / "cluster.yaml"
    file.write_text(f"machines:\n{text}network: 100G\n")
    return parse_setting(str(file))


def test_each_kind_of_device_has_a_place(tmp_path: Path) -> None:
    mixed = unlike(tmp_path, "- {devices: 4, device: A100}\n- {devices: 2, device: V100}\n")
    places = MemoryPlace.of_kinds(mixed)
    assert [(one.device, one.per_machine, one.replicas) for one in places] == [
        ("A100", 4, 6), ("V100", 2, 6)]  # fmt: skip
    assert places[0].capacity_bytes != places[1].capacity_bytes
    own = MemoryPlace.of_kinds(mixed, 7e9)
    assert own[0].capacity_bytes == 7e9
    assert own[1].capacity_bytes == places[1].capacity_bytes


def test_like_devices_are_one_kind_and_have_no_name(tmp_path: Path) -> None:
    (alike,) = MemoryPlace.of_kinds(Setting.parse("4x8xH100/NVLink+400G@fsdp"))
    assert (alike.device, alike.shards) == ("", 32)
    uneven = unlike(tmp_path, "- {devices: 4, device: A100}\n- {devices: 2, device: A100}\n")
    whole = MemoryPlace.of_kinds(uneven)
    assert [one.device for one in whole] == ["", ""]
    assert [one.per_machine for one in whole] == [4, 2]
    (processor,) = MemoryPlace.of_kinds(Setting.parse("2xCPU"))
    assert processor.capacity_bytes is None


def test_kinds_of_gpus_leave_processors_out(tmp_path: Path) -> None:
    assert gpu_kinds(Setting.parse("2xCPU").cluster) == ()
    kinds = gpu_kinds(Setting.parse("4x8xH100/NVLink+400G").cluster)
    assert [device.name for device, _ in kinds] == ["H100"]
    uneven = unlike(tmp_path, "- {devices: 4, device: A100}\n- {devices: 2, device: A100}\n")
    assert [len(machine.devices) for _, machine in gpu_kinds(uneven.cluster)] == [4, 2]


def test_every_scheme_that_is_modelled_says_what_it_shards() -> None:
    assert set(modelled_schemes()) <= set(scheme_names())
    assert {"ddp", "zero1", "zero2", "fsdp", "hsdp"} <= set(modelled_schemes())
    for name in modelled_schemes():
        assert MemoryPlace(scheme=name, replicas=4, shards=4).sharding is not None


def test_gradients_of_a_split_model_are_wide_beside_masters_alone() -> None:
    split = MemoryPlace.of(Setting.parse("8xH100@tp2"))
    plain, masters = split.sharding, replace(split, has_masters=True).sharding
    assert plain is not None and not plain.has_wide_gradients
    assert masters is not None and masters.has_wide_gradients
    assert isinstance(split.shards, int)


FSDP = MemoryPlace(scheme="fsdp", shards=8, replicas=8)


def test_a_job_changes_what_its_device_holds() -> None:
    usual = FSDP.sharding
    assert usual is not None and usual.shards_parameters
    assert not (usual.states_on_host or usual.parameters_on_host or usual.has_wide_shards)
    masters = replace(FSDP, has_masters=True).sharding
    assert masters is not None and masters.has_wide_shards
    assert not masters.updates_in_backward
    states = replace(FSDP, offload=("states",)).sharding
    assert states is not None and states.states_on_host and not states.parameters_on_host
    both = replace(FSDP, offload=("states", "parameters")).sharding
    assert both is not None and both.parameters_on_host
    whole = MemoryPlace(scheme="ddp", replicas=8, offload=("parameters",)).sharding
    assert whole is not None and not whole.parameters_on_host  # nothing is sharded
    backward = replace(FSDP, updates_in_backward=True).sharding
    assert backward is not None and backward.updates_in_backward
    assert backward.bucket_elements == usual.bucket_elements


def test_a_buffer_of_its_own_is_deepspeeds() -> None:
    """Which keeps blocks gathered that are used again soon, and shards as they are."""
    own = replace(FSDP, bucket_elements=7, has_masters=True).sharding
    assert own is not None
    assert (own.bucket_elements, own.reuse_elements, own.has_wide_shards) == (
        7, USUAL_REUSE_ELEMENTS, False)  # fmt: skip
    stated = replace(FSDP, bucket_elements=7, reuse_elements=5).sharding
    assert stated is not None and stated.reuse_elements == 5
    none = replace(FSDP, has_masters=True, reuse_elements=5).sharding
    assert none is not None and none.reuse_elements == 0


def test_whole_models_need_as_much_on_any_number_of_devices() -> None:
    ddp = MemoryPlace(scheme="ddp", shards=8, replicas=8)
    assert ddp.is_replicated and not FSDP.is_replicated
    assert replace(FSDP, replicas=1, shards=1).is_replicated


@pytest.mark.parametrize(
    ("there", "kind", "exchanges"),
    [
        (MemoryPlace(scheme="ddp"), "single", False),
        (MemoryPlace(scheme="ddp", replicas=2), "ring", True),
        (FSDP, "sharded", True),
        (MemoryPlace(scheme="ps", replicas=2), "servers", False),
    ],
)
def test_kinds_of_published_runs(there: MemoryPlace, kind: str, exchanges: bool) -> None:
    assert (there.kind, there.exchanges) == (kind, exchanges)
    assert there.widening == (NEAREST_KIND_WIDER if there.is_nearest_kind else 1.0)


def test_a_split_model_widens_its_interval_where_no_run_is_like_it() -> None:
    split = place("8xH100@tp8")
    assert split.degrees == Degrees(tensor=8)
    assert split.is_nearest_kind and split.widening == NEAREST_KIND_WIDER
    assert not FSDP.is_nearest_kind and FSDP.error_kind == "fsdp"


def test_gradients_are_wide_beside_masters_alone() -> None:
    """Megatron-LM keeps them in single precision, where weights have a copy in it."""
    split = place("2xA100-80G@tp2")
    assert split.sharding is not None and not split.sharding.has_wide_gradients
    mixed = replace(split, has_masters=True).sharding
    assert mixed is not None and mixed.has_wide_gradients
