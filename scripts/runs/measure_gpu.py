"""Measure training steps and forward passes on this machine's GPU: time, memory, utilisation.

    python -m scripts.runs.measure_gpu -o FILE [--rows PATTERN] [--shuffle SEED] [--from N]

Needs PyTorch for CUDA, timm, torchvision, transformers and nvidia-ml-py. Weights and inputs are
random numbers; nothing is downloaded. FILE gets one JSON object a line: the machine, then a row for
each job of `scripts/runs/gpu_jobs.py` (`kind`: `row`, or `failed`, such as a job that ran out of
memory). A job runs three steps before it is measured, then for about `--seconds`. Times are those
of CUDA events; memory is that of PyTorch's allocator after the first three steps, and of NVML at
the end; `ops` are the seconds of the kernels that each op of PyTorch launched, by its inputs. After
an error of the device, which no later job of the process survives, it stops: go on with `--from`.
`--shuffle` takes the jobs in a random order, compiled ones last since each takes a minute: where
`--limit-s` ends the run, those measured are a sample of all.
`scripts/runs/gpu_tables.py` makes tables of FILE.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from driple.errors import ConfigError, DripleError
from driple.files import atomic_write
from scripts.runs.gpu_jobs import JOBS, GpuJob, configured

_WARM_UP, _PERIOD_S = 3, 0.02
_LEAST_STEPS, _MOST_STEPS = 4, 100
_CLASSES = 10  # labels: some models know fewer than a thousand
Step = Callable[[], Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, required=True, help="FILE of JSON lines")
    parser.add_argument("--rows", default="", help="regular expression of the jobs' names")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="in a random order")
    parser.add_argument("--from", type=int, default=0, dest="first", help="skip N of these jobs")
    parser.add_argument("--seconds", type=float, default=0.9, help="to measure a job for")
    parser.add_argument("--limit-s", type=float, default=3600.0, help="no job starts after it")
    given = parser.parse_args(argv)
    try:
        jobs = [one for one in JOBS if re.search(given.rows, one.name)]
        if not jobs:
            raise ConfigError(
                f"no job's name matches --rows {given.rows!r}; names are such as {JOBS[0].name}"
            )
        if given.shuffle is not None:
            order = np.random.default_rng(given.shuffle).permutation(len(jobs))
            jobs = sorted((jobs[at] for at in order), key=lambda one: one.compiled)
        return _measured(jobs[given.first :], given.out, given.seconds, given.limit_s)
    except re.error as error:
        print(f"error: --rows is no regular expression: {error}", file=sys.stderr)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
    return 2


def _measured(jobs: Sequence[GpuJob], out: Path, seconds: float, limit_s: float) -> int:
    start = time.perf_counter()
    meter = Meter()
    import torch

    lines = [meter.machine()]
    for number, job in enumerate(jobs, 1):
        if time.perf_counter() - start > limit_s:
            break
        try:
            entry = {"kind": "row", **asdict(job), **measured(job, meter, seconds)}
        except torch.AcceleratorError as error:
            raise ConfigError(
                f"{job.name} broke the device for this process ({str(error).splitlines()[0]}); "
                f"go on with another FILE and --from {number} more than now"
            ) from error
        except Exception as error:  # a job may fail in any way, and the others go on
            entry = {"kind": "failed", **asdict(job), "error": repr(error)[:500]}
        lines.append(entry)
        text = "".join(json.dumps(one) + "\n" for one in lines)
        atomic_write(out, text.encode(), error=ConfigError)
        words = f"{entry['step_s'] * 1e3:.2f} ms" if "step_s" in entry else entry["error"][:100]
        print(f"{job.name}, {job.batch} samples, {job.precision}: {words}", flush=True)
    return 0


class Meter:
    """The first GPU, by NVML.

    Raises:
        ConfigError: there is no GPU that PyTorch can use, or no NVML.
    """

    def __init__(self) -> None:
        try:
            import pynvml
            import torch
        except ImportError as error:
            raise ConfigError(f"{error.name} is missing; pip install torch nvidia-ml-py") from error
        if not torch.cuda.is_available():
            raise ConfigError("PyTorch finds no GPU; run this on a machine with an NVIDIA GPU")
        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.empty_bytes = self.used_bytes()
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
        self.context_bytes = self.used_bytes() - self.empty_bytes - torch.cuda.memory_reserved()

    def used_bytes(self) -> int:
        """Memory in use, that of the driver included."""
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)

    def sample(self) -> tuple[int, int, int]:
        """Utilisation of the GPU and of its memory, percent, and the clock of its SMs, MHz."""
        rates = self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
        clock = self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM)
        return int(rates.gpu), int(rates.memory), int(clock)

    def machine(self) -> dict[str, Any]:
        """What a table must state of the machine."""
        import timm
        import torch
        import torchvision
        import transformers

        return {
            "kind": "machine",
            "date": datetime.date.today().isoformat(),
            "device": torch.cuda.get_device_name(0),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "timm": timm.__version__,
            "torchvision": torchvision.__version__,
            "transformers": transformers.__version__,
            "driver": str(self._nvml.nvmlSystemGetDriverVersion()),
            "total_bytes": int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).total),
            "empty_bytes": self.empty_bytes,
            "context_bytes": self.context_bytes,
        }


class Sampler(threading.Thread):
    """Reads a meter every 20 ms until it is stopped."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(daemon=True)
        self._meter, self._stopped = meter, threading.Event()
        self.samples: list[tuple[int, int, int]] = []

    def run(self) -> None:
        """Read."""
        while not self._stopped.wait(_PERIOD_S):
            self.samples.append(self._meter.sample())

    def stop(self) -> None:
        """End it."""
        self._stopped.set()
        self.join()


def measured(job: GpuJob, meter: Meter, seconds: float) -> dict[str, Any]:
    """What a job takes, timed for that many seconds."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()
    step, parameters = prepared(job)
    for _ in range(_WARM_UP):
        step()
    torch.cuda.synchronize()
    kept = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    for _ in range(_WARM_UP):
        step()
    torch.cuda.synchronize()
    each_s = (time.perf_counter() - begin) / _WARM_UP
    result = timed(step, max(_LEAST_STEPS, min(_MOST_STEPS, int(seconds / each_s))), meter)
    result |= {
        "allocated_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
        "kept_bytes": kept,
        "device_bytes": meter.used_bytes(),
        "parameters": parameters,
    }
    return result if job.compiled else result | busy(step)


def timed(step: Step, steps: int, meter: Meter) -> dict[str, Any]:
    """Times of steps by events of the GPU, and samples of NVML meanwhile."""
    import torch

    marks = [
        torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        for _ in range(steps + 1)
    ]
    sampler = Sampler(meter)
    sampler.start()
    begin = time.perf_counter()
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    host_s = (time.perf_counter() - begin) / steps
    torch.cuda.synchronize()
    sampler.stop()
    times = sorted(a.elapsed_time(b) / 1e3 for a, b in pairwise(marks))
    means = [sum(column) / len(sampler.samples) for column in zip(*sampler.samples, strict=True)]
    gpu, memory, clock = means or [None] * 3
    return {
        "steps": steps,
        "step_s": times[steps // 2],
        "step_p10_s": times[steps // 10],
        "step_p90_s": times[9 * steps // 10],
        "host_s": host_s,
        "utilisation_pct": gpu,
        "memory_utilisation_pct": memory,
        "clock_mhz": clock,
    }


def busy(step: Step) -> dict[str, Any]:
    """Time in which any kernel runs in a step, the number of kernels, and which ops launch them.

    `ops` has a list for each op of PyTorch with the same sizes of inputs: its name, the sizes,
    the number of kernels and their seconds.
    """
    import torch
    from torch._C._autograd import DeviceType

    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], record_shapes=True) as profile:
        step()
        torch.cuda.synchronize()
    launchers: dict[int, tuple[str, str]] = {}
    spans: list[tuple[int, int]] = []
    counts: Counter[tuple[str, str]] = Counter()
    times_ns: Counter[tuple[str, str]] = Counter()
    events = profile.profiler.kineto_results.events()
    for event in events:
        on_host = event.device_type() == DeviceType.CPU
        if on_host and not event.linked_correlation_id():  # an op, not a call of CUDA
            launchers[event.correlation_id()] = (event.name(), json.dumps(event.shapes()))
    for event in events:
        if event.device_type() != DeviceType.CUDA:
            continue
        spans.append((event.start_ns(), event.start_ns() + event.duration_ns()))
        launcher = launchers.get(event.linked_correlation_id(), ("", "[]"))
        counts[launcher] += 1
        times_ns[launcher] += event.duration_ns()
    ops = [(*one, counts[one], round(times_ns[one] / 1e9, 9)) for one in sorted(counts)]
    return {"busy_s": _covered_ns(spans) / 1e9, "kernels": len(spans), "ops": ops}


def _covered_ns(spans: list[tuple[int, int]]) -> int:
    total_ns, end_ns = 0, 0
    for first, last in sorted(spans):
        total_ns += max(0, last - max(first, end_ns))
        end_ns = max(end_ns, last)
    return total_ns


def prepared(job: GpuJob) -> tuple[Step, int]:
    """One step of a job as a function, and the model's parameters."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = job.precision == "tf32"
    torch.manual_seed(0)
    with torch.device("cuda"):
        model, arguments, loss = built(job)
    if job.channels_last:
        model = model.to(memory_format=torch.channels_last)
        arguments = {
            name: one.contiguous(memory_format=torch.channels_last)
            for name, one in arguments.items()
        }
    model.train(job.task == "train")
    parameters = sum(one.numel() for one in model.parameters())
    called = torch.compile(model) if job.compiled else model
    half = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(job.precision)
    cast: dict[str, Any] = {"device_type": "cuda", "dtype": half, "enabled": half is not None}

    def forward() -> Any:
        with torch.inference_mode(), torch.autocast(**cast):
            return called(**arguments)

    if job.task == "forward":
        return forward, parameters
    optimizer = _optimizer(job.optimizer, list(model.parameters()))

    def train() -> None:
        with torch.autocast(**cast):
            value = loss(called(**arguments))
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return train, parameters


def built(job: GpuJob) -> tuple[Any, dict[str, Any], Callable[[Any], Any]]:
    """Model, arguments of its call, and the loss of its outputs, on the default device."""
    import torch

    library, _, name = job.name.partition(":")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(job.precision, torch.float32)
    if library == "hf":
        return _of_text(job, name, dtype)
    if library == "timm":
        import timm

        model = timm.create_model(name)
    else:
        import torchvision

        alone = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
        model = torchvision.models.get_model(name, weights=None, **alone)
    images = torch.randn(job.batch, 3, job.size, job.size, dtype=dtype)
    labels = torch.randint(0, _CLASSES, (job.batch,))
    return model.to(dtype), {"x": images}, lambda made: _cross_entropy(made, labels)


def _cross_entropy(outputs: Any, labels: Any) -> Any:
    from torch.nn.functional import cross_entropy

    return cross_entropy(outputs[0] if isinstance(outputs, tuple) else outputs, labels)


def _of_text(
    job: GpuJob, name: str, dtype: Any
) -> tuple[Any, dict[str, Any], Callable[[Any], Any]]:
    import torch
    import transformers

    config = configured(name)
    model = getattr(transformers, config.architectures[0])(config).to(dtype)
    if job.checkpointing:
        model.gradient_checkpointing_enable()
    words = torch.randint(5, config.vocab_size - 5, (job.batch, job.size))
    arguments: dict[str, Any] = {"input_ids": words}
    if job.task == "train":
        architecture = config.architectures[0]
        of_samples = "Classification" in architecture
        arguments["labels"] = torch.randint(0, 2, (job.batch,)) if of_samples else words
        if architecture.endswith(("CausalLM", "LMHeadModel")):  # as transformers' Trainer does
            arguments["use_cache"] = False
    return model, arguments, lambda made: made.loss


def _optimizer(name: str, parameters: Any) -> Any:
    import torch

    if name == "momentum":
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)
    return {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}[name](
        parameters, lr=1e-5
    )


if __name__ == "__main__":
    sys.exit(main())
