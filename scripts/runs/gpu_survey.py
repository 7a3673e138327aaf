"""Models of timm that `scripts/runs/measure_gpu.py` runs to see every family of models of images.

    SURVEY = FAMILY -> (model, side of its images), ...; LIBRARY:MODEL --family_of--> FAMILY

Of each family that timm's published results know, the models at 30 and 70 % of the order by time
of a forward pass; too large ones for one GPU are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from driple.errors import ConfigError
from scripts.published.rows.families import longest_start

__all__ = ["SURVEY", "family_of"]

_MODELS = """
aimv2: aimv2_1b_patch14_224 224
beit: beit_base_patch16_384 384, beit_large_patch16_384 384
botnet: eca_botnext26ts_256 256, sebotnet33ts_256 256
cait: cait_xxs24_384 384, cait_s36_384 384
convmixer: convmixer_1024_20_ks9_p14 224, convmixer_1536_20 224
convnext: convnextv2_pico 224, convnextv2_base 224
csatv2: csatv2 512, csatv2_21m 512
csp: cspresnext50 256, darknetaa53 256
davit: davit_base 224
deit: deit_small_distilled_patch16_224 224, deit3_base_patch16_384 384
densenet: densenetblur121d 224, densenet161 224
dla: dla60x_c 224, dla102 224
dpn: dpn68b 224, dpn98 224
eca: eca_resnet33ts 256
ecaresnet: ecaresnext50t_32x4d 224, ecaresnext26t_32x4d 224
edgenext: edgenext_x_small 256, edgenext_small_rw 256
efficientformer-v2: efficientformerv2_s1 224, efficientformerv2_s2 224
efficientnet: efficientnet_cc_b0_8e 224, efficientnet_b3_g8_gn 288
efficientnet-edge: tf_efficientnet_es 224, efficientnet_el_pruned 300
efficientnetv2: efficientnetv2_rw_t 224, tf_efficientnetv2_m 384
efficientvit-mit: efficientvit_b2 224, efficientvit_l2 224
efficientvit-msra: efficientvit_m1 224, efficientvit_m4 224
eva: eva02_base_patch14_224 224
fasternet: fasternet_t1 224, fasternet_m 224
fastvit: fastvit_sa12 256, fastvit_ma36 256
fbnetv3: fbnetv3_b 224, fbnetv3_g 240
gcresnext: gcresnext26ts 256, bat_resnext26ts 256
gcvit: gcvit_xtiny 224, gcvit_small 224
gernet: gernet_s 224, gernet_l 256
ghostnet: ghostnet_050 224, ghostnet_130 224
gmlp: gmlp_ti16_224 224, gmlp_b16_224 224
halonet: haloregnetz_b 224, halonet50ts 256
hardcorenas: hardcorenas_c 224, hardcorenas_e 224
hgnet: hgnetv2_b3 224, hgnet_small 224
hiera: hiera_small_abswin_256 256, hiera_base_abswin_256 256
hieradet-sam2: sam2_hiera_small 896, sam2_hiera_base_plus 896
hrnet: hrnet_w18 224, hrnet_w48_ssld 224
inception: inception_v3 299, inception_resnet_v2 299
inception-next: inception_next_tiny 224, inception_next_small 224
lambda-resnet: lambda_resnet26t 256, lambda_resnet50ts 256
lcnet: lcnet_050 224, lcnet_100 224
mambaout: mambaout_tiny 224, mambaout_base_short_rw 224
maxxvit: maxvit_tiny_rw_224 224, maxvit_large_tf_224 224
metaformer: poolformerv2_s24 224, convformer_m36 224
mixer: mixer_s16_224 224, mixer_b16_224 224
mixnet: mixnet_m 224, tf_mixnet_l 224
mnasnet: semnasnet_075 224, semnasnet_100 224
mobilenet-edgetpu: mobilenet_edgetpu_100 224, mobilenet_edgetpu_v2_m 224
mobilenetv1: mobilenetv1_100 224, mobilenetv1_125 224
mobilenetv2: mobilenetv2_075 224, mobilenetv2_110d 224
mobilenetv3: mobilenetv3_small_100 224, mobilenetv3_rw 224
mobilenetv4: mobilenetv4_hybrid_medium_075 224, mobilenetv4_hybrid_large_075 256
mobilenetv5: mobilenetv5_base 256
mobilevit: mobilevit_xs 256, mobilevitv2_150 256
nest: nest_tiny_jx 224, nest_base 224
nextvit: nextvit_small 224, nextvit_large 224
nf-regnet: nf_regnet_b2 240, nf_regnet_b4 320
nf-resnet: nf_seresnet26 224, nf_resnet101 224
nfnet: eca_nfnet_l1 256, nfnet_f4 384
pnasnet: pnasnet5large 331
pvt-v2: pvt_v2_b2 224, pvt_v2_b3 224
rdnet: rdnet_small 224, rdnet_base 224
regnet: regnetv_040 224, regnetz_040 256
regnetz: regnetz_c16 256, regnetz_d8_evos 256
repghost: repghostnet_080 224, repghostnet_130 224
res2net: res2next50 224, res2net101_26w_4s 224
resnet: resnetaa50d 224, resnet101 224
resnetv2: resnetv2_50d 224, resnetv2_152 224
resnext: resnext101_32x4d 224, resnext101_64x4d 224
rexnet: rexnet_130 224, rexnet_200 224
seresnet: seresnet33ts 256, seresnet152 224
seresnext: seresnext50_32x4d 224, seresnext101_32x8d 224
shvit: shvit_s2 224, shvit_s3 224
swiftformer: swiftformer_s 224, swiftformer_l1 224
swin: swin_small_patch4_window7_224 224, swin_large_patch4_window7_224 224
tiny-vit: tiny_vit_11m_224 224, tiny_vit_21m_384 384
tinynet: tinynet_d 152, tinynet_b 188
tresnet: tresnet_v2_l 224, tresnet_l 224
twins: twins_pcpvt_small 224, twins_svt_base 224
visformer: visformer_tiny 224, visformer_small 224
vit: naflexvit_base_patch16_par_gap 384, flexivit_large 240
volo: volo_d1_384 384, volo_d3_448 448
vovnet: eca_vovnet39b 224
xception: xception41p 299, xception65 299
xcit: xcit_small_24_p16_224 224, xcit_medium_24_p16_384 384
"""


def _read() -> Mapping[str, Sequence[tuple[str, int]]]:
    families = {}
    for line in _MODELS.strip().splitlines():
        family, _, models = line.partition(": ")
        pairs = (one.split() for one in models.split(", "))
        families[family] = tuple((name, int(side)) for name, side in pairs)
    return MappingProxyType(families)


SURVEY = _read()
# What neither timm nor the published rows name; by the start of the name, the longest counts.
_OTHERS = MappingProxyType({
    "bert": "bert", "distilbert": "bert", "electra": "bert", "albert": "bert", "deberta": "bert",
    "gpt2": "gpt", "pythia": "gpt", "opt": "opt", "llama": "llama", "qwen2": "qwen",
    "convnext": "convnext", "densenet": "densenet", "efficientnet": "efficientnet",
    "ghostnet": "ghostnet", "inception": "inception", "levit": "levit",
    "mobilenet_v3": "mobilenetv3", "poolformer": "metaformer", "regnet": "regnet",
    "repvgg": "repvgg", "resnest": "resnest", "resnet": "resnet", "sequencer": "sequencer",
    "shufflenet": "shufflenet", "squeezenet": "squeezenet", "swin": "swin", "vgg": "vgg",
    "vit": "vit", "wide_resnet": "resnet",
})  # fmt: skip


def family_of(name: str, timm: Mapping[str, str]) -> str:
    """Family of a model, as the published rows name it.

    Args:
        name: library and model, such as `tv:resnet50`.
        timm: families of timm's names, of `timm_names.csv.gz`.

    Raises:
        ConfigError: nobody named its family.
    """
    library, _, model = name.partition(":")
    family = timm.get(model) if library == "timm" else None
    family = family or longest_start(model, _OTHERS)
    if family is None:
        raise ConfigError(f"no family is stated for {name}; add it to {__name__}")
    return family
