"""Names of the schemes that distribute training, and their parameters: no behaviour.

`driple.schemes.schemes` registers what each scheme does, by the same name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from driple.errors import SettingError

__all__ = ["DDP", "FSDP", "HIERARCHICAL", "HSDP", "PS", "SPLIT", "ZERO1", "ZERO2",
           "SchemeChoice"]  # fmt: skip

PS = "ps"  # parameter servers, synchronous or asynchronous
DDP = "ddp"  # all-reduce of gradients over all devices
HIERARCHICAL = "hierarchical"  # all-reduce within machines, then between them
ZERO1 = "zero1"  # states of the optimizer are shared out
ZERO2 = "zero2"  # states and gradients are shared out
FSDP = "fsdp"  # states, gradients and parameters are shared out: ZeRO-3
HSDP = "hsdp"  # fsdp within machines, replicas between them
SPLIT = "split"  # replicas of several devices each: tensor and pipeline parallelism; tp2-pp4

_DEGREE = re.compile(r"(?P<kind>tp|pp)(?P<degree>[1-9]\d{0,4})")


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemeChoice:
    """How the work is distributed.

    Attributes:
        name: under which the scheme is registered, such as `ps` or `ddp`.
        num_servers: parameter servers; 0 for every scheme but `ps`.
        tensor: devices that share the matrices of each block; above 1 for `split` alone.
        pipeline: stages, each of which has a part of the blocks; above 1 for `split` alone.

    Raises:
        SettingError: parameter servers without `ps`, or `ps` without one; degrees without `split`.
    """

    name: str
    num_servers: int = 0
    tensor: int = 1
    pipeline: int = 1

    def __post_init__(self) -> None:
        """Refuse servers and degrees that nobody uses, and none where they are needed."""
        if (self.name == SPLIT) != (self.tensor * self.pipeline > 1):
            raise SettingError(
                f"scheme {self.name} with tp{self.tensor} and pp{self.pipeline}; name the degrees "
                "of tensor and pipeline parallelism, as in 8xA100@tp4-pp2"
            )
        if (self.name == PS) != (self.num_servers > 0):
            raise SettingError(
                f"scheme {self.name} with {self.num_servers} parameter server(s); {PS} needs one "
                "or more, any other scheme none"
            )

    @property
    def suffix(self) -> str:
        """How a setting's name ends after `@`, such as `fsdp` or `tp2-pp4`."""
        if self.name != SPLIT:
            return self.name
        degrees = (("tp", self.tensor), ("pp", self.pipeline))
        return "-".join(f"{kind}{degree}" for kind, degree in degrees if degree > 1)

    @classmethod
    def parse(cls, text: str) -> SchemeChoice:
        """The scheme of a name without parameter servers: `fsdp`, `tp8`, `tp2-pp4`.

        Degrees of 1 are `ddp`.

        Raises:
            SettingError: a degree twice, or with a scheme that it does not go with.
        """
        words = text.lower().split("-")
        degrees: dict[str, int] = {}
        rest = []
        for word in words:
            match = _DEGREE.fullmatch(word)
            if match is None:
                rest.append(word)
            elif match["kind"] in degrees:
                raise SettingError(f"scheme {text} has {match['kind']} twice; give one degree")
            else:
                degrees[match["kind"]] = int(match["degree"])
        if not degrees:
            return cls(name=text.lower())
        if rest not in ([], [DDP]):
            raise SettingError(
                f"scheme {text} has degrees beside {'-'.join(rest)}; tensor and pipeline "
                "parallelism go with ddp alone, as in tp2-pp4"
            )
        tensor, pipeline = degrees.get("tp", 1), degrees.get("pp", 1)
        name = SPLIT if tensor * pipeline > 1 else DDP
        return cls(name=name, tensor=tensor, pipeline=pipeline)
