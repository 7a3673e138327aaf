"""Families and folds."""

from __future__ import annotations

import pytest

from driple.errors import ConfigError
from scripts.published.rows.families import assign_folds, family_of, timm_family


@pytest.mark.parametrize(
    ("name", "module", "family"),
    [
        ("resnet50", "resnet", "resnet"), ("wide_resnet50_2", "resnet", "resnet"),
        ("seresnext50_32x4d", "resnet", "seresnext"), ("nf_resnet50", "nfnet", "nf-resnet"),
        ("nfnet_f0", "nfnet", "nfnet"), ("eca_nfnet_l0", "nfnet", "nfnet"),
        ("nf_regnet_b1", "nfnet", "nf-regnet"), ("regnety_040", "regnet", "regnet"),
        ("regnetz_b16", "byobnet", "regnetz"), ("swin_tiny_patch4_window7_224", "swin_transformer",
        "swin"), ("vit_base_patch16_224", "vision_transformer", "vit"),
        ("tf_efficientnetv2_s", "efficientnet", "efficientnetv2"),
        ("efficientnet_b0", "efficientnet", "efficientnet"), ("tresnet_l", "tresnet", "tresnet"),
        ("gmlp_s16_224", "mlp_mixer", "gmlp"), ("res2net50_14w_8s", "res2net", "res2net"),
    ],
)  # fmt: skip
def test_families_of_timm(name: str, module: str, family: str) -> None:
    assert timm_family(name, module) == family


def test_families_of_own_jobs() -> None:
    assert family_of("own:bert-large-squad") == family_of("own:libai-bert") == "bert"
    assert family_of("own:mistral-7b+qlora") == "mistral"
    assert family_of("own:qwen3-30b-a3b") != family_of("own:qwen-7b")
    assert family_of("timm:resnet50") == "resnet"
    assert family_of("") == ""
    with pytest.raises(ConfigError, match="own:unheard-of"):
        family_of("own:unheard-of")


def test_folds_never_change_and_fill_evenly() -> None:
    sizes = {f"family{i}": (10 * i, 5) for i in range(1, 31)}
    folds = assign_folds(sizes, {})
    assert set(folds.values()) == set(range(10))
    rows = [sum(sizes[name][0] for name in folds if folds[name] == fold) for fold in range(10)]
    assert max(rows) < 1.3 * min(rows)
    more = assign_folds({**sizes, "new": (1000, 0)}, folds)
    assert {name: more[name] for name in folds} == folds
    assert assign_folds({"b": (1, 1), "a": (1, 1)}, {}) == assign_folds(
        {"a": (1, 1), "b": (1, 1)}, {}
    )
