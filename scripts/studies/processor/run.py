"""Three numbers of a core against 42 training steps of PyTorch, each left out in turn.

    python -m scripts.studies.processor.run [--measure]

With `--measure` the steps are timed anew, on a machine that does nothing else. Writes
results.jsonl, and what answers state of steps on processors (driple/answers/processor_steps.json).
"""

from __future__ import annotations

import argparse
import datetime
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from driple.api.measured_processor import ProcessorStep, pace_of
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.files import atomic_write
from driple.jobs.pytorch.modules import job_of_module
from driple.simulate.calibration import shipped_calibration
from driple.simulate.kernels import op_times
from driple.simulate.prepared_job import PreparedJob
from scripts.studies.kit.results import add_result, pick, read_results
from scripts.studies.processor.programs import programs, seconds_of

HOME = Path(__file__).parent
RESULTS = HOME / "results.jsonl"
STATED = Path(__file__).resolve().parents[3] / "driple" / "answers" / "processor_steps.json"
_CORE_SHARE = 0.4  # of a core: the device `CPU` that TensorFlow's kernels were fitted on


def by_other_kernels(job: PreparedJob) -> float:
    """Seconds of a step on a whole core by the kernels that were fitted to TensorFlow."""
    setting = Setting.parse("2x1xCPU/400M")
    device = shipped_calibration(setting).device(setting.worker)
    kinds = job.kinds
    times = op_times(
        kinds.table,
        kinds.kind_of,
        kinds.executions,
        device.spec,
        device.efficiency,  # type: ignore[arg-type]
    )
    update_s = job.graph.update.moved_bytes / (
        device.spec.bytes_per_s * device.efficiency.device.memory  # type: ignore[union-attr]
    )
    return _CORE_SHARE * (float(times.duration_s.sum()) + update_s)


def main() -> None:
    """Measure if asked, then predict each step by the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    known = {row["program"]: row["step_s"] for row in pick(read_results(RESULTS), kind="step")}
    steps, others = [], []
    all_programs = list(programs())
    for program in all_programs:
        if given.measure:
            known[program.name] = seconds_of(program)
        network, batch = program.make(), program.draw()
        step_s = known[program.name]
        steps.append(ProcessorStep.of(network, batch, step_s, optimizer=program.optimizer))
        job = job_of_module(network, batch, optimizer=program.optimizer)
        others.append(by_other_kernels(PreparedJob.of_job(job)))
    RESULTS.unlink(missing_ok=True)
    ratios = []
    for i, (program, step) in enumerate(zip(all_programs, steps, strict=True)):
        pace = pace_of([*steps[:i], *steps[i + 1 :]])
        ratios.append(step.seconds / step.predicted_s(pace))
        add_result(
            RESULTS,
            {
                "kind": "step",
                "program": program.name,
                "optimizer": program.optimizer,
                "step_s": step.seconds,
                "predicted_s": step.predicted_s(pace),
                "other_kernels_s": others[i],
            },
        )
    add_result(RESULTS, {"kind": "pace", **asdict(pace_of(steps))})
    errors = 100 * np.abs(1 / np.array(ratios) - 1)
    stated = {
        "programs": len(ratios),
        "median_pct": round(float(np.median(errors)), 1),
        "p90_pct": round(float(np.percentile(errors, 90)), 1),
        "low_factor": round(float(np.percentile(ratios, 5)), 3),
        "high_factor": round(float(np.percentile(ratios, 95)), 3),
        "source": "scripts/studies/processor",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }
    atomic_write(STATED, (json.dumps(stated, indent=1) + "\n").encode(), error=ConfigError)
    print(stated)


if __name__ == "__main__":
    main()
