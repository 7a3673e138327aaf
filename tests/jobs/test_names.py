"""Names as users type them: the workload that is meant, or the nearest ones."""

from __future__ import annotations

import pytest

from driple.errors import ConfigError
from driple.jobs import MODELS, Workload, cpu_workloads, paper_workloads
from driple.jobs.catalogue import model_of
from driple.jobs.fuzzy_match import alike
from driple.jobs.names import nearest_names, workload_named
from driple.jobs.workload import DATA_SETS


def test_what_begins_as_it_was_typed_comes_first() -> None:
    """Of these what goes on with a part of its own, the shortest; else what is alike."""
    names = ["resnet32/a", "resnet20_v2/a", "resnet20/a/long", "resnet20/b", "vgg11/a"]
    assert nearest_names("resnet20", names) == ["resnet20/b", "resnet20/a/long"]
    assert nearest_names("ResNet20", names) == ["resnet20/b", "resnet20/a/long"]
    assert nearest_names("resnet20_v", names)[0] == "resnet20_v2/a"
    assert nearest_names("vgg12/a", names)[0] == "vgg11/a"
    assert nearest_names("resnet32/b", names) == ["resnet32/a"]
    assert nearest_names("", names) == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("resnet50", "resnet50/imagenet/"),
        ("ResNet50", "resnet50/imagenet/"),
        ("resnet50/imagenet/b64/sgd/synch", "resnet50/imagenet/b64/sgd/sync"),
        ("resnet20/cifar10/b24/adan/sync", "resnet20/cifar10/b24/adam/sync"),
        ("ResNet20/cifar10/b17/sgd/sync", "resnet20/cifar10/b17/sgd/sync[?]"),
        ("ResNet20-x0.5/CIFAR10/B16/SGD/Sync", "resnet20-x0.5/cifar10/b16/sgd/sync[?]"),
        ("VGG16/ImageNet/b64/sgd/sync", "vgg16/imagenet/b64/sgd/sync[?]"),
        ("resnet21/cifar10/b16/sgd/sync", "resnet20/cifar10/b16/sgd/sync or "),
        ("resnet20/cifar10/16/sgd/sync/fp16", "resnet20/cifar10/b16/sgd/sync/fp16[?]"),
        ("DenseNet/cifar10/b16/sgd/sync", "densenet40_k12/cifar10/b16/sgd/sync or densenet100_k12"),
    ],
)
def test_a_name_that_is_none_gets_the_nearest(typed: str, meant: str) -> None:
    """What is wrong, and what there is."""
    with pytest.raises(ConfigError, match=f"did you mean {meant}"):
        workload_named(typed)


def test_a_name_that_resembles_none_gets_no_offer() -> None:
    """Nothing is made up; of an unknown model all that there are are named."""
    with pytest.raises(ConfigError, match="names no workload") as caught:
        workload_named("???")
    assert "did you mean" not in str(caught.value)
    for model in ("bert", "mobilenet"):
        with pytest.raises(ConfigError, match=r"there are alexnet, lenet, .*, nmt_big$"):
            workload_named(f"{model}/imagenet/b8/adam/sync")
    assert nearest_names("bert/imagenet/b8/adam/sync", ["resnet50/imagenet/b8/adam/sync"]) == []


def test_a_word_gets_itself_or_what_begins_so_or_what_is_alike() -> None:
    """In any case; the nearest first, and no more than were asked for."""
    words = ["resnet32", "resnet20", "resnet20_v2", "vgg16", "lenet"]
    assert alike("RESNET20", words) == ["resnet20"]
    assert alike("resnet2", words) == ["resnet20", "resnet20_v2"]
    assert alike("resnet21", words, most=3) == ["resnet20", "resnet32"]
    assert alike("vgg61", words) == ["vgg16"]
    assert alike("mobilenet", words) == alike("", []) == []


def test_models_read_the_kind_of_data_that_they_are_made_for() -> None:
    """Every listed workload does; images for a text model, and the other way round, are refused."""
    for workload in {*cpu_workloads(), *paper_workloads()}:
        assert workload_named(workload.name) == workload
    for name, model in MODELS.items():
        for data_set, data in DATA_SETS.items():
            workload = Workload(model=name, data_set=data_set, batch_size=2)
            if data.kind == model.reads:
                assert model_of(workload) is model
                continue
            with pytest.raises(ConfigError, match=f"{name} reads {model.reads}, and {data_set}"):
                model_of(workload)
