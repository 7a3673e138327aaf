"""How often the interval of the nearest kind holds runs of a kind that was left out.

    python -m scripts.studies.nearest_kind

All published runs of one kind (task, network, cluster, compiled, half precision) are taken out of
the table of checked runs, and each of them is asked for its stated error: the nearest kind answers.
Prints a line per kind: runs, model families, the kind that stood in for most, the share of
published times inside the 90 % interval, and its median width (upper over lower end).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import exp

import numpy as np

from driple.answers.checked_runs import CheckedRun, shipped_run_columns
from driple.answers.job_kind import JobKind
from driple.answers.like_cluster import ClusterKind
from driple.answers.nearest_kind import RunKind
from driple.answers.op_mix import network_of
from driple.answers.stated_error import ErrorTable
from driple.catalog import link_named
from driple.render.remarks import sentence


def asked(run: CheckedRun) -> tuple[JobKind, ClusterKind]:
    """The job and the cluster of a run."""
    job = JobKind(
        framework=run.framework,
        task=run.task,
        network=network_of(run.mix),
        half=run.half,
        compiled=run.compiled,
        mix=run.mix,
    )
    return job, ClusterKind(
        kind=run.kind,
        devices=run.devices[:1],
        num_workers=run.num_devices,
        num_servers=run.num_servers,
        several_machines=run.several_machines,
        link=run.link,
        link_bytes_per_s=link_named(run.link).bytes_per_s if run.link else 0.0,
    )


def main() -> None:
    """Print the table and the means over kinds."""
    runs = shipped_run_columns().runs()
    by_kind: dict[RunKind, list[CheckedRun]] = defaultdict(list)
    for run in runs:
        by_kind[RunKind.of(*asked(run))].append(run)
    shares: list[float] = []
    for kind, own in sorted(by_kind.items(), key=lambda pair: str(pair[0])):
        gone = {id(run) for run in own}
        table = ErrorTable([run for run in runs if id(run) not in gone])
        inside, widths, stood_in = [], [], Counter[str]()
        for run in own:
            if run.held_out != "model":
                continue
            error = table.error_of(*asked(run))
            if error.low_factor is None or error.high_factor is None or error.short is None:
                continue
            inside.append(error.low_factor <= exp(-run.log_ratio) <= error.high_factor)
            widths.append(error.high_factor / error.low_factor)
            stood_in[sentence(error.short)] += 1
        names = [kind.task, kind.network, kind.cluster]
        names += [word for word in ("several_machines", "compiled", "half") if getattr(kind, word)]
        if not inside:
            print(f"{', '.join(names)}: nothing stands in")
            continue
        usual = stood_in.most_common(1)[0][0]
        shares.append(float(np.mean(inside)))
        families = len({run.family for run in own})
        print(
            f"{', '.join(names)}: {len(inside)} runs, {families} families, by "
            f"{usual}: {shares[-1]:.0%} inside, {np.median(widths):.1f} wide"
        )
    print(f"{len(shares)} kinds: {np.mean(shares):.0%} in the mean, {min(shares):.0%} in the worst")


if __name__ == "__main__":
    main()
