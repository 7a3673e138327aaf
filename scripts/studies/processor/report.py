"""Page from results.jsonl."""

from __future__ import annotations

import numpy as np

from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import pick, read_results
from scripts.studies.kit.tables import markdown
from scripts.studies.processor.run import RESULTS


def _errors(ratios: np.ndarray) -> str:
    errors = 100 * np.abs(ratios - 1)
    return f"{np.median(errors):.1f} and {np.percentile(errors, 90):.0f} %"


def parts() -> Parts:
    """Tables of the page."""
    rows = read_results(RESULTS)
    steps, (pace,) = pick(rows, kind="step"), pick(rows, kind="pace")
    measured = np.array([row["step_s"] for row in steps])
    own = np.array([row["predicted_s"] for row in steps]) / measured
    others = np.array([row["other_kernels_s"] for row in steps]) / measured
    lines = [
        [
            row["program"],
            row["optimizer"],
            f"{1000 * row['step_s']:.2f} ms",
            f"{100 * (row['predicted_s'] / row['step_s'] - 1):+.0f} %",
            f"{100 * (row['other_kernels_s'] / row['step_s'] - 1):+.0f} %",
        ]
        for row in steps
    ]
    return {
        "each": markdown(
            ["step", "optimizer", "measured", "three numbers", "TensorFlow's kernels"],
            lines,
            right=True,
        ),
        "own": _errors(own),
        "others": _errors(others),
        "least": f"{others.min():.1f}",
        "most": f"{others.max():.1f}",
        "gflops": f"{pace['flops_per_s'] / 1e9:.0f}",
        "gbytes": f"{pace['bytes_per_s'] / 1e9:.1f}",
        "op": f"{1e6 * pace['op_s']:.1f}",
    }
