"""Names of workloads, and the lists of them."""

from collections import Counter

import pytest

from driple.errors import ConfigError
from driple.jobs import MODELS, Workload, cpu_workloads, paper_workloads
from driple.jobs.catalogue import model_of


def test_names_are_their_own_inverse() -> None:
    """Every workload of the lists comes back from its name, and no two share one."""
    workloads = {*cpu_workloads(), *paper_workloads()}
    for workload in workloads:
        assert Workload.parse(workload.name) == workload
    assert len({workload.name for workload in workloads}) == len(workloads)


def test_what_is_usual_is_not_in_a_name() -> None:
    """Single precision and NHWC go without saying; what differs comes last, in this order."""
    name = "resnet50/imagenet/b64/sgd/sync"
    assert Workload.parse(name).name == name
    odd = Workload.parse(f"{name}/fp16/nchw")
    assert (odd.precision, odd.data_format) == ("fp16", "nchw")
    assert Workload.parse(f"{name}/nchw").name == f"{name}/nchw"


def test_the_catalogue_has_the_papers_size_and_every_value() -> None:
    """832 workloads over all models of Table 2; each hyper-parameter's values come up evenly."""
    workloads = paper_workloads()
    assert len(set(workloads)) == len(workloads) == 832
    assert workloads == paper_workloads()
    models = {(job.model, job.data_set) for job in workloads}
    assert len(models) == 34
    assert {name for name, _ in models} == set(MODELS) - {"lenet"}
    for pair in models:
        mine = [job for job in workloads if (job.model, job.data_set) == pair]
        for values in (
            Counter(job.optimizer for job in mine),
            Counter(job.sync for job in mine),
            Counter(job.precision for job in mine),
            Counter(job.batch_size for job in mine),
        ):
            assert max(values.values()) - min(values.values()) <= 2, (pair, values)
    assert {(job.model, job.data_set) for job in workloads[:34]} == models


def test_the_list_is_large_diverse_and_always_the_same() -> None:
    """At least 320 unique workloads of 12 families; factors come up about equally."""
    workloads = cpu_workloads()
    assert len(set(workloads)) == len(workloads) >= 320
    assert workloads == cpu_workloads()
    families = Counter(model_of(workload).family for workload in workloads)
    assert len(families) >= 12
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
        ("resnet20/cifar10/b1/sgd/sync/fp8", "names no workload"),
        ("resnet20/cifar10/b1/sgd/sync/nchw/fp16", "names no workload"),
        ("transformer/europarl/b1/sgd/sync/nchw", "text"),
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
