"""The readers of files that users pass on, each with small valid files and a command that reads it.

READERS: name -> FileReader; `seeds` makes or finds the valid files, `command` reads a damaged one
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["READERS", "FileReader", "Seed"]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "datasets" / "examples" / "resnet20.pbtxt"
_DATA = ROOT / "tests" / "data"
_ON_GPU = ("--setting", "1xV100")


@dataclass(frozen=True, slots=True)
class Seed:
    """A valid file.

    Attributes:
        name: that the damaged file gets; readers look at suffixes.
        data: its content.
    """

    name: str
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class FileReader:
    """What reads one kind of file.

    Attributes:
        form: of the damage, see `mutations.FORMATS`.
        seeds: the valid files, in a fixed order; the folder is for files that do not vary.
        command: arguments of `driple` that read a damaged file.
    """

    form: str
    seeds: Callable[[Path], Sequence[Seed]]
    command: Callable[[Path], Sequence[object]]


def _graphs(_: Path) -> list[Seed]:
    files = sorted((_DATA / "graphs").glob("*.pb.gz"))
    return [Seed("a.pb", gzip.decompress(file.read_bytes())) for file in files]


def _texts(_: Path) -> list[Seed]:
    files = sorted((_DATA / "cases").glob("*.pbtxt"), key=lambda file: file.stat().st_size)
    return [Seed("a.pbtxt", file.read_bytes()) for file in files[1:9]]


def _metas(_: Path) -> list[Seed]:
    file = _DATA / "graphs" / "adam_v1.meta.gz"
    packed = (_DATA / "graphs" / "ps_training.pb.gz").read_bytes()
    return [Seed("a.meta", gzip.decompress(file.read_bytes())), Seed("a.pb.gz", packed)]


def _onnx_models(_: Path) -> list[Seed]:
    from scripts.checks.small_models import small_models

    return [Seed("a.onnx", data) for data in small_models()]


_CLUSTERS = (
    "machines:\n  - {count: 4, devices: 8, device: H100, link: NVLink}\nnetwork: 400G\n",
    "machines:\n- count: 1\n  devices: 2\n  device: V100\n  link: PCIe\nscheme: ddp\n",
)
_CONFIGS = (
    ("a.yaml", "per_device_train_batch_size: 4\nbf16: true\ngradient_accumulation_steps: 8\n"
     "optim: adamw_torch\nmax_steps: 5\nlearning_rate: 1.0e-4\n"),
    ("a.json", json.dumps({"train_batch_size": 64, "bf16": {"enabled": True}, "zero_optimization":
     {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "optimizer": {"type": "AdamW",
     "params": {"lr": 1e-4}}, "gradient_clipping": 1.0, "train_micro_batch_size_per_gpu": 1})),
    ("a.toml", '[training]\nlocal_batch_size = 8\nsteps = 10\n[optimizer]\n'
     'name = "AdamW"\nlr = 3e-4\n[activation_checkpoint]\nmode = "full"\n'),
)  # fmt: skip
_TRANSFORMERS = (
    {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 1, "n_head": 2,
     "n_embd": 16, "vocab_size": 64, "n_positions": 32, "bos_token_id": 0, "eos_token_id": 0},
    {"model_type": "bert", "architectures": ["BertForMaskedLM"], "num_hidden_layers": 1,
     "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 64,
     "max_position_embeddings": 32},
    {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1,
     "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 16, "rms_norm_eps": 1e-6,
     "intermediate_size": 32, "vocab_size": 64, "rope_theta": 10000.0, "hidden_act": "silu"},
)  # fmt: skip
_DEVICE = """format = 1

[[devices]]
name = "MyGPU"
generation = "Hopper"
fp32_flops = 60.0e12
fp16_flops = 800.0e12
bf16_flops = 800.0e12
tf32_flops = 400.0e12
tensor_cores = true
bytes_per_s = 3.0e12
memory_bytes = 96.0e9
multiprocessors = 120
pcie_generation = 5
pcie_lanes = 16
pcie_peers = true
nvlink = "NVLink-H100"
nvlink_peers = 8
counter_window_s = 0.1667
source = "data sheet"
date = 2026-11-26
"""
# Tuning needs five runs of one device, of two jobs or more.
_OTHER = EXAMPLE.with_name("resnet50.pbtxt")
_RUNS = f"""job,setting,seconds,batch_size
{EXAMPLE},1xH100,0.0524,24
{EXAMPLE},1xH100,0.0531,
{EXAMPLE},1xH100,0.0541,24
{_OTHER},1xH100,0.121,32
{_OTHER},1xH100,0.125,
{_OTHER},1xH100,0.123,
{EXAMPLE},1xV100,0.1279,
"""
_LINKS = {"format": 1, "link": "200M", "overhead": {"line": {"s": 1e-4, "s_per_byte": 1e-9}}}


def _dataset_files(folder: Path) -> list[Seed]:
    """The three files of a data set; the folder keeps the intact ones."""
    from driple.dataset.store import write_dataset
    from tests.dataset.examples import synthetic_dataset

    place = folder / "dataset"
    write_dataset(synthetic_dataset(3), place)
    return [Seed(file.name, file.read_bytes()) for file in sorted(place.iterdir())]


def _in_dataset(file: Path) -> list[object]:
    """Put the damaged file beside the two intact ones."""
    intact = file.parent.parent / "seeds" / "dataset"
    for each in intact.iterdir():
        if each.name != file.name:
            (file.parent / each.name).write_bytes(each.read_bytes())
    return ["data", "list", file.parent]


def _checkpoints(_: Path) -> list[Seed]:
    file = ROOT / "checkpoints" / "CPU-P1w2_ho-200M" / "paper.safetensors"
    data = file.read_bytes()
    return [Seed("a.safetensors", data)]


def _record(folder: Path) -> list[Seed]:
    files = sorted((_DATA / "throughput").glob("lenet-*.pb.gz"))
    first, second = (gzip.decompress(file.read_bytes()) for file in files[:2])
    (folder / "second.pb").write_bytes(second)
    return [Seed("a.pb", first)]


def _timelines(folder: Path) -> list[Seed]:
    """Chrome timelines of the same steps."""
    from tensorflow.core.protobuf.config_pb2 import RunMetadata
    from tensorflow.python.client.timeline import Timeline

    files = sorted((_DATA / "throughput").glob("lenet-*.pb.gz"))
    records = [RunMetadata.FromString(gzip.decompress(file.read_bytes())) for file in files[:2]]
    texts = [
        Timeline(record.step_stats).generate_chrome_trace_format(show_memory=True)
        for record in records
    ]
    (folder / "second.pb").write_text(texts[1], encoding="utf-8")
    return [Seed("a.json", texts[0].encode())]


def _import(file: Path) -> list[object]:
    second = file.parent.parent / "seeds" / "second.pb"
    return ["trace", "import", file, second, "--batch-size", 32, "--bandwidth", "1G", "-o",
            file.parent / "job.npz"]  # fmt: skip


def _profiles(folder: Path) -> list[Seed]:
    from tests.profiler.profiles import write_profile

    place = write_profile(folder / "profile", {1: [0.1, 0.11], 2: [0.12, 0.13], 3: [0.2, 0.21]})
    return [Seed(file.name, file.read_bytes()) for file in sorted(place.iterdir())]


def _in_profile(file: Path) -> list[object]:
    intact = file.parent.parent / "seeds" / "profile"
    for each in intact.iterdir():
        if each.name != file.name:
            (file.parent / each.name).write_bytes(each.read_bytes())
    return ["profile", "show", file.parent]


def _job_trace(folder: Path) -> list[Seed]:
    """Three steps of a parameter, its reader, its gradient and its update."""
    import numpy as np

    from driple.async_sgd.jobtrace import JobTrace, Resource, write_job_trace
    from driple.async_sgd.origin import TraceOrigin

    kinds = (Resource.DOWNLINK, Resource.WORKER, Resource.UPLINK, Resource.SERVER)
    starts = np.array([[0.0, 0.1, 0.2, 0.3]] * 3)
    trace = JobTrace(
        names=("a", "b", "c", "d"),
        resources=np.array(kinds, dtype=np.int8),
        servers=np.zeros(4, dtype=np.int16),
        sizes=np.array([10**6, 0, 10**6, 0]),
        edges=np.array([[0, 1], [1, 2], [2, 3]], dtype=np.int32),
        start_s=starts,
        end_s=starts + 0.1,
        step_s=np.full(3, 0.4),
        batch_size=8,
        bytes_per_s=1e8,
        about=TraceOrigin(),
    )
    write_job_trace(trace, folder / "a.npz")
    return [Seed("a.npz", (folder / "a.npz").read_bytes())]


def _configs_of_models(file: Path) -> list[object]:
    return ["inspect", f"hf:{file.parent}", "--batch-size", 1, "--seq-len", 8]


def _trained(file: Path) -> list[object]:
    """A small model of Hugging Face, trained as the damaged file says."""
    model = file.parent.parent / "seeds" / "config.json"
    if not model.exists():
        model.write_text(json.dumps(_TRANSFORMERS[0]), encoding="utf-8")
    setting = "p3.2xlarge"  # states the memory of its host, which a config may use
    return ["predict", f"hf:{model.parent}", "--setting", setting, "--seq-len", 8,
            "--training-config", file]  # fmt: skip


def _texts_of(name: str, texts: Sequence[str]) -> Callable[[Path], list[Seed]]:
    return lambda _: [Seed(name, text.encode()) for text in texts]


def _predict(*flags: object) -> Callable[[Path], list[object]]:
    """`predict EXAMPLE FLAGS FILE`."""
    return lambda file: ["predict", EXAMPLE, *flags, file]


def _asked(file: Path) -> list[object]:
    """Two commands in turn, by the content."""
    if sum(file.read_bytes()) % 2:
        return ["inspect", file]
    return ["predict", "--method", "simulator", file, *_ON_GPU]


READERS: dict[str, FileReader] = {
    "tensorflow-binary": FileReader(form="binary", seeds=_graphs, command=_asked),
    "tensorflow-text": FileReader(form="text", seeds=_texts, command=_asked),
    "tensorflow-meta": FileReader(form="binary", seeds=_metas, command=_asked),
    "onnx": FileReader(form="onnx", seeds=_onnx_models, command=_asked),
    "cluster": FileReader(
        form="text", seeds=_texts_of("a.yaml", _CLUSTERS), command=_predict("--setting")
    ),
    "training-config": FileReader(
        form="json",
        seeds=lambda _: [Seed(name, text.encode()) for name, text in _CONFIGS],
        command=_trained,
    ),
    "catalogue": FileReader(
        form="text",
        seeds=_texts_of("a.toml", (_DEVICE,)),
        command=_predict("--setting", "1xMyGPU", "--catalog"),
    ),
    "runs": FileReader(
        form="text",
        seeds=_texts_of("a.csv", (_RUNS,)),
        command=lambda file: [
            "transfer",
            "--from",
            "gpu",
            "--to",
            "1xH100",
            "--dataset",
            file,
            "-o",
            file.parent / "out",
        ],
    ),
    "hugging-face": FileReader(
        form="json",
        seeds=lambda _: [Seed("config.json", json.dumps(each).encode()) for each in _TRANSFORMERS],
        command=_configs_of_models,
    ),
    "checkpoint": FileReader(
        form="safetensors", seeds=_checkpoints, command=_predict("--checkpoint")
    ),
    "dataset": FileReader(form="parquet", seeds=_dataset_files, command=_in_dataset),
    "job-trace": FileReader(
        form="binary",
        seeds=_job_trace,
        command=lambda file: ["sweep", file, "--workers", "1-2"],
    ),
    "run-metadata": FileReader(form="binary", seeds=_record, command=_import),
    "timeline": FileReader(form="json", seeds=_timelines, command=_import),
    "profile": FileReader(form="json", seeds=_profiles, command=_in_profile),
}
