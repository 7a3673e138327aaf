"""What was assumed about a job since no option said it, in one sentence that names the options."""

from __future__ import annotations

from driple.jobs.options import JobOptions

__all__ = ["assumed_words"]


def assumed_words(
    options: JobOptions,
    *,
    batch_size: int | None = None,
    seq_len: int | None = None,
    input_shape: tuple[int, ...] | None = None,
    optimizer: str,
) -> tuple[str, ...]:
    """One sentence with all values that were assumed, and the options that set them.

    Args:
        options: as the user gave them.
        batch_size: samples per device that a reader assumed; None if it did not.
        seq_len: tokens that it assumed.
        input_shape: one sample that it assumed.
        optimizer: that it assumed if the options name none.
    """
    shape = None if input_shape is None else "x".join(map(str, input_shape))
    found = [
        (f"{batch_size} samples per device", "--batch-size", options.batch_size, batch_size),
        (f"{seq_len} tokens per sample", "--seq-len", options.seq_len, seq_len),
        (f"input {shape}", "--input", options.input_shape, shape),
        ("precision fp32", "--precision", options.precision, "fp32"),
    ]
    if options.task == "train":
        found.append((f"optimizer {optimizer}", "--optimizer", options.optimizer, optimizer))
    assumed = [(words, flag) for words, flag, given, value in found if value and not given]
    sentence = (
        [
            f"{', '.join(words for words, _ in assumed)}; set "
            f"{'it' if len(assumed) == 1 else 'them'} with "
            f"{', '.join(flag for _, flag in assumed)}"
        ]
        if assumed
        else []
    )
    return (*sentence, *_adapters(options), *options.config.assumptions)


def _adapters(options: JobOptions) -> tuple[str, ...]:
    """How frozen layers and adapters are kept, which tools do in two ways."""
    lora = options.lora
    if lora is None or lora.is_half:
        return ()
    rest = " and all that is not quantized" if options.weights is not None else ""
    return (
        f"adapters{rest} in fp32, as PEFT keeps them, and a frozen model in the precision of its "
        "checkpoint; dtype=bf16 within --lora keeps adapters in bf16, as torchtune and litgpt do",
    )
