"""Tables of all_reduce_perf as people publish and damage them."""

from pathlib import Path

import numpy as np
import pytest

from driple.cluster.nccl_table import read_nccl_table
from driple.errors import ConfigError

TABLES = Path(__file__).parents[1] / "data" / "nccl"
HEADER = "#       size         count    type   redop     time   algbw   busbw  error\n"


@pytest.mark.parametrize(
    ("name", "ranks", "machines", "most"),
    [
        ("gh200-2x1.txt", 2, 2, 22.86),
        ("h100-2x8-a3mega.txt", 16, 2, 338.82),
        ("h100-2x4.txt", 8, None, 158.65),  # its ranks follow from busbw over algbw
    ],
)
def test_published_tables(name: str, ranks: int, machines: int | None, most: float) -> None:
    """The bus bandwidth that is read from times is the one that nccl-tests prints."""
    table = read_nccl_table(TABLES / name)
    assert (table.ranks, table.machines) == (ranks, machines)
    assert table.bytes_per_s.max() / 1e9 == pytest.approx(most, rel=2e-3)
    assert (np.diff(table.sizes) > 0).all() and len(table.sizes) == len(table.seconds) >= 8


def test_a_log_around_the_table_does_no_harm(tmp_path: Path) -> None:
    """Lines of NCCL, tags of mpirun, a table without the column `root`, a row said twice."""
    file = tmp_path / "log.txt"
    rows = "  1048576 262144 float sum 200 5.24 9.83 1e-07\n"
    rows += (
        "node:12 [0] NCCL INFO Launch mode Parallel\n  1048576 262144 float sum 100 10.4 19.5 0\n"
    )
    tagged = "".join(f"[1,0]<stdout>:{line}\n" for line in (HEADER + rows).splitlines())
    file.write_bytes(b"\xff\xfe junk\nhost:1:2 [0] NCCL INFO Channel 00\n" + tagged.encode())
    table = read_nccl_table(file)
    assert table.sizes.tolist() == [1048576] and table.machines is None
    assert table.seconds == pytest.approx([150e-6])
    assert table.ranks == 16


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no table of all_reduce_perf"),
        (HEADER, "has no table of all_reduce_perf"),
        (HEADER + "1048576 1 float sum nan x y\n", "has no table of all_reduce_perf"),
        (HEADER + "1024 256 float sum 10 0.1 0.19 0\n", "no message of 1 MiB or more"),
        # an all-gather of 8: (n - 1) / n
        (HEADER + "1048576 1 float sum 100 10.0 8.75 0\n", "2 (n - 1) / n"),
        # 16 ranks are listed, and busbw is that of 2
        (
            "# Rank 0 Pid 1 on a device 0\n# Rank 1 Pid 1 on a device 1\n"
            "# Rank 2 Pid 1 on a device 2\n# Rank 3 Pid 1 on a device 3\n"
            + HEADER + "1048576 1 float sum 100 10.0 10.0 0\n",
            "1.5 for 4",
        ),
    ],
)  # fmt: skip
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "table.txt"
    file.write_text(content)
    with pytest.raises(ConfigError) as refused:
        read_nccl_table(file)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    file = tmp_path / "large.txt"
    with file.open("wb") as stream:
        stream.truncate(17 * 2**20)
    with pytest.raises(ConfigError, match="over 16 MB"):
        read_nccl_table(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_nccl_table(tmp_path)
