"""What a training config gives a job on a setting: scheme, passes, precision, open fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driple.api.arguments import batches_remarks, scheme_remarks, settings_of
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.jobs.options import JobOptions
from driple.jobs.training_config import read_training_config
from driple.render.remarks import sentence

DATA = Path(__file__).parents[2] / "data/training_configs"


def _options(tmp_path: Path, text: str, name: str = "a.json", **given: object) -> JobOptions:
    file = tmp_path / name
    file.write_text(text)
    return JobOptions(config=read_training_config(file), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("stage", "scheme"), [(0, "ddp"), (1, "zero1"), (2, "zero2"), (3, "fsdp")])
def test_a_stage_of_zero_is_the_scheme_where_none_is_named(
    tmp_path: Path, stage: int, scheme: str
) -> None:
    options = _options(tmp_path, f'{{"zero_optimization": {{"stage": {stage}}}}}')
    (setting,) = settings_of("8xA100", options=options)
    assert setting.scheme.suffix == scheme
    assert not scheme_remarks(options, setting)
    (alone,) = settings_of("1xA100", options=options)
    assert alone.scheme.suffix == "ddp"


@pytest.mark.parametrize("named", ["8xA100@zero1", "V100-P1w2"])
def test_the_users_scheme_counts_and_the_difference_is_said(tmp_path: Path, named: str) -> None:
    options = _options(tmp_path, '{"zero_optimization": {"stage": 3}}')
    (setting,) = settings_of(named, options=options)
    assert setting.scheme == Setting.parse(named).scheme
    (difference,) = scheme_remarks(options, setting)
    assert difference.values["scheme"] == "fsdp"
    assert difference.values["asked"] == setting.scheme.suffix


@pytest.mark.parametrize(
    ("scheme", "precision", "usual"),
    [("zero2", "bf16", "bf16-mixed"), ("zero2", "amp-bf16", "bf16-mixed"),
     ("zero2", "bf16-mixed", None), ("zero2", "fp32", None), ("fsdp", "bf16", None)],
)  # fmt: skip
def test_what_deepspeed_keeps_is_said_where_the_user_asks_for_another_precision(
    scheme: str, precision: str, usual: str | None
) -> None:
    said = scheme_remarks(JobOptions(precision=precision), Setting.parse(f"8xA100@{scheme}"))
    assert [one.values["usual"] for one in said] == ([usual] if usual else [])
    assert not scheme_remarks(JobOptions(precision=precision), Setting.parse("1xA100"))


def test_ddp_of_the_user_counts_although_it_is_usual(tmp_path: Path) -> None:
    options = _options(tmp_path, '{"zero_optimization": {"stage": 3}}')
    asked = Setting.parse("8xA100").with_scheme("ddp")
    (setting,) = settings_of(asked, options=options)
    assert setting.scheme.suffix == "ddp"
    assert settings_of("8xA100@ddp", options=options)[0].scheme.suffix == "ddp"


def test_passes_follow_from_the_samples_of_an_update() -> None:
    """64 samples on 8 devices of one sample each are 8 passes."""
    options = JobOptions(config=read_training_config(DATA / "ds_zero3.json"))
    (setting,) = settings_of("8xA100", options=options)
    assert options.with_config(setting).grad_accumulation == 8
    (four,) = settings_of("4xA100", options=options)
    assert options.with_config(four).grad_accumulation == 16
    assert options.with_config().grad_accumulation == 64
    with pytest.raises(ConfigError, match="64 samples per update, which are no multiple"):
        options.with_config(Setting.parse("6xA100"))


def test_the_batch_of_a_device_follows_where_the_file_has_that_of_all(tmp_path: Path) -> None:
    options = _options(tmp_path, '{"train_batch_size": 64, "gradient_accumulation_steps": 2}')
    merged = options.with_config(Setting.parse("8xA100"))
    assert (merged.batch_size, merged.grad_accumulation) == (4, 2)
    with pytest.raises(ConfigError, match="cannot be shared out over 7"):
        options.with_config(Setting.parse("7xA100"))


CONTRADICTED = """{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}"""


def test_samples_of_an_update_that_batch_and_passes_contradict_are_refused(tmp_path: Path) -> None:
    """2 samples x 4 passes x 8 devices are 64: DeepSpeed starts on 8 devices alone."""
    options = _options(tmp_path, CONTRADICTED)
    merged = options.with_config(Setting.parse("8xA100"))
    assert (merged.batch_size, merged.grad_accumulation) == (2, 4)
    with pytest.raises(ConfigError, match=r"x 4 devices are 32.*set it to 32.*of 8 devices"):
        options.with_config(Setting.parse("4xA100"))
    by_flag = _options(tmp_path, CONTRADICTED, batch_size=4)  # the user's own counts
    assert by_flag.with_config(Setting.parse("4xA100")).batch_size == 4


def test_where_devices_are_to_be_chosen_those_that_agree_are_said(tmp_path: Path) -> None:
    options = _options(tmp_path, CONTRADICTED)
    (said,) = batches_remarks(options, None)
    assert said.values["num_devices"] == 8
    assert "on 8 devices alone, and DeepSpeed refuses" in sentence(said)
    assert not batches_remarks(options, 8)
    (alone,) = scheme_remarks(options, Setting.parse("1xA100"))
    assert alone == said
    assert not batches_remarks(_options(tmp_path, CONTRADICTED, grad_accumulation=1), None)
    odd = _options(tmp_path, CONTRADICTED.replace("64", "62"))
    assert "on no whole number of devices" in sentence(*batches_remarks(odd, None))


def test_fsdp_on_one_device_is_autocast(tmp_path: Path) -> None:
    text = "distributed_type: FSDP\nmixed_precision: bf16\n"
    options = _options(tmp_path, text, "a.yaml")
    assert options.with_config(Setting.parse("1xA100")).precision == "amp-bf16"
    assert options.with_config(Setting.parse("8xA100")).precision == "bf16-mixed"
    stated = Setting.parse("8xA100").with_scheme("ddp")
    assert options.with_config(stated).precision == "amp-bf16"


def test_an_option_that_settles_a_field_takes_it_off_the_list(tmp_path: Path) -> None:
    text = "per_device_train_batch_size: 2\noptim: galore_adamw\n"
    assert [one.field for one in _options(tmp_path, text, "a.yaml").undecided()] == ["optim"]
    assert not _options(tmp_path, text, "a.yaml", optimizer="adamw").undecided()


def test_a_field_of_sharding_is_settled_by_the_scheme(tmp_path: Path) -> None:
    text = "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD_ZERO2\n"
    options = _options(tmp_path, text, "a.yaml")
    assert options.undecided(Setting.parse("8xA100"))
    assert not options.undecided(Setting.parse("8xA100@zero2"))


@pytest.mark.parametrize(
    "text",
    [
        '{"distributed_type": "FSDP", "mixed_precision": "bf16", '
        '"fsdp_config": {"fsdp_sharding_strategy": "SHARD_GRAD_OP"}}',
        '{"distributed_type": "FSDP", "mixed_precision": "bf16", '
        '"fsdp_config": {"fsdp_reshard_after_forward": false}}',
        '{"per_device_train_batch_size": 1, "bf16": true, "fsdp": "shard_grad_op auto_wrap"}',
        '{"training": {"local_batch_size": 1}, "optimizer": {"name": "AdamW"}, '
        '"parallelism": {"fsdp_reshard_after_forward": "never"}}',
    ],
)
def test_fsdp_that_keeps_parameters_gathered_is_zero2(tmp_path: Path, text: str) -> None:
    """As much traffic and shards of gradients and states, without DeepSpeed's large buffer."""
    config = _options(tmp_path, text).config
    assert (config.scheme, config.precision) == ("zero2", "bf16-mixed")
    assert config.bucket_elements is not None
    assert config.bucket_elements < 500_000_000
    assert config.undecided == ()


@pytest.mark.parametrize(
    ("sizes", "reuse", "open_fields"),
    [
        ({}, None, []),
        ({"stage3_max_live_parameters": 5e8, "stage3_max_reuse_distance": "1e9"}, 500_000_000, []),
        ({"stage3_max_reuse_distance": 0}, 0, []),
        ({"stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": 2e5,
          "allgather_bucket_size": 2e8}, None, []),
        ({"stage3_prefetch_bucket_size": 1e9}, None, ["stage3_prefetch_bucket_size"]),
        ({"stage3_param_persistence_threshold": 1e8}, None,
         ["stage3_param_persistence_threshold"]),
        ({"allgather_bucket_size": 1e6}, None, ["allgather_bucket_size"]),
    ],
)  # fmt: skip
def test_sizes_of_deepspeeds_buffers(
    tmp_path: Path, sizes: dict[str, object], reuse: int | None, open_fields: list[str]
) -> None:
    text = json.dumps({"zero_optimization": {"stage": 3, **sizes}})
    config = _options(tmp_path, text).config
    assert config.reuse_elements == reuse
    names = [one.field.removeprefix("zero_optimization.") for one in config.undecided]
    assert names == open_fields


def test_a_field_that_no_list_has_is_open(tmp_path: Path) -> None:
    options = _options(tmp_path, "micro_batch_size: 2\nwarp_drive: 9\n", "a.yaml")
    (field,) = options.undecided()
    assert (field.field, field.value, field.reason) == ("warp_drive", "9", "not_known")
    assert field.changes == ("memory", "time")
    assert options.config.unknown == ("warp_drive",)


def test_a_deepspeed_config_is_read_where_it_lies_beside_the_file(tmp_path: Path) -> None:
    text = "base_model: a\nmicro_batch_size: 1\nbf16: true\ndeepspeed: conf/zero2.json\n"
    (missing,) = _options(tmp_path, text, "a.yaml").undecided()
    assert (missing.field, missing.reason) == ("deepspeed", "no_file")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/zero2.json").write_text('{"zero_optimization": {"stage": 2}}')
    options = _options(tmp_path, text, "a.yaml")
    assert not options.undecided()
    assert (options.config.scheme, options.config.precision) == ("zero2", "bf16-mixed")


def test_a_config_outside_the_folders_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "zero2.json").write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "x").mkdir()
    for name in (str(tmp_path / "zero2.json"), "../zero2.json", "zero2.txt"):
        text = f"base_model: a\nmicro_batch_size: 1\ndeepspeed: {name}\n"
        assert _options(tmp_path, text, "x/a.yaml").undecided()[0].reason == "no_file"


def test_offload_leaves_nothing_open() -> None:
    options = JobOptions(config=read_training_config(DATA / "ds.json"))
    assert not options.undecided(Setting.parse("8xA100"))
    assert options.config.offload == ("states", "parameters")


@pytest.mark.parametrize(
    ("degrees", "scheme", "is_open"),
    [
        ({"tensor_parallel_degree": 8}, "tp8-fsdp", False),
        ({"tensor_parallel_degree": 8, "data_parallel_shard_degree": 1}, "tp8", False),
        (
            {"context_parallel_degree": 2, "expert_parallel_degree": 16,
             "pipeline_parallel_degree": 4},
            "cp2-ep16-pp4-fsdp", False,
        ),
        (
            {"tensor_parallel_degree": 2, "data_parallel_shard_degree": 4,
             "data_parallel_replicate_degree": 2},
            "tp2-fsdp", True,
        ),
    ],
)  # fmt: skip
def test_degrees_of_torchtitan(
    tmp_path: Path, degrees: dict[str, int], scheme: str, is_open: bool
) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in degrees.items())
    file = tmp_path / "a.toml"
    file.write_text(f"[training]\nlocal_batch_size = 1\nseq_len = 64\n[parallelism]\n{lines}")
    config = read_training_config(file)
    assert config.scheme == scheme
    assert bool(config.undecided) == is_open


@pytest.mark.parametrize(("mode", "graphs"), [("default", False), ("reduce-overhead", True)])
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.json", '{"output_dir": "x", "torch_compile": true, "torch_compile_mode": "MODE"}'),
        ("a.yaml", "base_model: gpt2\ntorch_compile: true\ntorch_compile_mode: MODE\n"),
        (
            "a.yaml",
            "compute_environment: LOCAL_MACHINE\ndynamo_config:\n  dynamo_backend: INDUCTOR\n"
            "  dynamo_mode: MODE\n",
        ),
    ],
)
def test_a_mode_of_the_compiler_replays_cuda_graphs(
    tmp_path: Path, file: str, text: str, mode: str, *, graphs: bool
) -> None:
    """A mode that tunes kernels is not modelled."""
    options = _options(tmp_path, text.replace("MODE", mode), file).with_config()
    assert (options.compiled, options.cuda_graphs) == (True, graphs)
    assert options.step_options("sgd", None).cuda_graphs is graphs
    (field,) = _options(tmp_path, text.replace("MODE", "max-autotune"), file).undecided()
    assert field.field.endswith("mode") and field.changes == ("time",)


def test_cuda_graphs_need_a_compiler(tmp_path: Path) -> None:
    """The option brings it along; a file's mode without a compiler says nothing."""
    step = JobOptions(cuda_graphs=True).step_options("sgd", None)
    assert step.compiled and step.cuda_graphs
    text = "compute_environment: LOCAL_MACHINE\ndynamo_config:\n  dynamo_mode: reduce-overhead\n"
    options = _options(tmp_path, text, "a.yaml").with_config()
    assert not options.compiled and not options.cuda_graphs
