"""Store what every command answers today: tests/data/golden/answers.json.gz.

    python scripts/make_golden.py [--check]

Each entry is a command line, its exit status and every number of its JSON, to eight significant
digits, under the path to it. Changes of the structure must leave these numbers as they are:
`--check` runs the same command lines again and lists what differs by more than a part in a million.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from driple.cli.main import _run
from driple.errors import DripleError
from driple.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "tests" / "data" / "golden" / "answers.json.gz"
CASES, EXAMPLES, GRAPHS = "tests/data/cases", "datasets/examples", "tests/data/graphs"
JOBS: tuple[tuple[str, ...], ...] = (
    (f"{CASES}/01_control.pbtxt",),
    (f"{CASES}/02_bn_moving_average_on_ps.pbtxt",),
    (f"{CASES}/03_backprop_filter_shape_unknown.pbtxt",),
    (f"{CASES}/04_initialiser_on_worker.pbtxt",),
    (f"{CASES}/05_adam_slot_reads_nobody_uses.pbtxt",),
    (f"{CASES}/07_input_from_own_cpu.pbtxt",),
    (f"{CASES}/10_conv3d.pbtxt",),
    (f"{CASES}/11_unknown_batch.pbtxt",),
    (f"{CASES}/11_unknown_batch.pbtxt", "--batch-size", "32"),
    (f"{CASES}/14_one_machine_localhost_saver.pbtxt",),
    (f"{CASES}/15_nodevice_control.pbtxt",),
    (f"{CASES}/16b_backprop_input_shape_known.pbtxt",),
    (f"{CASES}/17b_rnn_length_constant.pbtxt",),
    (f"{CASES}/19_tf2_while_loop_training_step.pbtxt",),
    (f"{GRAPHS}/adam_v1.meta.gz",),
    (f"{GRAPHS}/functions.pb.gz",),
    (f"{GRAPHS}/loops_v1.pb.gz",),
    (f"{GRAPHS}/ps_training.pb.gz",),
    (f"{EXAMPLES}/resnet20.pbtxt",),
    (f"{EXAMPLES}/resnet50.pbtxt",),
)
SETTINGS = (
    "V100-P1w2/ho-PCIe",
    "2080Ti-P1w2/ho-PCIe",
    "TitanRTX-P4w4/he-40G",
    "V100-P5w5/he-1G",
    "CPU-P1w2/ho-200M",
    "A100-R8/ho-NVLink",
    "2080Ti-R4/ho-PCIe",
    "V100-R1/ho-PCIe",
)
ON_EACH = (
    ("predict",),
    ("predict", "--preset", "paper"),
    ("simulate",),
    ("compare",),
    ("whatif", "--bandwidth", "1G,10G", "--workers", "1-3"),
    ("model", "zeng"),
    ("model", "zhang"),
    ("stalls", "predict", "--network", "10G"),
)
ON_JOBS = (("graph", "show"), ("stalls", "cost", "--machines", "1,2"))
TRACE = "tests/data/throughput/inception3.npz"
OTHERS = (
    ("throughput", "predict", TRACE, "--workers", "1-4", "--steps", "200"),
    ("throughput", "predict", TRACE, "--workers", "2", "--ps", "2", "--bandwidth", "10G"),
    ("dataset", "info", "datasets/CPU-P1w2_ho-200M"),
    ("dataset", "show", "datasets/CPU-P1w2_ho-200M", "resnet20/cifar10/b24/adam/sync"),
    ("zoo", "list"),
)
DIGITS = 8
TOLERANCE = 1e-6


def command_lines() -> Iterator[tuple[str, ...]]:
    """All command lines, without `--json`."""
    for job in JOBS:
        for command in ON_JOBS:
            yield (*command, *job)
        for setting in SETTINGS:
            for command in ON_EACH:
                yield (
                    (*command[:2], *job, "--setting", setting, *command[2:])
                    if command[0]
                    in (
                        "model",
                        "stalls",
                    )
                    else (command[0], *job, "--setting", setting, *command[1:])
                )
    yield from OTHERS


def numbers_in(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a JSON value with the path to it; truth values are none."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield path, rounded(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from numbers_in(item, f"{path}/{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from numbers_in(item, f"{path}/{index}")


def rounded(number: float) -> float:
    """A number to eight significant digits."""
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else number


def answer(arguments: tuple[str, ...]) -> dict[str, object]:
    """Exit status and numbers of one command line."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = _run([*arguments, "--json"])
    numbers: dict[str, float] = {}
    if status == 0:
        for number, value in enumerate(_values(out.getvalue())):
            numbers.update(numbers_in(value, str(number) if number else ""))
    return {"command": list(arguments), "status": status, "numbers": numbers}


def _values(text: str) -> Iterator[object]:
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:].strip()


def stored() -> list[dict[str, object]]:
    """What is stored."""
    with gzip.open(TARGET, "rt", encoding="utf-8") as file:
        entries: list[dict[str, object]] = json.load(file)
    return entries


def differences(old: dict[str, object], new: dict[str, object]) -> Iterator[str]:
    """What differs between two answers to one command line, one line each."""
    line = " ".join(str(word) for word in old["command"])  # type: ignore[attr-defined]
    if old["status"] != new["status"]:
        yield f"{line}: status {old['status']}, now {new['status']}"
    before: dict[str, float] = old["numbers"]  # type: ignore[assignment]
    after: dict[str, float] = new["numbers"]  # type: ignore[assignment]
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        if one is None or other is None or abs(one - other) > TOLERANCE * max(abs(one), abs(other)):
            yield f"{line}: {path} was {one}, now {other}"


def main() -> int:
    """Store all answers, or compare with those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare in place of storing")
    if parser.parse_args().check:
        found = [
            line
            for entry in stored()
            for line in differences(entry, answer(tuple(entry["command"])))  # type: ignore[arg-type]
        ]
        print("\n".join(found) or "all numbers are as stored")
        return 1 if found else 0
    entries = []
    for arguments in command_lines():
        entries.append(answer(arguments))
        if len(entries) % 50 == 0:
            print(f"{len(entries)} command lines", file=sys.stderr, flush=True)
    packed = gzip.compress(json.dumps(entries).encode(), mtime=0)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(TARGET, packed, error=DripleError)
    done = sum(entry["status"] == 0 for entry in entries)
    print(
        f"{len(entries)} command lines, {done} with an answer, {len(packed)} bytes", file=sys.stderr
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
