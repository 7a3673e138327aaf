"""Configuration of an inspector's input (paper, sections 3.1.2 and 3.1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from driple.checks import check_choice, check_whole
from driple.codec import Json, from_json, json_field, to_dict
from driple.features.costs import COST_CONTEXT_NAMES, COST_FEATURE_NAMES
from driple.features.features import CONTEXT_NAMES, FEATURE_NAMES

__all__ = ["Components", "Context", "Features", "GroupingPolicy", "InputConfig"]

GroupingPolicy = Literal["uniform", "proportional"]
Components = Literal["largest", "all"]
Features = Literal["paper", "log", "costs"]
Context = Literal["none", "sizes", "costs"]

MAX_GROUPS = 10_000
MAX_SERVERS = 10_000

_ADVICE = "train it anew"  # configurations are read from checkpoints alone


@dataclass(frozen=True, kw_only=True, slots=True)
class InputConfig:
    """Configuration that turns graphs into inspector inputs; the checkpoint contains it.

    Attributes:
        policy: `uniform`: every graph gets `num_groups` groups; `proportional`: log10 of the mean
            node number of its batch (section 3.1.3; `driple.features.proportional_num_groups`).
        num_groups: M of the uniform policy.
        seed: seed of the fluid communities.
        components: which connected components are grouped: the largest one, or all of them.
        features: of each group: `paper`: the three sums of the paper as they are; `log`:
            log(1 + sum); `costs`: the same, and what its ops cost (`costs.py`).
        context: vector of the whole graph beside the groups: `none`; `sizes`: of graph, tensors
            and traffic; `costs`: the same, and what each kind of op costs.
        num_servers: parameter servers of the setting, among which the context `costs` deals out
            the variables; 1 for a ring. Taken from the data set that is learned.
    """

    policy: GroupingPolicy = "uniform"
    num_groups: int = 100
    seed: int = 0
    components: Components = "largest"
    features: Features = "paper"
    context: Context = "none"
    # Configurations from before this field was added lack it.
    num_servers: int = field(default=1, metadata=json_field(may_lack=True))

    def __post_init__(self) -> None:
        choices = {
            "policy": GroupingPolicy,
            "components": Components,
            "features": Features,
            "context": Context,
        }
        for name, allowed in choices.items():
            check_choice(f"input {name}", getattr(self, name), get_args(allowed))
        check_whole("input num_groups", self.num_groups, 1, MAX_GROUPS)
        check_whole("input seed", self.seed, 0)
        check_whole("input num_servers", self.num_servers, 1, MAX_SERVERS)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns of the group features."""
        return (*FEATURE_NAMES, *(COST_FEATURE_NAMES if self.features == "costs" else ()))

    @property
    def context_names(self) -> tuple[str, ...]:
        """Entries of the context vector."""
        if self.context == "none":
            return ()
        return (*CONTEXT_NAMES, *(COST_CONTEXT_NAMES if self.context == "costs" else ()))

    def to_dict(self) -> dict[str, Json]:
        """The fields by name, for the checkpoint."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> InputConfig:
        """The inverse of `to_dict`; raises ConfigError on unknown, missing or odd fields."""
        return from_json(cls, dict(fields), where="input configuration", advice=_ADVICE)
