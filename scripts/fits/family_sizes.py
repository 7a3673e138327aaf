"""Which steps are of the largest, and which of the smallest, size of their family of models.

    family, task, work of a sample; ... --of--> FamilySizes --end_of--> `largest`, `smallest` or ``

A size is the work of one sample, so BERT of 512 tokens is another size than BERT of 128. Sizes
within a factor of two are one size; a family within that factor has a single one, and no ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driple.simulate.prepared_job import OpKinds

__all__ = ["ENDS", "LARGEST", "SMALLEST", "FamilySizes", "work_of_sample"]

LARGEST, SMALLEST = "largest", "smallest"
ENDS = (LARGEST, SMALLEST)
_ONE_SIZE = 2.0  # sizes whose work differs by less are one
_TRAINING = 3.0  # a training step computes a forward pass, and about two for gradients


def work_of_sample(kinds: OpKinds, *, samples: int, task: str) -> float:
    """FLOPs of products in a forward pass of one sample.

    Args:
        kinds: of the ops of a step.
        samples: of the step.
        task: `train` or `forward`; of a training step, a third counts.
    """
    flops = 2 * kinds.table.sides.prod(axis=1)[kinds.kind_of] @ kinds.executions
    return float(flops) / samples / (_TRAINING if task == "train" else 1.0)


@dataclass(frozen=True, slots=True)
class FamilySizes:
    """Where the ends of families begin.

    Attributes:
        limits: of each family with several sizes, the most work of a sample of its smallest size,
            and the least of its largest.
    """

    limits: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, works: Iterable[tuple[str, str, float]]) -> FamilySizes:
        """The ends of families.

        An end is that of the task which reaches less far, so that no size beyond it is known from
        the other task.

        Args:
            works: family, task, and work of a sample of each step.
        """
        spans: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
        for family, task, work in works:
            least, most = spans[family].get(task, (work, work))
            spans[family][task] = (min(least, work), max(most, work))
        limits = {}
        for family, tasks in spans.items():
            least = max(least for least, _ in tasks.values())
            most = min(most for _, most in tasks.values())
            if most >= _ONE_SIZE * least > 0:
                middle = (least * most) ** 0.5
                limits[family] = (min(_ONE_SIZE * least, middle), max(most / _ONE_SIZE, middle))
        return cls(limits)

    def end_of(self, family: str, work: float) -> str:
        """`largest`, `smallest`, or empty for a size between them, or of a family without ends."""
        smallest, largest = self.limits.get(family, (-1.0, float("inf")))
        if work >= largest:
            return LARGEST
        return SMALLEST if work <= smallest else ""
