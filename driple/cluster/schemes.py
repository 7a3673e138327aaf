"""How settings name schemes: a name, a number of servers, degrees of parallelism; no behaviour.

`driple.schemes` registers what each scheme does, by the same name. Only the names that stand for
something in the grammar of settings are here: what `P` and `R` of the paper's names, and `tp`,
`cp`, `ep` and the like, stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from driple.errors import SettingError
from driple.units import counted

__all__ = ["DDP", "ONE_DEVICE", "PS", "SPLIT", "Degrees", "SchemeChoice", "divisors_near"]

PS = "ps"  # parameter servers, synchronous or asynchronous
DDP = "ddp"  # all-reduce of gradients over all devices
SPLIT = "split"  # replicas of several devices each; tp2-pp4

_STATES = {DDP: DDP, "zero1": "zero1", "zero2": "zero2", "zero3": "fsdp", "fsdp": "fsdp"}
"""What replicas of several devices may share out, by each of its names."""
_FIELDS = {
    "tp": "tensor", "cp": "context", "ulysses": "context", "ep": "expert", "pp": "pipeline",
    "vpp": "virtual",
}  # fmt: skip
_DEGREE = re.compile(r"(?P<kind>tp|cp|ulysses|ep|pp|vpp)(?P<degree>[1-9]\d{0,4})")
_EXAMPLE = "tp4-cp2-ep8-pp4-zero1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Degrees:
    """How devices share out one copy of a model, and copies their states.

    Attributes:
        tensor: devices that share the matrices of each block, and its tokens between them.
        context: devices that share the tokens of each sample.
        expert: devices that share the experts of each layer, of all devices of a stage.
        pipeline: stages, each of which has a part of the blocks.
        virtual: such parts that each device of a pipeline has (interleaved schedule).
        exchanges_heads: whether context groups exchange heads (Ulysses) in place of passing keys
            and values round a ring.
        states: what the copies share out, by the name of the scheme that does: `ddp` is nothing.

    Raises:
        SettingError: several parts of a device without a pipeline.
    """

    tensor: int = 1
    context: int = 1
    expert: int = 1
    pipeline: int = 1
    virtual: int = 1
    exchanges_heads: bool = False
    states: str = DDP

    def __post_init__(self) -> None:
        if self.virtual > 1 == self.pipeline:
            raise SettingError(
                f"vpp{self.virtual} gives each device of a pipeline several parts, and there is no "
                f"pipeline; add stages, as in pp4-vpp{self.virtual}"
            )

    @property
    def of_replica(self) -> int:
        """Devices that compute on the same samples."""
        return self.tensor * self.context * self.pipeline

    @property
    def is_split(self) -> bool:
        """Whether devices share a copy of the model, or its experts."""
        return self.of_replica * self.expert > 1

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the name, such as `tp2` and `pp4`; none for `ddp`."""
        context = "ulysses" if self.exchanges_heads else "cp"
        degrees = (
            ("tp", self.tensor),
            (context, self.context),
            ("ep", self.expert),
            ("pp", self.pipeline),
            ("vpp", self.virtual),
        )
        named = tuple(f"{kind}{degree}" for kind, degree in degrees if degree > 1)
        return named if self.states == DDP else (*named, self.states)

    @classmethod
    def parse(cls, text: str) -> Degrees | None:
        """The degrees of a name such as `tp2-pp4-zero1`; None of a name without degrees.

        Raises:
            SettingError: a degree twice, or beside a scheme that it does not go with.
        """
        degrees: dict[str, int] = {}
        rest: list[str] = []
        exchanges_heads = False
        for word in text.lower().split("-"):
            match = _DEGREE.fullmatch(word)
            if match is None:
                rest.append(word)
                continue
            name = _FIELDS[match["kind"]]
            if name in degrees:
                raise SettingError(
                    f"scheme {text} has {match['kind']} twice, or both cp and ulysses; give one "
                    "degree"
                )
            degrees[name] = int(match["degree"])
            exchanges_heads |= match["kind"] == "ulysses" and degrees[name] > 1
        if not degrees:
            return None
        if len(rest) > 1 or any(one not in _STATES for one in rest):
            raise SettingError(
                f"scheme {text} has degrees beside {'-'.join(rest)}; they go with one of "
                f"{', '.join(_STATES)}, as in {_EXAMPLE}"
            )
        states = _STATES[rest[0]] if rest else DDP
        return cls(**degrees, exchanges_heads=exchanges_heads, states=states)


ONE_DEVICE = Degrees()
"""Each device has the whole model."""


def divisors_near(sizes: int | Iterable[int], wanted: int, *, least: int = 1) -> str:
    """The nearest divisors below and above a number, in words: `4 or 8`.

    Args:
        sizes: one size, or several of which a divisor has to divide one.
        wanted: the number.
        least: smallest divisor.
    """
    several = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    numbers = range(least, max(several) + 1)
    divisors = [one for one in numbers if any(size % one == 0 for size in several)]
    below = [one for one in divisors if one <= wanted][-1:]
    above = [one for one in divisors if one > wanted][:1]
    return " or ".join(str(one) for one in (*below, *above))


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemeChoice:
    """How the work is distributed.

    Attributes:
        name: under which the scheme is registered, such as `ps` or `ddp`.
        num_servers: parameter servers; 0 for every scheme but `ps`.
        degrees: of a model that devices share; above 1 for `split` alone.

    Raises:
        SettingError: parameter servers without `ps`, or `ps` without one; degrees without `split`.
    """

    name: str
    num_servers: int = 0
    degrees: Degrees = field(default_factory=Degrees)

    def __post_init__(self) -> None:
        """Refuse servers and degrees that nobody uses, and none where they are needed."""
        if (self.name == SPLIT) != self.is_split:
            raise SettingError(
                f"scheme {self.name} with degrees {'-'.join(self.degrees.words) or 'of 1'}; name "
                "the degrees of tensor, context, expert and pipeline parallelism, as in "
                f"{_EXAMPLE}"
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
        """Whether several devices share a model, or its experts."""
        return self.degrees.is_split

    @property
    def suffix(self) -> str:
        """How a setting's name ends after `@`, such as `fsdp` or `tp2-pp4`."""
        return "-".join(self.degrees.words) if self.is_split else self.name

    @classmethod
    def parse(cls, text: str) -> SchemeChoice:
        """The scheme of a name without parameter servers: `fsdp`, `tp8`, `tp2-pp4-zero1`.

        Degrees of 1 are `ddp`, or what they stand beside.

        Raises:
            SettingError: a degree twice, or beside a scheme that it does not go with.
        """
        degrees = Degrees.parse(text)
        if degrees is None:
            return cls(name=text.lower())
        if not degrees.is_split:
            return cls(name=degrees.states)
        return cls(name=SPLIT, degrees=degrees)
