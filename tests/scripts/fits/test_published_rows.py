"""The shipped tables of published rows, their reader, and their weights."""

from __future__ import annotations

import csv
import gzip
from collections import Counter, defaultdict
from dataclasses import replace
from math import nan
from pathlib import Path

import pytest

from driple.errors import ConfigError
from driple.runs.published_runs import (
    FORWARD_FILE,
    TRAINING_FILE,
    PublishedRun,
    as_asked,
    read_published,
)
from scripts.fits.writing import write_published

DATA = Path(__file__).parents[3] / "datasets" / "runs" / "published"
ROW = PublishedRun(
    id="a-1", source="a", library="torch2.1", device="H100", num_devices=16, per_machine=8,
    link_within="NVLink-H100", link_between="3200G", scheme="fsdp", dp=16, family="mpt", fold=3,
    job="own:mpt-1b", batch_size=4, size=2048, precision="amp-bf16", optimizer="adamw",
    grad_accumulation=2, activation_checkpointing="full", step_s=0.5, peak_mem_gib=12.25,
    peak_mem_kind="allocated",
)  # fmt: skip


@pytest.fixture(scope="module")
def training() -> list[PublishedRun]:
    return read_published(DATA / TRAINING_FILE)


@pytest.fixture(scope="module")
def forward() -> list[PublishedRun]:
    return read_published(DATA / FORWARD_FILE)


def test_rows_are_written_and_read_back(tmp_path: Path) -> None:
    unused = replace(ROW, id="a-2", device="", step_s=nan, unused_why="no time")
    write_published(tmp_path / "rows.csv.gz", [ROW, unused])
    assert read_published(tmp_path / "rows.csv.gz") == [ROW, unused]
    assert read_published(tmp_path / "rows.csv.gz", usable_only=True) == [ROW]
    first = (tmp_path / "rows.csv.gz").read_bytes()
    write_published(tmp_path / "rows.csv.gz", [ROW, unused])
    assert (tmp_path / "rows.csv.gz").read_bytes() == first


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device": "H1000"}, "H1000.*catalogue"),
        ({"link_within": "wire"}, "link_within 'wire'"),
        ({"step_s": ""}, "step_s must be given"),
        ({"job": ""}, "job must be given"),
        ({"fold": ""}, "fold of a-1 must be given"),
        ({"fold": "10"}, "fold must be a whole number from 0 to 9"),
        ({"step_s": "-1"}, "step_s must be a number above 0"),
        ({"step_s": "nan"}, "step_s.*no finite number"),
        ({"step_s": "fast"}, "column step_s"),
        ({"batch": "4.5"}, "column batch"),
        ({"batch": "0"}, "batch_size must be a whole number"),
        ({"precision": "bfloat16"}, "precision must be one of"),
        ({"precision": "fp8"}, "precision of a usable row"),
        ({"scheme": "none"}, "scheme none does not go with 16 devices"),
        ({"dp": "8"}, "must be devices 16, got 8"),
        ({"per_machine": "5"}, "do not fill machines of 5"),
        ({"compiled": "yes"}, "neither 0 nor 1"),
        ({"id": ""}, "id and source"),
        ({"util_pct": "101"}, "utilisation_pct"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, str], words: str
) -> None:
    good = tmp_path / "good.csv.gz"
    write_published(good, [ROW])
    (row,) = csv.DictReader(gzip.decompress(good.read_bytes()).decode().splitlines())
    file = tmp_path / "rows.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        writer.writeheader()
        writer.writerow({**row, **change})
    with pytest.raises(ConfigError, match=rf"rows.csv.*{words}"):
        read_published(file)


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv.gz"
    with pytest.raises(ConfigError, match="cannot read"):
        read_published(file)
    file.write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot read"):
        read_published(file)
    file.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(ConfigError, match="column id is missing; there are a, b"):
        read_published(file)
    write_published(file, [ROW, ROW])
    with pytest.raises(ConfigError, match="two rows have the id a-1"):
        read_published(file)
    write_published(file, [ROW])
    packed = file.read_bytes()
    file.write_bytes(packed[:-20])
    with pytest.raises(ConfigError, match="cannot read"):
        read_published(file)
    plain = tmp_path / "rows.csv"
    plain.write_bytes(gzip.decompress(packed).replace(b"fsdp,16", b"fsdp,16,16"))
    with pytest.raises(ConfigError, match=r"line 2: \d+ cells"):
        read_published(plain)


def test_weights_are_of_family_and_machine_not_of_rows() -> None:
    """A machine that is listed forty times weighs as much as one that is listed once."""
    bert = replace(ROW, family="bert", job="own:bert", device="A100-80G", link_within="NVLink-A100")
    rows = (
        [ROW] * 40
        + [replace(ROW, batch_size=8)]
        + [bert]
        + [replace(bert, device="H100", link_within="NVLink-H100")] * 2
    )
    weights = [run.weight for run in as_asked(rows)]
    assert sum(weights[:41]) == pytest.approx(1)
    assert weights[40] == pytest.approx(0.5)  # another job on the same machine
    assert weights[0] == pytest.approx(0.5 / 40)
    assert weights[41] == pytest.approx(1)
    assert weights[42:] == pytest.approx([0.5, 0.5])
    assert as_asked([]) == []


def test_the_shipped_tables_hold_what_their_page_says(
    training: list[PublishedRun], forward: list[PublishedRun]
) -> None:
    used = [row for row in training if row.usable]
    assert len(used) >= 3000
    assert sum(row.usable for row in forward) >= 12_500
    assert {row.task for row in training} == {"train"}
    assert {row.task for row in forward} == {"forward"}
    assert len({row.id for row in [*training, *forward]}) == len(training) + len(forward)
    for row in [*training, *forward]:
        assert row.usable == (not row.unused_why)
        assert len(row.unused_why) < 120


def test_the_page_counts_the_rows_of_each_source(
    training: list[PublishedRun], forward: list[PublishedRun]
) -> None:
    page = (DATA / "README.md").read_text(encoding="utf-8")
    used = sum(row.usable for row in training)
    passes = sum(row.usable for row in forward)
    assert f"pytorch_rows | {len(training):,} |" in page
    assert f"labelled; {used:,} can be used" in page
    assert f"pytorch_forward | {len(forward):,} |" in page
    assert f"Max-Q; {passes:,} can be used" in page
    sources = {
        "lambdal/deeplearning-benchmark": "lambda", "mlcommons/training_results": "MLPerf",
        "huggingface/pytorch-image-models (training)": "timm",
        "NVIDIA/DeepLearningExamples": "NVIDIA DeepL", "Oneflow-Inc/DLPerf": "DLPerf",
        "foundation-model-stack/fms-acceleration": "fms-acc", "FlagOpen/FlagPerf": "FlagPerf",
        "mosaicml/llm-foundry": "llm-foundry", "Oneflow-Inc/libai": "LiBai",
        "InternLM/InternEvo": "InternEvo", "sitar-lab/NeuSight (whole models)": "NeuSight",
        "foundation-model-stack/fms-fsdp": "fms-fsdp", "NVIDIA-NeMo Megatron": "NVIDIA ",
    }  # fmt: skip
    for start, source in sources.items():
        (line,) = [text for text in page.splitlines() if text.startswith(f"| {start}")]
        rows = [row for row in training if row.source.startswith(source)]
        if source == "NVIDIA ":
            rows = [row for row in rows if "DeepLearning" not in row.source]
        counts = f"| {len(rows):,} | {sum(row.usable for row in rows):,} |"
        assert counts in line, (start, counts)


def test_a_family_is_in_one_fold_of_both_tables(
    training: list[PublishedRun], forward: list[PublishedRun]
) -> None:
    folds: dict[str, set[int | None]] = defaultdict(set)
    for row in [*training, *forward]:
        if row.family:
            folds[row.family].add(row.fold)
    assert all(len(found) == 1 for found in folds.values())
    with (DATA / "folds.csv").open(encoding="utf-8", newline="") as stream:
        listed = {row["family"]: {int(row["fold"])} for row in csv.DictReader(stream)}
    assert listed == dict(folds)
    for rows in (training, forward):
        sizes = Counter(row.fold for row in rows if row.usable)
        assert set(sizes) == set(range(10))


def test_one_step_by_hand(training: list[PublishedRun]) -> None:
    """ResNet-50: 1,280 images on an H100 at 2,786 images/s."""
    rows = [
        row
        for row in training
        if row.job == "timm:resnet50" and row.device == "H100" and row.num_devices == 1
        and row.precision == "amp-fp16" and row.library == "ngc22.09" and row.usable
    ]  # fmt: skip
    assert rows
    for row in rows:
        assert row.batch_size == 1280
        assert row.step_s == pytest.approx(0.459, rel=0.1)
        assert row.data == "synthetic"


def test_batches_of_several_devices_are_of_each(training: list[PublishedRun]) -> None:
    """Lambda writes the batch of all devices; one device and eight have the same share."""
    batches = defaultdict(set)
    for row in training:
        if row.source == "lambda-pytorch" and row.device == "A100-80G" and row.usable:
            batches[row.job, row.precision].add(row.batch_size)
    assert batches["timm:resnet50", "amp-fp16"] >= {1280}
    assert 10240 not in batches["timm:resnet50", "amp-fp16"]
