"""Sentences on what the readers of graphs met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.render.remarks.lists import first_of
from driple.units import counted

__all__ = ["SENTENCES"]

_LOSSES = {
    "cross-entropy": "cross entropy",
    "bce": "binary cross entropy",
    "mse": "mean squared error",
}


def _unknown(unknown_share: float, loops: Sequence[str], num_loops: int) -> str:
    """Unknown sizes and turns, to follow `since` or a colon."""
    parts = []
    if unknown_share > 0:
        parts.append(f"{_percent(unknown_share)} % of the nodes have unknown dimensions")
    if num_loops:
        parts.append(
            f"the turns of {counted(num_loops, 'loop')} are unknown ({first_of(loops, num_loops)})"
        )
    return " and ".join(parts)


def _percent(share: float) -> str:
    """Percent in whole numbers, below 1 in one digit."""
    return f"{100 * share:.0f}" if share >= 0.01 else f"{100 * share:.1g}"


def _unknown_sizes(
    *,
    num_unknown: int,
    num_ops: int,
    source: str,
    names: Sequence[str],
    num_names: int,
    open_inputs: Sequence[str],
    num_open_inputs: int,
    has_open_batch: bool,
    unsized: str,
) -> str:
    """Ops of unknown sizes, their cause, and the options that set them."""
    cause = ""
    if num_names:
        cause = f", since the {source} does not fix the sizes of {first_of(names, num_names)}"
    advice = "no input leaves them open, only the data decide them"
    if open_inputs:
        forms = [f"--input {form}" for form in open_inputs]
        forms += ["..."] if num_open_inputs > len(open_inputs) else []
        options = f"{'--batch-size N or ' if has_open_batch else ''}{' '.join(forms)}"
        advice = f"set them with {options}"
        advice += ", with a number for each ?" if "?" in options else ""
    elif unsized:
        advice = (
            f"variables have no shape in the graph, such as {unsized}; write the graph with "
            "as_graph_def(add_shapes=True)"
        )
    return f"{num_unknown} of {num_ops} ops have unknown sizes, which count as 1{cause}; {advice}"


def _loops(num_loops: int, loops: Sequence[str], loop_turns: int | None) -> str:
    begin = f"{counted(num_loops, 'loop')} of unknown length ({first_of(loops, num_loops)}):"
    if loop_turns is not None:
        return f"{begin} {counted(loop_turns, 'turn')} each, as given"
    return (
        f"{begin} counted as one turn, so that times are too short; set their turns with --set "
        "loop_turns=N"
    )


def _without_gradient(num_parameters: int, elements: int, name: str) -> str:
    return (
        f"{counted(num_parameters, 'parameter')} ({elements:,} elements, such as {name}) without a "
        "gradient, as the loss does not depend on them: the optimizer leaves them out, and "
        "DistributedDataParallel needs find_unused_parameters=True"
    )


def _some(words: str, noun: str = "") -> Callable[..., str]:
    """A template with `{listed}` for the first of several names, and `{counted}` for how many."""

    def sentence(names: Sequence[str], num_names: int, **values: object) -> str:
        return words.format(
            listed=first_of(names, num_names),
            num_names=num_names,
            counted=counted(num_names, noun),
            **values,
        )

    return sentence


def _kept_device(num_devices: int, kind: str, job: str | None, task: int, index: int | None) -> str:
    name = job or "of no name"
    return f"graph names {num_devices} {kind}s; keeping job {name}, task {task}, {kind} {index}"


def _saved_model(kind: str, num_graphs: int, tags: str) -> str:
    return f"{kind} with {counted(num_graphs, 'meta graph')}; reading the one tagged {tags}"


def _joined(words: str) -> Callable[..., str]:
    """A template in which lists of names are joined."""

    def sentence(**values: str | int | Sequence[str]) -> str:
        return words.format(
            **{
                name: ", ".join(value) if isinstance(value, list | tuple) else value
                for name, value in values.items()
            }
        )

    return sentence


_OTHERS_OF_SIGNATURE = (
    "SavedModel has {num_signatures} signatures; this is {name}, for the others give "
    "--set target=NAME: {others}"
)
_OTHERS_OF_TRAIN_OP = (
    "graph has {num_train_ops} train ops; this is the step of {target}, for the others "
    "give --set target=NAME: {listed}"
)


def _train_ops(num_train_ops: int, target: str, others: Sequence[str]) -> str:
    return _OTHERS_OF_TRAIN_OP.format(
        num_train_ops=num_train_ops, target=target, listed=first_of(others, num_train_ops - 1)
    )


def _packed(weights: str, share_pct: float, experts_pct: float) -> str:
    words = (
        f"--weights {weights} packs the weights of linear layers but the output head: "
        f"{share_pct:.0f} % of the parameters"
    )
    if experts_pct < 1:
        return words
    return (
        f"{words}; experts, {experts_pct:.0f} % of them, stay as they are: transformers 5 has them "
        "in parameters of three dimensions, which bitsandbytes does not quantize"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "unknown": _unknown,
    "unknown_sizes": _unknown_sizes,
    "loops_of_unknown_length": _loops,
    "sizes_of_data": (
        "{num_ops} of {num_all} ops have sizes that only the data decide (of {op_type}, Unique and "
        "the like); each counts as 1"
    ),
    # TensorFlow
    "variables_without_shape": _some(
        "the graph lacks the shape of {counted} ({listed}); write it with "
        "as_graph_def(add_shapes=True)",
        "variable",
    ),
    "samples_of_part": (
        "the kept device computes {num_samples} of the {num_all} samples of a step"
    ),
    "no_shapes": (
        "no node has a shape, so every tensor size is 0 and predictions are guesses; write the "
        "graph with as_graph_def(add_shapes=True)"
    ),
    "nodes_without_shape": _some(
        "{num_names} of {num_ops} nodes have no known shape ({listed}); their size counts 0"
    ),
    "nodes_without_type": _some(
        "{counted} without a data type ({listed}); elements count 4 bytes", "node"
    ),
    "dangling_inputs": lambda num_inputs: (
        f"the file lacks the nodes that {counted(num_inputs, 'input')} should come from"
    ),
    "unresolved_functions": _joined("functions not in the file, kept as calls: {functions}"),
    "shapes_contradict": lambda num_names, names: (
        f"{counted(num_names, 'node')} of other shapes than follow from the inputs; those of the "
        f"file are kept: {_cut(names, num_names)}"
    ),
    "inputs_without_shape": lambda num_names, names: (
        f"{counted(num_names, 'input')} without a shape, taken as single numbers: "
        f"{_cut(names, num_names)}"
    ),
    "steps_per_call": "the graph runs {num_steps} steps per call; its numbers are of one step",
    "steps_per_call_unknown": (
        "the graph runs steps in a loop of unknown length; its numbers are of one step"
    ),
    "signature_of_several": _joined(_OTHERS_OF_SIGNATURE),
    "train_op_of_several": _train_ops,
    "gradients_handed_on": lambda num_gradients: (
        f"graph updates no variable; {counted(num_gradients, 'gradient')} that nobody reads "
        "counted as handed to an optimizer elsewhere"
    ),
    "worker_kept": "graph names {num_workers} workers; keeping job {job}, task {task}",
    "device_kept": _kept_device,
    "meta_graph": "file is a MetaGraphDef (.meta); reading its graph",
    "meta_graph_text": "file is a MetaGraphDef (.meta) as text; reading its graph",
    "saved_model": lambda num_graphs, tags: _saved_model("SavedModel", num_graphs, tags),
    "saved_model_text": lambda num_graphs, tags: _saved_model(
        "SavedModel as text", num_graphs, tags
    ),
    # PyTorch
    "parameters_without_gradient": _without_gradient,
    "trained_heads": _joined(
        "with --lora the head of classes ({names}) is trained in full (PEFT's modules_to_save)"
    ),
    "weights_packed": _packed,
    # ONNX
    "folded_norms": (
        "the exporter folded batch norms into convolutions, so the step lacks them; export with "
        "torch.onnx.export(..., optimize=False)"
    ),
    "frozen_parameters": _some(
        "the loss gives {num_names} of {num_parameters} parameters no gradient ({listed})"
    ),
    "branches_of_data": _some(
        "{counted} chosen by data ({listed}); the larger side counts", "branch"
    ),
    "loss_of_output": _joined("the loss is that of {output}; other outputs have none: {others}"),
    "output_is_loss": "the output {output} is one number and counts as the loss",
    "kind_of_loss": lambda loss, output: f"the loss is the {_LOSSES[loss]} of the output {output}",
    "operators_of_unknown_cost": _joined("the cost of these operators is not known: {operators}"),
}


def _cut(names: Sequence[str], num_names: int) -> str:
    return ", ".join(names) + (" ..." if num_names > len(names) else "")
