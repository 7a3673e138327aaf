"""Scripts that cannot be profiled: one clear line each, and a second run goes on."""

from pathlib import Path

import pytest

from driple.errors import ConfigError, MeasureError
from driple.profiler.stall_profile import read_profile
from driple.profiler.steps import Plan
from driple.profiler.steps_runner import profile_script

QUICK = Plan(processes=1, iterations=2, warmup=3, repeats=1, tries=1, timeout_s=100)

TRAIN = """
import sys, os, time, torch
from torch.utils.data import DataLoader, TensorDataset
before = sys.argv[1] if len(sys.argv) > 1 else ""
class Data(TensorDataset):
    def __getitem__(self, i):
        if i == 9 and before and not os.path.exists(before):
            raise OSError("the disk with the images is gone")
        return super().__getitem__(i)
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in DataLoader(Data(torch.zeros(20, 2)), batch_size=4):
    model(x).sum().backward()
    optimizer.step()
"""


def script(tmp_path: Path, code: str) -> str:
    file = tmp_path / "train.py"
    file.write_text(code)
    return str(file)


def test_a_crash_keeps_what_is_done_and_a_second_run_goes_on(tmp_path: Path) -> None:
    """The step with real data crashes; when the cause is mended only that step is run."""
    mended = tmp_path / "mended"
    command, out = [script(tmp_path, TRAIN), str(mended)], tmp_path / "out"
    with pytest.raises(MeasureError, match=r"step 4 .*the disk with the images is gone.*log"):
        profile_script(command, QUICK, out, steps=[2, 4])
    done = out / "step2.r0.json"
    before = done.stat().st_mtime_ns
    assert not (out / "step4.r0.json").exists()
    mended.touch()
    profile = profile_script(command, QUICK, out, steps=[1, 2, 4])
    assert sorted(profile.times) == [2, 4]
    assert "one device" in profile.left_out[1]
    assert done.stat().st_mtime_ns == before
    assert set(profile.stalls()) == {"prep"}
    assert read_profile(out).times == profile.times


def test_a_script_that_hangs_is_ended(tmp_path: Path) -> None:
    """It is told which rank still ran, and for how long."""
    command = [script(tmp_path, "import time\ntime.sleep(600)")]
    quick = Plan(processes=1, iterations=2, warmup=3, repeats=1, tries=1, timeout_s=1.0)
    with pytest.raises(MeasureError, match=r"not done after 1 s \(ranks still running: 0\)"):
        profile_script(command, quick, tmp_path / "out", steps=[2])


def test_a_script_that_trains_alone_is_refused(tmp_path: Path) -> None:
    """Two processes were started, and none knows of the other."""
    two = Plan(processes=2, iterations=2, warmup=3, repeats=1, tries=1, timeout_s=100)
    with pytest.raises(MeasureError, match=r"1 process where 2 were started"):
        profile_script([script(tmp_path, TRAIN)], two, tmp_path / "out", steps=[2])


def test_a_script_that_does_not_train_is_told_what_is_missing(tmp_path: Path) -> None:
    """It ended well, and too early."""
    with pytest.raises(MeasureError, match=r"ended before 5 training iterations .*DataLoader"):
        profile_script([script(tmp_path, "pass")], QUICK, tmp_path / "out", steps=[2])


def test_what_is_not_there_is_told_before_anything_runs(tmp_path: Path) -> None:
    """No script, no data, no folder, a plan that cannot be."""
    command = [script(tmp_path, TRAIN)]
    with pytest.raises(ConfigError, match="no script"):
        profile_script([], QUICK, tmp_path / "out")
    with pytest.raises(ConfigError, match=r"missing\.py is not there"):
        profile_script([str(tmp_path / "missing.py")], QUICK, tmp_path / "out")
    with pytest.raises(ConfigError, match="a step must be a whole number from 1 to 5"):
        profile_script(command, QUICK, tmp_path / "out", steps=[6])
    with pytest.raises(ConfigError, match="--set reads"):
        profile_script(command, QUICK, tmp_path / "out", data=[tmp_path / "none"])
    with pytest.raises(MeasureError, match="no stall profile"):
        read_profile(tmp_path / "out")
    with pytest.raises(ConfigError, match="cannot be shared among 2 machines"):
        Plan(processes=3, network_bits_per_s=1e9)
    for options in (
        {"processes": 0},
        {"iterations": 1},
        {"warmup": 2},
        {"repeats": 0},
        {"tries": 0},
    ):
        name = next(iter(options))
        flag = {"processes": "--devices"}.get(name, f"--set {name}")
        with pytest.raises(ConfigError, match=flag):
            Plan(**{"processes": 2, **options})
