"""TensorFlow made ready for building graphs: v1 behaviour, no accelerator, nothing said aside."""

from __future__ import annotations

import logging
import os

__all__ = ["begin_graph_mode"]


def begin_graph_mode() -> None:
    """Import TensorFlow in graph mode, silent about what is deprecated or left unused in a graph.

    What it logs speaks to those who write the graph, which is this package.
    """
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    os.environ.update(quiet, CUDA_VISIBLE_DEVICES="")
    logging.getLogger("tensorflow").setLevel(logging.CRITICAL)
    from driple.jobs.tensorflow.training import use_graph_mode

    use_graph_mode()
