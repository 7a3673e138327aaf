"""The inspector of a transfer: some layers are frozen, others are fine-tuned (paper, section 4.2).

GroupBatch --kept (once)--> embeddings --tuned layers, readout, MLP--> scaled targets [B, 12]
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from driple.errors import ConfigError
from driple.inspector.batch import GroupBatch
from driple.inspector.checkpoint import Checkpoint
from driple.inspector.model import Inspector
from driple.inspector.shapes import member_prefix
from driple.training.transfer_config import TransferConfig

__all__ = ["Tuned", "TunedEnsemble", "TunedInspector", "tuned_model"]


class TunedInspector(nn.Module):
    """A pre-trained inspector with some trainable layers.

    Its input is a batch with the frozen layers done (`kept`): x is [B, M, H], or [B, 1, width] if
    the readout is frozen too and no graph layer is tuned.
    """

    def __init__(self, inspector: Inspector, config: TransferConfig) -> None:
        super().__init__()
        self.inspector = inspector
        self.whole = "phi_f" in config.layers
        self.read = not self.whole and not inspector.num_tuned and "readout" not in config.layers
        for name, weight in inspector.named_parameters():
            weight.requires_grad_(_moves(name, config.layers))
        if not any(weight.requires_grad for weight in inspector.parameters()):
            raise ConfigError(
                f"--set layers={','.join(config.layers)} with --set "
                f"tuned_share={config.tuned_share:g} leaves nothing to tune; add mlp, or "
                "give a larger share"
            )

    def kept(self, batch: GroupBatch) -> GroupBatch:
        """The batch after all frozen layers."""
        if self.whole:
            return batch
        done = self.inspector.kept_layers(batch)
        if not self.read:
            return done
        return replace(done, x=self.inspector.read_out(done).unsqueeze(1))

    def parts(self, batch: GroupBatch) -> list[tuple[TunedInspector, GroupBatch]]:
        """This inspector, and its part of the output of `kept`."""
        return [(self, batch)]

    def forward(self, batch: GroupBatch) -> Tensor:
        """Scaled targets, shape [B, 12], from the output of `kept`."""
        inspector = self.inspector
        if self.whole:
            out: Tensor = inspector(batch)
            return out
        read = batch.x.squeeze(1) if self.read else inspector.read_out(batch)
        return inspector.head(read, batch)


class TunedEnsemble(nn.Module):
    """Several of them; the outputs of `kept` are concatenated in the last dimension of x."""

    def __init__(self, members: list[TunedInspector]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def kept(self, batch: GroupBatch) -> GroupBatch:
        """The batch after all frozen layers."""
        if self._first.whole:
            return batch
        kept = [cast(TunedInspector, member).kept(batch).x for member in self.members]
        return replace(batch, x=torch.cat(kept, dim=2))

    def parts(self, batch: GroupBatch) -> list[tuple[TunedInspector, GroupBatch]]:
        """Each member, and its part of the output of `kept`."""
        members = [cast(TunedInspector, member) for member in self.members]
        if self._first.whole:
            return [(member, batch) for member in members]
        shares = batch.x.chunk(len(members), dim=2)
        return [(member, replace(batch, x=x)) for member, x in zip(members, shares, strict=True)]

    def forward(self, batch: GroupBatch) -> Tensor:
        """Scaled targets: [E, B, 12] of each member while training, else their mean [B, 12]."""
        outputs = torch.stack([member(taken) for member, taken in self.parts(batch)])
        return outputs if self.training else outputs.mean(dim=0)

    @property
    def _first(self) -> TunedInspector:
        return cast(TunedInspector, self.members[0])


Tuned = TunedInspector | TunedEnsemble


def tuned_model(checkpoint: Checkpoint, config: TransferConfig) -> Tuned:
    """The checkpoint's inspector with a copy of phi_r for the tuned layers."""
    num_members = checkpoint.config.members
    prefixes = [member_prefix(i) for i in range(num_members)] if num_members > 1 else [""]
    members = [_tuned_member(checkpoint, config, prefix) for prefix in prefixes]
    return members[0] if num_members == 1 else TunedEnsemble(members)


def _tuned_member(checkpoint: Checkpoint, config: TransferConfig, prefix: str) -> TunedInspector:
    """The member of the checkpoint whose weight names have this prefix."""
    structure = replace(checkpoint.config, members=1)
    num_tuned = config.num_tuned(structure.num_layers(checkpoint.num_groups))
    inspector = Inspector(structure, checkpoint.num_groups, num_tuned=num_tuned)
    if checkpoint.num_tuned not in (0, num_tuned):
        raise ConfigError(
            f"the checkpoint of {checkpoint.setting} was transferred itself, with "
            f"{checkpoint.num_tuned} tuned layers, not {num_tuned}; start from the pre-trained one"
        )
    # A transferred inspector passes the tuned weights of its last layers on.
    last = "tuned." if checkpoint.num_tuned else "shared."
    wanted = inspector.state_dict()
    for name in wanted:
        source = name.replace("tuned.", last, 1) if name.startswith("tuned.") else name
        wanted[name] = torch.from_numpy(checkpoint.weights[prefix + source].copy())
    inspector.load_state_dict(wanted)
    return TunedInspector(inspector, config)


def _moves(name: str, layers: tuple[str, ...]) -> bool:
    """Whether the weight with this name is tuned."""
    part, _, rest = name.partition(".")
    if part in {"mlp", "readout"}:
        return part in layers
    if part == "first":
        return "phi_f" in layers and (rest.startswith("conv") or "gru" in layers)
    if part == "tuned":
        return ("phi_r" if rest.startswith("conv") else "gru") in layers
    return False
