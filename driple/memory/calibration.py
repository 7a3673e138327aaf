"""What a device's memory holds beyond tensors, and how large errors are: fitted constants.

    calibration-memory.json -> MemoryCalibration

`scripts/fits/calibration_memory.py` fits the constants on half of the model families of the
published memory rows, and takes the errors from the other half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from driple.codec import Json, to_dict
from driple.errors import ConfigError
from driple.versioned import from_versioned_json

__all__ = ["FORMAT", "ErrorRange", "MemoryCalibration", "shipped_memory_calibration"]

FORMAT = 1
_FILE = "calibration-memory.json"
_ADVICE = "make it anew with scripts/fits/calibration_memory.py"


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorRange:
    """Errors of one number on held-out runs of one kind.

    Attributes:
        low: factor on the estimate to the lower end of its 90 % interval.
        high: factor to its upper end.
        median_pct: median of |estimated - measured| / measured.
        p90_pct: its 90th percentile.
        runs: held-out runs.
    """

    low: float
    high: float
    median_pct: float
    p90_pct: float
    runs: int

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1 <= self.high:
            raise ConfigError(f"an interval of factors holds 1, got {self.low} to {self.high}")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryCalibration:
    """Constants of a device's memory.

    Attributes:
        workspace_bytes: of cuBLAS, by generation, which PyTorch allocates; `""` for all others.
        context_bytes: of the CUDA context with the kernels that are loaded, by generation.
        group_bytes: of NCCL's buffers on a device of a group.
        cache_share: what the allocator holds beyond one step's requests, as a share of what a step
            adds to parameters, gradients and states, by generation of PyTorch: cuDNN's search for
            algorithms, and steps that are not all alike; `""` for all others.
        usable_share: of the memory that a device has, without what the driver reserves.
        yes_below: share of the usable memory up to which a job fits.
        no_above: share of the usable memory from which on it does not.
        errors: by number (`allocated`, `reserved`, `device_total`), then by kind of scheme
            and of samples, such as `ddp images`; `images`, `others` and `""` for all together.
        fitted_on: words on the data.
    """

    workspace_bytes: Mapping[str, float]
    context_bytes: Mapping[str, float]
    group_bytes: float
    cache_share: Mapping[str, float]
    usable_share: float
    yes_below: float
    no_above: float
    errors: Mapping[str, Mapping[str, ErrorRange]]
    fitted_on: str = ""

    def workspace_of(self, generation: str) -> float:
        """Bytes of cuBLAS workspaces on a generation of devices."""
        return self.workspace_bytes.get(generation, self.workspace_bytes[""])

    def context_of(self, generation: str) -> float:
        """Bytes of the context on a generation of devices."""
        return self.context_bytes.get(generation, self.context_bytes[""])

    def cache_of(self, library: str) -> float:
        """Share that the allocator of a generation of PyTorch holds beyond one step's requests."""
        return self.cache_share.get(library, self.cache_share[""])

    def error_of(self, number: str, kind: str) -> ErrorRange | None:
        """Errors of a number under a kind of scheme and of samples.

        Where it has too few runs, those of the kind of samples, or of all.
        """
        known = self.errors.get(number, {})
        return known.get(kind) or known.get(kind.partition(" ")[2]) or known.get("")

    def to_dict(self) -> dict[str, Json]:
        """The object of the file."""
        return {"format": FORMAT, **to_dict(self, where="memory calibration")}

    @classmethod
    def from_json(cls, text: str) -> MemoryCalibration:
        """Read the text of a file.

        Raises:
            ConfigError: it is no such file.
        """
        return from_versioned_json(
            cls, text, version=FORMAT, what="memory calibration", advice=_ADVICE
        )


@cache
def shipped_memory_calibration() -> MemoryCalibration:
    """The calibration that ships with Driple."""
    return MemoryCalibration.from_json((files("driple.memory") / _FILE).read_text())
