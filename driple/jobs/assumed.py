"""What was assumed about a job since no option said it, in one remark that names the options."""

from __future__ import annotations

from driple.jobs.options import JobOptions
from driple.remarks import Remark, RemarkValue, remark

__all__ = ["assumed_options"]


def assumed_options(
    options: JobOptions,
    *,
    batch_size: int | None = None,
    seq_len: int | None = None,
    input_shape: tuple[int, ...] | None = None,
    optimizer: str,
) -> tuple[Remark, ...]:
    """A remark with all values that were assumed, then those of a file of training arguments.

    Args:
        options: as the user gave them.
        batch_size: samples per device that a reader assumed; None if it did not.
        seq_len: tokens that it assumed.
        input_shape: one sample that it assumed.
        optimizer: that it assumed if the options name none.
    """
    shape = None if input_shape is None else "x".join(map(str, input_shape))
    options_and_assumed: dict[str, tuple[object, RemarkValue]] = {
        "batch_size": (options.batch_size, batch_size),
        "seq_len": (options.seq_len, seq_len),
        "input_shape": (options.input_shape, shape),
        "precision": (options.precision, "fp32"),
        "optimizer": (options.optimizer, optimizer if options.task == "train" else None),
    }
    values = {
        name: value for name, (given, value) in options_and_assumed.items() if value and not given
    }
    assumed = (remark("assumed_options", **values),) if values else ()
    return (*assumed, *_adapters(options), *options.config.remarks)


def _adapters(options: JobOptions) -> tuple[Remark, ...]:
    """How frozen layers and adapters are kept, which tools do in two ways."""
    lora = options.lora
    if lora is None or lora.is_half or lora.rest is not None:
        return ()
    return (remark("adapters_in_fp32", with_rest=options.weights is not None),)
