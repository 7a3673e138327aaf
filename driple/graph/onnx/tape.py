"""The ops of a derived training step, in the order in which they run.

    run(kind, inputs, outputs) --> StepNode after StepNode; views share the memory of their tensor

Kinds are those of `driple.graph.opkind`; inputs come in the order that the formulas of costs expect
(TensorFlow's): images before filter, and a filter as [window..., channels in, channels out].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from driple.graph.signature import Tensor
from driple.graph.step_facts import Phase, TensorRole

__all__ = ["Read", "Shape", "StepNode", "StepTensor", "Storage", "Tape"]

Shape = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Storage:
    """Memory of a tensor and of all views of it.

    Attributes:
        nbytes: bytes that are allocated.
        made_by: number of the node that allocates it; -1 if it is there before the step.
        role: what it is kept for.
        parameter: number of the parameter in it, -1 if it is none.
    """

    nbytes: int
    made_by: int
    role: TensorRole
    parameter: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class StepTensor:
    """A tensor of the step.

    Attributes:
        shape: sizes; an unknown one is -1, None for an unknown rank.
        dtype: number of TensorFlow's DataType.
        storage: memory that it lies in.
        needs_gradient: whether the loss depends on a parameter through it.
        is_constant: whether it is the same in every step and no parameter.
    """

    shape: Shape | None
    dtype: int
    storage: Storage
    needs_gradient: bool = False
    is_constant: bool = False

    @property
    def sizes(self) -> Shape:
        """The shape; without dimensions if its rank is unknown."""
        return () if self.shape is None else self.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    @property
    def elements(self) -> int:
        """Number of elements; an unknown size counts as 1, an unknown rank as none."""
        return Tensor(self.shape, self.dtype).elements

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return Tensor(self.shape, self.dtype).nbytes


@dataclass(frozen=True, slots=True)
class Read:
    """A tensor as an op reads or writes it, perhaps in another shape.

    Attributes:
        tensor: the tensor; None for a few numbers that the host hands over, such as a shape.
        shape: its shape for the op.
    """

    tensor: StepTensor | None
    shape: Shape | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepNode:
    """One op of the step.

    Attributes:
        name: unique name.
        op_type: ONNX's, with `Grad` behind it in the backward pass.
        kind: one of `driple.graph.opkind`.
        inputs: what it reads, in order.
        outputs: what it writes, in order.
        numbers: whole-number attributes that matter.
        phase: forward, backward or update.
        module: path of the module that it belongs to; empty if unknown.
        is_open: whether its sizes depend on open dimensions.
        executions: runs in a step.
    """

    name: str
    op_type: str
    kind: str
    inputs: tuple[Read, ...]
    outputs: tuple[Read, ...]
    numbers: tuple[tuple[str, tuple[int, ...]], ...]
    phase: Phase
    module: str
    is_open: bool
    executions: int


@dataclass(slots=True)
class Tape:
    """Nodes so far, and where the next ones belong.

    Attributes:
        nodes: in the order in which they run.
        phase: of the next nodes.
        module: of the next nodes.
        label: begin of their names.
        op_type: that they are part of.
        is_open: whether their sizes depend on open dimensions.
        executions: their runs in a step.
    """

    nodes: list[StepNode] = field(default_factory=list)
    phase: Phase = Phase.FORWARD
    module: str = ""
    label: str = ""
    op_type: str = ""
    is_open: bool = False
    executions: int = 1
    _names: dict[str, int] = field(default_factory=dict)

    def run(
        self,
        kind: str,
        inputs: Sequence[StepTensor | Read | None],
        outputs: Sequence[tuple[Shape | None, int] | Read],
        *,
        numbers: tuple[tuple[str, tuple[int, ...]], ...] = (),
        role: TensorRole = TensorRole.TEMPORARY,
    ) -> tuple[StepTensor, ...]:
        """Add an op.

        Args:
            kind: its kind.
            inputs: what it reads; None is left out.
            outputs: shape and dtype of each new tensor; or a tensor there is, which it changes.
            numbers: attributes that matter for its cost.
            role: of the new tensors.

        Returns:
            Its outputs.
        """
        position = len(self.nodes)
        reads = [each if isinstance(each, Read) else Read(each, each.shape)
                 for each in inputs if each is not None]  # fmt: skip
        results: list[StepTensor] = []
        writes: list[Read] = []
        for output in outputs:
            if isinstance(output, Read):
                tensor = output.tensor
                writes.append(output)
            else:
                shape, dtype = output
                tensor = StepTensor(shape, dtype, Storage(0, position, role))
                tensor.storage.nbytes = tensor.nbytes
                writes.append(Read(tensor, shape))
            if tensor is not None:
                results.append(tensor)
        self.nodes.append(
            StepNode(
                name=self._free_name(kind),
                op_type=self.op_type,
                kind=kind,
                inputs=tuple(reads),
                outputs=tuple(writes),
                numbers=numbers,
                phase=self.phase,
                module=self.module,
                is_open=self.is_open,
                executions=self.executions,
            )
        )
        return tuple(results)

    def _free_name(self, kind: str) -> str:
        """Label and kind, numbered where that is taken."""
        name = f"{self.label}/{kind}" if self.label else kind
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        if not count:
            return name
        numbered = f"{name}_{count}"
        return numbered if numbered not in self._names else self._free_name(f"{kind}_{count}")
