"""Sentences on what the readers of graphs met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.render.remarks.lists import first_of

__all__ = ["SENTENCES"]

_LOSSES = {
    "cross-entropy": "cross entropy",
    "bce": "binary cross entropy",
    "mse": "mean squared error",
}


def _unknown(unknown_share: float, loops: Sequence[str], num_loops: int) -> str:
    """Unknown sizes and turns, to follow `since` or a colon."""
    found = []
    if unknown_share > 0:
        found.append(f"{_percent(unknown_share)} % of the nodes have unknown dimensions")
    if num_loops:
        found.append(f"the turns of {num_loops} loop(s) are unknown ({first_of(loops, num_loops)})")
    return " and ".join(found)


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
    begin = f"{num_loops} loop(s) of unknown length ({first_of(loops, num_loops)})"
    if loop_turns is not None:
        return f"{begin} turn {loop_turns} times"
    return (
        f"{begin} count as one turn, so that times are too short; set their turns with "
        "--set loop_turns=N"
    )


def _without_gradient(num_parameters: int, elements: int, name: str) -> str:
    return (
        f"{num_parameters} parameter{'' if num_parameters == 1 else 's'} ({elements:,} elements, "
        f"such as {name}) get no gradient, as the loss does not depend on them: the optimizer "
        "leaves them out, and DistributedDataParallel needs find_unused_parameters=True"
    )


def _some(words: str) -> Callable[..., str]:
    """A template with `{listed}` for the first of several names."""

    def sentence(names: Sequence[str], num_names: int, **values: object) -> str:
        return words.format(listed=first_of(names, num_names), num_names=num_names, **values)

    return sentence


def _kept_device(num_devices: int, kind: str, job: str | None, task: int, index: int | None) -> str:
    name = job or "of no name"
    return f"graph names {num_devices} {kind}s; keeping job {name}, task {task}, {kind} {index}"


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
        "{num_names} variable(s) have no shape in the graph ({listed}); write the graph with "
        "as_graph_def(add_shapes=True)"
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
        "{num_names} node(s) without a data type ({listed}); their elements count 4 bytes"
    ),
    "dangling_inputs": "{num_inputs} input(s) name nodes that are not in the file",
    "unresolved_functions": _joined("functions not in the file, kept as calls: {functions}"),
    "shapes_contradict": lambda num_names, names: (
        f"{num_names} node(s) have shapes that do not follow from their inputs; the file's are "
        f"kept: {_cut(names, num_names)}"
    ),
    "inputs_without_shape": lambda num_names, names: (
        f"{num_names} input(s) without a shape count as single numbers: {_cut(names, num_names)}"
    ),
    "steps_per_call": "the graph runs {num_steps} steps per call; its numbers are of one step",
    "steps_per_call_unknown": (
        "the graph runs steps in a loop of unknown length; its numbers are of one step"
    ),
    "signature_of_several": _joined(_OTHERS_OF_SIGNATURE),
    "train_op_of_several": _train_ops,
    "gradients_handed_on": (
        "graph updates no variable; its {num_gradients} gradient(s) that nobody reads count as "
        "handed to an optimizer elsewhere"
    ),
    "worker_kept": "graph names {num_workers} workers; keeping job {job}, task {task}",
    "device_kept": _kept_device,
    "meta_graph": "file is a MetaGraphDef (.meta); reading its graph",
    "meta_graph_text": "file is a MetaGraphDef (.meta) as text; reading its graph",
    "saved_model": "SavedModel with {num_graphs} meta graph(s); reading the one tagged {tags}",
    "saved_model_text": (
        "SavedModel as text with {num_graphs} meta graph(s); reading the one tagged {tags}"
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
        "{num_names} of {num_parameters} parameter(s) get no gradient from the loss ({listed})"
    ),
    "branches_of_data": _some(
        "{num_names} branch(es) depend on data ({listed}); the larger side counts"
    ),
    "loss_of_output": _joined("the loss is that of {output}; other outputs have none: {others}"),
    "output_is_loss": "the output {output} is one number and counts as the loss",
    "kind_of_loss": lambda loss, output: f"the loss is the {_LOSSES[loss]} of the output {output}",
    "operators_of_unknown_cost": _joined("the cost of these operators is not known: {operators}"),
}


def _cut(names: Sequence[str], num_names: int) -> str:
    return ", ".join(names) + (" ..." if num_names > len(names) else "")
