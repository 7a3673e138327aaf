"""Lambda's tables: batches of all GPUs, releases, duplicates, flags that were ignored."""

from __future__ import annotations

import pytest

from driple.runs.published_runs import PublishedRun
from scripts.published.rows.lambda_runs import lambda_rows, read_batches
from tests.scripts.published.rows.gathered import gathered

V1 = "pytorch/pytorch-train-throughput-fp16.csv"
CONFIG = {
    "release": "v2", "system": "80GB", "devices": "8", "model": "resnet50", "precision": "AMP",
    "global_batch": "10240", "data": "synthetic", "half": "1",
}  # fmt: skip


def tabled(**cells: str) -> dict[str, str]:
    return gathered(**{
        "file": "lambda_pytorch.csv", "source": "lambda-pytorch", "source_file": V1,
        "gpu": "8x A100 80GB SXM4", "gpu_canonical": "A100 SXM 80GB", "gpus": "8",
        "model": "resnet50", "precision": "fp16", "batch_per_gpu": "10240", "throughput": "11439",
        **cells,
    })  # fmt: skip


def read(*rows: dict[str, str]) -> list[PublishedRun]:
    return lambda_rows(rows, read_batches([CONFIG]), {})


def test_the_batch_of_eight_devices_is_divided() -> None:
    (row,) = read(tabled())
    assert (row.batch_size, row.num_devices, row.dp, row.scheme) == (1280, 8, 8, "ddp")
    assert row.step_s == pytest.approx(10240 / 11439)
    assert row.link_within == "NVLink-A100"
    assert (row.precision, row.library, row.data) == ("amp-fp16", "ngc22.09", "synthetic")
    assert row.usable


def test_a_row_without_a_batch_takes_that_of_the_configuration() -> None:
    cells = {"gpu": "H100 80GB SXM5", "gpu_canonical": "H100 SXM", "batch_per_gpu": ""}
    (row,) = read(tabled(source_file="pytorch/pytorch-train-throughput-v2-fp16.csv", **cells))
    assert (row.batch_size, row.library) == (1280, "ngc24.03")
    (row,) = read(tabled(gpus="2", **cells))
    assert row.unused_why == "no batch size"


@pytest.mark.parametrize(
    ("model", "gpu", "precision"),
    [
        ("tacotron2", "A100 SXM 80GB", "tf32"),  # its flag is ignored
        ("waveglow", "Quadro RTX 8000", "fp32"),
        ("ncf", "A100 SXM 80GB", "tf32"),  # the configuration for 80 GB lacks the flag
        ("ncf", "RTX 3090", "amp-fp16"),
        ("bert_large_squad", "A100 SXM 80GB", "fp16"),
        ("gnmt", "A100 SXM 80GB", "fp16"),
    ],
)
def test_what_fp16_means_depends_on_model_and_release(model: str, gpu: str, precision: str) -> None:
    (row,) = read(tabled(model=model, gpu_canonical=gpu, gpus="1", batch_per_gpu="64"))
    assert row.precision == precision


def test_bert_counts_the_steps_that_were_run() -> None:
    """Eight H100 run 2 x 35 steps of 2,560 samples in 28.65 s; the table divides 100 by them."""
    (row,) = read(
        tabled(
            model="bert_base_squad", gpu_canonical="H100 SXM", batch_per_gpu="2560",
            throughput="8936.17",
        )
    )  # fmt: skip
    assert row.step_s == pytest.approx(28.6476 / 70, rel=1e-4)


def test_a_row_of_the_collected_table_is_a_duplicate_only_of_another_table() -> None:
    collected = tabled(source_file="pytorch/csv_v1_v2/pytorch-train-throughput-fp16.csv")
    first, second, third = read(tabled(), tabled(), collected)
    assert first.usable
    assert second.usable  # another machine of the same kind
    assert third.unused_why.startswith("duplicate: stands in")
    (alone,) = read(collected)
    assert alone.usable


def test_one_machine_far_from_many_identical_ones_is_left_out() -> None:
    rows = [tabled(throughput=str(11400 + i)) for i in range(12)] + [tabled(throughput="8000")]
    *usual, slow = read(*rows)
    assert all(row.usable for row in usual)
    assert slow.unused_why.startswith("outlier: 1.43 of the time of 13")


def monitored(**cells: str) -> dict[str, str]:
    return gathered(**{
        "file": "lambda_run_monitor.csv", "source": "lambda-pytorch",
        "source_file": "pytorch/results/p3.8xlarge/PyTorch_gnmt_FP16/run_monitor.csv",
        "date": "11-04-2020_19-31-17", "gpu": "p3.8xlarge", "gpu_canonical": "V100", "gpus": "1",
        "model": "gnmt", "precision": "FP16", "throughput": "100000", "peak_mem_gib": "12.5",
        **cells,
    })  # fmt: skip


def test_an_instance_has_its_devices_whatever_the_column_says() -> None:
    config = {
        **CONFIG, "release": "v0", "system": "p3.8xlarge", "devices": "4", "model": "gnmt",
        "precision": "FP16", "global_batch": "1040", "data": "real",
    }  # fmt: skip
    path = monitored()["source_file"]
    (row,) = lambda_rows([monitored()], read_batches([config]), {path: 97.5})
    assert (row.device, row.num_devices, row.batch_size) == ("V100-SXM2", 4, 260)
    assert (row.date, row.library, row.utilisation_pct) == ("2020-04-11", "ngc20.01", 97.5)
    assert (row.peak_mem_gib, row.peak_mem_kind) == (12.5, "device")
    assert row.step_s == pytest.approx(1040 * 48 / 100000)


def test_laptops_and_runs_without_a_time_say_so() -> None:
    laptop = monitored(gpu="3080Max-Q", gpu_canonical="RTX 3080")
    (row,) = read(laptop)
    assert row.unused_why == "unknown device: 3080Max-Q"
    (row,) = read(monitored(throughput=""))
    assert row.unused_why == "no time"


def test_four_devices_are_not_faster_than_one_with_the_same_batch() -> None:
    """An epoch of NCF has 2.5 batches of 4 x 10 million samples, of which not all are run."""
    cells = {"model": "ncf", "precision": "fp32"}
    alone, right, wrong = read(
        tabled(**cells, gpus="1", batch_per_gpu="10000000", throughput="70000000"),
        tabled(**cells, gpus="2", batch_per_gpu="20000000", throughput="130000000"),
        tabled(**cells, gpus="4", batch_per_gpu="40000000", throughput="13300000000"),
    )
    assert alone.usable and right.usable
    assert wrong.unused_why.startswith("impossible: 0.02 of the time of one device")
