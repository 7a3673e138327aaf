"""Parameters and multiply-adds of every model of the paper's Table 2, against published figures.

One subprocess (TensorFlow's graph mode cannot be undone) adds each forward pass to a graph and
counts; a multiply-add inside a while-loop counts once per position.
"""

from typing import Any

import pytest

from driple.jobs import paper_workloads
from tests.conftest import RunTensorFlow, asks_slow, usual

SLOW = pytest.mark.slow

COUNT = """
import json, sys
import tensorflow.compat.v1 as tf
from driple.jobs import MODELS, Workload
from driple.jobs.tensorflow.nn import Net
from driple.jobs.tensorflow.training import use_graph_mode
use_graph_mode()

def multiply_adds(op, data):
    out = op.outputs[0].shape.num_elements()
    if op.type == "Conv2D":
        height, width, channels, _ = (int(n) for n in op.inputs[1].shape)
        return out * height * width * channels
    turned = op.get_attr("transpose_a" if op.type == "MatMul" else "adj_x")
    inner = int(op.inputs[0].shape[-2 if turned else -1])
    return out * inner * (data.sequence_length if "while" in op.name else 1)

facts = {}
for name in sys.argv[1:]:
    job = Workload.parse(name)
    model = MODELS[job.model]
    data = model.data_of(job)
    with tf.Graph().as_default() as graph, tf.variable_scope("model", use_resource=False):
        net = Net(channels_first=job.data_format == "nchw", half=job.precision == "fp16")
        if data.image_size:
            x = net.images(tf.zeros((job.batch_size, data.image_size, data.image_size, 3)))
        else:
            x = tf.zeros((job.batch_size, data.sequence_length), tf.int32)
        logits = model.logits(net, x, data)
        kinds = ("Conv2D", "MatMul", "BatchMatMulV2")
        ops = [op for op in graph.get_operations() if op.type in kinds]
        facts[name] = {
            "parameters": sum(v.shape.num_elements() for v in tf.trainable_variables()),
            "multiply_adds": sum(multiply_adds(op, data) for op in ops) // job.batch_size,
            "logits": [int(n) for n in logits.shape],
        }
print(json.dumps(facts))
"""

# Parameters and multiply-adds of one example, in millions.
# [A] osmr/imgclsmob, gluon/README.md (ResNet with the stride in the first convolution; PreResNet)
# [B] Sze et al., Proc. IEEE 2017, Table II (OverFeat, fast)     [C] Szegedy et al. 2015, Table 1,
# with the first layer's 9.4 thousand weights and 118 million multiply-adds in place of the misprint
# 2.7 thousand and 34 million      [D] Open Model Zoo: inceptionv3-int8-sparse,
# googlenet-v4-tf (two FLOPs to a multiply-add)
# [E] He et al. 2016a, Table 6     [F] HRank (Lin et al. 2020), its repository's README
# [G] soft filter pruning (He et al. 2018, Table 2)
# [J] the figure for the AlexNet of tf_cnn_benchmarks; its layers are summed up below
PUBLISHED: dict[str, tuple[float, float | None]] = {
    "alexnet/imagenet": (62.4, None),  # J
    "vgg11/imagenet": (132.863, 7615.87),  # A
    "vgg16/imagenet": (138.358, 15480.10),  # A
    "vgg19/imagenet": (143.667, 19642.55),  # A
    "resnet50/imagenet": (25.557, 3877.95),  # A
    "resnet101/imagenet": (44.549, 7597.95),  # A
    "resnet152/imagenet": (60.193, 11321.85),  # A
    "resnet50_v2/imagenet": (25.549, 3875.44),  # A
    "resnet101_v2/imagenet": (44.542, 7595.44),  # A
    "resnet152_v2/imagenet": (60.185, 11319.34),  # A
    "overfeat/imagenet": (146.0, 2800.0),  # B
    "googlenet/imagenet": (6.9985, 1586.0),  # C
    "inception3/imagenet": (23.819, 5734.5),  # D
    "inception4/imagenet": (42.648, 12292.0),  # D
    "resnet20/cifar10": (0.27, 40.6),  # E, G
    "resnet32/cifar10": (0.46, 68.9),  # E, G
    "resnet44/cifar10": (0.66, None),  # E
    "resnet56/cifar10": (0.85, 125.49),  # E, F
    "resnet110/cifar10": (1.72, 252.89),  # F
}


VOCABULARY, LENGTH = 32_000, 50  # of the data set `europarl`
PAIRS = sorted({f"{job.model}/{job.data_set}" for job in paper_workloads()})
OTHERS = ("resnet50/imagenet/fp16/nchw", "nmt_small/europarl/fp16")
# In the usual run: the smallest model of each family.
QUICK = (
    "alexnet/imagenet", "alexnet/cifar10", "vgg11/imagenet", "overfeat/imagenet",
    "resnet20/cifar10", "resnet20_v2/cifar10", "densenet40_k12/cifar10", "transformer/europarl",
    "transformer_aan/europarl", "nmt_small/europarl", "nmt_small/europarl/fp16",
)  # fmt: skip


@pytest.fixture(scope="module")
def counted(request: pytest.FixtureRequest, run_tensorflow: RunTensorFlow) -> dict[str, Any]:
    """Counts by `model/data set`: of a model of each family, or of all where slow tests ask."""
    names = [*PAIRS, *OTHERS] if asks_slow(request) else QUICK
    parts = [name.split("/") for name in names]
    jobs = ["/".join((*pair[:2], "b2/sgd/sync", *pair[2:])) for pair in parts]
    return dict(zip(names, run_tensorflow(COUNT, *jobs).values(), strict=True))


@pytest.mark.parametrize("name", usual(PUBLISHED, QUICK))
def test_counts_are_the_published_ones(counted: dict[str, Any], name: str) -> None:
    """Parameters and multiply-adds within 1 %."""
    parameters, multiply_adds = PUBLISHED[name]
    assert counted[name]["parameters"] / 1e6 == pytest.approx(parameters, rel=0.01)
    if multiply_adds is not None:
        assert counted[name]["multiply_adds"] / 1e6 == pytest.approx(multiply_adds, rel=0.01)


def test_every_model_of_the_catalogue_is_checked() -> None:
    """A model is either in the table of published figures or in a test of its own below."""
    summed = {"alexnet/cifar10"} | {name for name in PAIRS if "europarl" in name}
    by_form = {name for name in PAIRS if "_v2/cifar10" in name or "densenet" in name}
    assert set(PAIRS) == set(PUBLISHED) | summed | by_form
    assert set(QUICK) <= {*PAIRS, *OTHERS}


def test_alexnet_is_the_sum_of_its_layers(counted: dict[str, Any]) -> None:
    """Feature maps of 55, 27 and 13 pixels (Krizhevsky, 2014); the tutorial's net at 32 pixels.

    The tutorial counts 1,068,298 parameters at 24 pixels, where 2,304 values reach the first
    dense layer, in place of 4,096, and ten classes, in place of eleven.
    """
    convolutions = (
        55**2 * 64 * 3 * 11**2
        + 27**2 * 192 * 64 * 5**2
        + 13**2 * 3**2 * (192 * 384 + 384 * 384 + 384 * 256)
    )
    dense = 9216 * 4096 + 4096 * 4096 + 4096 * 1001
    assert counted["alexnet/imagenet"]["multiply_adds"] == convolutions + dense
    wider = (4096 - 2304) * 384 + 192 + 1
    assert counted["alexnet/cifar10"]["parameters"] == 1_068_298 + wider


@pytest.mark.slow
def test_deeper_nets_follow_their_own_series(counted: dict[str, Any]) -> None:
    """A CIFAR ResNet grows by the same blocks."""
    figures = {name: value["multiply_adds"] for name, value in counted.items()}
    between = (figures["resnet32/cifar10"] + figures["resnet56/cifar10"]) / 2
    assert figures["resnet44/cifar10"] == pytest.approx(between, rel=1e-9)


@pytest.mark.parametrize("depth", usual((20, 32, 44, 56, 110), (20,)))
def test_a_second_version_has_the_multiply_adds_of_the_first(
    counted: dict[str, Any], depth: int
) -> None:
    first, second = (counted[f"resnet{depth}{end}/cifar10"] for end in ("", "_v2"))
    assert first["multiply_adds"] == second["multiply_adds"]


@pytest.mark.parametrize(
    ("depth", "growth"),
    [(40, 12), pytest.param(100, 12, marks=SLOW), pytest.param(100, 24, marks=SLOW)],
)
def test_densenet_has_the_layers_of_tf_cnn_benchmarks(
    counted: dict[str, Any], depth: int, growth: int
) -> None:
    """Convolutions have biases, and transitions keep two growth rates (published: all channels)."""
    counts = counted[f"densenet{depth}_k{growth}/cifar10"]
    assert (counts["parameters"], counts["multiply_adds"]) == _densenet(depth, growth)
    assert depth != 40 or counts["parameters"] == 357_491  # counted by tf_cnn_benchmarks itself


@pytest.mark.parametrize("depth", usual((20, 32, 44, 56, 110), (20,)))
def test_cifar_resnets_v2_have_the_parameters_of_their_form(
    counted: dict[str, Any], depth: int
) -> None:
    """He et al. 2016b on CIFAR-10, as in tf_cnn_benchmarks.

    Three stages of n blocks, depth = 6n + 2; a block is two times normalisation, ReLU, convolution
    of 3 x 3 without bias, and its shortcut has no weights. The first convolution has a
    normalisation, too. A normalisation has two parameters for each channel, but those before a
    block and at the end have no factor.
    """
    blocks, width, total = (depth - 2) // 6, 16, 3 * 16 * 9 + 2 * 16
    for filters in (16, 32, 64):
        for _ in range(blocks):
            total += width + 9 * width * filters + 2 * filters + 9 * filters**2
            width = filters
    total += width + width * 11 + 11
    assert counted[f"resnet{depth}_v2/cifar10"]["parameters"] == total
    assert depth != 20 or total == 269_467  # counted by tf_cnn_benchmarks itself


def _densenet(depth: int, growth: int) -> tuple[int, int]:
    """Parameters and multiply-adds of three blocks of layers of normalisation and convolution."""
    layers, channels = (depth - 4) // 3, 16
    parameters, multiply_adds = 3 * 16 * 9 + 16, 32**2 * 3 * 16 * 9
    for block in range(3):
        pixels = (32 >> block) ** 2
        for _ in range(layers):
            parameters += 2 * channels + channels * growth * 9 + growth
            multiply_adds += pixels * channels * growth * 9
            channels += growth
        kept = 2 * growth if block < 2 else 11
        parameters += 2 * channels + channels * kept + kept
        multiply_adds += (pixels if block < 2 else 1) * channels * kept
        channels = kept
    return parameters, multiply_adds


@pytest.mark.parametrize(
    ("name", "units", "extra"),
    [
        ("transformer", 512, 0),
        pytest.param("transformer_big", 1024, 0, marks=SLOW),
        # In place of self-attention: a feed-forward layer and a gate of two inputs and two outputs.
        ("transformer_aan", 512, 6 * ((8 - 4 + 4) * 512**2 + (5 - 4 + 2) * 512)),
    ],
)
def test_transformers_have_the_published_layers(
    counted: dict[str, Any], name: str, units: int, extra: int
) -> None:
    """Six layers each way; at width 512 the 44,140,544 of torch.nn.Transformer, less two norms."""
    layers = 6 * (28 * units**2 + 32 * units)
    assert units != 512 or layers == 44_140_544 - 2 * 2 * 512
    tables = 2 * VOCABULARY * units + (units + 1) * VOCABULARY
    assert counted[f"{name}/europarl"]["parameters"] == layers + tables + extra


@pytest.mark.parametrize(
    ("name", "units", "layers", "both_ways"),
    [
        ("nmt_small", 512, 2, False),
        pytest.param("nmt_medium", 512, 4, True, marks=SLOW),
        pytest.param("nmt_big", 1024, 4, True, marks=SLOW),
    ],
)
def test_nmt_has_the_layers_of_opennmt(
    counted: dict[str, Any], name: str, units: int, layers: int, both_ways: bool
) -> None:
    """Embeddings of 512, Luong's attention with input feeding (OpenNMT-tf 1, catalog.py)."""

    def stack(width: int, units: int, *, bias: bool) -> int:
        rows = [width + units] + [2 * units] * (layers - 1)
        return sum((row + bias) * 4 * units for row in rows)

    def all_of(*, bias: bool) -> int:
        encoder = (
            2 * stack(512, units // 2, bias=bias) if both_ways else stack(512, units, bias=bias)
        )
        return encoder + stack(512 + units, units, bias=bias) + units**2 + 2 * units**2

    parameters = all_of(bias=True) + 2 * VOCABULARY * 512 + (units + 1) * VOCABULARY
    assert counted[f"{name}/europarl"]["parameters"] == parameters
    attention = LENGTH * LENGTH * 2 * units
    steps = LENGTH * (all_of(bias=False) + units * VOCABULARY) + attention
    assert counted[f"{name}/europarl"]["multiply_adds"] == steps


@pytest.mark.parametrize("name", usual(OTHERS, QUICK))
def test_format_and_precision_change_no_layer(counted: dict[str, Any], name: str) -> None:
    """Counts are the same in NCHW and in half precision."""
    other = "/".join(name.split("/")[:2])
    for figure in ("parameters", "multiply_adds", "logits"):
        assert counted[name][figure] == counted[other][figure]
