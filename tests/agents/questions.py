"""Twenty questions as people ask assistants, the tool that answers each, and the right answer.

Right answers are arithmetic (16 bytes a parameter, steps x time) or what people measured; none is
what Driple happened to print.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["QUESTIONS", "Question"]

_GB = 1e9


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question.

    Attributes:
        text: as a person asks it.
        tool: that answers it.
        arguments: of the tool; GPT2 and LLAMA stand for folders with their configs.
        right: the right answer, and why.
        holds: whether the tool's answer is that; its argument is the structured answer, or the
            error's text.
    """

    text: str
    tool: str
    arguments: dict[str, Any]
    right: str
    holds: Callable[[Any], bool]


def _within(number: dict[str, float], right: float) -> bool:
    return number["low"] <= right <= number["high"]


_LLAMA = {"job": "LLAMA", "batch_size": 1, "seq_len": 2048, "precision": "bf16",
          "optimizer": "adamw"}  # fmt: skip
_RESNET = {"job": "resnet50", "precision": "fp32"}

QUESTIONS = (
    Question(
        text="How many images a second does ResNet-50 train on one V100 in fp32?",
        tool="predict", arguments={**_RESNET, "setting": "1xV100-SXM2", "batch_size": 64},
        right="about 370, as published benchmarks measured: 64 images in 0.17 s",
        holds=lambda answer: _within(answer["step_s"], 64 / 370),
    ),
    Question(
        text="Is eight GPUs faster than one for ResNet-50?",
        tool="predict", arguments={**_RESNET, "setting": "8xV100-SXM2/NVLink", "batch_size": 64},
        right="yes: 8 x 370 a second at most, and more than half of that with NVLink",
        holds=lambda answer: 0.5 * 8 * 370 < answer["samples_per_s"] < 1.3 * 8 * 370,
    ),
    Question(
        text="How many tokens a second does GPT-2 train on an A100 in bf16, batch 16?",
        tool="predict",
        arguments={"job": "GPT2", "setting": "1xA100", "batch_size": 16, "seq_len": 1024,
                   "precision": "amp-bf16", "optimizer": "adamw"},
        right="6 x 124M x tokens/s is below the peak of 312 TFLOPS and above a tenth of it",
        holds=lambda answer: 0.1 < 6 * 124e6 * answer["tokens_per_s"] / 312e12 < 1,
    ),
    Question(
        text="I did not say a batch size. What was assumed?",
        tool="predict", arguments={"job": "resnet50", "setting": "1xA100"},
        right="the answer names the batch size that it took",
        holds=lambda answer: "samples per device" in " ".join(answer["text"]),
    ),
    Question(
        text="Does full fine-tuning of Llama 7B with AdamW fit on one H100?",
        tool="fits", arguments={**_LLAMA, "setting": "1xH100", "precision": "amp-bf16"},
        right="no: 6.74G parameters x 16 bytes are 108 GB, the device has 80",
        holds=lambda answer: answer["fits"] == "no"
        and answer["needed_bytes"]["high"] > 16 * 6.74 * _GB,
    ),
    Question(
        text="And sharded over eight H100?",
        tool="fits",
        arguments={**_LLAMA, "setting": "8xH100", "precision": "amp-bf16", "scheme": "fsdp"},
        right="yes: an eighth of 108 GB is 13.5 GB, and activations of one sample fit beside it",
        holds=lambda answer: answer["fits"] == "yes" and answer["needed_bytes"]["value"] > 13 * _GB,
    ),
    Question(
        text="Does BERT-large with AdamW, batch 4, fit on a T4?",
        tool="fits",
        arguments={"job": "bert-large", "setting": "1xT4", "batch_size": 4, "seq_len": 128,
                   "optimizer": "adamw"},
        right="yes: 0.34G parameters x 16 bytes are 5.4 GB of 16",
        holds=lambda answer: answer["fits"] == "yes"
        and answer["needed_bytes"]["value"] > 16 * 0.33 * _GB,
    ),
    Question(
        text="Batch 64 with 512 tokens runs out of memory there. What helps?",
        tool="fits",
        arguments={"job": "bert-large", "setting": "1xT4", "batch_size": 64, "seq_len": 512,
                   "optimizer": "adamw"},
        right="activation checkpointing or a smaller batch",
        holds=lambda answer: answer["fits"] == "no"
        and any(flag.startswith("--batch-size ") for flag in answer["would_fit_with"])
        and any("checkpointing" in flag for flag in answer["would_fit_with"]),
    ),
    Question(
        text="What is the largest batch of ResNet-50 on an 80 GB H100 in fp32?",
        tool="fits", arguments={**_RESNET, "setting": "1xH100", "batch_size": 32},
        right="hundreds: about 90 MB of activations an image",
        holds=lambda answer: 400 < answer["largest_batch"] < 1500,
    ),
    Question(
        text="How much memory has the GPU of a p4d.24xlarge?",
        tool="fits", arguments={**_RESNET, "setting": "p4d.24xlarge", "batch_size": 32},
        right="40 GiB",
        holds=lambda answer: 39 < answer["capacity_bytes"] / 2**30 <= 40,
    ),
    Question(
        text="Does a job fit on a CPU setting?",
        tool="fits", arguments={"job": "bert-tiny", "setting": "1xCPU"},
        right="not known, which is not a no",
        holds=lambda answer: answer["fits"] is None and bool(answer["why_unknown"]),
    ),
    Question(
        text="Why is a step of BERT-large with batch 1 slow on an H100?",
        tool="explain",
        arguments={"job": "bert-large", "setting": "1xH100", "batch_size": 1,
                   "precision": "amp-bf16"},
        right="the host starts kernels more slowly than the GPU runs them",
        holds=lambda answer: "host" in answer["bottleneck"],
    ),
    Question(
        text="And what limits VGG-16 on a V100 with batch 64?",
        tool="explain",
        arguments={"job": "vgg16", "setting": "1xV100-SXM2", "batch_size": 64, "precision": "fp32"},
        right="convolutions: 15.5G multiply-adds an image",
        holds=lambda answer: "convolution" in answer["bottleneck"],
    ),
    Question(
        text="Do the parts add up to the step?",
        tool="explain", arguments={**_RESNET, "setting": "1xA100", "batch_size": 64},
        right="yes: 100 %",
        holds=lambda answer: abs(sum(part["pct"] for part in answer["parts"]) - 100) < 0.1,
    ),
    Question(
        text="How far can I trust that?",
        tool="explain", arguments={**_RESNET, "setting": "1xV100-SXM2", "batch_size": 64},
        right="a median error, and a larger one for one in ten",
        holds=lambda answer: 0 < answer["error_median_pct"] < answer["error_p90_pct"],
    ),
    Question(
        text="Which of p3 and p4d is cheaper for 90 epochs of ResNet-50 on ImageNet?",
        tool="plan",
        arguments={**_RESNET, "samples": 1_281_167, "epochs": 90, "instances": ["p3.16xlarge",
                   "p4d.24xlarge"]},
        right="p4d: more than twice as fast for less than the price of p3.16xlarge",
        holds=lambda answer: answer["recommended"]["name"] == "p4d.24xlarge",
    ),
    Question(
        text="What does it cost?",
        tool="plan",
        arguments={**_RESNET, "samples": 1_281_167, "epochs": 90, "instances": ["p4d.24xlarge"]},
        right="hours x price per hour",
        holds=lambda answer: abs(
            answer["recommended"]["cost_dollars"]
            / answer["recommended"]["training_hours"]["value"]
            / answer["recommended"]["price_per_hour"]
            - 1
        ) < 1e-6,
    ),
    Question(
        text="Can I have it within one dollar?",
        tool="plan",
        arguments={**_RESNET, "samples": 1_281_167, "epochs": 90, "instances": ["p4d.24xlarge"],
                   "budget_dollars": 1.0},
        right="no: an hour of the instance costs more",
        holds=lambda answer: "$1" in answer["recommendation"]
        and "No " in answer["recommendation"],
    ),
    Question(
        text="Predict my model in train.py.",
        tool="predict", arguments={"job": "train.py:build_model", "setting": "1xH100"},
        right="code of a user is not run; name a config or a file",
        holds=lambda error: "never run" in error and "hf:PATH" in error,
    ),
    Question(
        text="And on an H1000?",
        tool="predict", arguments={"job": "resnet50", "setting": "1xH1000"},
        right="there is none; H100 is meant",
        holds=lambda error: "did you mean 1xH100" in error,
    ),
)  # fmt: skip
