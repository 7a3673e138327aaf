"""Rate of TensorFlow's convolutions by how narrow they are, as DriplePerf runs them (no oneDNN).

    python -m scripts.bench.convolutions [--repeats 9]

Prints GFLOP/s on one thread of a forward convolution and both its gradients, and how many FLOPs
each element of its patches stands for. Medians; run it on a machine where nothing else runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial

from scripts.bench.timing import median_s
from scripts.studies.kit.tables import markdown

os.environ.update({"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "3"})

# Batch, side of the image, channels in, side of the window, channels out, stride; of the measured
# workloads' layers.
SHAPES = (
    (32, 64, 3, 11, 6, 2),
    (128, 32, 3, 11, 12, 2),
    (32, 32, 3, 3, 16, 1),
    (8, 32, 74, 3, 6, 1),
    (32, 16, 6, 5, 16, 1),
    (8, 32, 16, 3, 16, 1),
    (8, 32, 32, 3, 32, 1),
    (32, 8, 64, 3, 64, 1),
    (128, 4, 128, 3, 128, 1),
)


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    rows = []
    for batch, side, inner, window, outer, stride in SHAPES:
        size = -(-side // stride)
        image = tf.random.normal((batch, side, side, inner))
        weights = tf.random.normal((window, window, inner, outer))
        gradient = tf.random.normal((batch, size, size, outer))
        how = {"strides": [1, stride, stride, 1], "padding": "SAME"}
        flops = 2 * batch * size**2 * outer * window**2 * inner
        ways: tuple[Callable[[], object], ...] = (
            partial(tf.raw_ops.Conv2D, input=image, filter=weights, **how),
            partial(
                tf.raw_ops.Conv2DBackpropInput,
                input_sizes=image.shape,
                filter=weights,
                out_backprop=gradient,
                **how,
            ),
            partial(
                tf.raw_ops.Conv2DBackpropFilter,
                input=image,
                filter_sizes=weights.shape,
                out_backprop=gradient,
                **how,
            ),
        )
        rates = [f"{flops / median_s(way, repeats, warm_ups=2) / 1e9:.1f}" for way in ways]
        shape = f"{window} x {window}, {inner} -> {outer}, stride {stride}"
        rows.append([shape, f"{batch} of {side} x {side}", str(2 * outer), *rates])
    head = ["window, channels", "images", "FLOPs an element of patches", "forward",
            "gradient by input", "by filter"]  # fmt: skip
    print("\n".join(markdown(head, rows)))


if __name__ == "__main__":
    main()
