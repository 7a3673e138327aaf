"""The built-in models have the published numbers of parameters, and take the sizes they claim."""

import pytest
import torch

from driple.errors import ConfigError
from driple.jobs.pytorch.workloads import MACRO, WORKLOADS, pytorch_workload_named
from scripts.studies.stalls.models import MICRO

# torchvision 0.21 model documentation (1000 classes); BERT: the published BertModel checkpoints
# bert_uncased_L-2_H-128_A-2, bert-base-uncased and bert-large-uncased, and 2 (width + 1) of a head
# for questions.
PUBLISHED = {
    "alexnet": 61_100_840,
    "mobilenet_v2": 3_504_872,
    "squeezenet": 1_248_424,
    "shufflenet": 2_278_604,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "vgg11": 132_863_336,
    "vgg11-norm": 132_868_840,
    "vgg13": 133_047_848,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "bert-tiny": 4_385_920 + 2 * 129,
    "bert-base": 109_482_240 + 2 * 769,
    "bert-large": 335_141_888 + 2 * 1025,
}


def parameters(name: str, num_classes: int = 1000) -> int:
    with torch.device("meta"):
        model = WORKLOADS[name].build(num_classes)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones(name: str) -> None:
    assert parameters(name) == PUBLISHED[name]


def test_gradients_of_table_2() -> None:
    """The paper's ResNets have ten classes or so: 11.18 and 23.5 million gradients."""
    assert parameters("resnet18", 10) / 1e6 == pytest.approx(11.18, abs=0.005)
    assert parameters("resnet50", 10) / 1e6 == pytest.approx(23.59, rel=0.005)


def test_what_the_micro_characterization_takes_out() -> None:
    """Each norm has two gradients per convolution; residuals without theirs keep nearly all."""

    def tensors(name: str) -> int:
        with torch.device("meta"):
            return len(list(WORKLOADS[name].build().parameters()))

    assert tensors("resnet50") - tensors("resnet50-nonorm") == 2 * 53
    assert parameters("resnet50-nores") > 0.88 * parameters("resnet50")
    assert {*MACRO, *MICRO} <= set(WORKLOADS)


@pytest.mark.parametrize("name", WORKLOADS)
def test_shapes(name: str) -> None:
    """The smallest images it takes, and twelve tokens."""
    workload = WORKLOADS[name]
    with torch.device("meta"):
        model = workload.build(7)
        if workload.kind == "tokens":
            output = model(torch.zeros(2, 12, dtype=torch.long))
            assert output.shape == (2, 2, 12)
        else:
            output = model(torch.zeros(2, 3, workload.least_size, workload.least_size))
            assert output.shape == (2, 7)


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(ConfigError, match="resnet18"):
        pytorch_workload_named("resnet-18")
