"""What CUDA graphs save, as PyTorch's dashboards measured it on an A100 and as Driple says.

    python -m scripts.studies.cuda_graphs

cuda_graphs.csv has speed-ups over eager of `torch.compile` without and with CUDA graphs, of forward
and backward passes without an optimizer, from three issues of pytorch/pytorch (2022 and 2023).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from driple.catalog import device_named
from driple.graph.step_facts import OptimizerUpdate
from driple.jobs.load import Job, load_job
from driple.jobs.options import JobOptions
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.simulate.calibration import shipped_calibration
from driple.simulate.gpu_rates import with_host
from driple.simulate.prepared_job import PreparedJob, Program

PAIRS = Path(__file__).with_suffix(".csv")
DEVICE = "A100"
_TORCHVISION = """
import torch, torchvision
from torch import nn
from torchvision.models import *

def cifar():
    return resnet18(norm_layer=lambda c: nn.GroupNorm(min(c, 32), c), num_classes=10)
"""
LEAST_GAIN = 1.1  # published, of steps that CUDA graphs shorten
HOSTS = (1.0, 0.75)  # over the usual one; with the latter, gains are neither too large nor small
CONFIGS: Mapping[str, dict[str, object]] = {
    "albert": {"architectures": ["AlbertForMaskedLM"], "model_type": "albert", "vocab_size": 30000,
               "embedding_size": 128, "hidden_size": 768, "num_hidden_layers": 12,
               "num_attention_heads": 12, "intermediate_size": 3072},
    "t5_large": {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5",
                 "d_model": 1024, "d_ff": 4096, "d_kv": 64, "num_layers": 24, "num_heads": 16,
                 "vocab_size": 32128, "decoder_start_token_id": 0},
    "bert_large": {"architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_size": 1024,
                   "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
    "mobilebert": {"architectures": ["MobileBertForMaskedLM"], "model_type": "mobilebert"},
    "mobilebert_qa": {"architectures": ["MobileBertForQuestionAnswering"],
                      "model_type": "mobilebert"},
    "opt": {"architectures": ["OPTForCausalLM"], "model_type": "opt"},
    "mt5": {"architectures": ["MT5ForConditionalGeneration"], "model_type": "mt5",
            "decoder_start_token_id": 0},
    "gpt2": {"architectures": ["GPT2ForSequenceClassification"], "model_type": "gpt2",
             "pad_token_id": 0},
    "xglm": {"architectures": ["XGLMForCausalLM"], "model_type": "xglm"},
    "electra_qa": {"architectures": ["ElectraForQuestionAnswering"], "model_type": "electra"},
    "m2m100": {"architectures": ["M2M100ForConditionalGeneration"], "model_type": "m2m_100"},
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A step with and without CUDA graphs.

    Attributes:
        name: of the model, with its batch and precision.
        published: gain that was measured.
        predicted: gain by Driple, by the host's factor.
    """

    name: str
    published: float
    predicted: Mapping[float, float]


def main() -> None:
    """Print all pairs, and how far off gains are."""
    declare_torchvision_ops()  # torchvision's own may be of another build
    with PAIRS.open(encoding="utf-8", newline="") as file, TemporaryDirectory() as folder:
        pairs = [_pair(row, Path(folder)) for row in csv.DictReader(file)]
    for pair in pairs:
        gains = ", ".join(f"{pair.predicted[host]:.2f}" for host in HOSTS)
        print(f"{pair.name:47} published {pair.published:.2f}, predicted {gains}")
    for least in (0.0, LEAST_GAIN):
        some = [pair for pair in pairs if pair.published >= least]
        for host in HOSTS:
            errors = np.array([pair.predicted[host] / pair.published - 1 for pair in some])
            median, p90 = 100 * np.quantile(np.abs(errors), [0.5, 0.9])
            print(
                f"{len(some)} gains from {least:.1f} on, host of {host:.2f} times the usual: "
                f"{median:.0f} % off in the median, {p90:.0f} % at the 90th percentile, bias "
                f"{100 * np.median(errors):+.0f} %"
            )


def _pair(row: Mapping[str, str], folder: Path) -> Pair:
    job = job_of(row, folder)
    graph = replace(job.graph, update=OptimizerUpdate())  # none was timed
    compiled, replayed = (
        PreparedJob(graph, cost=job.cost, program=Program(library=job.library, cuda_graphs=graphs))
        for graphs in (False, True)
    )
    device = device_named(DEVICE)
    predicted = {}
    for host in HOSTS:
        known = shipped_calibration().device(with_host(device, host))
        before_s, after_s = (job.times(known).duration_s.sum() for job in (compiled, replayed))
        predicted[host] = float(before_s / after_s)
    return Pair(
        name=f"{row['model']}, batch {row['batch']}, {row['precision']}",
        published=float(row["with_cuda_graphs"]) / float(row["compiled"]),
        predicted=predicted,
    )


def job_of(row: Mapping[str, str], folder: Path, *, compiled: bool = True) -> Job:
    """The job of a row with `source`, `size`, `batch` and `precision`; files go to a folder."""
    source, size = row["source"], row["size"]
    options = JobOptions(
        batch_size=int(row["batch"]),
        precision=row["precision"],
        optimizer="sgd",
        compiled=compiled,
        library="torch2.1",
    )
    if source in CONFIGS:
        place = folder / source
        place.mkdir(exist_ok=True)
        (place / "config.json").write_text(json.dumps(CONFIGS[source]), encoding="utf-8")
        return load_job(f"hf:{place}", replace(options, seq_len=int(size)))
    if source.startswith("tv:"):
        file = folder / "models.py"
        file.write_text(_TORCHVISION, encoding="utf-8")
        source = f"{file}:{source.removeprefix('tv:')}"
    if size:
        options = replace(options, input_shape=tuple(int(n) for n in size.split("x")))
    return load_job(source, options)


if __name__ == "__main__":
    main()
