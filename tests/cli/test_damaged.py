"""Files that are damaged, or made to do damage: each ends in one line and exit status 2.

One process imports the command line and forks for each case, so that a case costs no import.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[1] / "data"
DAMAGED = DATA / "damaged"
GRAPH = DATA.parents[1] / "datasets" / "examples" / "resnet50.pbtxt"
MOST_CPU_S, MOST_MIB = 10.0, 1024

# Forks for each line of input, a JSON list of arguments; prints status, stderr and what it used.
SERVER = r"""
import json, os, resource, sys, tempfile
from driple.cli.main import run

for line in sys.stdin:
    outputs = [tempfile.TemporaryFile() for _ in range(2)]
    child = os.fork()
    if child == 0:
        for stream, number in zip(outputs, (1, 2)):
            os.dup2(stream.fileno(), number)
        sys.settrace(None)  # what measuring coverage costs is not the command's
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        try:
            run(json.loads(line))
        except SystemExit as end:
            status = end.code
        except BaseException as error:
            print("escaped", repr(error), file=sys.stderr)
            status = 1
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)
    _, ended, used = os.wait4(child, 0)
    for stream in outputs:
        stream.seek(0)
    out, err = (stream.read().decode() for stream in outputs)
    print(json.dumps({"status": os.waitstatus_to_exitcode(ended), "out": out, "err": err,
                      "cpu_s": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}),
          flush=True)
"""

Drip = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def drip() -> Any:
    """Runs `driple` with arguments; what it printed and used."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("no pipes")
        asked, answered = server.stdin, server.stdout

        def run(*arguments: object) -> dict[str, Any]:
            print(json.dumps([str(word) for word in arguments]), file=asked, flush=True)
            result: dict[str, Any] = json.loads(answered.readline())
            return result

        yield run
        asked.close()


def refusal(result: dict[str, Any]) -> str:
    """The error's line; all before it on stderr are remarks, and stdout is empty."""
    assert result["status"] == 2, result["err"][-2000:]
    assert result["out"] == ""
    lines = result["err"].splitlines()
    assert lines, "nothing was said"
    for line in lines:
        assert line.startswith("driple: "), result["err"]
        assert line.isprintable(), result["err"]
    assert result["cpu_s"] < MOST_CPU_S
    assert result["mib"] < MOST_MIB
    last: str = lines[-1]
    return last


def names(pattern: str) -> list[str]:
    """Damaged files, by name."""
    return sorted(file.name for file in DAMAGED.glob(pattern))


@pytest.mark.parametrize("name", names("bomb-*"))
def test_small_graphs_that_unroll_to_any_size(drip: Drip, name: str) -> None:
    """They are refused by what they would become, before any of it is made."""
    line = refusal(drip("predict", DAMAGED / name))
    assert "unroll to over" in line


@pytest.mark.parametrize("name", names("esc*"))
@pytest.mark.parametrize("command", [["inspect"], ["predict"]])
def test_escape_sequences_do_not_reach_the_terminal(
    drip: Drip, name: str, command: list[str]
) -> None:
    """Names with control characters are refused, and shown as Python writes them."""
    assert r"\x1b" in refusal(drip(*command, DAMAGED / name))


@pytest.mark.parametrize("name", ["zero_sized.pb", "one_op_noshape.pb", "loop_2_31.pb"])
@pytest.mark.parametrize(
    "command",
    [
        ["predict", "--method", "simulator", "--setting", "V100-P1w2"],
        ["plan", "--batch-size", "32"],
    ],
)
def test_steps_of_no_time_or_of_centuries(drip: Drip, name: str, command: list[str]) -> None:
    """Neither a division by zero, nor terabytes of samples, nor an epoch for $0.00."""
    refusal(drip(*command, DAMAGED / name))


@pytest.mark.parametrize("name", names("*yaml*"))
def test_clusters_that_are_none(drip: Drip, name: str) -> None:
    """YAML with aliases, dates that do not exist, values of other types."""
    file = DAMAGED / name
    assert name in refusal(drip("predict", GRAPH, "--setting", file))


@pytest.mark.parametrize("name", ["bool.yaml", "timestamp.yaml"])
def test_training_configs_with_tags(drip: Drip, name: str) -> None:
    """The loader would convert a text that is no such value."""
    options = ("--training-config", DAMAGED / name)
    assert "has the tag" in refusal(drip("predict", "resnet50", "--batch-size", "2", *options))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("onnx-0ea1977b.onnx", "tensor 'w' has the element type 1000"),
        ("onnx-1796f822.onnx", "a Conv: input 1 is of rank 1, must be of rank 3 or more"),
        ("onnx-2e4e9e17.onnx", "a MatMul: input 0 is of unknown rank"),
        ("onnx-6a102620.onnx", r"attribute mode is b'\x80earest', which is no UTF-8"),
    ],
)
def test_onnx_files_that_no_exporter_writes(drip: Drip, name: str, words: str) -> None:
    """Types, ranks and texts are checked before any rule relies on them."""
    pytest.importorskip("onnx")
    assert words in refusal(drip("predict", DAMAGED / name))


@pytest.mark.parametrize("name", names("json-*"))
def test_json_of_other_forms(drip: Drip, name: str, tmp_path: Path) -> None:
    """As a profile, as links and as a platform; also without the mark before it."""
    content = (DAMAGED / name).read_bytes()
    for text in (content, content.partition(b"|")[2]):
        file = tmp_path / "profile.json"
        file.write_bytes(text)
        refusal(drip("profile", "show", tmp_path))
        refusal(drip("profile", "links", GRAPH, "--links", file))
        refusal(
            drip("trace", "import", tmp_path / "steps.pb", "-o", tmp_path / "job.npz",
                 "--batch-size", 1, "--bandwidth", "10G", "--platform", file)
        )  # fmt: skip


@pytest.mark.parametrize("name", names("npz-*"))
def test_job_traces_that_are_none(drip: Drip, name: str) -> None:
    """Damaged and encrypted zips, headers that claim terabytes."""
    assert name in refusal(drip("sweep", DAMAGED / name))


@pytest.mark.parametrize("name", names("pkl-*"))
def test_released_data_sets_that_are_none(drip: Drip, name: str, tmp_path: Path) -> None:
    """Files that torch cannot read, or that unpack to more than they are."""
    pytest.importorskip("torch")
    options = ("--setting", "V100", "-o", tmp_path / "made")
    assert name in refusal(drip("data", "import", DAMAGED / name, *options))


@pytest.mark.parametrize("name", names("ckpt-*"))
def test_checkpoints_that_are_none(drip: Drip, name: str) -> None:
    """What is recorded of the training is checked too."""
    assert "trained_on.range" in refusal(drip("predict", GRAPH, "--checkpoint", DAMAGED / name))


def test_every_damaged_file_is_tested() -> None:
    """A file that is put into the folder has a command above."""
    patterns = ("bomb-*", "esc*", "*.pb", "*yaml*", "json-*", "npz-*", "pkl-*", "ckpt-*", "onnx-*")
    tested = {name for pattern in patterns for name in names(pattern)}
    assert tested == {file.name for file in DAMAGED.iterdir()} - {"README.md"}


@pytest.mark.parametrize("name", ["18_git_lfs_pointer.pbtxt", "18b_git_lfs_pointer.pb"])
def test_git_lfs_pointers_are_recognised(drip: Drip, name: str, tmp_path: Path) -> None:
    """As a graph, a checkpoint, a data set, a job trace: one line names the remedy."""
    pointer = DATA / "cases" / name
    wanted = "a Git LFS pointer, not a {}; run git lfs pull"
    assert wanted.format("graph") in refusal(drip("predict", pointer))
    assert wanted.format("graph") in refusal(drip("inspect", pointer))
    checkpoint = drip("predict", GRAPH, "--checkpoint", pointer)
    assert wanted.format("checkpoint") in refusal(checkpoint)
    assert "run git lfs pull" in refusal(drip("sweep", pointer))
    options = ("--setting", "V100", "-o", tmp_path / "made")
    assert wanted.format("data set") in refusal(drip("data", "import", pointer, *options))
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "dataset.json").write_bytes(pointer.read_bytes())
    assert "run git lfs pull" in refusal(drip("data", "list", folder))
    (folder / "dataset.json").write_text('{"format": 2, "name": "x", "setting": "V100-P1w2"}')
    (folder / "examples.parquet").write_bytes(pointer.read_bytes())
    assert wanted.format("data set") in refusal(drip("data", "list", folder))
