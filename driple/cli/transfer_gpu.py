"""`driple transfer --from gpu`: the simulator tuned to one GPU by a user's own runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from driple.cli.progress import named_steps
from driple.errors import ConfigError
from driple.render.remarks import sentences
from driple.render.show import note, print_json, print_table

if TYPE_CHECKING:
    from driple.api.tuning import TuningResult

__all__ = ["GPU", "tune"]

GPU = "gpu"  # of --from
_FILE = "device.toml"
_NEEDS = (
    "--from gpu needs --dataset FILE.csv, a table of your own runs with the columns job, setting "
    "and seconds, and where they apply batch_size, seq_len, input, precision, optimizer, compiled, "
    "layout"
)


def tune(
    target: str,
    dataset: Path | None,
    catalog: str | None,
    output: Path | None,
    *,
    machine: Path | None,
    unused: Sequence[str],
    json: bool,
) -> None:
    """Tune to the runs of a table, print the errors, write the device's row.

    Args:
        target: setting whose device it is.
        dataset: the table.
        catalog: catalogue file of the user's.
        machine: file of driple measure --machine, from which the runs tune on.
        output: folder for the row; runs/transfer-SETTING-gpu if None.
        unused: options that were given and are of inspectors alone.
        json: whether one JSON object is printed.

    Raises:
        ConfigError: no table, or an option that does not belong here.
    """
    from driple.api.tuning import tune_device, write_tuning
    from driple.catalog.machine_file import read_machine
    from driple.cluster.setting import parse_setting

    if unused:
        raise ConfigError(
            f"{' and '.join(unused)}: of inspectors, and --from gpu tunes the simulator; leave "
            f"{'it' if len(unused) == 1 else 'them'} out"
        )
    if dataset is None:
        raise ConfigError(_NEEDS)
    own = None if machine is None else read_machine(machine)
    setting = parse_setting(target, [] if catalog is None else [Path(catalog)], machine)
    with named_steps() as advance:
        result = tune_device(dataset, setting, machine=own, progress=advance)
    for words in sentences(result.remarks):
        note(words)
    written = None
    if result.tuning.helps:
        folder = output or Path("runs") / f"transfer-{setting.file_name}-gpu"
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / _FILE
        write_tuning(result, written)
    if json:
        print_json({**result.to_dict(), "written": None if written is None else str(written)})
        return
    _show(result)
    if written is None:
        note(
            "runs that were left out are predicted no better than without tuning, so nothing is "
            "written; more runs, or runs of more different jobs, may help"
        )
        return
    if machine is None:
        note(f"wrote {written}; driple predict JOB --setting {setting.name} --catalog {written}")
    else:
        note(f"wrote {written}; driple predict JOB --setting {setting.name} --machine {written}")


def _show(result: TuningResult) -> None:
    tuning, numbers = result.tuning, result.to_dict()
    print_table(
        ["run", "job", "measured", "without tuning", "tuned by the other runs"],
        [
            [str(row["run"]), str(row["job"]), _seconds(row["measured_s"]),
             f"{_seconds(row['before_s'])} {_off(row['before_s'], row['measured_s'])}",
             f"{_seconds(row['left_out_s'])} {_off(row['left_out_s'], row['measured_s'])}"]
            for row in result.rows()
        ],
    )  # fmt: skip
    print()
    print(
        f"{result.device}, {len(result.runs)} runs: median error {tuning.median_pct:.1f} %, 90th "
        f"percentile {tuning.p90_pct:.1f} % when each is predicted by the others; without tuning "
        f"{numbers['before_median_pct']:.1f} % and {numbers['before_p90_pct']:.1f} %"
    )
    factors = ", ".join(f"{name} {value:.3g}" for name, value in result.factors.items())
    print(f"what the device reaches, over what was assumed (host: its seconds): {factors}")
    print(f"{tuning.host_runs} of the runs wait for their host and tell of it")


def _seconds(value: object) -> str:
    return f"{float(value):.4g} s" if isinstance(value, float) else str(value)


def _off(predicted: object, measured: object) -> str:
    if not isinstance(predicted, float) or not isinstance(measured, float):
        return ""
    return f"({100 * (predicted / measured - 1):+.0f} %)"
