"""Trainers import torchvision, whose compiled ops a CPU build of torch may lack."""

from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

declare_torchvision_ops()
