"""New runs into a data set that is there: labels, and a record of where every label comes from.

    Dataset (old), Dataset (of a campaign)  ->  Dataset, whose `about` lists both origins

An origin is the `about` of one campaign, told from others by the time at which it began, and counts
only those of its examples that are still in the data set. Each example names its origin
(`details["campaign"]`); one that names none is of the data set's first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from driple.dataset.example import Dataset, Example, merge_examples
from driple.measure.collect import counts_of

__all__ = ["merge_campaign"]


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
    before = dataset.about.get("origins", [dataset.about])
    origins = {_name(origin): origin for origin in [*before, fresh.about]}
    examples: dict[str, list[Example]] = {name: [] for name in origins}
    first = _name(before[0])
    for example in merged.examples:
        name = example.details.get("campaign")
        examples[name if name in origins else first].append(example)
    kept = [
        {**origin, "num_workloads": len(examples[name]), **counts_of(examples[name])}
        for name, origin in origins.items()
        if examples[name]
    ]
    return replace(merged, about=_over_all(kept, merged.examples))


def _name(origin: dict[str, Any]) -> str:
    """When the campaign began; empty for data that no campaign has measured."""
    return str(origin.get("created", ""))


def _over_all(origins: Sequence[dict[str, Any]], examples: Sequence[Example]) -> dict[str, Any]:
    """What all origins say alike, the counts over all of them, and each on its own."""
    made_anew = ("num_workloads", "num_runs", "measured")  # the data set has its own count
    common = {
        key: value
        for key, value in origins[0].items()
        if key not in made_anew and all(origin.get(key) == value for origin in origins)
    }
    about = {**common, **counts_of(examples)}
    if len(origins) == 1:
        return about
    collected = [str(origin["collected"]) for origin in origins if "collected" in origin]
    if collected:
        about["collected"] = max(collected)
    return {**about, "repeatability": _repeatability(origins), "origins": list(origins)}


def _repeatability(origins: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """That of the only origin with repeats; of several, only the number of workloads is known."""
    found = [origin.get("repeatability", {"workloads": 0}) for origin in origins]
    repeated = [item for item in found if item["workloads"]]
    if len(repeated) == 1:
        return dict(repeated[0])
    return {"workloads": sum(item["workloads"] for item in repeated)}
