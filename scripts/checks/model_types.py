"""Which models of transformers and torchvision Driple reads: all of them, one after the other.

    python -m scripts.checks.model_types -o results.jsonl [--only llama,detr] [--report DATE.md]

transformers: each model type that has a class with labels, its default config with two layers.
torchvision: each model of `list_models()`, all tasks. Each is read by a process of its own, within
limits of time and memory. Results are added to the file one by one, and those that it has are not
made again, so that the check can be stopped and resumed. All of it takes about an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from driple.codec import from_json
from driple.errors import DripleError
from driple.graph.torch.options import StepOptions
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

_GIB = 2**30
_LAYERS = 2
_LIMIT_S, _LIMIT_GIB = 180, 8
_LENGTH, _BATCH = 64, 2
# What default configs leave open and no model can do without.
_MISSING = {
    "vocab_size": 32, "num_experts_per_tok": 2, "rope_theta": 10_000.0, "default_language": "en_XX",
}  # fmt: skip
_PLACES = re.compile(r"(hf:)?/tmp/\w+(/config\.json)?: |/[\w./-]*site-packages/")
_UNBUILT = "cannot be built from it"
# Of refusals that are transformers' own.
_NOT_TRAINED = (
    _UNBUILT, "raining is not", "raining of VITS is not", "not support training",
    "is not one that transformers",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one model.

    Attributes:
        name: `transformers:llama` or `torchvision:fasterrcnn_resnet50_fpn`.
        reason: why it was refused; empty if it was read.
        num_ops: ops of its step.
        parameters: of the small model.
        took_s: seconds.
    """

    name: str
    reason: str = ""
    num_ops: int = 0
    parameters: int = 0
    took_s: float = 0.0


def small(values: Any) -> Any:
    """A config with few layers; lists of one entry a layer keep two that differ, if any do."""
    if isinstance(values, list):
        return [small(value) for value in values]
    if not isinstance(values, dict):
        return values
    config = {key: small(value) for key, value in values.items()}
    for key, value in config.items():
        if value is None and key.endswith(("token_id", "token_index")):
            config[key] = 0  # a tokenizer has one, a config without a model does not
        elif value is None and key in _MISSING:
            config[key] = _MISSING[key]
    _complete(config)
    for name in ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "decoder_layers",
                 "encoder_layers", "num_decoder_layers", "num_encoder_layers",
                 "depth"):  # fmt: skip
        many = config.get(name)
        if not isinstance(many, int) or isinstance(many, bool) or many <= _LAYERS:
            continue
        config[name] = _LAYERS
        lists = {k: v for k, v in config.items() if isinstance(v, list) and len(v) == many}
        types = next((v for v in lists.values() if isinstance(v[0], str)), None)
        other = next((i for i, one in enumerate(types or ()) if one != types[0]), 1)  # type: ignore[index]
        for key, value in lists.items():
            config[key] = [value[0], value[other]]
    return config


def _complete(config: dict[str, Any]) -> None:
    """Sizes that default configs leave open or let contradict, as published models have them."""
    heads, kind = config.get("num_attention_heads"), str(config.get("model_type"))
    if "num_key_value_heads" in config and config["num_key_value_heads"] is None:
        config["num_key_value_heads"] = heads
    if isinstance(heads, int) and "head_dim" in config and config["head_dim"] is None:
        config["head_dim"] = config["hidden_size"] // heads
    if kind.startswith("glm4v") and kind.endswith("text"):
        config["head_dim"] = 128
        config["rope_parameters"] = {
            **(config.get("rope_parameters") or {"rope_type": "default", "rope_theta": 10_000.0}),
            "partial_rotary_factor": 0.5,
        }
    if kind.startswith("wav2vec2"):
        config["vocab_size"] = config.get("vocab_size") or 32
    if "layer_types" in config and config["layer_types"] is None:
        config["layer_types"] = ["full_attention"] * int(config.get("num_hidden_layers") or 0)
    vision = config.get("vision_config")
    if isinstance(vision, dict):
        if kind.startswith(("gemma3", "shieldgemma2", "t5gemma2")):
            vision |= {"image_size": 896, "patch_size": 14}
        if "scale_factor" in config or "pixel_shuffle_factor" in config:
            vision |= {"image_size": 512, "patch_size": 16}
        if kind == "aria":
            vision |= {"image_size": 490, "patch_size": 14}
    projector, encoder = config.get("projector_config"), config.get("encoder_config")
    if isinstance(projector, dict) and isinstance(encoder, dict) and "hidden_dim" in encoder:
        projector["encoder_hidden_size"] = encoder["hidden_dim"]
    rope = config.get("rope_parameters")
    if isinstance(rope, dict) and "mrope_section" in rope and isinstance(heads, int):
        width = config.get("head_dim") or config["hidden_size"] // heads
        rope.setdefault("partial_rotary_factor", 2 * sum(rope["mrope_section"]) / width)
    if "axial_pos_shape" in config:
        config["axial_pos_shape"] = [8, 8]  # for the length of this check


def model_types() -> Iterator[str]:
    """Types of transformers with a class whose forward takes labels."""
    import transformers
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import (  # type: ignore[attr-defined]  # made there
        CONFIG_MAPPING_NAMES,
    )

    from driple.jobs.pytorch.hf_batches import learns_pairs, takes_labels

    classes: dict[str, set[str]] = {}
    for table, names in vars(modeling_auto).items():
        if table.startswith("MODEL_FOR") and table.endswith("_MAPPING_NAMES"):
            for kind, name in names.items():
                classes.setdefault(kind, set()).update([name] if isinstance(name, str) else name)
    for kind in sorted(set(classes) & set(CONFIG_MAPPING_NAMES)):
        known = [getattr(transformers, name, None) for name in sorted(classes[kind])]
        if any(one is not None and (takes_labels(one) or learns_pairs(one)) for one in known):
            yield kind


def read_type(kind: str) -> tuple[int, int]:
    """Ops and parameters of the step of a model type's small default config."""
    from transformers import CONFIG_MAPPING

    whole = CONFIG_MAPPING[kind]().to_dict()
    try:
        return _read_config(small(whole))
    except DripleError as error:  # sizes that must fit each other, as the default's do
        try:
            return _read_config(whole)
        except DripleError as second:
            raise (second if _UNBUILT in str(error) else error) from None


def _read_config(values: dict[str, Any]) -> tuple[int, int]:
    from driple.jobs.hf_config import read_hf_config
    from driple.jobs.pytorch.huggingface import hugging_face_step

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "config.json"
        file.write_text(json.dumps(values, default=str), encoding="utf-8")
        config = read_hf_config(place)
        step = StepOptions(optimizer="adamw")
        for length in (_LENGTH, None):
            try:
                model_step = hugging_face_step(
                    config, batch_size=_BATCH, seq_len=length, input_shape=None, step=step
                )
            except DripleError as error:
                if "--seq-len" not in str(error) or length is None:
                    raise
            else:
                break
    return _counts(model_step.graph)


def read_vision(name: str) -> tuple[int, int]:
    """Ops and parameters of the step of a model of torchvision, with its usual batch."""
    from driple.jobs.own_request import OwnModel
    from driple.jobs.pytorch.own_model import step_of_model

    model, batch = vision_model(name)
    model_step = step_of_model(model, batch, None, OwnModel(model=name))
    return _counts(model_step.graph)


def vision_model(name: str) -> tuple[Any, Any]:
    """A model of torchvision without weights, and two samples of what it takes."""
    import torch
    import torchvision

    from driple.jobs.pytorch.own_model import module_on_meta

    kind = torchvision.models.get_model_builder(name).__module__
    options = {"weights": None}
    if "detection" in kind or "segmentation" in kind:
        options["weights_backbone"] = None
    try:
        with torch.device("meta"):
            model = torchvision.models.get_model(name, **options)
    except NotImplementedError:  # its builder computes with numbers
        model = module_on_meta(torchvision.models.get_model(name, **options))
    with torch.device("meta"):
        labels = torch.zeros(_BATCH, dtype=torch.int64)
        if "optical_flow" in kind:
            image = torch.zeros(_BATCH, 3, 128, 128)
            return model, (image, image)
        if "video" in kind:
            side = 112 if "resnet" in kind else 224
            return model, (torch.zeros(_BATCH, 3, 16, side, side), labels)
        if "detection" in kind:
            target = {"boxes": torch.zeros(3, 4), "labels": torch.zeros(3, dtype=torch.int64)}
            if "mask" in name:
                target["masks"] = torch.zeros(3, 320, 480, dtype=torch.uint8)
            if "keypoint" in name:
                target["keypoints"] = torch.zeros(3, 17, 3)
            pictures = [torch.zeros(3, 320, 480) for _ in range(_BATCH)]
            return model, (pictures, [dict(target) for _ in range(_BATCH)])
        side = 299 if "inception" in name else 224
        images = torch.zeros(_BATCH, 3, side, side)
        if "segmentation" in kind:
            labels = torch.zeros(_BATCH, side, side, dtype=torch.int64)
        return model, (images, labels)


def _counts(graph: Any) -> tuple[int, int]:
    return len(graph.op_types), int(graph.parameters.elements.sum())


def outcome_of(name: str) -> Outcome:
    """Read one model in a process of its own."""
    origin, _, kind = name.partition(":")
    read: Callable[[str], tuple[int, int]] = read_type if origin == "transformers" else read_vision
    begin = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_DATA, (_LIMIT_GIB * _GIB,) * 2)
        signal.alarm(_LIMIT_S)
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
        try:
            ops, parameters = read(kind)
            answer: dict[str, Any] = {"num_ops": ops, "parameters": parameters}
        except Exception as error:
            answer = {"reason": f"{type(error).__name__}: {error}"[:1500]}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    took_s = round(time.monotonic() - begin, 1)
    if text:
        return Outcome(name=name, took_s=took_s, **json.loads(text))
    alarm = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    reason = f"took over {_LIMIT_S} s" if alarm else f"ended with status {status}"
    return Outcome(name=name, took_s=took_s, reason=reason)


def known_outcomes(file: Path) -> dict[str, Outcome]:
    """Outcomes that a file has, the last of each model."""
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {one.name: one for one in (from_json(Outcome, line, where=str(file)) for line in lines)}


def report(outcomes: Mapping[str, Outcome]) -> str:
    """A page: how many are read, and the reason for each other one."""
    import torch
    import torchvision
    import transformers

    versions = (
        f"torch {torch.__version__}, torchvision {torchvision.__version__}, "
        f"transformers {transformers.__version__}"
    )
    made_by = f"`python -m scripts.checks.model_types`, {time.strftime('%Y-%m-%d')}, {versions}."
    lines = ["# Models of libraries that are read", "", made_by, ""]
    for origin in ("transformers", "torchvision"):
        own = [one for one in outcomes.values() if one.name.startswith(f"{origin}:")]
        refused = [one for one in own if one.reason]
        read = len(own) - len(refused)
        share = 100 * read / max(len(own), 1)
        lines += [f"## {origin}: {read} of {len(own)} ({share:.1f} %)", ""]
        beyond = sum(any(part in one.reason for part in _NOT_TRAINED) for one in refused)
        if beyond:
            lines += [
                f"{beyond} of the refused cannot be trained with transformers either: their "
                "default config builds no model, they need a package that is not installed, or "
                "their own code refuses labels. Without them: "
                f"{100 * read / (len(own) - beyond):.1f} %.", "",
            ]  # fmt: skip
        if refused:
            lines += ["| refused | reason |", "|---|---|"]
        for outcome in sorted(refused, key=lambda each: each.name):
            words = _PLACES.sub("", " ".join(outcome.reason.split())).replace("|", "/")[:300]
            lines.append(f"| {outcome.name.partition(':')[2]} | {words} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Read all models that the file does not have, or those that were named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--only", default="", help="names, separated by commas; read again")
    parser.add_argument("--refused", action="store_true", help="read those again that were refused")
    parser.add_argument("--report", type=Path, help="write a page of all outcomes")
    given = parser.parse_args()
    declare_torchvision_ops()
    import torchvision
    import transformers

    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    known = known_outcomes(given.output)
    names = [f"transformers:{kind}" for kind in model_types()]
    names += [f"torchvision:{name}" for name in torchvision.models.list_models()]
    wanted = set(given.only.split(",")) - {""}
    todo = [
        name
        for name in names
        if (name.partition(":")[2] in wanted or name in wanted)
        or (not wanted and (name not in known or (given.refused and known[name].reason)))
    ]
    for number, name in enumerate(todo, 1):
        known[name] = outcome = outcome_of(name)
        with given.output.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(outcome)) + "\n")
        words = " ".join(outcome.reason.split())[:300] or f"{outcome.num_ops} ops"
        print(f"{number}/{len(todo)} {name}: {words} ({outcome.took_s} s)", flush=True)
    if given.report:
        given.report.write_text(report({name: known[name] for name in names if name in known}))


if __name__ == "__main__":
    main()
