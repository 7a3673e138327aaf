"""A place of our own in PyTorch's dispatcher, above autograd: ops there run as a GPU would.

    with dispatch_key(): ...     our kernels of ops are used; below(): the kernels that they call

PyTorch chooses kernels by the device of the tensors, and treats `meta` as a device without
autocast, fused attention and cuDNN. Kernels of ours in this place make those choices for a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.library import Library, fallthrough_kernel

__all__ = ["below", "dispatch_key", "is_active", "library"]

_KEY = "AutocastIPU"  # nothing else uses it


def _key() -> Any:
    return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))


def is_active() -> bool:
    """Whether the key is switched on in this thread."""
    included = torch._C._dispatch_tls_local_include_set()
    return bool(included.has(getattr(torch._C.DispatchKey, _KEY)))


def below() -> Any:
    """A context in which ops go on to PyTorch's own kernels."""
    return torch._C._ExcludeDispatchKeyGuard(_key())


@contextmanager
def library(namespace: str, key: str = _KEY) -> Iterator[Library]:
    """Kernels of ours in PyTorch's dispatcher, taken out at the end."""
    kernels = Library(namespace, "IMPL", key)  # type: ignore[no-untyped-call]
    try:
        yield kernels
    finally:
        kernels._destroy()  # type: ignore[no-untyped-call]


@contextmanager
def dispatch_key() -> Iterator[Library]:
    """Switch the key on; gives the library of aten's kernels in it."""
    with ExitStack() as stack:
        everything = stack.enter_context(library("_"))
        everything.fallback(fallthrough_kernel)  # type: ignore[no-untyped-call]
        aten = stack.enter_context(library("aten"))
        included = torch._C._dispatch_tls_local_include_set() | _key()
        excluded = torch._C._dispatch_tls_local_exclude_set() - _key()
        stack.enter_context(torch._C._ForceDispatchKeyGuard(included, excluded))
        yield aten
