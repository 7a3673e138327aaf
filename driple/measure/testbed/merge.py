"""New runs into a data set that is there: labels, and a record of where every label comes from.

    Dataset (old), Dataset (of a campaign)  ->  Dataset, whose `about` lists both origins

An origin is the `about` of one campaign, told from others by the time at which it began, and counts
only those of its examples that are still in the data set. Each example names its origin
(`details["campaign"]`); one that names none is of the data set's first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from driple.dataset.example import Dataset, Example, merge_examples
from driple.measure.testbed.collect import with_counts
from driple.trace.provenance import Provenance, Repeatability

__all__ = ["merge_campaign"]

# Fields of which the data set has its own count.
_COUNTED = ("num_workloads", "num_runs", "measured")


def merge_campaign(dataset: Dataset, fresh: Dataset) -> Dataset:
    """The data set with the campaign's examples in it, its `about` made anew.

    A campaign that is in the data set already, since it was continued, is not listed twice, and
    one none of whose examples is left is not listed any more.

    Args:
        dataset: what is there.
        fresh: all examples of one campaign (`collect_dataset`).

    Returns:
        A data set of the old name. With one origin `about` is that origin's; with several it holds
        `origins`, what they have in common, and the counts over all.

    Raises:
        DatasetError: the two are of different settings.
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
    """When the campaign began; empty for data that no campaign has measured."""
    return origin.created or ""


def _over_all(origins: Sequence[Provenance], examples: Sequence[Example]) -> Provenance:
    """What all origins say alike, the counts over all of them, and each on its own."""
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
    """That of the only origin with repeats; of several, only the number of workloads is known."""
    found = [one.repeatability or Repeatability() for one in origins]
    repeated = [one for one in found if one.workloads]
    if len(repeated) == 1:
        return repeated[0]
    return Repeatability(workloads=sum(one.workloads for one in repeated))
