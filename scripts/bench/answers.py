"""CPU time of answers as a user meets them, each command in a process of its own.

    python -m scripts.bench.answers [--runs 3] [--against CHECKOUT]

The example graph of `predict`; a model of 7B with LoRA on a GPU on which it fits and on one where
it does not, with the ratio of both; `plan` of a model of 1B. With `--against`, another checkout of
Driple answers each command in turn. Seconds are user and system time of the process and its
children, the median of the runs: other jobs on the machine change them less than wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from scripts.bench.read import EXAMPLE

ROOT = Path(__file__).parents[2]
_LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32_000}
_1B = {
    **_LLAMA, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
    "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048,
}  # fmt: skip
_LORA = """
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


class LoRA(nn.Module):
    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + 2.0 * self.up(self.down(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.device("meta"):
            self.llm = LlamaForCausalLM(LlamaConfig(use_cache=False))
            self.llm.requires_grad_(False)
            for layer in self.llm.model.layers:
                attention = layer.self_attn
                attention.q_proj = LoRA(attention.q_proj)
                attention.v_proj = LoRA(attention.v_proj)

    def forward(self, input_ids, labels=None):
        return self.llm(input_ids=input_ids, labels=labels)
"""
_TRAINED = ("--batch-size", "4", "--seq-len", "1024", "--precision", "bf16", "--optimizer", "adamw")
_FITS, _TOO_SMALL = "LoRA of 7B on 1xH100, which fits", "LoRA of 7B on 1x4090, which does not"


def commands(folder: Path) -> dict[str, tuple[str, ...]]:
    """The arguments of each command, by what it is; writes the models into the folder."""
    (folder / "lora.py").write_text(_LORA)
    (folder / "1b").mkdir()
    (folder / "1b" / "config.json").write_text(json.dumps(_1B))
    lora = ("predict", f"{folder / 'lora.py'}:Model", *_TRAINED)
    return {
        "predict of the example": ("predict", str(EXAMPLE)),
        _FITS: (*lora, "--setting", "1xH100"),
        _TOO_SMALL: (*lora, "--setting", "1x4090"),
        "plan of 1B": ("plan", f"hf:{folder / '1b'}", *_TRAINED, "--tokens", "10B"),
    }


def cpu_s(checkout: Path, arguments: tuple[str, ...], compiled: Path) -> float:
    """Seconds of CPU of one command; Python keeps what it compiles in a folder of its own.

    Raises:
        CalledProcessError: the command failed.
    """
    env = os.environ | {
        "PYTHONPATH": str(checkout), "PYTHONPYCACHEPREFIX": str(compiled), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "driple.cli.main", *arguments],
        env=env,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print a line per command and checkout, and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout of Driple")
    given = parser.parse_args()
    checkouts = [given.against.resolve()] if given.against else []
    checkouts.append(ROOT)
    medians: dict[tuple[str, Path], float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, arguments in commands(folder).items():
            taken: dict[Path, list[float]] = {checkout: [] for checkout in checkouts}
            try:
                for run in range(given.runs + 1):  # the first compiles
                    for checkout in checkouts:
                        seconds = cpu_s(checkout, arguments, folder / "compiled")
                        taken[checkout] += [seconds] if run else []
            except subprocess.CalledProcessError as error:
                print(f"{name}: one of the checkouts fails (exit status {error.returncode})")
                continue
            for checkout, runs_s in taken.items():
                medians[name, checkout] = statistics.median(runs_s)
                print(
                    f"{name:<36} {checkout.name:<12} {medians[name, checkout]:7.2f} s", flush=True
                )
            if given.against:
                ratio = medians[name, ROOT] / medians[name, checkouts[0]]
                print(f"{'':<36} ratio        {ratio:7.2f}")
    for checkout in checkouts:
        if (_TOO_SMALL, checkout) in medians and (_FITS, checkout) in medians:
            ratio = medians[_TOO_SMALL, checkout] / medians[_FITS, checkout]
            print(f"does not fit / fits, {checkout.name}: {ratio:.2f} (goal 1.2)")


if __name__ == "__main__":
    main()
