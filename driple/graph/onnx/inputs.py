"""Sizes of a model's inputs: those of the file, with the open ones set by the user's options.

graph inputs, ReadOptions -> shape of each, and which dimensions nothing sets

The open first dimension of an input is its batch. A dimension that has a name (`batch`, `N`) has
the same size wherever the name stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driple.errors import GraphError
from driple.graph.options import ReadOptions

__all__ = ["BoundInputs", "bind_inputs"]

_BATCH_NAMES = ("batch", "batch_size", "batchsize", "n", "bs", "b")
_MOST_INPUTS = 1000
# A size, the name of an open one, or None for an open one without a name.
_Size = int | str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundInputs:
    """Shapes of inputs.

    Attributes:
        sizes: of each input by name: a number, or the name (or None) of an open dimension; None
            for an input whose rank is open, or that is no tensor.
        named: size of the open dimensions that an option sets, by their name.
        batch: names of the open dimensions that are a batch.
    """

    sizes: Mapping[str, tuple[_Size, ...] | None]
    named: Mapping[str, int]
    batch: frozenset[str]

    def shape_of(self, name: str, *, unset: int) -> tuple[int, ...] | None:
        """Shape of an input, with a number in place of each size that nothing sets."""
        sizes = self.sizes[name]
        if sizes is None:
            return None
        return tuple(
            size if isinstance(size, int) else self.named.get(size or "", unset) for size in sizes
        )

    def batch_size(self) -> int | None:
        """First size of the first input that has dimensions; None if it is open."""
        for name in self.sizes:
            shape = self.shape_of(name, unset=-1)
            if shape:
                return None if shape[0] == -1 else shape[0]
        return None

    def is_batch_open(self, name: str) -> bool:
        """Whether the first size of an input is open, so that a batch size sets it."""
        sizes = self.sizes[name]
        if not sizes:
            return False
        return sizes[0] is None or (sizes[0] in self.batch and sizes[0] not in self.named)

    def open_forms(self) -> tuple[str, ...]:
        """Inputs with open sizes as `--input` takes them, with `?` for each of those."""
        forms = []
        for name, sizes in self.sizes.items():
            shape = self.shape_of(name, unset=-1)
            if sizes is None or shape is None:
                forms.append(f"{name}=?")
            elif -1 in shape:
                forms.append(f"{name}={'x'.join('?' if n == -1 else str(n) for n in shape)}")
        return tuple(forms)


def bind_inputs(inputs: Sequence[Any], options: ReadOptions) -> BoundInputs:
    """Set the open sizes of a model's inputs.

    Args:
        inputs: `ValueInfoProto` of each, without those that are weights.
        options: batch size and shapes of inputs.

    Raises:
        GraphError: an option that the file contradicts, or an input that it does not have.
    """
    if len(inputs) > _MOST_INPUTS:
        raise GraphError(f"model has {len(inputs)} inputs, at most {_MOST_INPUTS} are read")
    sizes = {one.name: _sizes_of(one) for one in inputs}
    unknown = sorted(set(options.inputs) - set(sizes))
    if unknown:
        raise GraphError(
            f"--input {unknown[0][:60]}: the model has no such input; it has "
            f"{', '.join(list(sizes)[:6]) or 'none'}"
        )
    named: dict[str, int] = {}
    for name, shape in options.inputs.items():
        sizes[name] = _given(name, sizes[name], shape, named)
    batch = _batch_names(sizes)
    if options.batch_size is not None:
        _set_batch(sizes, batch, options.batch_size, named)
    return BoundInputs(sizes=sizes, named=named, batch=batch)


def _sizes_of(value: Any) -> tuple[_Size, ...] | None:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    sizes: list[_Size] = []
    for dim in kind.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value > 0:
            sizes.append(int(dim.dim_value))
        else:
            sizes.append(dim.dim_param or None)
    return tuple(sizes)


def _given(
    name: str,
    sizes: tuple[_Size, ...] | None,
    shape: tuple[int, ...],
    named: dict[str, int],
) -> tuple[_Size, ...]:
    """The sizes that an option gives an input; those of open dimensions hold for their names."""
    fits = sizes is None or len(sizes) == len(shape)
    if sizes is not None and fits:
        for size, number in zip(sizes, shape, strict=True):
            known = named.setdefault(size, number) if isinstance(size, str) else size
            fits &= known in (None, number)
    if not fits:
        raise GraphError(
            f"--input {name[:60]}={'x'.join(map(str, shape))}: the model has "
            f"{name[:60]}={'x'.join('?' if n is None else str(n) for n in sizes or ())}"
        )
    return shape


def _batch_names(sizes: Mapping[str, tuple[_Size, ...] | None]) -> frozenset[str]:
    """Names of open dimensions that are a batch: known ones, or else those of first dimensions."""
    names = {size for shape in sizes.values() for size in shape or () if isinstance(size, str)}
    usual = frozenset(name for name in names if name.lower() in _BATCH_NAMES)
    first = (shape[0] for shape in sizes.values() if shape)
    return usual or frozenset(size for size in first if isinstance(size, str))


def _set_batch(
    sizes: dict[str, tuple[_Size, ...] | None],
    batch: frozenset[str],
    number: int,
    named: dict[str, int],
) -> None:
    """Set the batch in all shapes.

    Raises:
        GraphError: no dimension is open, and the batch of the file is another.
    """
    is_open = bool(batch)
    for name in batch:
        if named.setdefault(name, number) != number:
            raise GraphError(
                f"--batch-size {number}: --input sets the batch to {named[name]}; give one of them"
            )
    for name, shape in sizes.items():
        if shape and shape[0] is None:
            sizes[name] = (number, *shape[1:])
            is_open = True
    fixed = {shape[0] for shape in sizes.values() if shape and isinstance(shape[0], int)}
    if not is_open and fixed and fixed != {number}:
        raise GraphError(
            f"--batch-size {number}: the file fixes its batch to {sorted(fixed)[0]}; leave the "
            "option out, or export the model with an open batch (torch.onnx.export: "
            "dynamic_shapes)"
        )
