"""Names of the schemes that distribute training, and their parameters: no behaviour.

`driple.comm.schemes` registers what each scheme does, by the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.errors import SettingError

__all__ = ["DDP", "FSDP", "HIERARCHICAL", "HSDP", "PS", "ZERO1", "ZERO2", "SchemeChoice"]

PS = "ps"  # parameter servers, synchronous or asynchronous
DDP = "ddp"  # all-reduce of gradients over all devices
HIERARCHICAL = "hierarchical"  # all-reduce within machines, then between them
ZERO1 = "zero1"  # states of the optimizer are shared out
ZERO2 = "zero2"  # states and gradients are shared out
FSDP = "fsdp"  # states, gradients and parameters are shared out: ZeRO-3
HSDP = "hsdp"  # fsdp within machines, replicas between them


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemeChoice:
    """How the work is distributed.

    Attributes:
        name: under which the scheme is registered, such as `ps` or `ddp`.
        num_servers: parameter servers; 0 for every scheme but `ps`.

    Raises:
        SettingError: parameter servers without `ps`, or `ps` without one.
    """

    name: str
    num_servers: int = 0

    def __post_init__(self) -> None:
        """Refuse servers that nobody uses, and none where they are needed."""
        if (self.name == PS) != (self.num_servers > 0):
            raise SettingError(
                f"scheme {self.name} with {self.num_servers} parameter server(s); {PS} needs one "
                "or more, any other scheme none"
            )
