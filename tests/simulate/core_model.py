"""Factors and a device of the model of ops one after another, for laws whatever was fitted."""

from __future__ import annotations

from driple.simulate.kernels import DeviceEfficiency, Kernels

# Winograd's transforms move each pixel more than twice, in and out (Lavin and Gray, CVPR 2016).
KERNELS = Kernels(
    product=(1.0, 1.0, 1.0, 1.2, 1.5, 1.2, 1.0),
    tensor_product=(1.0, 1.0, 1.0, 1.2, 1.5, 1.2, 1.0),
    gradient=(1.1, 1.1),
    tensor_gradient=(1.1, 1.1),
    saving=(1.1, 1.1),
    saving_traffic=(3.0, 4.0),
    layout=2.0,
    window_start=1.0,
    memory=(1.0, 1.5, 1.5, 1.0, 1.0, 1.5, 1.0),
    half_memory=(1.0,) * 7,
    fused_memory=(0.7, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    fused_start=0.7,
)
DEVICE = DeviceEfficiency(compute=0.8, tensor=0.35, memory=0.75, start_s=8e-6)
