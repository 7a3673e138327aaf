"""A job is prepared once, for as long as it is there."""

from __future__ import annotations

import gc
from dataclasses import replace
from weakref import ref

from driple.answers.job_kind import job_kind
from driple.answers.ready_job import ReadyJob
from driple.jobs.load import load_job
from tests.simulate.jobs import net


def test_the_same_job_is_prepared_once() -> None:
    job = load_job(net(4))
    ready = ReadyJob.of(job)
    assert ReadyJob.of(job) is ready
    assert ready.prepared is ReadyJob.of(job).prepared
    assert ready.job.graph is job.graph
    assert ReadyJob.of(load_job(net(4))) is not ready
    assert ReadyJob.of(replace(job)) is not ready


def test_a_job_that_nobody_holds_is_let_go() -> None:
    job = load_job(net(4))
    kept = ref(job)
    ready = ReadyJob.of(job)
    assert ready.prepared is not None
    del job
    gc.collect()
    assert kept() is None


def test_what_it_is_and_what_it_counts_follow_from_its_graph() -> None:
    job = load_job(net(4))
    ready = ReadyJob(job)
    assert ready.kind == job_kind(job.graph)
    assert ready.kind.network == "convolutional"
    assert ready.work is ready.work
    assert ready.alone == {} and ready.enough == {}
