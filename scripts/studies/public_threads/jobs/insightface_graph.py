# ruff: noqa: E402  # imports of a clone
"""Write the training graph of InsightFace-tensorflow's config_ms1m_100.yaml to insightface.pb.

Run beside ./insightface, with tf_slim in place of tf.contrib.slim.
"""

import sys
import types
from pathlib import Path

import tensorflow as tf2
import yaml
from tensorflow.python.framework import ops
from tf_keras.src import legacy_tf_layers
from tf_keras.src.legacy_tf_layers import base, convolutional, core, normalization, pooling

sys.modules["tf_keras.legacy_tf_layers"] = legacy_tf_layers
for each in (base, convolutional, core, normalization, pooling):
    sys.modules["tf_keras.legacy_tf_layers." + each.__name__.rpartition(".")[2]] = each

ops.Tensor = tf2.Tensor  # tf_slim is of TensorFlow 2.4

import tf_slim as slim

tf = tf2.compat.v1
tf.disable_v2_behavior()
tf.contrib = types.SimpleNamespace(
    slim=slim, layers=types.SimpleNamespace(xavier_initializer=slim.xavier_initializer)
)
sys.modules.update(
    {"tensorflow": tf, "tensorflow.contrib": tf.contrib, "tensorflow.contrib.slim": slim}
)
sys.path.insert(0, "insightface")

from losses.logit_loss import get_logits
from model import get_embd

config = yaml.safe_load(Path("insightface/configs/config_ms1m_100.yaml").read_text())
size = config["image_size"]
images = tf.placeholder(tf.float32, [config["batch_size"], size, size, 3], name="input_images")
labels = tf.placeholder(tf.int64, [config["batch_size"]], name="labels")
embeddings, _ = get_embd(images, True, True, config)
logits = get_logits(embeddings, labels, config)
loss = tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels)
loss += tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    tf.train.MomentumOptimizer(0.004, config["momentum"]).minimize(loss)
graph = tf.get_default_graph().as_graph_def(add_shapes=True)
tf.io.write_graph(graph, ".", "insightface.pb", as_text=False)
