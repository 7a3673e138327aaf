"""Make the real graphs of tests/data/graphs with TensorFlow.

python -m scripts.checks.graphs_for_tests
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

from driple.errors import DripleError
from driple.files import atomic_write

FOLDER = Path(__file__).parents[2] / "tests/data/graphs"

PS_TRAINING = """
import sys
from pathlib import Path
from driple.jobs import Workload
from driple.jobs.tensorflow.training import *
use_graph_mode()
for name, file in (("lenet-x0.25/mnist/b8/adam/sync", "ps_training"),
                   ("nmt_small-x0.125/europarl-short/b4/sgd/async", "loops_v1")):
    step = build_training_step(Workload.parse(name), ClusterShape(), 0)
    write_graph(step, Path(sys.argv[1]) / f"{file}.pb")
"""

FUNCTIONS = """
import sys
import tensorflow as tf
weights = tf.Variable(tf.random.normal((8, 8)))

@tf.function
def layer(x):
    return tf.nn.relu(x @ weights)

@tf.function(input_signature=[tf.TensorSpec((4, 8))])
def step(x):
    for _ in tf.range(3):
        x = layer(x)
    x = tf.cond(tf.reduce_sum(x) > 0, lambda: layer(x) * 2.0, lambda: tf.exp(-x))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(layer(x)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss

graph = step.get_concrete_function().graph.as_graph_def(add_shapes=True)
open(sys.argv[1] + "/functions.pb", "wb").write(graph.SerializeToString(deterministic=True))
module = tf.Module()
module.step = step
module.weights = weights
tf.saved_model.save(module, sys.argv[1] + "/saved")
"""


def main() -> None:
    """Each kind in a process of its own: graph mode cannot be undone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for program in (PS_TRAINING, FUNCTIONS):
            # AutoGraph reads the source of what it converts, so it must be in a file.
            file = Path(folder) / "program.py"
            file.write_text(program)
            subprocess.run([sys.executable, str(file), folder], check=True)
        files = {path.stem: path for path in Path(folder).glob("*.pb")}
        files["saved_model"] = Path(folder) / "saved/saved_model.pb"
        for name, path in files.items():
            target = FOLDER / f"{name}.pb.gz"
            atomic_write(target, gzip.compress(path.read_bytes(), mtime=0), error=DripleError)
            print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
