"""A machine file is read as it was written, and refused in one line where it is damaged."""

import datetime
from pathlib import Path

import pytest

from driple.catalog.catalog import read_catalog
from driple.catalog.machine_file import (
    Collective,
    CopyRate,
    KernelTime,
    LoaderRate,
    MachineFacts,
    MachineFile,
    MachineHost,
    OpTime,
    machine_text,
    read_machine,
)
from driple.catalog.rows import Row
from driple.errors import ConfigError

DAY = datetime.date(2026, 11, 28)
HOST = MachineHost(us_per_op=20.0, low_us=11.0, high_us=30.0, us_per_tensor=40.0, programs=12)
RING = Collective(
    collective="all_reduce", backend="nccl", ranks=8, machines=1,
    sizes=(4096.0, 2.0**20, 2.0**26), seconds=(2e-5, 3e-5, 6e-4),
)  # fmt: skip
H100 = Row(
    name="H100",
    values={
        "tuned_half": 0.9, "tuned_tf32": 1.0, "tuned_plain": 1.0, "tuned_memory": 1.1,
        "tuned_kernels": 31, "source": "31 kernels measured on this machine", "date": DAY,
    },
    file="machine.toml",
    own=True,
)  # fmt: skip
WHOLE = MachineFile(
    file="machine.toml",
    rows=(H100,),
    machine=MachineFacts(
        cpu='Xeon "8480"', cores=64, torch="2.9.0", date=DAY, device="H100", num_devices=8,
        busy_cores=0.1, disturbed=False,
    ),
    host=HOST,
    ops=(OpTime(kind="linear", forward_us=7.0, training_us=21.0, autocast_us=12.0),),
    kernels=(KernelTime(device=0, name="product 4096", precision="bf16", seconds=2e-4),),
    copies=(CopyRate(device=0, to_device=True, pinned=True, bytes_per_s=5e10),),
    collectives=(RING,),
    loader=(LoaderRate(workers=4, samples_per_s=812.0),),
)  # fmt: skip


def written(folder: Path, text: str) -> Path:
    file = folder / "machine.toml"
    file.write_text(text)
    return file


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    read = read_machine(written(tmp_path, machine_text(WHOLE, ["a comment"])))
    for name in ("machine", "host", "ops", "kernels", "copies", "loader"):
        assert getattr(read, name) == getattr(WHOLE, name)
    assert read.rows[0].values == H100.values
    assert read.collectives[0].sizes == pytest.approx(RING.sizes, rel=1e-3)
    assert read.collectives[0].bytes_per_s[-1] == pytest.approx(2 * 7 / 8 * 2**26 / 6e-4, rel=1e-3)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("us_per_op = 20", "us_per_op = -1", "us_per_op"),
        ("us_per_op = 20\n", "", "no us_per_op"),
        ("us_per_op = 20", "us_per_op = 20\nspeed = 3", "unknown field 'speed'"),
        ("[host]", "[hots]", "unknown table 'hots'"),
        ('"all_reduce"', '"all_to_all"', "all_to_all"),
        ("seconds = [2e-05, 3e-05, 0.0006]", "seconds = [2e-05]", "3 and 1"),
        ("seconds = [2e-05, 3e-05, 0.0006]", "seconds = [2e-05, 3e-05, nan]", "seconds"),
        ("tuned_half = 0.9\n", "", "lacks tuned_half"),
        ("[host]", "[host", "no TOML"),
        ("date = 2026-11-28", "date = 1", "date"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, before: str, after: str, words: str) -> None:
    text = machine_text(WHOLE)
    assert before in text
    with pytest.raises(ConfigError, match=r"machine\.toml") as refused:
        read_machine(written(tmp_path, text.replace(before, after, 1)))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_shorter_file_is_refused_or_has_whole_tables(tmp_path: Path) -> None:
    """A copy that broke off states nothing that the whole file does not."""
    lines = machine_text(WHOLE).splitlines(keepends=True)
    for count in range(len(lines)):
        try:
            read = read_machine(written(tmp_path, "".join(lines[:count])))
        except ConfigError:
            continue
        assert read.host in (None, HOST)
        assert all(row.values == H100.values for row in read.rows)


def test_what_states_nothing_of_a_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="states no host"):
        read_machine(written(tmp_path, "format = 1\n"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_machine(tmp_path / "missing.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * 2**20)
    with pytest.raises(ConfigError, match="bytes"):
        read_machine(tmp_path / "large.toml")


def test_a_catalogue_refers_to_the_flag_of_machine_files(tmp_path: Path) -> None:
    file = written(tmp_path, machine_text(WHOLE))
    with pytest.raises(ConfigError, match="--machine"):
        read_catalog([file])


def test_devices_of_a_machine_count_before_those_of_a_catalogue(tmp_path: Path) -> None:
    catalogue = tmp_path / "mine.toml"
    catalogue.write_text('[[devices]]\nname = "H100"\nbytes_per_s = 1e12\n')
    fields = {**H100.values, "bytes_per_s": 2e12}
    measured = MachineFile(file="m", rows=(Row(name="H100", values=fields, file="m", own=True),))
    assert read_catalog([catalogue]).device("H100").bytes_per_s == 1e12
    assert read_catalog([catalogue], measured).device("H100").bytes_per_s == 2e12
