"""Compare closed forms, simulator and inspectors with measured runs: tables.json and pictures.

python -m scripts.studies.models.run

Some five minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driple.analytic import zeng
from driple.analytic.closed_forms import work_of
from driple.analytic.job_profile import profile_of
from driple.dataset.graph_store import GraphStore
from driple.inspector.checkpoint import load_checkpoint
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from scripts.fits.closed_forms import GRAPHS, TABLES, Errors, Fitted, fitted, progress
from scripts.fits.zeng_runs import PEAKS, ZengFit, ZengRun, as_published_s
from scripts.published.rows.cells import read_raw
from scripts.settings.shipped import inspector_file
from scripts.studies.kit.stored import write_stored
from scripts.studies.models.advice import BestCompression
from scripts.studies.models.checks import (
    DEVIATIONS,
    MODELS,
    AgainstSimulation,
    FloatArray,
    Halves,
    OnMeasured,
    against_simulation,
    random_halves,
    without_model,
)
from scripts.studies.models.figures import (
    CASES,
    COST,
    NAMES,
    compression,
    halves_picture,
    scalability,
)
from scripts.studies.models.zeng_layers import LAYERS

HOME = Path(__file__).parent
_HALVES_BY_CHANCE = 10
_TABLES = ("Table 2", "Table 3", "Table 4", "Table 5", "Table 6", "Table 7")


def pct(share: float, digits: int = 1) -> str:
    """A share as percent."""
    return f"{100 * share:.{digits}f} %"


def table_1(store: GraphStore) -> list[str]:
    """FLOPs: theirs, ours from our own graphs, and the pushes."""
    lines = [
        "| model | forward, theirs | ours | difference | backward, theirs | ours (85 a weight) | "
        "pushes, theirs | ours |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in read_raw(TABLES / "zeng_flops.csv.gz"):
        if not row["paper_table1_agrees"]:
            continue  # of the workbook alone
        model = row["model"]
        name = f"{model}/imagenet/b32/sgd/async/nchw"
        theirs = float(row["forward_conv_flops_per_image"])
        ours = "-", "-", "-"
        if name in store.places:
            work = work_of(PreparedJob(store.graph(name)))
            own_flops = work.forward_flops / 32
            ours = f"{own_flops:.4e}", pct(own_flops / theirs - 1), str(work.num_pushes)
        elif model in LAYERS:
            ours = f"{LAYERS[model]:.4e}", pct(LAYERS[model] / theirs - 1), "-"
        theirs_backward, backward = "-", "-"
        if row["weights_params"]:
            theirs_backward = f"{float(row['backward_flops_per_iteration']):.4e}"
            flops = zeng.backward_flops(float(row["weights_params"]), flops_per_weight=85)
            backward = f"{float(flops):.4e}"
        lines.append(
            f"| {row['model']} | {theirs:.4e} | {ours[0]} | {ours[1]} | "
            f"{theirs_backward} | {backward} | {row['pushes_paper'] or '-'} | {ours[2]} |"
        )
    return lines


def table_rows(runs: Sequence[ZengRun], table: str) -> tuple[list[str], float, float]:
    """One of Tables 2 to 7, and the mean errors of theirs and ours."""
    lines = [
        "| device | model | batch | theirs (s) | ours (s) | measured (s) | error, theirs | ours | "
        "paper prints otherwise |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    theirs, ours = [], []
    for run in runs:
        in_table = run.table == table or (
            table == "Table 3" and run.platform == "standalone-gpu" and run.batch_size in (32, 64)
        )
        if not in_table or run.told_s is None:
            continue
        predicted_s = as_published_s(run)
        theirs.append(abs(run.told_s / run.measured_s - 1))
        ours.append(abs(predicted_s / run.measured_s - 1))
        printed = [
            f"{words} {paper:g}"
            for words, paper, value in (
                ("predicted", run.paper_told_s, run.told_s),
                ("measured", run.paper_measured_s, run.measured_s),
            )
            if paper is not None and abs(paper / value - 1) > 0.005
        ]
        lines.append(
            f"| {' + '.join(run.workers)} | {run.model} | {run.batch_size} | {run.told_s:.4g} | "
            f"{predicted_s:.4g} | {run.measured_s:.4g} | {pct(theirs[-1])} | {pct(ours[-1])} | "
            f"{', '.join(printed)} |"
        )
    return lines, float(np.mean(theirs)), float(np.mean(ours))


def halves_table(halves: Sequence[Halves]) -> list[str]:
    """Errors by platform, on rows that the fit has not seen."""
    lines = [
        "| platform | held-out rows | published: mean | worst | repaired: mean | worst |",
        "|---|---|---|---|---|---|",
    ]
    runs = [run for half in halves for run in half.runs]
    published = np.concatenate([half.published for half in halves])
    repaired = np.concatenate([half.repaired for half in halves])
    for platform in [*dict.fromkeys(run.platform for run in runs), "all"]:
        some = np.array([platform in (run.platform, "all") for run in runs])
        lines.append(
            f"| {platform} | {some.sum()} | {pct(published[some].mean())} | "
            f"{pct(published[some].max())} | {pct(repaired[some].mean())} | "
            f"{pct(repaired[some].max())} |"
        )
    return lines


def worst_table(halves: Sequence[Halves], count: int = 8) -> list[str]:
    """The held-out rows that are furthest off."""
    lines = ["| platform | model | batch | measured (s) | repaired |", "|---|---|---|---|---|"]
    rows = [
        (run, float(value) / run.measured_s - 1)
        for half in halves
        for run, value in zip(half.runs, half.repaired_s, strict=True)
    ]
    for run, off in sorted(rows, key=lambda row: -abs(row[1]))[:count]:
        lines.append(
            f"| {run.platform} | {run.model} | {run.batch_size} | {run.measured_s:.4g} | "
            f"{100 * off:+.1f} % |"
        )
    return lines


def fit_table(fit: ZengFit) -> list[str]:
    """The fitted numbers in words."""
    how = fit.exchange
    lines = ["| number | fitted |", "|---|---|"]
    lines += [
        f"| share of {PEAKS[name] / 1e9:,.0f} GFLOP/s that a {name} reaches | "
        f"{pct(fit.efficiency[name], 0)} |"
        for name in ("E5-2620", "E5-2660", "RTX4000")
    ]
    lines += [
        f"| seconds of a {name} for a million parameters in each iteration | "
        f"{1e6 * fit.parameter_s[name]:.2g} |"
        for name in ("E5-2620", "E5-2660", "RTX4000")
    ]
    effects = ", ".join(f"{name} {factor:.2f}" for name, factor in fit.models.items())
    lines += [
        f"| factor on the time of each model | {effects} |",
        f"| factor on a GPU's time in batches below 16 | {fit.small_batch:.2f} |",
        f"| copies between host and device | {1 / how.copy_s_per_byte / 1e9:.0f} GB/s |",
        f"| share of the link's rate | {pct(how.share, 0)} |",
        f"| a server takes in or hands out | {1 / how.server_s_per_byte / 1e9:.1f} GB/s |",
        f"| start-up of a push | {1e6 * how.push_s:.0f} microseconds |",
        f"| share of the transfers that computing cannot hide | {pct(how.exposed, 0)} |",
    ]
    return lines


def simulation_table(rows: Sequence[AgainstSimulation]) -> list[str]:
    """Closed form over event simulation."""
    heads = " | ".join(f"deviation {deviation:g}" for deviation in DEVIATIONS)
    lines = [
        f"| model | workers | servers | Gbit/s | simulated (s) | no variance | {heads} | layer by "
        "layer |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        chance = [f"{100 * value:+.2f} %" for value in row.chance] or ["-"] * len(DEVIATIONS)
        lines.append(
            f"| {NAMES[row.model]} | {row.workers} | {row.servers} | {row.gbit:g} | "
            f"{row.simulated_s:.4f} | {100 * row.exact:+.2f} % | {' | '.join(chance)} | "
            f"{100 * row.layer:+.0f} % |"
        )
    return lines


def measured_table(rows: Sequence[OnMeasured]) -> list[str]:
    """Median and mean errors on the measured CPU settings."""
    lines = [
        "| setting | Zeng, published | Zeng, repaired | simulator | Zhang | Zhang, from one run | "
        "that run, scaled | inspector |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [off(row.methods[name]) for name in ("zeng", "zeng-repaired", "simulator", "zhang")]
        cells += ["-", "-"] if row is rows[0] else [off(row.from_run), off(row.run_itself)]
        file = inspector_file(row.setting, "default")
        inspector = load_checkpoint(file).metrics["test_iteration_time_mape_pct"]
        lines.append(f"| {row.setting} | {' | '.join(cells)} | ({inspector:.0f} %) |")
    return lines


def off(ratios: FloatArray) -> str:
    """Median and mean error of ratios."""
    errors = np.abs(ratios - 1)
    return f"{pct(float(np.median(errors)), 0)} ({pct(float(errors.mean()), 0)})"


def compression_table(best: dict[tuple[str, int, int], BestCompression]) -> list[str]:
    """The best share not to send, and what it saves."""
    heads = " | ".join(f"{gbit} Gbit/s, {workers} workers" for gbit, workers in CASES)
    lines = [f"| model | {heads} |", "|---" * (len(CASES) + 1) + "|"]
    for name in MODELS:
        cells = [
            f"{100 * best[name, gbit, workers].ratio:.0f} % saves "
            f"{pct(best[name, gbit, workers].saved, 0)}"
            for gbit, workers in CASES
        ]
        lines.append(f"| {NAMES[name]} | {' | '.join(cells)} |")
    return lines


def zeng_tables(runs: Sequence[ZengRun], store: GraphStore) -> dict[str, list[str]]:
    """The tables of Zeng et al. beside ours, and the mean errors of each."""
    tables = {"zeng_table_1": table_1(store)}
    means = ["| table | error, theirs | ours |", "|---|---|---|"]
    for table in _TABLES:
        lines, theirs, ours = table_rows(runs, table)
        tables[f"zeng_{table.lower().replace(' ', '_')}"] = lines
        means.append(f"| {table} | {pct(theirs)} | {pct(ours)} |")
    return {"means": means, **tables}


def fit_numbers(result: Fitted) -> dict[str, str]:
    """Mean errors of the repaired model, by how its rows were held out."""
    by_chance = random_halves(result.runs, _HALVES_BY_CHANCE)
    progress("fitting without each model")
    unseen = without_model(result.runs)
    return {
        "held_out_rows": str(len(result.runs)),
        "repaired": pct(float(np.concatenate([h.repaired for h in result.halves]).mean())),
        "published": pct(float(np.concatenate([h.published for h in result.halves]).mean())),
        "chance": f"{pct(min(by_chance))} to {pct(max(by_chance))}, on average "
        f"{pct(float(np.mean(by_chance)))}",
        "unseen": ", ".join(
            f"{name} {pct(half.repaired.mean())} (published {pct(half.published.mean())})"
            for name, half in unseen.items()
        ),
        "unfit": str(result.measured[0].unfit),
    }


def simulation_numbers(simulated: Sequence[AgainstSimulation]) -> dict[str, str]:
    """Zhang's pipeline over the event simulation, least and largest."""
    single = [row for row in simulated if row.servers == 1]
    several = [row for row in simulated if row.servers > 1]

    def span(values: Sequence[float]) -> str:
        return f"{100 * min(values):.0f} to {100 * max(values):+.0f} %"

    return {
        "exact": f"{100 * max(abs(row.exact) for row in single):.4f} %",
        "chance_worst": f"{100 * max(abs(v) for row in single for v in row.chance):.1f} %",
        "several": span([row.exact for row in several]),
        "even": span([row.even for row in several]),
        "layer": span([row.layer for row in single]),
    }


def error_numbers(errors: Errors) -> dict[str, str]:
    """Median error and 90th percentile of each method by kind of cluster."""
    servers = shipped_calibration().errors["servers"]
    return {
        "zhang_mean": f"{errors['servers']['zhang']['mean_pct']:g} %",
        "servers_simulator": f"{servers.median_pct:g} % ({servers.p90_pct:g} %)",
        **{
            f"{kind}_{method}".lower().replace("-", "_"): f"{values['median_pct']:g} % "
            f"({values['p90_pct']:g} %)"
            for kind, methods in errors.items()
            for method, values in methods.items()
        },
    }


def main() -> None:
    """Fit, compare, draw, and store all tables and numbers."""
    result, store = fitted(), GraphStore.open(GRAPHS)
    calibration = shipped_calibration()
    simulated = against_simulation(store, calibration, progress)
    device = calibration.device("V100")
    profiles = {
        name: profile_of(PreparedJob(store.graph(f"{name}/imagenet/b32/sgd/async/nchw")), device)
        for name in MODELS
    }
    scalability(profiles, HOME / "scalability.png")
    best = compression(profiles, HOME / "compression.png")
    halves_picture(result.halves, HOME / "zeng.png")
    tables = {
        "halves": halves_table(result.halves),
        "fit": fit_table(result.fit),
        "worst": worst_table(result.halves),
        "simulation": simulation_table(simulated),
        "measured": measured_table(result.measured),
        "compression": compression_table(best),
        **zeng_tables(result.runs, store),
    }
    numbers = {
        **error_numbers(result.errors),
        **fit_numbers(result),
        **simulation_numbers(simulated),
        "megabytes": ", ".join(
            f"{NAMES[name]} {profile.push_bytes.sum() / 1e6:.0f} MB in "
            f"{1e3 * profile.compute_s:.0f} ms"
            for name, profile in profiles.items()
        ),
        "cost": f"{COST.s_per_byte * 1e9:g}",
    }
    write_stored(HOME / "tables.json", tables, numbers)


if __name__ == "__main__":
    main()
