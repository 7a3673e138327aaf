"""The zoo: training jobs as TensorFlow graphs. Importing it does not import TensorFlow."""

from driple.zoo.catalogue import MODELS
from driple.zoo.lists import cpu_workloads, paper_workloads
from driple.zoo.workload import Workload

__all__ = ["MODELS", "Workload", "cpu_workloads", "paper_workloads"]
