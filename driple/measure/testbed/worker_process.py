"""A role of the cluster: a process that imports TensorFlow once and forks for each workload.

    orchestrator -- JSON lines over stdin/stdout --> role process -- fork --> one run

A line to the role is a job. The fork runs it, answers with `ready`, `placed`, `warm` and `done`,
and waits for a line after each answer. Importing TensorFlow takes seconds, a fork milliseconds.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from driple.measure.testbed.messages import RoleAnswer, RoleJob, TurnOrder, from_line, to_line
from driple.measure.testbed.process_lifetime import die_with_parent

__all__ = ["main"]

_ERROR_CHARACTERS = 1000


def main() -> None:
    """Serve jobs until stdin closes."""
    channel = os.dup(1)
    os.dup2(2, 1)  # keep TensorFlow's output out of the channel
    out = os.fdopen(channel, "w")
    _send(out, RoleAnswer(event="up", versions=_import_tensorflow()))
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            die_with_parent()
            status = 0
            try:
                _run_job(from_line(RoleJob, line, "the orchestrator"), out)
            except BaseException as error:  # report any failure of the fork, then end
                _send(out, RoleAnswer(event="failed", error=_describe(error)))
                status = 1
            os._exit(status)
        os.waitpid(child, 0)
        _send(out, RoleAnswer(event="ended"))


def _describe(error: BaseException) -> str:
    last = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
    return last[:_ERROR_CHARACTERS]


def _send(out: Any, answer: RoleAnswer) -> None:
    out.write(to_line(answer) + "\n")
    out.flush()


def _wait_for_word() -> None:
    """Block until the orchestrator sends a line; end of file means that it has ended."""
    if not sys.stdin.readline():
        os._exit(1)


def _import_tensorflow() -> dict[str, str]:
    import numpy as np
    import tensorflow.compat.v1 as tf

    from driple.jobs.tensorflow.training import use_graph_mode

    use_graph_mode()
    return {"tensorflow": tf.__version__, "numpy": np.__version__, "python": sys.version.split()[0]}


def _run_job(job: RoleJob, out: Any) -> None:
    import tensorflow.compat.v1 as tf

    is_server = job.job == "ps"
    config = tf.ConfigProto(
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=1,
        device_filters=[] if is_server else ["/job:ps", f"/job:worker/task:{job.task}"],
    )
    server = tf.train.Server(
        tf.train.ClusterSpec({kind: list(names) for kind, names in job.cluster.items()}),
        job_name=job.job,
        task_index=job.task,
        protocol="grpc",
        config=config,
    )
    if is_server:
        _send(out, RoleAnswer(event="ready"))
        _wait_for_word()
        return
    if job.transfers:
        _transfers(job, server.target, config, out)
    else:
        _train(job, server.target, config, out)


def _transfers(job: RoleJob, target: str, config: Any, out: Any) -> None:
    """Fetch tensors from the server, one per traced step."""
    import tensorflow.compat.v1 as tf

    fetches = {}
    with tf.Graph().as_default() as graph:
        for nbytes in sorted(set(job.transfers)):
            with tf.device("/job:ps/task:0/device:CPU:0"):
                held = tf.Variable(tf.zeros([nbytes // 4]), use_resource=False)
            with tf.device("/job:worker/task:0/device:CPU:0"):
                fetches[nbytes] = tf.identity(held).op
        init = tf.global_variables_initializer()
    with tf.Session(target, graph=graph, config=config) as session:
        session.run(init)
        for fetch in fetches.values():
            session.run(fetch)
        _send(out, RoleAnswer(event="ready"))
        _wait_for_word()
        for number, nbytes in enumerate(job.transfers):
            _traced_steps(session, fetches[nbytes], Path(job.trace), 1)
            if number % 8 == 0:
                time.sleep(0.02)  # lets the link's token bucket refill
        _send(out, RoleAnswer(event="done"))
        _wait_for_word()


def _train(job: RoleJob, target: str, config: Any, out: Any) -> None:
    """Build the worker's graph, initialise, warm up, train."""
    import tensorflow.compat.v1 as tf

    from driple.jobs.tensorflow.training import ClusterShape, build_training_step, graphdef_of
    from driple.jobs.workload import Workload

    shape = ClusterShape(num_servers=len(job.cluster["ps"]), num_workers=len(job.cluster["worker"]))
    step = build_training_step(Workload.parse(job.workload), shape, job.task)
    chief = job.task == 0
    if job.graph:
        Path(job.graph).write_bytes(graphdef_of(step))
    with tf.Session(target, graph=step.graph, config=config) as session:
        if chief:
            session.run(step.init_shared)
        _send(out, RoleAnswer(event="ready", num_parameters=step.num_parameters))
        _wait_for_word()
        session.run(step.init_local)
        if step.queue_runner is not None:
            coordinator = tf.train.Coordinator()
            step.queue_runner.create_threads(session, coordinator, daemon=True, start=True)
            session.run(step.start_tokens)
        # Traced steps cannot use a callable, and untraced steps must run in the same executors.
        train = (
            partial(session.run, step.step) if job.by_turns else session.make_callable(step.step)
        )
        train()  # the first step places and optimises the graph
        _send(out, RoleAnswer(event="placed"))
        _wait_for_word()
        _send(out, RoleAnswer(event="warm", times_ns=_steps(train, job.warmup)))
        if job.by_turns:
            _turns(session, step.step, train, out)
            return
        num_iterations = int(sys.stdin.readline() or 0)
        _send(out, RoleAnswer(event="done", times_ns=_steps(train, num_iterations)))
        _wait_for_word()


def _turns(session: Any, step: Any, train: Any, out: Any) -> None:
    """Train on each order, until a time or for a number of traced steps, until the last order."""
    for line in sys.stdin:
        turn = from_line(TurnOrder, line, "the orchestrator")
        if turn.trace:
            _traced_steps(session, step, Path(turn.trace), turn.num_traced)
        time.sleep(max(0.0, (turn.from_ns - time.monotonic_ns()) / 1e9))
        times = [time.monotonic_ns()]
        while times[-1] < turn.until_ns:
            train()
            times.append(time.monotonic_ns())
        _send(out, RoleAnswer(event="done", times_ns=times))


def _traced_steps(session: Any, step: Any, folder: Path, count: int) -> None:
    """Train with full tracing; a file per step, named by its start in ns since the epoch."""
    import tensorflow.compat.v1 as tf

    for number in range(count):
        options = tf.RunOptions(
            trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=number == 0
        )
        record = tf.RunMetadata()
        begin_ns = time.time_ns()
        session.run(step, options=options, run_metadata=record)
        (folder / f"{begin_ns}.pb").write_bytes(record.SerializeToString())


def _steps(train: Any, count: int) -> list[int]:
    """Monotonic times before the first step and after each."""
    times = [time.monotonic_ns()]
    for _ in range(count):
        train()
        times.append(time.monotonic_ns())
    return times


if __name__ == "__main__":
    die_with_parent()
    main()
