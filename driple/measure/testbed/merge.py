"""Merge new runs into an existing data set: labels, and the origin of every label.

    Dataset (old), Dataset (of a campaign)  ->  Dataset, whose `about` lists both origins

An origin is the `about` of one campaign, identified by its start time; it counts only its examples
that are still in the data set. Each example names its origin (`details["campaign"]`); an example
without one belongs to the first origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from driple.dataset.example import Dataset, Example, merge_examples
from driple.measure.testbed.collect import with_counts
from driple.trace.provenance import Provenance, Repeatability

__all__ = ["merge_campaign"]

# Fields that the data set counts itself.
_COUNTED = ("num_workloads", "num_runs", "measured")


def merge_campaign(dataset: Dataset, fresh: Dataset) -> Dataset:
    """The data set with the campaign's examples, and a new `about`.

    A continued campaign is listed once, and a campaign without remaining examples is dropped.

    Args:
        dataset: the existing data set.
        fresh: all examples of one campaign (`collect_dataset`).

    Returns:
        A data set with the old name. With one origin, `about` is the origin's; with several, it
        holds `origins`, their common fields, and the counts over all.

    Raises:
        DatasetError: the two have different settings.
    """
    merged = merge_examples(dataset, fresh.examples)
    before = dataset.about.origins or (dataset.about,)
    origins = {_name(origin): origin for origin in (*before, fresh.about)}
    examples: dict[str, list[Example]] = {name: [] for name in origins}
    first = _name(before[0])
    for example in merged.examples:
        name = example.details.get("campaign")
        examples[name if name in origins else first].append(example)
    kept = [
        with_counts(replace(origin, num_workloads=len(examples[name])), examples[name])
        for name, origin in origins.items()
        if examples[name]
    ]
    return replace(merged, about=_over_all(kept, merged.examples))


def _name(origin: Provenance) -> str:
    """Start time of the campaign; empty for data without a campaign."""
    return origin.created or ""


def _over_all(origins: Sequence[Provenance], examples: Sequence[Example]) -> Provenance:
    """Common fields of all origins, counts over all of them, and the origins."""
    head = origins[0]
    alike = {
        field.name: getattr(head, field.name)
        for field in fields(Provenance)
        if field.name not in _COUNTED
        and all(getattr(one, field.name) == getattr(head, field.name) for one in origins)
    }
    others = {
        key: value
        for key, value in head.others.items()
        if all(key in one.others and one.others[key] == value for one in origins)
    }
    about = with_counts(Provenance(**{**alike, "others": others}), examples)
    if len(origins) == 1:
        return about
    return replace(
        about,
        collected=max((one.collected for one in origins if one.collected), default=None),
        repeatability=_repeatability(origins),
        origins=tuple(origins),
    )


def _repeatability(origins: Sequence[Provenance]) -> Repeatability:
    """Repeatability of the only origin with repeats; for several, only the number of workloads."""
    repeatabilities = [one.repeatability or Repeatability() for one in origins]
    repeated = [one for one in repeatabilities if one.workloads]
    if len(repeated) == 1:
        return repeated[0]
    return Repeatability(workloads=sum(one.workloads for one in repeated))
