"""torchvision can be imported beside a CPU build of torch."""

import subprocess
import sys

RUN = """
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
declare_torchvision_ops()
declare_torchvision_ops()
import torch, torchvision
with torch.device("meta"):
    model = torchvision.models.resnet18()
print(sum(one.numel() for one in model.parameters()))
"""


def test_torchvision_is_imported_and_builds_a_model() -> None:
    """In a process of its own: an op is declared once for all of a process."""
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "11689512"  # as torchvision publishes for ResNet-18
