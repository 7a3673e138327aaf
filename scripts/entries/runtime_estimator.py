"""Enter PyTorch's RuntimeEstimator (`torch.distributed._tools`): rooflines of ops, on one device.

    python -m scripts.entries.runtime_estimator --work FOLDER [--limit-s 60]

model, batch, optimizer under FakeTensorMode --RuntimeEstimator--> seconds of a step

The estimator asks the GPU that it runs on for its peaks; here data sheets of the catalogue answer
for the row's device, and nothing else of it is changed. It estimates eager steps of one device
without communication: other rows are refused. Its cost model fails on fused attention in half
precision (PyTorch 2.13), so attention is written as products and a softmax. What was estimated lies
in the folder, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.runtime_estimator import RuntimeEstimator
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _runtime_estimation as estimation

from driple.catalog import device_named
from driple.catalog.model import Device
from driple.errors import ConfigError
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.batch_tensors import changed_batch
from driple.graph.torch.precision import autocast_of, cast_batch, cast_model
from driple.graph.torch.step import own_loss
from driple.jobs.pytorch.quiet import quiet_transformers
from driple.jobs.pytorch.timm_models import built_model
from driple.jobs.pytorch.whole_sequences import whole_sequences
from driple.runs.measured_run import MeasuredRun
from driple.runs.step_key import TIMM
from scripts.entries.table import Entry, benchmark_rows, write_entry
from scripts.published.models import built, definition_of

__all__ = ["DeviceEstimator", "main", "refusal"]

NAME = "torch-runtime-estimator"
NOT_RUN = "not estimated: steps of many rows, and some of other families, were"
MANY = 10  # rows of one step
_MODE = "operator-level-cost-model"
_TERA, _GIGA = 1e12, 1e9
_OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda some: torch.optim.SGD(some, lr=0.1, foreach=True),
    "momentum": lambda some: torch.optim.SGD(some, lr=0.1, momentum=0.9, foreach=True),
    "rmsprop": lambda some: torch.optim.RMSprop(some, lr=0.1, foreach=True),
    "adam": lambda some: torch.optim.Adam(some, lr=0.1, foreach=True),
    "adamw": lambda some: torch.optim.AdamW(some, lr=0.1, foreach=True),
}


@dataclass(frozen=True, slots=True)
class Peaks:
    """What the estimator asks a device for.

    Attributes:
        device: of the catalogue.
        tf32: whether products in single precision run in TF32.
    """

    device: Device
    tf32: bool

    def tera_flops(self, dtype: torch.dtype) -> float:
        """Peak of a type of numbers, in 10^12 FLOPs per second."""
        if dtype == torch.float16:
            return self.device.half_flops / _TERA
        if dtype == torch.bfloat16:
            return (self.device.bf16_flops or self.device.half_flops) / _TERA
        single = self.device.matrix_flops if self.tf32 else self.device.fp32_flops
        return single / _TERA

    def giga_bytes(self) -> float:
        """Peak of the memory, in 10^9 bytes per second."""
        return self.device.bytes_per_s / _GIGA


class _Done:
    """An op that has run already, as the estimator calls it."""

    def __init__(self, func: Any, result: Any) -> None:
        self._overloadpacket, self._result = func._overloadpacket, result

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._result


class DeviceEstimator(RuntimeEstimator):
    """The estimator for several devices at once: each op runs once, and is costed for each.

    Args:
        peaks: of the devices.
    """

    def __init__(self, peaks: Sequence[Peaks]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peaks = peaks
        self.milliseconds = [0.0] * len(peaks)
        self._asked: Peaks | None = None  # while an op is costed

    @contextlib.contextmanager
    def estimating(self) -> Iterator[None]:
        """Estimate what runs within, with the peaks of the devices in place of the GPU's."""

        def asked() -> Peaks:
            if self._asked is None:
                raise ConfigError("peaks of a device are asked for outside of an estimate")
            return self._asked

        with (
            patch.object(torch.cuda, "is_available", lambda: self._asked is not None),
            patch.object(estimation, "get_device_tflops", lambda dtype: asked().tera_flops(dtype)),
            patch.object(estimation, "get_gpu_dram_gbps", lambda: asked().giga_bytes()),
            self(_MODE),
        ):
            # Sums by module are not asked for, and fail on modules that a forward pass makes.
            self._mod_tracker.clear_user_hooks()  # type: ignore[no-untyped-call]
            yield

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the op on shapes alone, and add its estimate for each device."""
        result = func(*args, **(kwargs or {}))
        done = _Done(func, result)
        for place, peaks in enumerate(self.peaks):
            self._asked = peaks
            try:
                self.milliseconds[place] += self._estimate(done, args, kwargs)[1]
            finally:
                self._asked = None
        return result


def refusal(row: MeasuredRun) -> str:
    """Why the estimator does not do a row; empty if it does."""
    if row.num_devices > 1:
        return "several devices: communication is not estimated"
    if row.compiled:
        return "compiled or fused: eager steps are estimated"
    if row.activation_checkpointing not in ("", "none"):
        return "activation checkpointing"
    return ""


def step_ms(row: MeasuredRun, peaks: Sequence[Peaks]) -> list[float]:
    """Estimated milliseconds of a row's step on each device."""
    model, batch, loss = _parts(row)
    with (
        FakeTensorMode(),
        gpu_autocast(),
        sdpa_kernel(SDPBackend.MATH),
        quiet_transformers(),
        whole_sequences(),
    ):
        model._apply(_fake)  # type: ignore[no-untyped-call]
        for cell in getattr(loss, "__closure__", None) or ():  # labels that a loss has with it
            cell.cell_contents = changed_batch(cell.cell_contents, _fake)
        optimizer = _OPTIMIZERS[_optimizer(row)](model.parameters())
        with cast_model(model, row.precision):  # type: ignore[arg-type]  # checked when read
            given = cast_batch(changed_batch(batch, _fake), row.precision)  # type: ignore[arg-type]
            one_pass = DeviceEstimator(peaks)
            with one_pass.estimating():
                with autocast_of(row.precision):  # type: ignore[arg-type]
                    total: Any = (loss or own_loss)(_called(model, given))
                total.backward()
            update = DeviceEstimator(peaks)
            with update.estimating():
                optimizer.step()
    return [
        row.grad_accumulation * ms + update_ms
        for ms, update_ms in zip(one_pass.milliseconds, update.milliseconds, strict=True)
    ]


def _fake(value: Any) -> Any:
    """A tensor without values on the CPU in place of one on the meta device."""
    if not isinstance(value, Tensor):
        return value
    empty = torch.empty(value.shape, dtype=value.dtype)
    if isinstance(value, nn.Parameter):
        return nn.Parameter(empty, requires_grad=value.requires_grad)
    return empty


def _parts(row: MeasuredRun) -> tuple[nn.Module, Any, Any]:
    batch_size = row.batch_size or 1
    if row.job.startswith(TIMM):
        model, shape = built_model(row.job.removeprefix(TIMM), row.input_shape)
        with torch.device("meta"):
            images = torch.zeros(batch_size, *shape)

        def loss(outputs: Any) -> Tensor:
            logits = outputs[0] if isinstance(outputs, tuple | list) else outputs
            labels = torch.zeros(batch_size, dtype=torch.int64)
            return nn.functional.cross_entropy(logits, labels)

        return model, images, loss
    size = (row.input_shape or (row.seq_len or 0,))[-1]
    parts = built(row.job, batch_size=batch_size, size=size)
    return parts.model, parts.batch, parts.loss


def _optimizer(row: MeasuredRun) -> str:
    name = row.optimizer or definition_of(row.job).optimizer
    return name.removesuffix("-fused")


def _called(model: nn.Module, batch: Any) -> Any:
    if isinstance(batch, dict):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)


class _TooLongError(Exception):
    """A step takes longer to estimate than is allowed."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Stop what runs within after so many seconds of this process's processor."""

    def stop(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def estimate(row: MeasuredRun, peaks: Sequence[Peaks], limit_s: float) -> list[float] | str:
    """Estimated milliseconds on each device, or why there are none."""
    try:
        with _at_most(limit_s), contextlib.redirect_stdout(io.StringIO()):
            return step_ms(row, peaks)
    except _TooLongError:
        return f"takes over {limit_s:.0f} s of a processor to estimate"
    except Exception as error:  # the estimator, PyTorch and the model may raise anything
        return f"fails: {type(error).__name__}: {str(error).partition(',')[0][:80]}"


def _key(row: MeasuredRun) -> str:
    """What an estimate depends on beside the device."""
    single = row.precision in ("fp32", "tf32")
    return json.dumps([
        row.job, row.batch_size, row.seq_len, row.input_shape,
        "single" if single else row.precision, _optimizer(row), row.grad_accumulation,
    ])  # fmt: skip


def in_turns(groups: Mapping[str, Sequence[MeasuredRun]]) -> list[str]:
    """Keys of groups of many rows, then the largest of each model family, then its second, ..."""
    turns: Counter[str] = Counter()
    places = []
    for key, some in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        family = some[0].family
        places.append((turns[family] if len(some) < MANY else -1, -len(some), key))
        turns[family] += 1
    return [key for _, _, key in sorted(places)]


def main(argv: Sequence[str] | None = None) -> int:
    """Estimate what is missing, then write the entry."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of what was estimated")
    parser.add_argument("--limit-s", type=float, default=60, help="most seconds of a step")
    parser.add_argument("--most", type=int, help="estimate at most so many steps more")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    rows = benchmark_rows()
    groups: dict[str, list[MeasuredRun]] = {}
    for row in rows:
        if not refusal(row):
            groups.setdefault(_key(row), []).append(row)
    given.work.mkdir(parents=True, exist_ok=True)
    file = given.work / "estimates.jsonl"
    known = {}
    if file.exists():
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        known = {line["key"]: line["estimates"] for line in lines}
    todo = [key for key in in_turns(groups) if key not in known][: given.most]
    with file.open("a", encoding="utf-8") as stream:
        for number, key in enumerate(todo, 1):
            known[key] = _estimates(groups[key], given.limit_s)
            stream.write(json.dumps({"key": key, "estimates": known[key]}) + "\n")
            stream.flush()
            print(f"{number} of {len(todo)}: {key}", flush=True)
    seconds, refused = {}, {row.id: why for row in rows if (why := refusal(row))}
    for key, some in groups.items():
        for row in some:
            estimated = known.get(key, NOT_RUN)
            if isinstance(estimated, str):
                refused[row.id] = estimated
            else:
                seconds[row.id] = estimated[_place(row)] / 1e3
    write_entry(Entry(name=NAME, seconds=seconds, refused=refused), rows)
    return 0


def _place(row: MeasuredRun) -> str:
    return f"{row.device} tf32" if row.precision == "tf32" else row.device


def _estimates(rows: Sequence[MeasuredRun], limit_s: float) -> dict[str, float] | str:
    """Milliseconds by device and whether TF32 is used, or why there are none."""
    places = {_place(row): Peaks(device_named(row.device), row.precision == "tf32") for row in rows}
    estimated = estimate(rows[0], list(places.values()), limit_s)
    if isinstance(estimated, str):
        return estimated
    return dict(zip(places, estimated, strict=True))


if __name__ == "__main__":
    sys.exit(main())
