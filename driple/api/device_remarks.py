"""What an answer leaves out, or does in another way, on the devices of a setting.

Job, Setting -> number formats that the devices lack; tuning that the method does not know
"""

from __future__ import annotations

from collections.abc import Sequence

from driple.catalog.model import Device
from driple.cluster.setting import Setting, UnknownCluster
from driple.graph.low_precision import LOW_PRECISIONS
from driple.jobs.job import Job
from driple.remarks import Remark, remark

__all__ = ["device_remarks"]

_BFLOAT16 = ("bf16", "amp-bf16", "bf16-mixed", *LOW_PRECISIONS)


def device_remarks(job: Job, setting: Setting, method: str) -> tuple[Remark, ...]:
    """One for each thing that a user of these devices would not expect.

    Args:
        job: the training job.
        setting: the cluster.
        method: that answered, such as `inspector`.
    """
    from driple.simulate.gpu_rates import is_tuned

    gpus = [device for device in _devices(setting) if not device.is_cpu]
    remarks = [lack for device in gpus if (lack := _lacking(job.precision, device))]
    if job.precision in LOW_PRECISIONS:
        remarks.append(remark("low_precision", precision=job.precision))
    remarks += _other_kernels(job, gpus)
    if method == "inspector":
        remarks += [_untold(device) for device in gpus if is_tuned(device)]
    return tuple(remarks)


def _devices(setting: Setting) -> tuple[Device, ...]:
    """Each kind of device once, the worker's first."""
    described = setting.described
    others = () if isinstance(described, UnknownCluster) else described.kinds
    return tuple(dict.fromkeys((setting.worker, *others)))


def _lacking(precision: str, device: Device) -> Remark | None:
    """How a format runs on a device that has no units for it; None if it has them."""
    if precision in _BFLOAT16 and "bf16" not in (*device.formats, *device.unknown):
        return remark(
            "no_bfloat16",
            device=device.name,
            precision=precision,
            has_tensor_cores=bool(device.find("tensor_cores")),
        )
    if precision == "tf32" and "tf32" not in (*device.formats, *device.unknown):
        return remark("no_tf32", device=device.name)
    return None


def _other_kernels(job: Job, gpus: Sequence[Device]) -> list[Remark]:
    """Which devices run attention otherwise than the one that the job was read for."""
    from driple.graph.torch.options import kernels_like, kernels_of

    # Without a fused kernel attention is matrix products and a softmax, as in other models.
    fused = any(op.kind == "attention" for op in job.graph.signatures)
    if job.library in {None, "torch1"} or not (fused or job.seq_len is not None):
        return []  # no model of PyTorch, or of one without fused attention
    half = job.origin.may_be_half(job.precision)
    read_for = kernels_of(job.compute_capability, half=half)
    others = [one.name for one in gpus if kernels_like(one.generation, half=half) != read_for]
    if not others:
        return []
    if others[0] == gpus[0].name:
        capability = ".".join(map(str, job.compute_capability or ()))
        return [
            remark("attention_of_other_device", device=others[0], compute_capability=capability)
        ]
    return [remark("attention_of_first_device", device=gpus[0].name, others=tuple(others))]


def _untold(device: Device) -> Remark:
    return remark("tuning_left_out", device=device.name, file=device.origin)
