# ruff: noqa: E501  # lines of the page
"""Write docs/training_configs.md: what Driple reads of each tool's training configs.

    python -m scripts.write_training_configs_page

The tables are made from the lists of fields in `driple.jobs.training_config`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

from driple.jobs.training_config import FORMATS
from driple.jobs.training_config.fields import Format

PAGE = Path(__file__).parents[1] / "docs/training_configs.md"
_INTRODUCTION = """# Training configs
`--training-config FILE` takes what a job leaves open from the file that your training tool reads:

```bash
driple predict hf:gpt --training-config trl.yaml --setting 8xA100
```

The tool is the one that knows most of the file's fields. Each field is of one of these kinds:

- **read**: batch, tokens, passes per update (also from the samples of an update and the number of devices of
  `--setting`), precision, optimizer, clipping, activation checkpointing, compilation, sharding and offload. Options that you give come first.
  What a tool does where the file says nothing counts too, and the answer says so.
- **harmless**: it changes neither memory nor time of a step, such as a path, a seed or an interval of logging. The number of machines
  and processes belongs here: `--setting` states them.
- **decisive and not modelled**: the first line of the answer names it, and there is no verdict on what it changes:
  whether the job fits and the largest batch (memory), step time, throughput and cost (time). `plan` then ranks nothing, `sweep` refuses.
  In JSON, `undecided` of the job lists such fields.
- **unknown**: in none of the lists. It counts as decisive, as it may change anything. Leave it out of the file if it does not.

## Scheme
Where neither `--setting 8xA100@zero2` nor `--scheme` names a scheme, that of the file counts: ZeRO 1, 2 and 3 are `zero1`, `zero2` and
`fsdp`; `FULL_SHARD` and `reshard_after_forward: true` are `fsdp`; `HYBRID_SHARD` is `hsdp`; degrees of torchtitan are `fsdp`, `hsdp`, `ddp`,
`tp2-pp4`. Where you name another one, yours counts, and the answer says so. A DeepSpeed config that a file names is read where it lies below
the file's folder, or one of the few folders around it.

## Precision
| `--precision` | parameters and gradients | updated | who does so |
|---|---|---|---|
| `fp32`, `tf32` | fp32 | fp32 | plain PyTorch |
| `amp-bf16`, `amp-fp16` | fp32, products in half precision | fp32 | `torch.autocast`: Trainer, Lightning, Accelerate without sharding |
| `bf16-mixed`, `fp16-mixed` | half precision | a copy in fp32, with states in fp32 | DeepSpeed, FSDP with `MixedPrecision`, Megatron |
| `bf16`, `fp16` | half precision | half precision | `model.bfloat16()`: torchtune, axolotl without sharding |

## Offload
With states (and parameters) on the host, the answer states the memory of the device and of each machine's host. Time is not modelled
with offload, so that there is no step time and no cost.

"""


def page() -> str:
    """The text of the page."""
    return _INTRODUCTION + "\n".join(_section(tool) for tool in FORMATS)


def _section(tool: Format) -> str:
    both = [name for name, one in tool.decisive.items() if len(one.changes) > 1]
    rows = [
        ("read", sorted({*tool.read, *tool.beside})),
        ("decisive: memory and time", both),
    ]
    for change in ("memory", "time"):
        names = [name for name, one in tool.decisive.items() if one.changes == (change,)]
        rows.append((f"decisive: {change}", names))
    rows.append(("harmless", sorted(tool.harmless)))
    lists = "\n".join(f"**{title}**: {_names(names)}\n" for title, names in rows if names)
    return f"## {tool.name}\n{lists}"


def _names(names: Iterable[str]) -> str:
    text = ", ".join(f"`{name}`" for name in names)
    return fill(text, 130, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
