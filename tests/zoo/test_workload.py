"""Names of workloads, and the list that is measured."""

from collections import Counter

import pytest

from driple.errors import ConfigError
from driple.zoo import MODELS, Workload, cpu_workloads
from driple.zoo.catalogue import model_of


def test_names_are_their_own_inverse() -> None:
    """Every workload of the list comes back from its name."""
    for workload in cpu_workloads():
        assert Workload.parse(workload.name) == workload


def test_the_list_is_large_diverse_and_always_the_same() -> None:
    """At least 160 unique workloads of 10 families or more; factors come up about equally."""
    workloads = cpu_workloads()
    assert len(set(workloads)) == len(workloads) >= 160
    assert workloads == cpu_workloads()
    families = Counter(model_of(workload).family for workload in workloads)
    assert len(families) >= 10
    for model in {(item.model, item.data_set, item.width) for item in workloads}:
        mine = [w for w in workloads if (w.model, w.data_set, w.width) == model]
        assert Counter(w.sync for w in mine) == {True: 4, False: 4}
        assert set(Counter(w.optimizer for w in mine).values()) == {2}


def test_early_part_of_the_list_covers_every_family() -> None:
    """A campaign that is cut short still has all families."""
    first = cpu_workloads()[: len(cpu_workloads()) // 8]
    assert len({model_of(item).family for item in first}) == len(
        {model_of(item).family for item in cpu_workloads()}
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet20", "names no workload"),
        ("resnet20/cifar10/16/sgd/sync", "names no workload"),
        ("resnet20/cifar10/bx/sgd/sync", "names no workload"),
        ("resnet20/cifar10/b0/sgd/sync", "batch size"),
        ("resnet20/cifar11/b1/sgd/sync", "no data set"),
        ("resnet20/cifar10/b1/lamb/sync", "no optimizer"),
        ("resnet20-x2/cifar10/b1/sgd/sync", "width"),
    ],
)
def test_what_cannot_be_built_is_refused(name: str, message: str) -> None:
    """Each part of the name is checked."""
    with pytest.raises(ConfigError, match=message):
        Workload.parse(name)


def test_unknown_models_get_the_nearest_name() -> None:
    """A typing error is answered with what was meant."""
    with pytest.raises(ConfigError, match="resnet20"):
        model_of(Workload.parse("resnet-20/cifar10/b1/sgd/sync"))
    assert set(MODELS) >= {"alexnet", "vgg11", "googlenet", "overfeat", "densenet40_k12"}
