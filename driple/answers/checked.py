"""A prediction whose step time was compared with a closed form: the `predict` of users.

    OpGraph, Checkpoint -> Prediction;  OpGraph, Setting -> step time of a closed form
    both -> the prediction, and whether it contradicts the closed form

An inspector errs most on graphs unlike those that it learned from, yet distance alone does not
separate: on public graphs a third of the good answers are as far off as the bad ones. A closed form
counts this graph's own FLOPs, bytes and messages.
"""

from __future__ import annotations

from driple.analytic.closed_forms import shipped_closed_forms
from driple.analytic.quick import quick_step_s
from driple.cluster.setting import Setting
from driple.cluster.topology import Topology, topology_of
from driple.errors import GraphError, SettingError
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import Checkpoint
from driple.inspector.host import HostTuning, on_any_host
from driple.inspector.predict import Prediction
from driple.inspector.predict import predict as predict_alone
from driple.remarks import remark
from driple.simulate.prepared_job import PreparedJob

__all__ = ["allowed_error", "compared", "predict"]

# From this relative error on, a step time contradicts the closed form. With one server, or in a
# ring, the closed form is within 6 % of the simulator on nine of ten graphs, so that this is the
# error from which on an answer is bad; with several servers it is within 31 %.
_ONE_SERVER, _SEVERAL_SERVERS = 0.25, 0.5


def predict(
    graph: OpGraph,
    checkpoint: Checkpoint,
    *,
    job: PreparedJob | None = None,
    topology: Topology | None = None,
    host: HostTuning | None = None,
) -> Prediction:
    """Predict how the training job of the graph will use the cluster, and check the step time.

    The answer is for the user's host, where he measured it. Otherwise the intervals of measured
    labels hold what hosts of one kind differ by.

    Args:
        graph: of one worker's step.
        checkpoint: the inspector.
        job: of this graph, where it is made already.
        topology: machines of the checkpoint's setting, where they are known already.
        host: what the user measured of his machine.

    Raises:
        ConfigError: a host of another setting.
        GraphError: the graph has no nodes.
        CheckpointError: the inspector gives something that is no finite number.
        PredictionError: it gives a negative amount or duration, or a step that takes no time.
    """
    job = _job_of(graph) if job is None else job
    prediction = predict_alone(graph, checkpoint, cost=None if job is None else job.cost)
    if job is not None:
        prediction = compared(prediction, job, topology=topology)
    if host is not None:
        return host.applied(prediction)
    return on_any_host(prediction) if prediction.provenance == "measured" else prediction


def _job_of(graph: OpGraph) -> PreparedJob | None:
    """The job of a graph; None if the graph does not tell what its ops compute on."""
    try:
        return PreparedJob(graph)
    except GraphError:
        return None


def compared(
    prediction: Prediction, job: PreparedJob, *, topology: Topology | None = None
) -> Prediction:
    """The prediction with the closed form beside it; as it is where there is no closed form.

    Args:
        prediction: of the job.
        job: the training job.
        topology: machines of the prediction's setting, where they are known already.
    """
    setting = Setting.parse(prediction.setting)
    try:
        topology = topology_of(setting) if topology is None else topology
        closed_s = quick_step_s(job, setting, topology=topology)
        most = allowed_error(topology, prediction.provenance, is_strange=bool(prediction.strange))
    except (GraphError, SettingError):  # nothing is sent, no sizes, or a device without calibration
        return prediction
    if closed_s <= 0:
        return prediction
    own_s = prediction.iteration_time_s
    error, contradiction = own_s / closed_s - 1, None
    if abs(error) > most:
        contradiction = remark(
            "contradicts_closed_form",
            setting=setting.name,
            step_s=own_s,
            closed_form_s=closed_s,
            error_pct=100 * error,
            most_pct=100 * most,
        )
    return prediction.compared(closed_s, contradiction)


def allowed_error(topology: Topology, provenance: str, *, is_strange: bool) -> float:
    """Relative error from which on a step time contradicts the closed form.

    Simulated labels follow the same laws as the closed form. Measured ones do not: there an
    inspector is the better of the two on graphs like those that it learned from, and the closed
    form's own error comes on top.

    Args:
        topology: of the setting.
        provenance: of the inspector's labels.
        is_strange: whether the graph is unlike all that it learned from.
    """
    most = _SEVERAL_SERVERS if len(topology.server_machine) > 1 else _ONE_SERVER
    if provenance == "simulated":
        return most
    known = shipped_closed_forms().error_of(topology, "zhang")
    own = 0.0 if known is None else known.p90_pct / 100
    return max(most, own) if is_strange else most + own
