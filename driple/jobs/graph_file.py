"""Reader of TensorFlow graph files and of SavedModel folders; nothing in them is executed."""

from __future__ import annotations

from pathlib import Path

from driple.errors import ConfigError, GraphError
from driple.graph import OpGraph, graph_from_file_bytes, read_graph, require_training
from driple.graph.options import GRAPH_FORMATS, GRAPH_SUFFIXES
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.options import JobOptions, flags_for
from driple.jobs.readers import JobReader, JobRequest, nothing_of
from driple.jobs.unreadable import refuse_foreign
from driple.remarks import Remark, remark

__all__ = ["GRAPH_FILE", "job_of_graph", "kept_batch"]

_GIVEN_GRAPH = JobOrigin(name="graph")
_CONVOLUTIONS = ("conv", "depthwise_conv")
_LOSSES = ("cross_entropy", "soft_cross_entropy")


def _claims(text: str) -> bool:
    path = Path(text)
    return path.exists() or path.suffix in (*GRAPH_SUFFIXES, ".gz")


def _is_certain(text: str) -> bool:
    """A file of another suffix may be of a plug-in's kind."""
    path = Path(text)
    return path.is_dir() or path.suffix in (*GRAPH_SUFFIXES, ".gz")


def _refuse(text: str) -> None:
    if Path(text).exists():
        refuse_foreign(Path(text))


def _read(request: JobRequest) -> Job:
    path, options = Path(request.text), request.options
    if request.content is not None:
        try:
            graph = graph_from_file_bytes(request.content, options.max_bytes, options.read)
        except GraphError as error:
            raise GraphError(f"{path}: {error}") from error
    elif not path.exists():
        raise GraphError(f"there is no graph file {path}; give one, or a workload")
    else:
        graph = read_graph(path, max_bytes=options.max_bytes, options=options.read)
    if request.training:
        try:
            require_training(graph)
        except GraphError as error:
            raise GraphError(f"{path}: {error}") from error
    batch_size = kept_batch(_samples(options.batch_size, graph), graph)
    return job_of(
        str(path),
        GRAPH_FILE.origin,
        graph,
        batch_size=batch_size,
        assumptions=(*_other_batch(path, batch_size, graph), *options.config.remarks),
    )


def job_of_graph(graph: OpGraph, options: JobOptions, *, training: bool) -> Job:
    """The job of a graph that was read already.

    Args:
        graph: of one worker's step.
        options: that the user added; a graph takes the batch size alone.
        training: whether a graph without a training step is refused.

    Raises:
        ConfigError: an option that would have no effect.
        GraphError: no training step, or another batch size.
    """
    odd = [flag for flag in options.given if flag not in flags_for("graph")]
    if odd:
        raise ConfigError(
            f"{' and '.join(odd)}: a graph that was read is as it is; give them to read_graph, or "
            "the graph by its file"
        )
    if training:
        require_training(graph)
    size = kept_batch(_samples(options.batch_size, graph), graph)
    assumed = _other_batch("the graph", size, graph)
    return job_of("graph", _GIVEN_GRAPH, graph, batch_size=size, assumptions=assumed)


def _other_batch(name: Path | str, batch_size: int | None, graph: OpGraph) -> tuple[Remark, ...]:
    """A remark if all convolutions take several images of each sample of the batch.

    Frames of a video, and patches of an image, are images of their own; the loss then is of fewer.

    Raises:
        GraphError: the graph has a batch of its own, which is another.
    """
    images = _leading(graph, _CONVOLUTIONS)
    if batch_size is not None and graph.report.batch_size is None and not images:
        read = (tensor.shape for op in graph.signatures for tensor in op.inputs if tensor.shape)
        if not any(shape[0] > 0 and shape[0] % batch_size == 0 for shape in read):
            raise GraphError(
                f"--batch-size {batch_size} changes nothing: no op of {name} reads so many samples;"
                " leave the option out, or give --input NAME=SHAPE for an input without a shape"
            )
    if batch_size is None or len(images) != 1 or images <= {batch_size, -1}:
        return ()
    (count,) = images
    if count % batch_size or _leading(graph, _LOSSES) == images:
        raise GraphError(
            f"--batch-size {batch_size}: {name} fixes its batch to {count}; leave the option out, "
            "or export the graph with an open batch"
        )
    return (remark("other_batch", num_images=count, batch_size=batch_size),)


def _samples(given: int | None, graph: OpGraph) -> int | None:
    """Samples of a step: those given, or those that the graph fixes.

    Where its inputs do not tell (data that lie in a variable), the images of all convolutions do if
    the loss has as many. A size of its inputs that these contradict is none of samples.
    """
    if given is not None:
        return given
    fixed, share = graph.report.batch_size, graph.report.samples_share
    images, losses = (_leading(graph, kinds) for kinds in (_CONVOLUTIONS, _LOSSES))
    if fixed is None:
        if graph.report.has_unknown:  # sizes that are open count as 1
            return None
        (count,) = images if len(images) == 1 and images == losses else (-1,)
        return round(count / share) if count > 0 else None
    size = max(1, round(fixed * share))
    images, losses = images - {-1}, losses - {-1}
    is_other = len(images) == 1 and images == losses != {size}
    return None if is_other or any(count % size for count in images | losses) else fixed


def _leading(graph: OpGraph, kinds: tuple[str, ...]) -> set[int]:
    """First dimensions of what ops of these kinds take."""
    return {
        op.inputs[0].shape[0]
        for op in graph.signatures
        if op.kind in kinds and op.inputs and op.inputs[0].shape
    }


def kept_batch(batch_size: int | None, graph: OpGraph) -> int | None:
    """Batch size of the kept tower, where several towers share the samples of a step."""
    if batch_size is None:
        return None
    return max(1, round(batch_size * graph.report.samples_share))


GRAPH_FILE = JobReader(
    origin=JobOrigin(name="file", is_path=True),
    name="a TensorFlow graph file",
    form=f"a graph file ({GRAPH_FORMATS}) or a SavedModel's folder",
    claims=_claims,
    flags=flags_for("file"),
    read=_read,
    decided_by=nothing_of,
    refuse=_refuse,
    is_certain=_is_certain,
)
