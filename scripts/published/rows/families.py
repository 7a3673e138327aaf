"""Model families: what is held out together, and the fold of each.

    JOB -> family -> fold 0 to 9 (datasets/runs/published/folds.csv)

Models of timm get their family from `timm_names.csv.gz`: timm's own module, or the leading letters
of the name where a module holds several architectures. A fold never changes: `assign_folds` adds
families that are new and keeps the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.errors import ConfigError
from driple.runs.measured_run import FOLDS

__all__ = ["assign_folds", "family_of", "longest_start", "timm_family"]

# By the start of an own model's name; the longest start counts.
_OWN: Mapping[str, str] = MappingProxyType({
    "aquila": "llama", "baichuan": "baichuan", "bart": "bart", "bert": "bert", "libai-bert": "bert",
    "neusight-bert": "bert", "chatglm": "chatglm", "deepseek": "deepseek", "dlrm": "dlrm",
    "fastpitch": "fastpitch", "gnmt": "gnmt", "gpt3": "gpt", "libai-gpt2": "gpt",
    "neusight-gpt": "gpt", "gpt2": "gpt", "gpt-oss": "gpt-oss", "moe-7b": "granite-moe",
    "granite": "granite-moe", "grok": "grok",
    "insightface": "insightface", "internlm": "internlm", "jasper": "jasper", "llama": "llama",
    "maskrcnn": "maskrcnn", "mistral": "mistral", "mixtral": "mixtral", "mpt": "mpt",
    "ncf": "ncf", "nemotron": "nemotron", "nnunet": "nnunet", "neusight-opt": "opt", "phi": "phi",
    "quartznet": "quartznet", "qwen3": "qwen-moe", "qwen": "qwen", "retinanet": "retinanet",
    "rnnt": "rnnt", "santacoder": "santacoder", "ssd300": "ssd", "stablelm": "stablelm",
    "tacotron2": "tacotron2", "tinyllama": "llama", "transformer-big": "transformer-mt",
    "transformerxl": "transformerxl", "unet-industrial": "unet", "unet-medical": "unet",
    "unet3d": "unet3d", "vae-cf": "vae-cf", "vnet": "vnet", "waveglow": "waveglow",
    "wide-and-deep": "wide-and-deep", "yi": "llama", "zephyr": "mistral",
})  # fmt: skip
# Modules of timm that hold several architectures: their families are named by the model's letters.
_COLLECTIONS = frozenset({
    "_registry", "byoanet", "byobnet", "cspnet", "efficientnet", "inception_v3", "inception_v4",
    "mlp_mixer", "mobilenetv3", "nfnet", "resnet", "senet", "vision_transformer", "xception",
    "xception_aligned",
})  # fmt: skip
_MODULES: Mapping[str, str] = MappingProxyType({
    "swin_transformer": "swin", "swin_transformer_v2": "swinv2", "ghostnet": "ghostnet",
    "inception_resnet_v2": "inception", "naflexvit": "vit", "deit": "deit", "eva": "eva",
    "vision_transformer_relpos": "vit", "vision_transformer_sam": "vit",
    "vision_transformer_hybrid": "vit",
})  # fmt: skip
# By the start of a timm name of a collection; the longest start counts.
_TIMM: Mapping[str, str] = MappingProxyType({
    "adv_inception": "inception", "ens_adv_inception": "inception", "inception_v": "inception",
    "gluon_inception": "inception", "tf_inception": "inception", "inception_resnet": "inception",
    "bat_resnext": "gcresnext", "gcresnext": "gcresnext", "eca_resnext": "gcresnext",
    "seresnext26ts": "gcresnext", "resnext26ts": "gcresnext", "gcresnet": "gcresnext",
    "beit": "beit", "botnet": "botnet", "eca_botnext": "botnet", "sebotnet": "botnet",
    "lamhalobotnet": "halonet", "eca_halonext": "halonet", "halo": "halonet", "halonet": "halonet",
    "sehalonet": "halonet", "lambda_resnet": "lambda-resnet", "cs3": "csp", "csp": "csp",
    "darknet": "csp", "sedarknet": "csp", "eca_nfnet": "nfnet", "eca_vovnet": "vovnet",
    "dm_nfnet": "nfnet",
    "nfnet": "nfnet", "nf_regnet": "nf-regnet", "nf_": "nf-resnet", "ecaresne": "ecaresnet",
    "efficientnet": "efficientnet", "tf_efficientnet": "efficientnet",
    "efficientnet_es": "efficientnet-edge", "efficientnet_em": "efficientnet-edge",
    "efficientnet_el": "efficientnet-edge", "tf_efficientnet_es": "efficientnet-edge",
    "tf_efficientnet_em": "efficientnet-edge", "tf_efficientnet_el": "efficientnet-edge",
    "efficientnetv2": "efficientnetv2", "tf_efficientnetv2": "efficientnetv2",
    "gc_efficientnetv2": "efficientnetv2", "fbnetc": "mnasnet", "fbnetv3": "fbnetv3",
    "lcnet": "lcnet", "mixnet": "mixnet", "tf_mixnet": "mixnet", "mnasnet": "mnasnet",
    "semnasnet": "mnasnet", "spnasnet": "mnasnet", "mobilenetv1": "mobilenetv1",
    "mobilenetv2": "mobilenetv2", "mobilenetv3": "mobilenetv3", "tf_mobilenetv3": "mobilenetv3",
    "mobilenetv4": "mobilenetv4", "mobilenet_edgetpu": "mobilenet-edgetpu", "tinynet": "tinynet",
    "gernet": "gernet", "regnetz": "regnetz", "resnet": "resnet", "tv_resnet": "resnet",
    "gluon_resnet": "resnet", "wide_resnet": "resnet", "resnext": "resnext",
    "tv_resnext": "resnext", "gluon_resnext": "resnext", "ig_resnext": "resnext",
    "ssl_resnext": "resnext", "swsl_resnext": "resnext", "ssl_resnet": "resnet",
    "swsl_resnet": "resnet", "skresne": "skresnet", "swin": "swin",
    "seresnet": "seresnet", "seresnext": "seresnext", "legacy_seresnet": "seresnet",
    "legacy_seresnext": "seresnext", "gluon_seresnext": "seresnext", "senet": "seresnet",
    "legacy_senet": "seresnet", "gluon_senet": "seresnet", "xception": "xception",
    "legacy_xception": "xception", "gluon_xception": "xception", "repvgg": "repvgg",
    "mobileone": "mobileone", "resnet51q": "resnet-q", "resnet61q": "resnet-q", "mixer": "mixer",
    "gmixer": "mixer", "gmlp": "gmlp", "resmlp": "resmlp", "vit": "vit", "deit": "deit",
    "jx_nest": "nest", "jx_mixer": "mixer", "eva": "eva", "flexivit": "vit", "aimv2": "aimv2",
    "test_": "test",
})  # fmt: skip


def longest_start(name: str, starts: Mapping[str, str]) -> str | None:
    """What belongs to the longest start of a name; None if it has none of them."""
    starting = [start for start in starts if name.startswith(start)]
    return starts[max(starting, key=len)] if starting else None


def timm_family(name: str, module: str) -> str:
    """Family of a model of timm, by its name (without a tag) and the module that defines it."""
    if module not in _COLLECTIONS:
        return _MODULES.get(module, module.replace("_", "-"))
    family = longest_start(name, _TIMM)
    if family is not None:
        return family
    letters = name.split("_", maxsplit=1)[0].rstrip("0123456789")
    return letters or name


def family_of(job: str, timm: Mapping[str, str] = MappingProxyType({})) -> str:
    """Family of a JOB.

    Args:
        job: `own:NAME`, `timm:NAME`, or empty.
        timm: families of timm's names, of `timm_names.csv.gz`.

    Raises:
        ConfigError: no family is known for it.
    """
    kind, _, name = job.partition(":")
    name = name.partition("+")[0]
    if not job:
        return ""
    family = longest_start(name, _OWN) if kind == "own" else timm.get(name)
    if family is None and kind == "timm":
        family = longest_start(name, _TIMM)
    if family is None:
        raise ConfigError(f"no model family is known for the job {job!r}; add it to families.py")
    return family


def assign_folds(sizes: Mapping[str, tuple[int, int]], known: Mapping[str, int]) -> dict[str, int]:
    """A fold of every family: those that are known stay, the others fill the emptiest folds.

    Args:
        sizes: usable training rows and forward rows of each family.
        known: folds of an earlier run.
    """
    totals = [max(1, sum(size[kind] for size in sizes.values())) for kind in (0, 1)]
    shares = {
        family: training / totals[0] + forward / totals[1]
        for family, (training, forward) in sizes.items()
    }
    filled = [0.0] * FOLDS
    folds = {family: fold for family, fold in known.items() if family in sizes}
    for family, fold in folds.items():
        filled[fold] += shares[family]
    for family in sorted(set(sizes) - set(folds), key=lambda item: (-shares[item], item)):
        fold = min(range(FOLDS), key=lambda index: (filled[index], index))
        folds[family] = fold
        filled[fold] += shares[family]
    return dict(sorted(folds.items()))
