"""Manifests that the schemas of Kubernetes take, and what Kueue and KAI-Scheduler read in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import kubernetes_validate
import pytest
import yaml

from driple.render.emit.kai import kai_job
from driple.render.emit.kubernetes import kubernetes_job
from driple.render.emit.kueue import kueue_job
from driple.render.emit.scheduled_job import ScheduledJob
from tests.render.emit.trainings import training

VERSIONS = ("1.29", "1.34")
MAKERS = (kubernetes_job, kueue_job, kai_job)


def _manifests(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    service, job = yaml.safe_load_all(text)
    return service, job


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("limit_s", [11_999.0, None])
def test_the_schemas_of_kubernetes_take_each_manifest(
    maker: Callable[[ScheduledJob], str], limit_s: float | None
) -> None:
    for manifest in _manifests(maker(training(limit_s=limit_s))):
        for version in VERSIONS:
            kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("maker", MAKERS)
def test_each_pod_asks_for_the_devices_of_a_machine(maker: Callable[[ScheduledJob], str]) -> None:
    service, job = _manifests(maker(training()))
    name = job["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name)
    assert service["spec"]["selector"]["job-name"] == name
    assert job["spec"]["parallelism"] == job["spec"]["completions"] == 2
    assert job["spec"]["activeDeadlineSeconds"] == 12_000
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "95", "memory": "1036800M", "nvidia.com/gpu": 8},
        "limits": {"nvidia.com/gpu": 8},
    }
    assert "--nnodes=2 --nproc-per-node=8" in container["command"][2]


def test_a_schema_refuses_what_is_misspelt() -> None:
    """The check above can fail."""
    _, job = _manifests(kubernetes_job(training()).replace("backoffLimit", "backoffLimits"))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


def test_kueue_gets_its_queue_and_the_longest_time_as_labels() -> None:
    """Label values are strings; Kueue turns this one into maximumExecutionTimeSeconds."""
    _, job = _manifests(kueue_job(training()))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] == "12000"
    assert "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]
    assert job["spec"]["suspend"] is True
    _, unknown = _manifests(kueue_job(training(limit_s=None)))
    assert list(unknown["metadata"]["labels"]) == ["kueue.x-k8s.io/queue-name"]
    assert "activeDeadlineSeconds" not in unknown["spec"]


def test_kai_gets_the_expected_run_time_as_a_duration_of_go() -> None:
    _, job = _manifests(kai_job(training()))
    assert job["metadata"]["annotations"] == {
        "kai.scheduler/expected-runtime": "200m", "kai.scheduler/batch-min-member": "2",
    }  # fmt: skip
    template = job["spec"]["template"]
    assert template["spec"]["schedulerName"] == "kai-scheduler"
    assert "kai.scheduler/queue" in template["metadata"]["labels"]
    _, unknown = _manifests(kai_job(training(limit_s=None, num_machines=1)))
    assert unknown["metadata"]["annotations"] == {"kai.scheduler/expected-runtime": "90m"}


def test_unknown_hosts_are_left_to_the_user() -> None:
    job = training()
    bare = type(job.host)()
    text = kubernetes_job(training(host=bare))
    assert "# memory: FILL_IN" in text
    _, manifest = _manifests(text)
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"nvidia.com/gpu": 8}
