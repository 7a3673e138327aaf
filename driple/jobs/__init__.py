"""The zoo: training jobs as TensorFlow graphs. Importing it does not import TensorFlow."""

from driple.jobs.catalogue import MODELS
from driple.jobs.lists import cpu_workloads, paper_workloads
from driple.jobs.workload import Workload

__all__ = ["MODELS", "Workload", "cpu_workloads", "paper_workloads"]
