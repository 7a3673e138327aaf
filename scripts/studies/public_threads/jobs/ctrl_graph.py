# ruff: noqa: E402  # imports of a clone
"""Write the training graph of CTRL's training_utils/training.py to ctrl.pb: 4 x 256 tokens.

Run beside ./ctrl, with tf_keras in place of Keras 3. The table of positions is filled in place of
a constant of 0.5 GB.
"""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"
sys.path.insert(0, "ctrl")

import tensorflow as tf2

tf = tf2.compat.v1
tf.disable_v2_behavior()

import transformer

WORDS, UNITS, SAMPLES, LENGTH = 246534, 1280, 4, 256

transformer.positional_encoding = lambda position, units: tf.zeros([1, position, units])
tokens = tf.placeholder(tf.int64, [SAMPLES, LENGTH], name="input")
labels = tf.placeholder(tf.int64, [SAMPLES, LENGTH], name="output")
weights = tf.get_variable("w", [WORDS, UNITS])
biases = tf.get_variable("b", [WORDS], initializer=tf.zeros_initializer())
hidden = transformer.Encoder()(tf.nn.embedding_lookup(weights, tokens), training=False)
logits = tf.tensordot(hidden, tf.transpose(weights), 1) + biases
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
optimizer = tf.train.AdagradOptimizer(learning_rate=1e-2)
pairs = [
    (gradient if isinstance(gradient, tf2.IndexedSlices) else tf.clip_by_norm(gradient, 0.25), each)
    for gradient, each in optimizer.compute_gradients(loss)
]
optimizer.apply_gradients(pairs)
graph = tf.get_default_graph().as_graph_def(add_shapes=True)
tf.io.write_graph(graph, ".", "ctrl.pb", as_text=False)
