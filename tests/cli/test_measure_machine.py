"""`driple measure --machine`, and its file in the commands that take it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driple.catalog.machine_file import MachineFile, machine_text, read_machine
from driple.catalog.rows import Row
from driple.errors import ConfigError
from tests.api.test_schema import errors_of
from tests.catalog.test_machine_file import H100, HOST, RING, WHOLE
from tests.cli.test_main import driple, refused

SMALL = ("resnet18", "--batch-size", "2", "--setting", "1xH100")


def machine_file(folder: Path, machine: MachineFile) -> Path:
    file = folder / "machine.toml"
    file.write_text(machine_text(machine))
    return file


def predicted_s(*arguments: object) -> float:
    shown = driple("predict", *arguments, "--json")
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    assert errors_of(result) == []
    return float(result["answers"][0]["iteration_time_s"]["value"])


def test_the_host_of_this_machine_is_measured_and_then_used(tmp_path: Path) -> None:
    """The file is written, states what it cannot know, and predict takes its pace."""
    file = tmp_path / "machine.toml"
    command = ("measure", "--machine", "-o", file, "--set", "parts=host", "--set", "quiet_wait=0")
    shown = driple(*command, "--json")
    assert shown.returncode == 0, shown.stderr
    assert errors_of(json.loads(shown.stdout)) == []
    host = read_machine(file).host
    assert host is not None and host.low_us <= host.us_per_op <= host.high_us
    explained = driple("predict", *SMALL, "--machine", file, "--explain")
    assert explained.returncode == 0, explained.stderr
    assert f"the host of {file} takes {host.us_per_op:.3g} us an op" in explained.stdout
    assert ("are assumed: no GPU was there" in explained.stdout) == (host.launch_us is not None)


def test_a_slower_host_makes_small_steps_longer(tmp_path: Path) -> None:
    """A step that waits for its host takes twice as long on one half as fast."""
    rows = replace(WHOLE, collectives=())
    quick = predicted_s(*SMALL, "--machine", machine_file(tmp_path, rows))
    slow = replace(rows, host=replace(HOST, us_per_op=2 * HOST.us_per_op))
    assert predicted_s(*SMALL, "--machine", machine_file(tmp_path, slow)) == pytest.approx(
        2 * quick, rel=0.1
    )


def test_the_machine_is_the_setting_where_none_is_given(tmp_path: Path) -> None:
    file = machine_file(tmp_path, WHOLE)
    shown = driple("predict", "resnet18", "--batch-size", "2", "--machine", file, "--json")
    assert json.loads(shown.stdout)["answers"][0]["setting"].startswith("8xH100")
    assert "no --setting given" not in shown.stderr


def test_a_file_without_a_gpu_leaves_the_setting_open_and_this_is_told(tmp_path: Path) -> None:
    file = machine_file(tmp_path, MachineFile(file="h", host=HOST))
    for command in ("predict", "inspect"):
        shown = driple(command, "resnet18", "--batch-size", "2", "--machine", file)
        assert "no --setting given" in shown.stderr


def test_measured_values_count_before_those_of_a_catalogue_and_the_answer_states_it(
    tmp_path: Path,
) -> None:
    row = Row(name="H100", values={**H100.values, "bytes_per_s": 1e12}, file="m", own=True)
    file = machine_file(tmp_path, MachineFile(file="m", rows=(row,)))
    own = tmp_path / "mine.toml"
    own.write_text('[[devices]]\nname = "H100"\nbytes_per_s = 9e12\n')
    alone = predicted_s(*SMALL, "--machine", file)
    assert predicted_s(*SMALL, "--machine", file, "--catalog", own) == alone
    shown = driple("predict", *SMALL, "--machine", file, "--catalog", own, "--explain")
    assert f"H100: values of {file} count before those of {own}" in shown.stdout


def test_plan_sweep_and_inspect_take_the_file(tmp_path: Path) -> None:
    file = machine_file(tmp_path, WHOLE)
    job = ("resnet18", "--batch-size", "2", "--machine", file)
    for command in (("plan", *job), ("sweep", *job, "--workers", "8"), ("inspect", *job)):
        shown = driple(*command, "--json")
        assert shown.returncode == 0, shown.stderr
        assert errors_of(json.loads(shown.stdout)) == []
        assert "8xH100" in shown.stdout
    shown = driple("plan", *job)
    assert f"the host of {file} takes 20 us an op" in shown.stderr


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    file = machine_file(tmp_path, WHOLE)
    host = tmp_path / "host.toml"
    host.write_text(machine_text(MachineFile(file="h", host=HOST)))
    cut = tmp_path / "cut.toml"
    cut.write_text(file.read_text()[:200])
    job = ("resnet18", "--batch-size", "2")
    there = ("--setting", "1xH100", "--machine", file)
    assert "was measured on H100" in refused(
        "predict", *job, "--setting", "1xA100", "--machine", file
    )
    assert "cut.toml" in refused("predict", *job, "--machine", cut)
    assert "cannot be read" in refused("predict", *job, "--machine", tmp_path / "none.toml")
    assert "--set host_us_per_op" in refused("predict", *job, *there, "--set", "host_us_per_op=9")
    assert "--link-bandwidth" in refused("predict", *job, *there, "--link-bandwidth", "1GB/s")
    assert "no setting says which" in refused("plan", *job, "--machine", host)
    assert "names no GPU" in refused("sweep", *job, "--machine", host)
    assert "--from gpu" in refused(
        "transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--machine", file
    )


def test_options_of_campaigns_and_of_machines_do_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "machine.toml"
    assert "--calibrate" in refused("measure", "--machine", "--calibrate", "-o", file)
    assert "WORKLOADS" in refused("measure", "--machine", "lenet/mnist/b8/sgd/sync", "-o", file)
    assert "--set parts" in refused("measure", "--machine", "--set", "parts=disk", "-o", file)
    assert "--machine" in refused("measure", "--set", "parts=host", "-o", tmp_path / "runs")
    assert "does not exist" in refused("measure", "--machine", "-o", tmp_path / "no" / "m.toml")
    assert "--data" in refused(
        "measure", "--machine", "--data", "missing.py:f", "--set", "parts=host", "-o", file
    )
    assert not file.exists()


def test_a_full_disk_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured is printed where it cannot be written."""
    from driple import files
    from driple.api import measuring_machine
    from driple.cli.measure_machine import measure_this_machine

    def full(*_: object, **__: object) -> None:
        raise ConfigError("cannot write: No space left on device; free some space")

    monkeypatch.setattr(measuring_machine, "measure_machine", lambda *_: (WHOLE, ()))
    monkeypatch.setattr(files, "atomic_write", full)
    file = tmp_path / "machine.toml"
    with pytest.raises(ConfigError, match="No space"):
        measure_this_machine(file, parts="", data=None, quiet_wait_s=0, unused=(), json=False)
    file.write_text(capsys.readouterr().out)
    assert read_machine(file).host == HOST


def test_a_tuning_goes_on_from_a_machine_file(tmp_path: Path) -> None:
    """Runs that take as long as the file has it change nothing much; its links stay."""
    file = machine_file(tmp_path, WHOLE)
    table = tmp_path / "runs.csv"
    jobs = [("resnet18", batch) for batch in (1, 2, 4)] + [("vgg16", batch) for batch in (1, 2)]
    lines = ["job,setting,seconds,batch_size"]
    for name, batch in jobs:
        setting = ("--setting", "1xH100", "--machine", file)
        seconds = 1.5 * predicted_s(name, "--batch-size", batch, *setting)
        lines.append(f"{name},1xH100,{seconds},{batch}")
    table.write_text("\n".join(lines) + "\n")
    command = ("transfer", "--from", "gpu", "--to", "1xH100", "--dataset", table)
    shown = driple(*command, "--machine", file, "-o", tmp_path / "tuned", "--json")
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    assert errors_of(result) == []
    tuned = read_machine(Path(result["written"]))
    assert tuned.collectives[0].ranks == RING.ranks
    assert tuned.rows[0].values["tuned_host"] == pytest.approx(result["factors"]["host"], rel=1e-3)
    after = predicted_s("resnet18", "--batch-size", "2", "--setting", "1xH100", "--machine",
                        result["written"])  # fmt: skip
    before = predicted_s("resnet18", "--batch-size", "2", "--setting", "1xH100", "--machine", file)
    assert after == pytest.approx(1.5 * before, rel=0.15)


def test_a_file_that_is_no_machine_file_is_not_lost(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n")
    message = refused("measure", "--machine", "--set", "parts=host", "-o", notes)
    assert "no machine file" in message and notes.read_text() == "# Notes\n"


@pytest.mark.parametrize("given", [("--setting", "CPU-P2w2"), ("--set", "share=0.3")])
def test_what_only_campaigns_use_is_refused(tmp_path: Path, given: tuple[str, str]) -> None:
    """Nothing that was typed is left out in silence."""
    shown = refused("measure", "--machine", *given, "-o", tmp_path / "machine.toml")
    assert given[1].partition("=")[0] in shown or given[0] in shown


def test_a_tuned_device_is_the_setting_where_none_is_given(tmp_path: Path) -> None:
    """A `device.toml` has no machine, and stands for one GPU of its kind."""
    row = Row(name="H100", values={**H100.values, "tuned_host": 1.5}, file="d", own=True)
    file = machine_file(tmp_path, MachineFile(file="d", rows=(row,)))
    shown = driple("predict", "resnet18", "--batch-size", "2", "--machine", file, "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["answers"][0]["setting"] == "1xH100"
