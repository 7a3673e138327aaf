"""timm:NAME: built without weights, for the images of its config or of --input."""

from __future__ import annotations

import pytest

from driple.errors import ConfigError, GraphError
from driple.jobs.load import JobOptions, load_job


def options(**values: object) -> JobOptions:
    return JobOptions(batch_size=2, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "shape", "millions"),
    [  # millions, as the tables of timm's results state them
        ("resnet18", (3, 224, 224), 11.69),
        ("vit_tiny_patch16_224", (3, 224, 224), 5.72),
        ("tinynet_e", (3, 106, 106), 2.04),
        ("mobilenetv3_small_050.lamb_in1k", (3, 224, 224), 1.59),
    ],
)
def test_models_are_built_by_name(name: str, shape: tuple[int, ...], millions: float) -> None:
    job = load_job(f"timm:{name}", options())
    assert (job.input_shape, job.kind, job.batch_size) == (shape, "timm", 2)
    assert job.graph.sent_bytes / 4e6 == pytest.approx(millions, abs=0.006)


def test_images_of_another_size() -> None:
    small = load_job("timm:resnet18", options(input_shape=(3, 112, 112)))
    usual = load_job("timm:resnet18", options())
    assert small.input_shape == (3, 112, 112)
    assert usual.cost.total_flops > 3.5 * small.cost.total_flops
    vit = load_job("timm:vit_tiny_patch16_224", options(input_shape=(3, 112, 112)))
    assert vit.input_shape == (3, 112, 112)


def test_a_model_without_classes_needs_a_loss() -> None:
    with pytest.raises(GraphError, match=r"timm:mobilenetv5_300m_enc: it has no classes"):
        load_job("timm:mobilenetv5_300m_enc", options(input_shape=(3, 256, 256)))


@pytest.mark.parametrize(
    ("text", "values", "words"),
    [
        ("timm:resnet5", {}, "has no model 'resnet5'; did you mean"),
        ("timm:resnet18", {"input_shape": (3, 4)}, "give --input CHANNELSxHEIGHTxWIDTH"),
        ("timm:resnet18", {"seq_len": 4}, "--seq-len: "),
        ("timm:", {}, "has no model ''"),
    ],
)
def test_what_cannot_be_built_is_one_line(text: str, values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        load_job(text, options(**values))
    assert "\n" not in str(raised.value)
