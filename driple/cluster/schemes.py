"""How settings name schemes: a name, a number of servers, degrees of parallelism; no behaviour.

`driple.schemes` registers what each scheme does, by the same name. Only the names that stand for
something in the grammar of settings are here: what `P` and `R` of the paper's names, and `tp` and
`pp`, stand for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from driple.errors import SettingError
from driple.units import counted

__all__ = ["DDP", "PS", "SPLIT", "SchemeChoice"]

PS = "ps"  # parameter servers, synchronous or asynchronous
DDP = "ddp"  # all-reduce of gradients over all devices
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
        if (self.name == SPLIT) != self.is_split:
            raise SettingError(
                f"scheme {self.name} with tp{self.tensor} and pp{self.pipeline}; name the degrees "
                "of tensor and pipeline parallelism, as in 8xA100@tp4-pp2"
            )
        if (self.name == PS) != (self.num_servers > 0):
            raise SettingError(
                f"scheme {self.name} with {counted(self.num_servers, 'parameter server')}; {PS} "
                "needs one or more, any other scheme none"
            )

    @classmethod
    def usual(cls, num_servers: int = 0) -> SchemeChoice:
        """The scheme of devices that name none: all-reduce, or that of their parameter servers."""
        return cls(name=PS if num_servers else DDP, num_servers=num_servers)

    @property
    def is_usual(self) -> bool:
        """Whether a name without servers may leave it out."""
        return self.name == DDP

    @property
    def is_split(self) -> bool:
        """Whether several devices share a replica."""
        return self.tensor * self.pipeline > 1

    @property
    def suffix(self) -> str:
        """How a setting's name ends after `@`, such as `fsdp` or `tp2-pp4`."""
        if not self.is_split:
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
