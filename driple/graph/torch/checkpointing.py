"""Activation checkpointing as an option: the repeated blocks of a model are computed again.

    with checkpointed(model, "full"): ...   blocks run under torch.utils.checkpoint

`full` keeps the inputs of each block alone; `selective` also keeps the results of its matrix
products, convolutions and attention. Calls of `torch.utils.checkpoint` in the model need no option.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from driple.errors import ConfigError
from driple.graph.torch.options import ActivationCheckpointing

__all__ = ["checkpointed", "repeated_blocks"]

Within = Callable[[nn.Module], Any]

_aten = torch.ops.aten
_KEPT = (
    _aten.mm.default, _aten.addmm.default, _aten.bmm.default, _aten.baddbmm.default,
    _aten.convolution.default, _aten._scaled_dot_product_flash_attention.default,
    _aten._scaled_dot_product_efficient_attention.default,
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
)  # fmt: skip


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """Modules of one class, with modules of their own, that stand side by side in a list.

    Blocks within blocks do not count.
    """
    blocks: list[nn.Module] = []
    inside: set[int] = set()
    for module in model.modules():
        if id(module) in inside or not isinstance(module, nn.ModuleList | nn.Sequential):
            continue
        children = list(module)
        classes = [type(one) for one in children]
        for child in children:
            is_block = next(child.children(), None) is not None
            if is_block and classes.count(type(child)) > 1 and id(child) not in inside:
                blocks.append(child)
                inside.update(id(one) for one in child.modules())
    return blocks


@contextmanager
def checkpointed(model: nn.Module, mode: ActivationCheckpointing, within: Within) -> Iterator[None]:
    """Run the blocks of a model under checkpointing.

    Args:
        model: whose blocks are changed for as long as the context lasts.
        mode: which results are kept.
        within: context that names the module while its forward pass runs, again too.

    Raises:
        ConfigError: the model has no repeated blocks.
    """
    if mode == "none":
        yield
        return
    options: dict[str, Any] = {"use_reentrant": False}
    if mode == "selective":
        options["context_fn"] = partial(
            create_selective_checkpoint_contexts, list(_KEPT), allow_cache_entry_mutation=True
        )
    if getattr(model, "supports_gradient_checkpointing", False):  # of transformers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # names of its next version
            own: Any = model
            own.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
            try:
                yield
            finally:
                own.gradient_checkpointing_disable()
        return
    blocks = repeated_blocks(model)
    if not blocks:
        raise ConfigError(
            "activation checkpointing needs repeated blocks (modules of one class in a ModuleList "
            f"or Sequential), and {type(model).__name__} has none; call torch.utils.checkpoint in "
            "the model, or leave the option out"
        )
    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(_wrapped(block, options, within))
        yield


@contextmanager
def _wrapped(block: nn.Module, options: dict[str, Any], within: Within) -> Iterator[None]:
    forward, own = block.forward, "forward" in vars(block)

    def run(*args: Any, **kwargs: Any) -> Any:
        with within(block):
            return forward(*args, **kwargs)

    def checkpointed_forward(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(run, *args, **options, **kwargs)

    block.forward = checkpointed_forward
    try:
        yield
    finally:
        if own:
            block.forward = forward
        else:
            del block.forward
