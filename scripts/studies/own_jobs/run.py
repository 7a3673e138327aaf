"""What Driple says of jobs that it had not seen, with nothing known of their host and tuned to ten.

    python -m scripts.studies.own_jobs.run

Writes results.jsonl: one row a job by `driple predict` as it answers by default, one a draw of ten
jobs that tune the device as `driple transfer --from gpu` does; all other models are predicted.
"""

from __future__ import annotations

import numpy as np

from driple import predict
from driple.answers.tuned_steps import tuned_steps
from driple.catalog.fields import TUNED
from driple.runs.tuning import errors_pct, factors_of, tuned_step
from driple.simulate.calibration import shipped_calibration
from scripts.studies.kit.results import add_result
from scripts.studies.own_jobs.jobs import HOME, SETTING, own_jobs

RESULTS = HOME / "results.jsonl"
RUNS, DRAWS = 10, 20
_NO_HOST = 1e-9


def main() -> None:
    """Predict all jobs."""
    RESULTS.unlink(missing_ok=True)
    calibrated = shipped_calibration().device(SETTING.removeprefix("1x"))
    no_host = np.where(np.array(TUNED) == "host", _NO_HOST, 1.0)
    steps, decides = [], []
    for job in own_jobs():
        answer = predict(job.job, SETTING, method="simulator").answers[0]
        time = answer.iteration_time_s
        ends = time.interval
        known = tuned_step(
            job.ready().prepared, calibrated, name=job.name, group=job.name, seconds=job.step_s
        )
        add_result(
            RESULTS,
            {
                "kind": "job",
                "job": job.name,
                "precision": job.precision,
                "step_s": job.step_s,
                "busy_s": job.busy_s,
                "kernels": job.kernels,
                "predicted_s": time.value,
                "ends_s": None if ends is None else [ends.low, ends.high],
                "predicted_busy_s": known.predicted_s(no_host),
                "starts": float(known.starts.sum()) + known.update_starts,
            },
        )
        steps.append(known)
        decides.append(job.host_decides)
    low, high = tuned_steps().host_ends
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(len(steps)).tolist()
        groups = {steps[i].group for i in order[:RUNS]}
        rest = [i for i in order[RUNS:] if steps[i].group not in groups]
        factors = factors_of([steps[i] for i in order[:RUNS]])
        ratios = np.array([steps[i].predicted_s(factors) / steps[i].seconds for i in rest])
        of_host = ratios[[decides[i] for i in rest]]
        add_result(
            RESULTS,
            {
                "kind": "draw",
                "draw": draw,
                "jobs": len(rest),
                "host_factor": float(factors[TUNED.index("host")]),
                "all_pct": np.quantile(errors_pct(ratios), [0.5, 0.9]).round(1).tolist(),
                "host_pct": np.quantile(errors_pct(of_host), [0.5, 0.9]).round(1).tolist(),
                "inside": float(np.mean((1 / ratios >= low) & (1 / ratios <= high))),
            },
        )


if __name__ == "__main__":
    main()
