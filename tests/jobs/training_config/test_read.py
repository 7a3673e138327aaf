"""Files of training arguments, as the projects document them, and what they leave open."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.errors import ConfigError
from driple.jobs.options import JobOptions
from driple.jobs.training_config import TrainingConfig, read_training_config

FILES = {
    "accelerate.yaml": """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 8
machine_rank: 0
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_sharding_strategy: FULL_SHARD
""",
    "trl.yaml": """
model_name_or_path: meta-llama/Llama-3.1-8B
per_device_train_batch_size: 4
gradient_accumulation_steps: 8
gradient_checkpointing: true
learning_rate: 2.0e-4
bf16: true
tf32: true
max_length: 2048
optim: adamw_torch_fused
packing: true
""",
    "axolotl.yml": """
base_model: NousResearch/Llama-3.2-1B
sequence_len: 4096
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
tf32: false
gradient_checkpointing: true
adapter: lora
lora_r: 16
""",
    "torchtune.yaml": """
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 1024
optimizer:
  _component_: torch.optim.AdamW
  fused: True
  lr: 2e-5
batch_size: 2
gradient_accumulation_steps: 1
compile: False
enable_activation_checkpointing: False
dtype: bf16
""",
    "torchtitan.toml": """
[job]
dump_folder = "./outputs"
[model]
name = "llama3"
[optimizer]
name = "AdamW"
[training]
local_batch_size = 1
seq_len = 8192
steps = 1000
[parallelism]
data_parallel_shard_degree = -1
[activation_checkpoint]
mode = "selective"
[compile]
enable = true
""",
    "deepspeed.json": """{"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 2,
"fp16": {"enabled": true}, "zero_optimization": {"stage": 2},
"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}""",
}
READ = {
    "accelerate.yaml": {"precision": "bf16-mixed", "scheme": "fsdp",
                        "activation_checkpointing": "full"},
    "trl.yaml": {"batch_size": 4, "grad_accumulation": 8, "activation_checkpointing": "full",
                 "precision": "amp-bf16", "seq_len": 2048, "optimizer": "adamw-fused",
                 "clip_gradients": True},
    "axolotl.yml": {"batch_size": 2, "grad_accumulation": 4, "activation_checkpointing": "full",
                    "precision": "bf16", "seq_len": 4096, "optimizer": "adam8bit",
                    "clip_gradients": True},
    "torchtune.yaml": {"batch_size": 2, "grad_accumulation": 1, "precision": "bf16",
                       "seq_len": 1024, "optimizer": "adamw-fused",
                       "activation_checkpointing": "none"},
    "torchtitan.toml": {"batch_size": 1, "seq_len": 8192, "activation_checkpointing": "selective",
                        "compiled": True, "scheme": "fsdp", "optimizer": "adamw-fused",
                        "precision": "bf16-mixed", "clip_gradients": True},
    "deepspeed.json": {"batch_size": 16, "grad_accumulation": 2, "precision": "fp16-mixed",
                       "scheme": "zero2", "optimizer": "adamw-fused"},
}  # fmt: skip
FIELDS = ("batch_size", "seq_len", "precision", "optimizer", "grad_accumulation", "clip_gradients",
          "activation_checkpointing", "compiled", "scheme")  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_the_common_fields_of_each_project_are_read(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(FILES[name])
    config = read_training_config(file)
    said = {field: getattr(config, field) for field in FIELDS if getattr(config, field)}
    assert said == READ[name]


def test_what_a_file_leaves_to_its_tool_is_as_there(tmp_path: Path) -> None:
    """Under FSDP torchtitan takes bfloat16; `auto` of DeepSpeed is the trainer's field."""
    file = tmp_path / "torchtitan.toml"
    text = FILES[file.name]
    file.write_text(text)
    assert read_training_config(file).precision == "bf16-mixed"
    wide = 'seq_len = 8192\nmixed_precision_param = "float32"'
    file.write_text(text.replace("seq_len = 8192", wide))
    assert read_training_config(file).precision == "fp32"
    deepspeed = tmp_path / "ds.json"
    deepspeed.write_text('{"fp16": {"enabled": "auto"}, "bf16": {"enabled": true}}')
    assert read_training_config(deepspeed).precision == "bf16-mixed"
    deepspeed.write_text('{"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}')
    assert read_training_config(deepspeed).precision is None


def test_tokens_of_a_config_do_not_contradict_the_shape_of_an_input() -> None:
    config = TrainingConfig(seq_len=64)
    assert JobOptions(input_shape=(16,), config=config).with_config().seq_len is None
    assert JobOptions(config=config).with_config().seq_len == 64


def test_options_of_the_command_line_come_first() -> None:
    config = TrainingConfig(batch_size=4, seq_len=64, precision="bf16", optimizer="sgd")
    options = JobOptions(batch_size=8, precision="fp16", config=config)
    merged = options.with_config()
    assert (merged.batch_size, merged.seq_len) == (8, 64)
    assert (merged.precision, merged.optimizer) == ("fp16", "sgd")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", "micro_batch_size: many", "field micro_batch_size must be a whole number"),
        ("a.yaml", "micro_batch_size: 0", "field micro_batch_size must be a whole number"),
        ("a.yaml", "bf16: true\nfp16: true", "fp16 contradicts another field"),
        ("a.yaml", "mixed_precision: bf17", "field mixed_precision must be one of fp32"),
        ("a.json", '{"zero_optimization": {"stage": 2, "reduce_bucket_size": -1}}', "a number of"),
        ("a.yaml", "bf16: perhaps", "field bf16 must be true or false"),
        ("a.yaml", "a: 1", "has no field of a training config"),
        ("a.yaml", "\n", "is empty"),
        ("a.yaml", "- 1", "fields were expected"),
        ("a.yaml", "a: [", "is no YAML"),
        ("a.yaml", "a: &b [1]\nc: *b", "anchor or alias"),
        ("a.toml", "a = ", "is no TOML"),
        ("a.json", '{"zero_optimization": {"stage": 9}}', "a ZeRO stage from 0 to 3"),
        ("a.json", '{"zero_optimization": {"stage": [2]}}', "a ZeRO stage from 0 to 3"),
        ("a.json", '{"gradient_clipping": 1' + "0" * 400 + "}", "a norm, such as 1.0"),
        ("a.toml", "a = " + "1" * 5000, "is no TOML"),
        ("a.toml", "[training]\nmixed_precision_param = [1]", "one of bfloat16, float32"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ConfigError, match=words) as raised:
        read_training_config(file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_training_config(tmp_path / "none.yaml")
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is no text"):
        read_training_config(tmp_path / "a.yaml")
