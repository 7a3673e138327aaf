"""Containers of a GraphDef in text format: a SavedModel's `saved_model.pbtxt`, a `.meta` as text.

    text -> meta graphs -> the one tagged `train`, else the first -> RawGraph

Fields of a GraphDef are read one by one, those of the others with all that is in them, so these
have a limit of their own.
"""

from __future__ import annotations

from itertools import chain

from driple.errors import GraphError
from driple.graph.tf.pbtxt import raw_from_text, raw_of_fields
from driple.graph.tf.raw import RawGraph
from driple.graph.tf.textformat import TextMessage, as_message, top_level_fields
from driple.remarks import Remark, remark

__all__ = ["MAX_CONTAINER_CHARS", "raw_of_any_text"]

MAX_CONTAINER_CHARS = 32 * 2**20
_SAVED_MODEL = frozenset({"saved_model_schema_version", "meta_graphs"})
_META_GRAPH = frozenset(
    {"meta_info_def", "graph_def", "saver_def", "collection_def", "signature_def",
     "asset_file_def", "object_graph_def"}
)  # fmt: skip


def raw_of_any_text(text: str) -> tuple[RawGraph, tuple[Remark, ...]]:
    """The graph of a GraphDef, MetaGraphDef or SavedModel in text format, and remarks on it.

    Raises:
        GraphError: none of them, too large for what holds the graph, or no graph in it.
    """
    fields = top_level_fields(text)
    first = next(fields, None)
    if first is None or first[0] not in _SAVED_MODEL | _META_GRAPH:
        return raw_from_text(text), ()
    kind = "SavedModel" if first[0] in _SAVED_MODEL else "MetaGraphDef"
    if len(text) > MAX_CONTAINER_CHARS:
        raise GraphError(
            f"file is a {kind} as text of {len(text)} characters, at most {MAX_CONTAINER_CHARS} "
            "are read; save it in binary form (saved_model.pb, .meta), or write its graph alone "
            "(tf.io.write_graph)"
        )
    alone, metas = TextMessage(), []
    for name, value in chain([first], fields):
        if name == "meta_graphs":
            metas.append(as_message(name, value))
        else:
            alone.fields.setdefault(name, []).append(value)
    note = remark("meta_graph_text")
    meta = alone
    if kind == "SavedModel":
        meta, named = _chosen(metas)
        note = remark("saved_model_text", num_graphs=len(metas), tags=named)
    return _raw_of_meta(meta), (note,)


def _chosen(metas: list[TextMessage]) -> tuple[TextMessage, str]:
    """The meta graph tagged `train`, else the first one, and its tags."""
    if not metas:
        raise GraphError("SavedModel holds no meta graph; save the model again")
    tags = [[tag for info in meta.messages("meta_info_def") for tag in info.strings("tags")]
            for meta in metas]  # fmt: skip
    at = next((i for i, mine in enumerate(tags) if "train" in mine), 0)
    return metas[at], ", ".join(tags[at]) or "no tag"


def _raw_of_meta(meta: TextMessage) -> RawGraph:
    graph = meta.message("graph_def")
    if graph is None:
        raise GraphError("MetaGraphDef holds no graph_def; export it again")
    raw = raw_of_fields((name, value) for name, some in graph.fields.items() for value in some)
    raw.train_ops = tuple(
        name
        for entry in meta.messages("collection_def")
        if entry.string("key") == "train_op"
        for value in entry.messages("value")
        for names in value.messages("node_list")
        for name in names.strings("value")
    )
    return raw
