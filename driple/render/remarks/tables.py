"""Sentences on tables of runs, on their validation, and on stall profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.units import counted

__all__ = ["SENTENCES"]

_WHOSE_CORES = {
    "other_cores": "other programs used",
    "stolen_cores": "the hypervisor gave other machines",
}


def _columns(file: str, columns: Sequence[str], num_columns: int) -> str:
    shown = ", ".join(name or "(no name)" for name in columns)
    more = num_columns - len(columns)
    return f"columns of {file} that are not read: {shown}{f' and {more} more' if more else ''}"


def _cores(cores: str, most_cores: float, steps: Sequence[int]) -> str:
    several = "step" if len(steps) == 1 else "steps"
    return (
        f"{_WHOSE_CORES[cores]} up to {most_cores:.1f} cores during {several} "
        f"{', '.join(map(str, steps))}: do not trust these figures; measure again on a quiet "
        "machine"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "columns_not_read": _columns,
    "rows_of_other_devices": "{num_rows} of {num_all} rows are of other devices",
    "rows_of_several_devices": lambda num_rows: (
        f"{counted(num_rows, 'row')} of several devices; runs on one tell of its kernels"
    ),
    "no_whole_catalogue": "rows over the whole catalogue stay empty: {reason}",
    "some_predictions": "predictions given without {split}: {num_rows} of {num_all} rows",
    "sizes_not_scored": "predictions given without size are not scored",
    # stall profiles
    "cores_of_others": _cores,
    "stall_without_interval": (
        "{stall} stall comes from one repetition and has no interval; measure it again with driple "
        "profile run --set repeats=3"
    ),
    "stall_in_noise": lambda stall, low_s, high_s: (
        f"{stall} stall is within the noise (95 % interval {1e3 * low_s:.1f} to {1e3 * high_s:.1f} "
        "ms of an iteration): it may be zero; measure longer with driple profile run --set "
        "repeats=5 --set iterations=30, and keep the machine quiet"
    ),
    "negative_stall": (
        "{stall} stall is negative beyond the noise: something else changed between the steps, "
        "such as other load on the machine; measure again"
    ),
    "no_data_parallelism": (
        "the script made no DistributedDataParallel: its processes may not exchange gradients, and "
        "stalls of communication are not those of data parallelism"
    ),
    "script_changed": (
        "the script changed between steps; measure all of them anew with driple profile run "
        "--output ANOTHER"
    ),
}
