"""hf:PATH: configs that transformers' own classes write, and those that no model can have."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from driple.errors import ConfigError
from driple.jobs.hf_config import read_hf_config
from driple.jobs.load import JobOptions, load_job
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.render.remarks import sentences

SIZES = {
    "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
}  # fmt: skip
KV = {**SIZES, "num_key_value_heads": 2}
SPEECH = {
    "encoder_layers": 1, "decoder_layers": 1, "d_model": 64, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
}  # fmt: skip
T5 = {"num_layers": 1, "d_model": 64, "d_ff": 128, "num_heads": 4, "d_kv": 16}
# Config class, its values, the class that is trained, tokens of a sample and shape of an input.
MODELS: list[tuple[str, dict[str, Any], str, int | None, tuple[int, ...] | None]] = [
    ("BertConfig", SIZES, "BertForMaskedLM", 512, None),
    ("BertConfig", SIZES, "BertForSequenceClassification", 512, None),
    ("BertConfig", SIZES, "BertForQuestionAnswering", 512, None),
    ("BertConfig", SIZES, "BertForTokenClassification", 512, None),
    ("RobertaConfig", SIZES, "RobertaForMaskedLM", 510, None),
    ("GPT2Config", {"n_layer": 2, "n_embd": 64, "n_head": 4}, "GPT2LMHeadModel", 512, None),
    ("LlamaConfig", KV, "LlamaForCausalLM", 512, None),
    ("MistralConfig", KV, "MistralForCausalLM", 512, None),
    ("MixtralConfig", KV, "MixtralForCausalLM", 512, None),
    ("T5Config", T5, "T5ForConditionalGeneration", 512, None),
    ("ViTConfig", SIZES, "ViTForImageClassification", None, (3, 224, 224)),
    ("SwinConfig", {"depths": [1, 1], "num_heads": [2, 4], "embed_dim": 24},
     "SwinForImageClassification", None, (3, 224, 224)),
    ("WhisperConfig", SPEECH, "WhisperForConditionalGeneration", 128, (80, 3000)),
    ("DebertaV2Config", SIZES, "DebertaV2ForSequenceClassification", 512, None),
    ("CLIPConfig", {"text_config": SIZES, "vision_config": SIZES}, "CLIPModel", 77, (3, 224, 224)),
]  # fmt: skip


def written(folder: Path, kind: str, values: dict[str, Any], architecture: str = "") -> Path:
    """The folder with a config.json as transformers writes it."""
    declare_torchvision_ops()
    import transformers

    extra = {"architectures": [architecture]} if architecture else {}
    getattr(transformers, kind)(**values, **extra).save_pretrained(folder)
    return folder


def options(size: int | None = 2, **values: Any) -> JobOptions:
    return JobOptions(batch_size=size, **values)


@pytest.mark.parametrize("row", MODELS, ids=[row[2] for row in MODELS])
def test_models_are_built_from_their_configs(tmp_path: Path, row: tuple[Any, ...]) -> None:
    """With every parameter trained but those of a frozen table, and the batch of their task."""
    import torch
    import transformers

    kind, values, trained, seq_len, shape = row
    folder = written(tmp_path, kind, values, trained)
    job = load_job(f"hf:{folder}", options())
    assert (job.batch_size, job.seq_len, job.input_shape) == (2, seq_len, shape)
    assert (job.kind, job.optimizer) == ("hugging_face", "adamw")
    with torch.device("meta"):
        model = getattr(transformers, trained)(transformers.AutoConfig.from_pretrained(folder))
    elements = sum(one.numel() for one in model.parameters() if one.requires_grad)
    assert job.graph.sent_bytes == 4 * elements
    assert not any("trained as" in words for words in sentences(job.assumptions))


def test_a_config_without_a_class_is_trained_by_its_type(tmp_path: Path) -> None:
    job = load_job(f"hf:{written(tmp_path, 'BertConfig', SIZES)}", options())
    assert "trained as BertForMaskedLM, since the config names no class" in sentences(
        job.assumptions
    )
    assert any("8 samples" in one for one in sentences(load_job(f"hf:{tmp_path}").assumptions))


def test_lengths_and_shapes_are_the_users(tmp_path: Path) -> None:
    folder = written(tmp_path, "GPT2Config", {"n_layer": 1, "n_embd": 64, "n_head": 4})
    half, whole = (load_job(f"hf:{folder}", options(seq_len=n)) for n in (64, 128))
    assert half.seq_len == 64
    assert 1.9 < whole.cost.total_flops / half.cost.total_flops < 2.2
    with pytest.raises(ConfigError, match="--seq-len 4096 is more than the 1024 positions"):
        load_job(f"hf:{folder}", options(seq_len=4096))
    with pytest.raises(ConfigError, match="takes tokens; give --seq-len in place of --input"):
        load_job(f"hf:{folder}", options(input_shape=(3, 4, 4)))
    images = written(tmp_path / "vit", "ViTConfig", {**SIZES, "image_size": 64})
    assert load_job(f"hf:{images}", options()).input_shape == (3, 64, 64)
    with pytest.raises(ConfigError, match="takes images; give --input in place of --seq-len"):
        load_job(f"hf:{images}", options(seq_len=8))


def test_state_space_models_say_that_their_slow_path_is_read(tmp_path: Path) -> None:
    """Of transformers itself, without the kernels of other packages; other models say nothing."""
    values = {"num_hidden_layers": 1, "hidden_size": 32, "state_size": 4, "vocab_size": 64}
    folder = written(tmp_path / "mamba", "MambaConfig", values, "MambaForCausalLM")
    texts = sentences(load_job(f"hf:{folder}", options(seq_len=8)).assumptions)
    assert sum("as without the packages mamba-ssm" in one for one in texts) == 1
    other = written(tmp_path / "gpt2", "GPT2Config", {"n_layer": 1, "n_embd": 64, "n_head": 4})
    assert not any(
        "mamba-ssm" in one
        for one in sentences(load_job(f"hf:{other}", options(seq_len=8)).assumptions)
    )


def test_experts_share_tokens_evenly_and_masks_cost_nothing(tmp_path: Path) -> None:
    """Two of eight experts: the products of a token are those of two, whatever the precision."""
    folder = written(tmp_path, "MixtralConfig", KV)
    jobs = [load_job(f"hf:{folder}", options(precision=name)) for name in ("fp32", "bf16")]
    assert "each expert gets the same number of tokens" in sentences(jobs[0].assumptions)
    assert any("full length" in words for words in sentences(jobs[0].assumptions))
    assert jobs[0].cost.total_flops == pytest.approx(jobs[1].cost.total_flops, rel=0.05)


def test_a_model_of_the_cache_is_found_and_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the revision of its branch main, as huggingface_hub lays it out."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match=r"hf download org/name config\.json") as raised:
        read_hf_config("org/name")
    assert "https://huggingface.co/org/name/resolve/main/config.json" in str(raised.value)
    model = tmp_path / "models--org--name"
    revision = "0123456789abcdef0123456789abcdef01234567"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text(revision)
    written(model / "snapshots" / revision, "BertConfig", SIZES)
    assert read_hf_config("org/name").model_type == "bert"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"num_hidden_layers": -3}, "num_hidden_layers is -3, and layers are 0 or more"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, and models of up to 1000"),
        ({"text_config": {"n_layer": 2000}}, "text_config.n_layer is 2000"),
        ({"depths": [500, 600]}, "depths is 1100"),
        ({"num_local_experts": 10**6}, "num_local_experts is 1000000"),
        ({"num_hidden_layers": 900, "num_experts": 900}, "810000 modules"),
        ({"vocab_size": 10**15}, "vocab_size is 1000000000000000"),
        (
            {"model_type": "unheard_of", "architectures": ["X"]},
            "architecture 'X'.*FILE.py",
        ),
        (
            {"model_type": "unheard_of", "architectures": ["__import__"]},
            "not one that",
        ),
        ({"hidden_size": -5}, "cannot be built from it"),
        ({"hidden_size": "many"}, "cannot be built from it"),
        ({"num_attention_heads": 0}, "cannot be built from it"),
        ({"a": [[[[[[[[[[[[[[1]]]]]]]]]]]]]]}, "nested over"),
    ],
)
def test_numbers_that_no_model_has_are_refused_and_not_run(
    tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    folder = written(tmp_path, "BertConfig", SIZES, "BertForMaskedLM")
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
    with pytest.raises(ConfigError, match=words) as raised:
        load_job(f"hf:{folder}", options())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", "{", "is no JSON"),
        ("config.json", "[1]", "is no model's config"),
        ("config.json", '{"a": 1}', "neither model_type nor architectures"),
        ("config.json", '{"model_type": "bert", "x": NaN}', "is no JSON"),
        ("adapter_config.json", "{}", "is an adapter"),
        ("other.txt", "", "has no config.json"),
    ],
)
def test_folders_without_a_config_are_refused(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=words):
        load_job(f"hf:{tmp_path}")


def test_code_that_a_config_names_is_not_executed(tmp_path: Path) -> None:
    folder = written(tmp_path, "BertConfig", SIZES, "BertForMaskedLM")
    file, marker = folder / "config.json", tmp_path / "ran"
    (folder / "modeling_x.py").write_text(f"open({str(marker)!r}, 'w')")
    values = json.loads(file.read_text())
    values["auto_map"] = {"AutoModelForMaskedLM": "modeling_x.X"}
    file.write_text(json.dumps(values))
    job = load_job(f"hf:{folder}", options())
    assert not marker.exists()
    assert any("auto_map" in words for words in sentences(job.assumptions))
    assert "HF_HUB_OFFLINE" not in os.environ
