"""The largest batches that fit are the last ones, wherever the search begins."""

import pytest

from driple.memory.largest import LargestBatches, largest_batches
from driple.memory.memory_estimate import Bytes, MemoryEstimate


def memory(size: int, *, last: int, last_sure: int, bend: float = 0.0) -> MemoryEstimate:
    """Memory that fits up to one size, and surely up to another; a bend spoils the line."""
    need = size + bend * size**0.5
    most, sure = last + 0.5 + bend * last**0.5, last_sure + 0.5 + bend * last_sure**0.5
    upper = need * most / sure
    return MemoryEstimate(
        allocated=None,
        device_total=Bytes(value=need, lower=need / 2, upper=upper),
        capacity_bytes=most,
        fits="yes" if need <= most else "no",
        margin_bytes=1.03 * most - need,
    )


@pytest.mark.parametrize("last", [0, 1, 2, 97, 1000])
@pytest.mark.parametrize("start", [1, 8, 300])
@pytest.mark.parametrize("bend", [0.0, 5.0])
def test_the_last_ones(last: int, start: int, bend: float) -> None:
    for last_sure in {last, last * 8 // 10}:
        batches = largest_batches(
            lambda size, sure=last_sure: memory(size, last=last, last_sure=sure, bend=bend),  # type: ignore[misc]
            start,
        )
        assert batches == LargestBatches(expected=last, sure=last_sure)


def test_few_sizes_are_looked_at() -> None:
    asked: list[int] = []

    def at(size: int) -> MemoryEstimate:
        asked.append(size)
        return memory(size, last=5000, last_sure=4000)

    largest_batches(at, 16)
    assert len(asked) <= 24


def test_without_an_upper_end_nothing_is_sure() -> None:
    def at(size: int) -> MemoryEstimate:
        return MemoryEstimate(
            allocated=Bytes(value=float(size)), capacity_bytes=7.0,
            fits="yes" if size <= 7 else "no", margin_bytes=7.0 - size,
        )  # fmt: skip

    assert largest_batches(at) == LargestBatches(expected=7, sure=None)


def test_an_upper_end_that_ends_on_the_way() -> None:
    """Larger sizes have an estimate alone, which guides the search there."""

    def at(size: int) -> MemoryEstimate:
        upper = 2.0 * size if size <= 10 else None
        return MemoryEstimate(
            allocated=None, device_total=Bytes(value=float(size), upper=upper), capacity_bytes=7.0,
            fits="yes" if size <= 7 else "no", margin_bytes=7.0 - size,
        )  # fmt: skip

    assert largest_batches(at, 16) == LargestBatches(expected=7, sure=3)
