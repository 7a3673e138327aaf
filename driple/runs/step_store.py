"""The steps of all published PyTorch jobs, for fitting and checking without PyTorch.

    StepStore.open(folder) -> .step(StepKey) -> StoredStep -> .job(batch size, program) PreparedJob

A stored step simulates as the job does on the path of a user. The store holds what times depend on:
signatures of the ops, phases, what a compiler fuses, parameters with their gradients, and updates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.checks import check_whole
from driple.errors import ConfigError, DatasetError
from driple.graph.cost import SignatureCosts
from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps, Traffic
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import OptimizerUpdate, ParameterTable
from driple.graph.torch.options import UPDATE_KINDS
from driple.runs.step_key import StepKey
from driple.runs.step_pack import (
    ADDS,
    INSIDE,
    NEEDED,
    STARTS,
    PackedSteps,
    read_packed_steps,
)
from driple.simulate.fused import FusedOps
from driple.simulate.optable import OpTable
from driple.simulate.prepared_job import OpKinds, PreparedJob, Program

__all__ = ["ATTENTION", "FLASH_FROM", "SOFTMAX", "StepStore", "StoredStep", "follows_from"]

IntArray = npt.NDArray[np.int64]
_SUFFIX = ".steps.xz"
_HALF, _BFLOAT16 = NUMBER_OF["DT_HALF"], NUMBER_OF["DT_BFLOAT16"]
_NO_TF32 = ("tf32", (0,))
_PROGRAM = Program()
LEAST_BATCH = 2
FLASH_FROM = 80  # compute capability
ATTENTION = frozenset({"attention", "attention_gradient"})
SOFTMAX = frozenset({"softmax", "log_softmax"})


def follows_from(key: StepKey) -> StepKey | None:
    """The stored step that another follows from; None if it has to be stored itself.

    TF32 allows for matrix products what single precision forbids. Autocast to bfloat16 is that to
    float16 in a forward pass without softmax, which PyTorch computes from float16 by one kernel.
    Without attention neither the device nor the generation of PyTorch matters.
    """
    if key.precision == "tf32":
        return replace(key, precision="fp32")
    if key.capability < FLASH_FROM:
        return replace(key, capability=FLASH_FROM)
    if (key.task, key.precision) == ("forward", "amp-bf16"):
        return replace(key, precision="amp-fp16")
    return None


def _follows(key: StepKey, other: StepKey, kinds: Collection[str]) -> bool:
    """Whether a step follows from another, from which it may, whose ops are of some kinds."""
    if key.precision == "tf32":
        return True
    unlike = ATTENTION if key.capability != other.capability else SOFTMAX
    return unlike.isdisjoint(kinds)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredStep:
    """One step, at every batch size.

    Attributes:
        key: which.
        kinds: kind of each signature.
        numbers: attributes of each signature.
        inputs: positions in `tensors` of each signature's inputs.
        outputs: likewise of its outputs.
        tensors: of each tensor data type, whether it is a parameter, sizes, and which of them are
            multiples of the batch size.
        signature_of: shape [num_nodes].
        phases: shape [num_nodes].
        fusion: shape [num_nodes], bits: in a group, starts a kernel, is written, adds to gradients.
        saved: shape [num_nodes, 2], bytes that a group need not read, fixed and for each example.
        parameters: with readers and gradients.
        updates: of each optimizer bytes of states, bytes moved, and kernels.
    """

    key: StepKey
    kinds: tuple[str, ...]
    numbers: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    tensors: Mapping[int, tuple[int, bool, tuple[int, ...], tuple[bool, ...]]]
    signature_of: npt.NDArray[np.int32]
    phases: npt.NDArray[np.int8]
    fusion: npt.NDArray[np.int8]
    saved: IntArray
    parameters: ParameterTable
    updates: Mapping[str, tuple[int, int, int]]

    @property
    def num_nodes(self) -> int:
        """Ops of the step."""
        return len(self.signature_of)

    def signatures(self, batch_size: int) -> tuple[OpSignature, ...]:
        """What the ops compute on at a batch size, each signature once.

        Raises:
            ConfigError: a batch of less than two examples: of one, PyTorch runs other ops.
        """
        check_whole("batch_size of a stored step", batch_size, LEAST_BATCH)
        tensors = {
            number: Tensor(
                tuple(
                    size * batch_size if grow else size
                    for size, grow in zip(sizes, grows, strict=True)
                ),
                dtype,
                is_parameter,
            )
            for number, (dtype, is_parameter, sizes, grows) in self.tensors.items()
        }
        columns = zip(self.kinds, self.numbers, self.inputs, self.outputs, strict=True)
        return tuple(
            OpSignature(
                kind, tuple(tensors[i] for i in inputs), tuple(tensors[i] for i in outputs), numbers
            )
            for kind, numbers, inputs, outputs in columns
        )

    def graph(self, batch_size: int, *, optimizer: str = "", passes: int = 1) -> OpGraph:
        """The step at a batch size as a graph without edges and lifetimes.

        Args:
            batch_size: examples of a device.
            optimizer: whose update it has; the first that is stored if empty.
            passes: forward and backward passes for each update.

        Raises:
            ConfigError: a batch of less than two, an optimizer whose update is not stored, or
                passes that are not of this step.
        """
        if (passes > 1) != self.key.accumulates:
            raise ConfigError(
                f"{self.key.name}: got {passes} passes; of one or of several is another step"
            )
        signatures = self.signatures(batch_size)
        sizes = np.array(
            [
                (sum(one.elements for one in op.outputs), sum(one.nbytes for one in op.outputs))
                for op in signatures
            ],
            dtype=np.int64,
        ).reshape(-1, 2)[self.signature_of]
        kinds = tuple(self.kinds[number] for number in self.signature_of.tolist())
        count, trains = self.num_nodes, self.key.task == "train"
        return OpGraph(
            names=tuple(f"{kind}_{i}" for i, kind in enumerate(kinds)),
            op_types=kinds,
            devices=("",) * count,
            edges=np.zeros((0, 2), dtype=np.int32),
            is_control=np.zeros(0, dtype=np.bool_),
            tensor_elements=sizes[:, 0],
            tensor_bytes=sizes[:, 1],
            report=ReadReport(nodes_in_file=count),
            signatures=signatures,
            signature_of=self.signature_of,
            executions=passes - ((self.fusion & ADDS) > 0).astype(np.int64),
            is_training=trains,
            layout="one_device",
            framework="pytorch",
            parameters=self.parameters,
            phases=self.phases,
            **(self._training(optimizer) if trains else {}),
        )

    def job(
        self,
        batch_size: int,
        program: Program = _PROGRAM,
        *,
        compiled: bool = False,
        optimizer: str = "",
        passes: int = 1,
    ) -> PreparedJob:
        """The job at a batch size, which simulates as on the path of a user.

        Args:
            batch_size: examples of a device.
            program: what else the training program does.
            compiled: whether `torch.compile` fuses ops.
            optimizer: as for `graph`.
            passes: as for `graph`.

        Raises:
            ConfigError: as for `graph`.
        """
        graph = self.graph(batch_size, optimizer=optimizer, passes=passes)
        costs = SignatureCosts.of(graph.signatures)
        kinds = OpKinds(
            table=OpTable.of_costs(costs),
            kind_of=self.signature_of,
            executions=graph.executions,
            order=np.arange(self.num_nodes, dtype=np.int64),
            fused=self._fused(costs, batch_size) if compiled else None,
        )
        return PreparedJob(graph, kinds=kinds, program=program)

    def _training(self, optimizer: str) -> dict[str, Any]:
        """Update and traffic of the gradients."""
        name = optimizer or next(iter(self.updates), "")
        if name not in self.updates:
            raise ConfigError(
                f"the store has no update of {self.key.name} by {name!r}; it has "
                f"{', '.join(self.updates) or 'none'}"
            )
        state_bytes, moved_bytes, num_kernels = self.updates[name]
        table = self.parameters
        place = np.cumsum(table.is_trained) - 1
        sizes = table.nbytes[table.is_trained]
        readers = table.readers[table.is_trained[table.readers[:, 0]]].copy()
        readers[:, 0] = place[readers[:, 0]]
        by_node = table.gradients[np.lexsort((table.gradients[:, 0], table.gradients[:, 1]))]
        kind = UPDATE_KINDS.get(name.removesuffix("-fused"), "update_other")
        remote = RemoteOps(
            op_type=kind, kind=kind, num_nodes=len(sizes), tensor_bytes=int(sizes.sum())
        )
        return {
            "remote": (remote,),
            "traffic": Traffic(
                received_bytes=sizes,
                readers=readers,
                sent_bytes=table.nbytes[by_node[:, 0]],
                senders=by_node[:, 1],
            ),
            "update": OptimizerUpdate(
                optimizer=name,
                state_bytes=state_bytes,
                moved_bytes=moved_bytes,
                num_kernels=num_kernels,
            ),
        }

    def _fused(self, costs: SignatureCosts, batch_size: int) -> FusedOps | None:
        """What a compiler leaves of each op's bytes."""
        inside = (self.fusion & INSIDE) > 0
        if not inside.any():
            return None
        each = np.array([(c.bytes_read, c.bytes_written) for c in costs.costs], dtype=np.float64)
        read, written = each[self.signature_of].T
        saved = self.saved[:, 0] + self.saved[:, 1] * float(batch_size)
        moved = np.maximum(read - saved, 0.0) + np.where(self.fusion & NEEDED, written, 0.0)
        share, own = np.ones(self.num_nodes), read + written
        some = inside & (own > 0)
        share[some] = np.minimum(moved[some] / own[some], 1.0)
        return FusedOps(bytes_share=share, starts=(self.fusion & STARTS) > 0)

    def as_key(self, key: StepKey) -> StoredStep:
        """Another step that follows from this one.

        Raises:
            ConfigError: it does not.
        """
        if not _follows(key, self.key, self.kinds):
            raise ConfigError(f"the store has no step {key.name}")
        if key.precision == "tf32":
            return self._as_tf32(key)
        if key.capability != self.key.capability:
            return replace(self, key=key)
        return self._as_bfloat16(key)

    def _as_tf32(self, key: StepKey) -> StoredStep:
        """The same step where matrix products may run in TF32."""
        numbers = tuple(tuple(one for one in row if one != _NO_TF32) for row in self.numbers)
        return replace(self, key=key, numbers=numbers)

    def _as_bfloat16(self, key: StepKey) -> StoredStep:
        """The same step with bfloat16 for float16."""
        tensors = {
            number: (_BFLOAT16 if dtype == _HALF else dtype, *rest)
            for number, (dtype, *rest) in self.tensors.items()
        }
        return replace(self, key=key, tensors=tensors)  # type: ignore[arg-type]  # of four


class StepStore:
    """Steps by key, read from the files of a folder when they are first asked for."""

    def __init__(self, files: Mapping[Path, PackedSteps]) -> None:
        self._where: dict[StepKey, tuple[_File, int]] = {}
        for file, packed in files.items():
            stored = _File(file, packed)
            for number, job in enumerate(packed.header["jobs"]):
                self._where[StepKey.parse(job["name"])] = (stored, number)

    @classmethod
    def open(cls, folder: Path) -> StepStore:
        """All steps of a folder.

        Raises:
            DatasetError: it holds no store, or a damaged one.
        """
        files = sorted(folder.glob(f"*{_SUFFIX}"))
        if not files:
            raise DatasetError(
                f"{folder} holds no file *{_SUFFIX}; give datasets/runs/published/steps"
            )
        return cls({file: read_packed_steps(file) for file in files})

    @property
    def stored(self) -> tuple[StepKey, ...]:
        """Keys of all steps that are stored, in order."""
        return tuple(sorted(self._where))

    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(key.name for key in self.stored)

    def __contains__(self, key: StepKey) -> bool:
        if key in self._where:
            return True
        other = follows_from(key)
        return other is not None and other in self and _follows(key, other, self.kinds(other))

    def kinds(self, key: StepKey) -> frozenset[str]:
        """Kinds of the ops of a step that the store has.

        Raises:
            ConfigError: it has none.
            DatasetError: it is damaged.
        """
        if key in self._where:
            file, number = self._where[key]
            return file.kinds(key, number)
        return frozenset(self.step(key).kinds)

    def step(self, which: StepKey | str) -> StoredStep:
        """A step, which may follow from a stored one.

        Raises:
            ConfigError: it is not stored.
            DatasetError: it is damaged.
        """
        key = StepKey.parse(which) if isinstance(which, str) else which
        if key in self._where:
            file, number = self._where[key]
            return file.step(key, number)
        other = follows_from(key)
        if other is None or other not in self:
            raise ConfigError(
                f"the store has no step {key.name}; make it with scripts/published/pytorch_steps.py"
            )
        return self.step(other).as_key(key)


class _File:
    """One file's steps."""

    def __init__(self, file: Path, packed: PackedSteps) -> None:
        self._file, self._header, self._arrays = file, packed.header, packed.arrays
        arrays = packed.arrays
        self._sizes_at = _starts(arrays["ranks"])
        self._tensors_at = _starts(arrays["num_inputs"] + arrays["num_outputs"])
        self._tables_at = _starts(np.array(packed.header["tables"], dtype=np.int64))
        jobs = packed.header["jobs"]
        self._at = {
            name: _starts(np.array([job[name] for job in jobs], dtype=np.int64))
            for name in ("nodes", "signatures", "saved", "readers", "gradients")
        }

    def step(self, key: StepKey, number: int) -> StoredStep:
        """The step at a position of the file."""
        with self._read(key):
            return self._step(key, number)

    def kinds(self, key: StepKey, number: int) -> frozenset[str]:
        """Kinds of its ops."""
        with self._read(key):
            signatures = self._arrays["signatures_of_jobs"][self._slice("signatures", number)]
            kinds = np.unique(self._arrays["kinds"][signatures]).tolist()
            return frozenset(str(self._header["kinds"][kind]) for kind in kinds)

    @contextmanager
    def _read(self, key: StepKey) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise DatasetError(
                f"{self._file}: {key.name} is damaged ({error}); restore the file"
            ) from error

    def _step(self, key: StepKey, number: int) -> StoredStep:
        arrays, job = self._arrays, self._header["jobs"][number]
        numbers = arrays["signatures_of_jobs"][self._slice("signatures", number)]
        nodes = self._slice("nodes", number)
        count = nodes.stop - nodes.start
        local = arrays["local_signatures"][nodes]
        if count and local.max() >= len(numbers):
            raise ValueError("a node has no signature")
        rows = [self._signature(one) for one in numbers.tolist()]
        fusion = arrays["fusion"][nodes].astype(np.int8)
        saved = np.zeros((count, 2), dtype=np.int64)
        which = arrays["saved_of_nodes"][self._slice("saved", number)]
        if len(which):
            pairs = np.stack([arrays["saved_bytes"], arrays["saved_bytes_each"]], axis=1)
            saved[(fusion & INSIDE) > 0] = pairs[which]
        used = sorted({one for _, _, inputs, outputs in rows for one in (*inputs, *outputs)})
        return StoredStep(
            key=key,
            kinds=tuple(row[0] for row in rows),
            numbers=tuple(row[1] for row in rows),
            inputs=tuple(row[2] for row in rows),
            outputs=tuple(row[3] for row in rows),
            tensors={one: self._tensor(one) for one in used},
            signature_of=local.astype(np.int32),
            phases=arrays["phases"][nodes].astype(np.int8),
            fusion=fusion,
            saved=saved,
            parameters=self._parameters(job, number, count),
            updates={str(name): _update(facts) for name, facts in job["updates"].items()},
        )

    def _slice(self, name: str, number: int) -> slice:
        starts = self._at[name]
        return slice(int(starts[number]), int(starts[number + 1]))

    def _signature(self, number: int) -> tuple[str, Any, tuple[int, ...], tuple[int, ...]]:
        arrays, at = self._arrays, int(self._tensors_at[number])
        inputs, outputs = int(arrays["num_inputs"][number]), int(arrays["num_outputs"][number])
        tensors = arrays["tensors_of"][at : at + inputs + outputs].tolist()
        stated = self._header["numbers"][int(arrays["numbers"][number])]
        return (
            str(self._header["kinds"][int(arrays["kinds"][number])]),
            tuple((str(name), tuple(int(one) for one in values)) for name, values in stated),
            tuple(tensors[:inputs]),
            tuple(tensors[inputs:]),
        )

    def _tensor(self, number: int) -> tuple[int, bool, tuple[int, ...], tuple[bool, ...]]:
        arrays = self._arrays
        part = slice(int(self._sizes_at[number]), int(self._sizes_at[number + 1]))
        return (
            int(arrays["dtypes"][number]),
            bool(arrays["of_parameters"][number]),
            tuple(arrays["sizes"][part].tolist()),
            tuple(map(bool, arrays["grows"][part].tolist())),
        )

    def _parameters(self, job: Mapping[str, Any], number: int, nodes: int) -> ParameterTable:
        arrays, header = self._arrays, self._header
        table = int(job["table"])
        part = slice(int(self._tables_at[table]), int(self._tables_at[table + 1]))
        names = tuple(map(str, header["names"][int(job["names"])]))
        if len(names) != part.stop - part.start:
            raise ValueError(f"{len(names)} names for {part.stop - part.start} parameters")
        pairs = {}
        for what in ("readers", "gradients"):
            within = self._slice(what, number)
            rows = [arrays[f"{what}_{end}"][within] for end in ("parameter", "node")]
            for column, end in zip(rows, (len(names), nodes), strict=True):
                if len(column) and column.max() >= end:
                    raise ValueError(f"{what} lead outside")
            pairs[what] = np.stack(rows, axis=1).astype(np.int32)
        return ParameterTable(
            names=names,
            elements=arrays["elements"][part],
            nbytes=arrays["nbytes"][part],
            is_trained=arrays["is_trained"][part].astype(np.bool_),
            **pairs,
        )


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _update(facts: Any) -> tuple[int, int, int]:
    state_bytes, moved_bytes, num_kernels = (int(one) for one in facts)
    if min(state_bytes, moved_bytes, num_kernels) < 0:
        raise ValueError("an update of less than nothing")
    return state_bytes, moved_bytes, num_kernels
