"""Published memory: rows, the tensors of their steps, and how estimates are judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.errors import ConfigError, DatasetError
from driple.memory.calibration import MemoryCalibration, shipped_memory_calibration
from scripts.fits.memory_check import (
    CheckedMemory,
    FitScore,
    checked_rows,
    coverage_of,
    fit_score,
    pairs_of,
    quantile,
    weights_of,
)
from scripts.fits.memory_rows import (
    MEMORY_FILE,
    MemoryRun,
    read_memory_runs,
    write_memory_runs,
)
from scripts.fits.memory_store import MEMORY_STEPS_FILE, MemoryStore, write_memory_steps
from scripts.published.rows.memory import timm_batch_before

PUBLISHED = Path(__file__).resolve().parents[3] / "datasets" / "runs" / "published"


@pytest.fixture(scope="module")
def rows() -> list[MemoryRun]:
    """The table that ships."""
    return read_memory_runs(PUBLISHED / MEMORY_FILE)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """The steps that ship."""
    return MemoryStore.open(PUBLISHED / MEMORY_STEPS_FILE)


def test_every_row_has_its_step(rows: list[MemoryRun], store: MemoryStore) -> None:
    """No row lacks the tensors that its check needs, and ids are unique."""
    assert {row.step for row in rows} <= set(store.steps)
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.ran or row.device_bytes is None for row in rows)


def test_tables_are_read_as_written(rows: list[MemoryRun], tmp_path: Path) -> None:
    """The same rows give the same bytes; a damaged table is refused."""
    file = tmp_path / "rows.csv.gz"
    write_memory_runs(file, rows)
    assert read_memory_runs(file) == rows
    assert file.read_bytes() == (PUBLISHED / MEMORY_FILE).read_bytes()
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ConfigError, match="cannot read"):
        read_memory_runs(file)


def test_steps_are_read_as_written(store: MemoryStore, tmp_path: Path) -> None:
    """Tensors, parameters and updates of some steps come back as they were."""
    some = dict(list(store.steps.items())[::80])
    file = tmp_path / "some.xz"
    write_memory_steps(file, some)
    again = MemoryStore.open(file).steps
    assert set(again) == set(some)
    for name, stored in some.items():
        other = again[name]
        for field in ("nbytes", "made_by", "freed_after", "roles", "is_cast"):
            assert np.array_equal(getattr(stored.step, field), getattr(other.step, field))
        for field in ("nbytes", "block_of", "gradient_at", "backward_at", "complete_at"):
            mine, theirs = getattr(stored.step.weights, field), getattr(other.step.weights, field)
            assert np.array_equal(mine, theirs)
        assert np.array_equal(stored.bytes_each, other.bytes_each)
        assert stored.step.update == other.step.update
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DatasetError):
        MemoryStore.open(file)


@pytest.mark.slow
def test_shipped_steps_are_those_of_a_trace_today(
    rows: list[MemoryRun], store: MemoryStore
) -> None:
    """The tensors of a step in the store are those that Driple reads from the model."""
    pytest.importorskip("torch")
    from scripts.published.memory_steps import marked, traced

    for job in ("timm:resnet50", "timm:deit_small_patch16_224", "own:bert-base-squad"):
        row = next(one for one in rows if one.job == job)
        fresh, kept = marked(traced(row, 1009), 1009), store.steps[row.step]
        assert np.array_equal(fresh.step.nbytes, kept.step.nbytes)
        assert np.array_equal(fresh.bytes_each, kept.bytes_each)
        assert np.array_equal(fresh.step.freed_after, kept.step.freed_after)


def test_the_batch_before_is_that_of_timms_own_rule() -> None:
    """`timm.utils.decay_batch` lowers 512 to 384, 256, 192, ...; the rule is its inverse."""
    from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

    pytest.importorskip("torch")
    declare_torchvision_ops()
    from timm.utils.decay_batch import decay_batch_step

    tried = 512
    while tried > 1:
        lower = decay_batch_step(tried)
        assert timm_batch_before(lower) == tried
        tried = lower
    assert timm_batch_before(512) is None
    assert timm_batch_before(100) is None


def test_sources_weigh_the_same() -> None:
    """Two sources, one with two families, one of which repeats a run."""
    some = [
        MemoryRun(id=str(i), source=source, family=family, batch_size=batch)
        for i, (source, family, batch) in enumerate(
            [("a", "x", 1), ("a", "x", 1), ("a", "y", 1), ("b", "z", 1), ("b", "z", 2)]
        )
    ]
    assert weights_of(some).tolist() == [0.25, 0.25, 0.5, 0.5, 0.5]
    assert quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]), 0.5) == 2.0


def test_a_constant_answer_is_half_right() -> None:
    """A rule that always answers yes, or never, is right on one class alone."""
    assert FitScore(ran={"yes": 90}, failed={"yes": 10}).right == 0.5
    assert FitScore(ran={"no": 90}, failed={"no": 10}).right == 0.5
    assert FitScore(ran={"yes": 90}, failed={"yes": 10}).wrong_fits == 0.5
    assert FitScore(ran={"yes": 98, "likely not": 2}, failed={"no": 50}).right == 0.99


def test_estimates_are_as_good_as_the_page_says(rows: list[MemoryRun], store: MemoryStore) -> None:
    """Perceptrons within 2 % in the median, and two full fine-tunings within 1 %."""
    known = shipped_memory_calibration()
    some = [row for row in rows if row.source == "GPUMemNet"][::10]
    errors = [
        abs(pair.error) for pair in pairs_of(checked_rows(some, store, known), "device_total")
    ]
    assert len(errors) == len(some) and float(np.median(errors)) < 0.02
    full = [row for row in rows if row.job == "own:mistral-7b" and row.allocated_bytes][:4]
    pairs = pairs_of(checked_rows(full, store, known), "allocated")
    assert len(pairs) == 4 and max(abs(pair.error) for pair in pairs) < 0.01


def test_coverage_counts_runs_within_their_interval(
    rows: list[MemoryRun], store: MemoryStore
) -> None:
    """An interval without ends holds all runs, one of a point none."""
    some = [row for row in rows if row.source == "GPUMemNet"][::20]
    pairs = pairs_of(checked_rows(some, store, shipped_memory_calibration()), "device_total")
    assert coverage_of(pairs, lambda _: (1e-9, 1e9))[0] == 1.0
    assert coverage_of(pairs, lambda _: (1.5, 1.6))[0] == 0.0


def test_fits_counts_answers_by_what_happened(rows: list[MemoryRun], store: MemoryStore) -> None:
    """A job of twice the memory does not fit; the same with half of it does."""
    row = next(one for one in rows if one.job == "own:mistral-7b" and one.allocated_bytes)
    known = shipped_memory_calibration()
    checked: list[CheckedMemory] = []
    for capacity, ran in ((40.0, False), (320.0, True)):
        checked += checked_rows(
            [replace(row, capacity_bytes=capacity * 2**30, ran=ran)], store, known
        )
    assert fit_score(checked) == FitScore(ran={"yes": 1}, failed={"no": 1})


def test_the_shipped_constants_are_plausible() -> None:
    """Between nothing and a few GiB; every interval holds its estimate."""
    known = shipped_memory_calibration()
    assert 0.3e9 < known.context_of("Ampere") < 3e9
    assert 0 <= known.group_bytes < 3e9
    assert 0.9 < known.usable_share <= 1 and 0.7 < known.yes_below <= known.no_above
    assert known.workspace_of("Hopper") > known.workspace_of("Volta")
    assert known.error_of("device_total", "ddp images") is not None
    assert MemoryCalibration.from_json(json.dumps(known.to_dict())) == known


def test_the_cache_has_a_share_for_each_generation_of_pytorch(
    rows: list[MemoryRun], store: MemoryStore
) -> None:
    """Reserved memory grows with it, allocated memory does not."""
    known = replace(shipped_memory_calibration(), cache_share={"": 0.0, "torch1": 0.5})
    row = next(one for one in rows if one.source == "GPUMemNet")
    (new,), (old,) = (
        checked_rows([replace(row, library=library)], _as_of(store, row, library), known)
        for library in ("torch2", "torch1")
    )
    assert old.estimate.allocated == new.estimate.allocated
    assert old.estimate.reserved.value > new.estimate.reserved.value


def _as_of(store: MemoryStore, row: MemoryRun, library: str) -> MemoryStore:
    """The store with the row's step under the name that it has with another PyTorch."""
    return MemoryStore(steps={replace(row, library=library).step: store.steps[row.step]})
