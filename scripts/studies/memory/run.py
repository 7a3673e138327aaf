"""Compare predicted with measured allocated bytes of training steps on the CPU: allocated.jsonl.

    nice python -m scripts.studies.memory.run [MODEL ...]

Each model is read by the CPU's kernels, from shapes alone, and measured by PyTorch's profiler. What
was done is in allocated.jsonl; stop it at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from driple.errors import DatasetError
from driple.files import atomic_write
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import Precision, StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.memory.timeline import step_timeline
from scripts.studies.kit.results import Row, add_result, read_results
from scripts.studies.memory.measured import Measured, measured_step, prepared
from scripts.studies.memory.models import MODELS, StudyModel, loss_of

__all__ = ["CASES", "RESULTS", "Case", "compared", "read_for_cpu"]

IntArray = npt.NDArray[np.int64]

HOME = Path(__file__).parent
RESULTS = HOME / "allocated.jsonl"
CURVES = HOME / "curves.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How a model is trained.

    Attributes:
        precision: of the step.
        checkpoint: whether blocks are computed again in the backward pass.
        optimizer: `momentum` or `adamw`.
        passes: forward and backward passes for each update.
    """

    precision: Precision = "fp32"
    checkpoint: bool = False
    optimizer: str = "momentum"
    passes: int = 1

    @property
    def options(self) -> StepOptions:
        """For the reader, by the CPU's kernels."""
        return StepOptions(
            precision=self.precision,
            optimizer=self.optimizer,
            grad_accumulation=self.passes,
            trace="real",
            kernels="cpu",
        )

    @property
    def fields(self) -> Row:
        """What names it in the results."""
        return {
            "precision": self.precision,
            "checkpointing": self.checkpoint,
            "optimizer": self.optimizer,
            "passes": self.passes,
        }


CASES = (
    Case(),
    Case(optimizer="adamw"),
    Case(checkpoint=True),
    Case(passes=2),
    Case(precision="bf16", optimizer="adamw"),
    Case(precision="bf16", checkpoint=True),
    Case(precision="amp-bf16"),
    Case(precision="amp-bf16", checkpoint=True, optimizer="adamw"),
)


SHOWN = (
    ("resnet50", CASES[0]),
    ("GPT-2", CASES[6]),
    ("deit_tiny", CASES[1]),
    ("T5", CASES[5]),
)


def read_for_cpu(study: StudyModel, case: Case) -> OpGraph:
    """The step as PyTorch runs it on the CPU, from shapes alone."""
    model, batch = prepared(study, checkpoint=case.checkpoint)
    mode = FakeTensorMode()
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = mode.from_tensor(tensor)  # type: ignore[assignment]
    given = tree_map_only(Tensor, mode.from_tensor, batch)
    options = case.options
    if case.checkpoint and study.checkpoint is None:
        options = replace(options, activation_checkpointing="full")
    # transformers gives tensors without values a mask, which a step with values does not make.
    with (
        patch("transformers.masking_utils._ignore_causal_mask_sdpa", lambda *_, **__: True),
        patch("transformers.masking_utils._ignore_bidirectional_mask_sdpa", lambda *_, **__: True),
        patch("transformers.masking_utils.find_packed_sequence_indices", lambda *_: None),
        mode,
    ):
        return traced_step(model, given, loss_of, options)


def compared(name: str, case: Case) -> Row:
    """Predicted and measured bytes of a model."""
    study = MODELS[name]
    graph = read_for_cpu(study, case)
    timeline = step_timeline(graph, rounding=1)
    measured = measured_step(
        study, case.options, frozenset(graph.op_types), checkpoint=case.checkpoint
    )
    theirs, ours = matched_curves(graph, timeline.total_bytes, measured)
    return {
        "model": name,
        "library": study.library,
        **case.fields,
        "measured_bytes": measured.peak_bytes,
        "measured_of_tensors": measured.peak_of_tensors,
        "predicted_bytes": timeline.peak_bytes,
        "matched_ops_pct": round(100 * len(theirs) / len(measured.ops), 2),
        "curve_pct": round(100 * float(np.abs(theirs - ours).mean()) / measured.peak_of_tensors, 4),
    }


def matched_curves(
    graph: OpGraph, predicted: IntArray, measured: Measured
) -> tuple[IntArray, IntArray]:
    """Measured and predicted bytes at the ops that stand in both lists.

    Not all do: of what is read as two kernels, such as a convolution and its bias, the profiler
    shows one op.
    """
    same = SequenceMatcher(None, measured.ops, graph.op_types, autojunk=False)
    pairs = [
        (block.a + i, block.b + i)
        for block in same.get_matching_blocks()
        for i in range(block.size)
    ]
    theirs, ours = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return measured.of_ops[theirs], predicted[ours]


def store_curves() -> None:
    """Both curves of some steps, for the picture."""
    curves = []
    for name, case in SHOWN:
        study = MODELS[name]
        graph = read_for_cpu(study, case)
        timeline = step_timeline(graph, rounding=1)
        measured = measured_step(
            study, case.options, frozenset(graph.op_types), checkpoint=case.checkpoint
        )
        theirs, ours = matched_curves(graph, timeline.total_bytes, measured)
        how = ", checkpointing" if case.checkpoint else ""
        curves.append(
            {
                "title": f"{name}, {case.precision}, {case.optimizer}{how}",
                "measured": theirs.tolist(),
                "predicted": ours.tolist(),
            }
        )
    atomic_write(CURVES, f"{json.dumps(curves)}\n".encode(), error=DatasetError)


def main() -> None:
    """Compare all models, or those that are named, that are not in the results yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curves", action="store_true", help="store the curves of the picture")
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    given = parser.parse_args()
    declare_torchvision_ops()
    torch.set_num_threads(1)
    if given.curves:
        store_curves()
        return
    keys = ("model", *Case().fields)
    done = {tuple(row[key] for key in keys) for row in read_results(RESULTS)}
    for name in given.models:
        for case in CASES:
            if (name, *case.fields.values()) in done:
                continue
            torch.manual_seed(0)
            started_s = time.process_time()
            row = compared(name, case)
            add_result(RESULTS, row)
            off = 100 * (row["predicted_bytes"] / row["measured_of_tensors"] - 1)
            took_s = time.process_time() - started_s
            print(f"{name} {case.fields} {off:+.2f} % {row['curve_pct']} % {took_s:.0f} s")


if __name__ == "__main__":
    main()
