"""Allocated bytes against PyTorch itself: its profiler on real steps, and its MemTracker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.optim import AdamW, Optimizer  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map_only  # noqa: E402

from driple.graph.torch.autocast import gpu_autocast  # noqa: E402
from driple.graph.torch.gradient_sums import sole_uses  # noqa: E402
from driple.graph.torch.step import StepOptions, traced_step  # noqa: E402
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops  # noqa: E402
from driple.jobs.pytorch.whole_sequences import whole_sequences  # noqa: E402
from driple.memory.timeline import step_timeline  # noqa: E402
from scripts.studies.memory.models import MODELS, loss_of  # noqa: E402
from scripts.studies.memory.run import CASES, Case, compared  # noqa: E402

declare_torchvision_ops()
for _package in ("timm", "torchvision", "transformers"):
    pytest.importorskip(_package)

CLOSE = 0.03
QUICK = ("shufflenet_v2_x1_0", "Whisper")


def _check(name: str, cases: Iterable[Case]) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for case in cases:
            row = compared(name, case)
            assert row["predicted_bytes"] == pytest.approx(row["measured_of_tensors"], rel=CLOSE)
            assert row["curve_pct"] < 100 * CLOSE, case
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", QUICK)
def test_peak_and_curve_of_the_profiler(name: str) -> None:
    """Single precision, and autocast with checkpointing and AdamW."""
    _check(name, (CASES[0], CASES[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MODELS))
def test_peak_and_curve_of_the_profiler_for_all(name: str) -> None:
    """Every model and case of the study."""
    _check(name, CASES)


class TwoReaders(nn.Module):
    """What a layer makes is read twice, or the layer's own weights are."""

    def __init__(self, *, tied: bool) -> None:
        super().__init__()
        self.words, self.tied = nn.Embedding(1000, 32), tied

    def forward(self, tokens: Tensor) -> Tensor:
        """A number."""
        embedded = self.words(tokens)
        if self.tied:
            return nn.functional.linear(embedded, self.words.weight).square().mean()
        total: Tensor = (embedded.sin() + embedded.cos()).sum()
        return total


@pytest.mark.parametrize("tied", [False, True])
def test_the_sum_of_two_gradients_takes_memory_where_autograd_gives_it_some(tied: bool) -> None:
    """It is added in place, but for a gradient that is a view, as tied weights have without casts.

    The profiler shows in which op memory of that size is allocated.
    """
    size = 4 * 1000 * 32 if tied else 4 * 64 * 32
    with torch.device("meta"):
        model, tokens = TwoReaders(tied=tied), torch.zeros(64, dtype=torch.int64)
    graph = traced_step(model, tokens, lambda made: made, StepOptions(optimizer="sgd"))
    assert sole_uses() != (0, 0)
    sums = [i for i, op in enumerate(graph.op_types) if op == "aten::add" and graph.phases[i] == 1]
    lives = graph.lifetimes
    ours = [lives.nbytes[lives.made_by == node].tolist() for node in sums]
    real, values = TwoReaders(tied=tied), torch.zeros(64, dtype=torch.int64)
    loss = real(values)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        loss.backward()
    theirs = [
        event.cpu_memory_usage
        for event in recorded.events()
        if event.name in ("aten::add", "aten::add_")
    ]
    assert ours == ([[size]] if tied else [[]])
    assert theirs == ([size] if tied else [0])


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
@pytest.mark.parametrize("name", ["shufflenet_v2_x1_0", "deit_tiny", "BERT", "Llama", "T5"])
def test_peak_of_memory_tracker(name: str, precision: Any) -> None:
    """`torch.distributed._tools.MemTracker` on the same ops of a GPU, by shapes alone.

    It runs as a dispatch mode, under which autograd adds gradients out of place.
    """
    from torch.distributed._tools.mem_tracker import MemTracker

    study = MODELS[name]
    with torch.device("meta"):
        model = study.make()
    batch = tree_map_only(Tensor, lambda one: one.to("meta"), study.batch())
    options = StepOptions(precision=precision, optimizer="adamw")
    with whole_sequences(), gpu_autocast():
        graph = traced_step(model, batch, loss_of, options)
    timeline = step_timeline(graph, rounding=1)
    optimizer = AdamW(model.parameters(), foreach=True)
    _step(model, batch, optimizer, precision)
    tracker = MemTracker()
    tracker.track_external(model, optimizer, *tree_leaves(batch))
    with tracker:
        _step(model, batch, optimizer, precision)
    snapshot = tracker.get_tracker_snapshot("peak")[torch.device("meta")]
    assert timeline.peak_bytes == pytest.approx(snapshot["Total"], rel=CLOSE)


def _step(model: nn.Module, batch: Any, optimizer: Optimizer, precision: str) -> None:
    is_autocast = precision == "amp-bf16"
    with whole_sequences(), gpu_autocast():
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=is_autocast):
            loss = loss_of(model(**batch) if isinstance(batch, dict) else model(batch))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
