"""Merging runs into a data set: labels keep their origin, counts and dates are of what is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.cli import measure as command
from driple.dataset import Dataset, read_dataset, write_dataset
from driple.errors import DatasetError
from driple.jobs import Workload
from driple.measure.testbed.campaign import CampaignRecord
from driple.measure.testbed.cluster import RunPlan
from driple.measure.testbed.collect import collect_dataset
from driple.measure.testbed.merge import merge_campaign
from driple.trace.provenance import Dates, MeasuringHost, Provenance, Repeatability
from tests.dataset.examples import SETTING, example
from tests.measure.runs import run_folder


def campaign_of(
    created: str, workloads: dict[str, int], *, repeated: int = 0, grid_s: float = 0.05
) -> Dataset:
    """A campaign's data set: of each workload the hour at which its run was measured."""
    examples = [
        replace(
            example(name),
            details={"campaign": created, "repeats": 2, "measured": f"{created[:11]}{hour:02}:00"},
        )
        for name, hour in workloads.items()
    ]
    about = Provenance(
        created=created,
        host=MeasuringHost(cpu=f"of {created[:10]}"),
        collected=created[:10],
        label_source="measured",
        label_grid_s=grid_s,
        num_runs=99,
        repeatability=Repeatability(workloads=repeated, median_cv={"x": repeated / 100}),
    )
    return Dataset(name=created, setting=SETTING, examples=tuple(examples), about=about)


ONE = campaign_of("2026-01-05T00:00", {"a": 3, "b": 1}, repeated=2)
TWO = campaign_of("2026-02-07T00:00", {"b": 9, "c": 8})


def test_both_origins_are_listed_with_what_is_left_of_them() -> None:
    """`b` is of the second campaign now: counts and dates of the first one are of `a` alone."""
    merged = merge_campaign(ONE, TWO)
    assert merged.name == ONE.name
    assert merged.workloads == ("a", "b", "c")
    first, second = merged.about.origins
    assert (first.host, second.host) == (ONE.about.host, TWO.about.host)
    assert (first.num_workloads, first.num_runs) == (1, 2)
    assert first.measured == Dates(first="2026-01-05T03:00", last="2026-01-05T03:00")
    assert (second.num_workloads, second.num_runs) == (2, 4)
    assert second.measured == Dates(first="2026-02-07T08:00", last="2026-02-07T09:00")


def test_the_head_counts_all_and_says_only_what_all_origins_say() -> None:
    """Runs and dates over all; a host or date of one origin does not stand for the other."""
    about = merge_campaign(ONE, TWO).about
    assert about.num_runs == 6
    assert about.measured == Dates(first="2026-01-05T03:00", last="2026-02-07T09:00")
    assert (about.label_source, about.label_grid_s) == ("measured", 0.05)
    assert about.collected == "2026-02-07"
    assert (about.host, about.created, about.num_workloads) == (None, None, None)
    other_grid = campaign_of("2026-02-07T00:00", {"c": 8}, grid_s=0.02)
    assert merge_campaign(ONE, other_grid).about.label_grid_s is None


def test_repeatability_is_not_made_up() -> None:
    """Of one origin with repeats it holds; of two only the number of workloads can be told."""
    assert merge_campaign(ONE, TWO).about.repeatability == ONE.about.repeatability
    again = campaign_of("2026-02-07T00:00", {"c": 8}, repeated=1)
    assert merge_campaign(ONE, again).about.repeatability == Repeatability(workloads=3)


def test_a_continued_campaign_stays_one_origin() -> None:
    """The same command again, with more workloads: what is known now takes the place of before."""
    longer = campaign_of("2026-02-07T00:00", {"b": 9, "c": 8, "d": 10})
    merged = merge_campaign(merge_campaign(ONE, TWO), longer)
    assert [origin.num_workloads for origin in merged.about.origins] == [1, 3]
    assert merge_campaign(merged, longer).about == merged.about
    alone = merge_campaign(TWO, longer)
    assert alone.about.origins == ()
    assert alone.about == replace(longer.about, num_runs=6, measured=alone.about.measured)


def test_an_origin_without_examples_is_dropped() -> None:
    """When all its workloads were measured anew, the data set is the new campaign's."""
    anew = campaign_of("2026-02-07T00:00", {"a": 1, "b": 2})
    merged = merge_campaign(ONE, anew)
    assert merged.about.created == anew.about.created
    assert (merged.about.origins, merged.about.num_workloads) == ((), None)


def test_data_from_before_origins_were_kept_is_of_the_first() -> None:
    """Examples that name no campaign, or an unknown one; an `about` without a date as well."""
    a, b = ONE.examples
    unknown = replace(a, details={"campaign": "elsewhere"})
    old = replace(ONE, examples=(unknown, replace(b, details={})))
    first, second = merge_campaign(old, TWO).about.origins
    assert (first.num_workloads, first.num_runs) == (1, 1)
    assert second.num_workloads == 2
    foreign = replace(old, about=Provenance(licence="as published", others={"page": 3}))
    first, _ = merge_campaign(foreign, TWO).about.origins
    assert first == replace(foreign.about, num_workloads=1, num_runs=1)


def test_another_setting_is_refused() -> None:
    """A data set is of one setting."""
    added = replace(example("z"), setting="V100-P1w2/ho-PCIe")
    other = Dataset(name="other", setting=added.setting, examples=(added,), about=TWO.about)
    with pytest.raises(DatasetError, match="one data set per setting"):
        merge_campaign(ONE, other)


def test_measuring_into_a_data_set_merges_its_origins(tmp_path: Path) -> None:
    """Two campaign folders, one data set, as `driple measure --dataset` does it."""
    jobs = [Workload.parse(f"lenet/mnist/b{size}/sgd/sync") for size in (1, 2)]
    abouts: list[CampaignRecord] = []
    for i, job in enumerate(jobs):
        about = CampaignRecord(
            setting=SETTING,
            plan=RunPlan(),
            host=MeasuringHost(memory_write_bytes_per_s=10**9, cpu=f"number {i}"),
            created=f"2026-03-0{i + 1}T00:00:00+00:00",
        )
        abouts.append(about)
        for repeat in range(2 - i):
            run_folder(tmp_path / f"runs{i}", job, repeat, f"2026-03-0{i + 1}T0{repeat}:00")
        assert command._append(about, tmp_path / f"runs{i}", tmp_path / "set") == i + 1
    both = read_dataset(tmp_path / "set").about
    assert both.num_runs == 3
    assert both.measured == Dates(first="2026-03-01T00:00", last="2026-03-02T00:00")
    assert [origin.host for origin in both.origins] == [about.host for about in abouts]
    assert both.origins[0].measured == Dates(first="2026-03-01T00:00", last="2026-03-01T01:00")
    assert both.repeatability is not None
    assert both.repeatability.workloads == 1
    alone = collect_dataset(tmp_path / "runs0", name="set", about=abouts[0])
    write_dataset(alone, tmp_path / "built")
    assert read_dataset(tmp_path / "built").about.num_runs == 2
