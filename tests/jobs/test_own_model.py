"""FILE.py:FUNCTION: what a builder may return, what is missing, and code that misbehaves."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from driple.errors import ConfigError, DripleError, GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.datatypes import NUMBER_OF
from driple.graph.torch.options import StepOptions
from driple.jobs import own_model
from driple.jobs.load import JobOptions, load_job
from driple.jobs.own_request import OwnModel
from driple.jobs.pytorch.own_model import step_of_own_model
from driple.jobs.pytorch.whole_sequences import WHOLE_SEQUENCES
from driple.render.job_facts import facts_words
from driple.render.remarks import sentence, sentences

OWN = f"{Path(__file__).with_name('own.py')}:"
IMAGE = (3, 32, 32)
USUAL_LOSS = "the loss is the cross entropy of the outputs (--loss FILE.py:FUNCTION names another)"


def read(name: str, **values: Any) -> Any:
    """A model of `own.py`, in this process."""
    for function in ("data", "loss"):
        if function in values:
            values[function] = OWN + values[function]
    return step_of_own_model(OwnModel(model=OWN + name, **values))


@pytest.mark.parametrize(
    ("name", "values", "batch_size", "shape", "seq_len"),
    [
        ("build_model", {"batch_size": 4, "input_shape": IMAGE}, 4, IMAGE, None),
        ("build_model", {"batch_size": 5, "data": "data"}, 5, IMAGE, None),
        ("build_model", {"batch_size": 3, "data": "loader"}, 3, IMAGE, None),
        ("build_model", {"data": "batch"}, 6, IMAGE, None),
        ("with_values", {"batch_size": 2, "input_shape": IMAGE}, 2, IMAGE, None),
        ("with_batch", {}, 4, IMAGE, None),
        ("with_loss", {"batch_size": 2, "input_shape": IMAGE}, 2, IMAGE, None),
        ("build_model", {"batch_size": 2, "input_shape": IMAGE, "loss": "squared"}, 2, IMAGE, None),
        ("words", {"batch_size": 2, "seq_len": 8}, 2, None, 8),
        ("lora", {"batch_size": 8, "input_shape": (64,)}, 8, (64,), None),
        ("dict_batch", {}, 4, None, 16),
        ("late_words", {"batch_size": 2, "seq_len": 8}, 2, None, 8),
        ("on_gpu", {"batch_size": 2, "input_shape": IMAGE}, 2, IMAGE, None),
    ],
)
def test_a_builder_returns_a_module_with_a_loss_or_a_batch(
    name: str, values: dict[str, Any], batch_size: int, shape: Any, seq_len: int | None
) -> None:
    loaded = read(name, **values)
    assert (loaded.batch_size, loaded.input_shape, loaded.seq_len) == (batch_size, shape, seq_len)
    assert loaded.graph.num_nodes > 5
    assert loaded.graph.sent_bytes > 0


def test_the_same_model_has_the_same_step_however_its_batch_is_given() -> None:
    """Labels that fit the outputs are no op of the step."""
    graphs = [
        read("build_model", batch_size=4, input_shape=IMAGE).graph,
        read("build_model", batch_size=4, data="data").graph,
        read("with_batch").graph,
    ]
    assert len({graph.op_types for graph in graphs}) == 1
    assert read("build_model", batch_size=4, data="data").samples == 50


def test_a_model_that_its_code_compiles_is_said_to_be() -> None:
    assert sentences(read("compiled", batch_size=2, input_shape=IMAGE).assumptions) == (
        "compiled by torch.compile, as the code says",
        USUAL_LOSS,
    )
    assert sentences(read("build_model", batch_size=2, input_shape=IMAGE).assumptions) == (
        USUAL_LOSS,
    )


def test_what_is_cast_as_a_whole_is_of_no_other_type() -> None:
    given = {"batch_size": 2, "input_shape": (4,)}
    assert any("float64" in words for words in sentences(read("in_float64", **given).assumptions))
    cast = read("in_float64", **given, step=StepOptions(precision="fp16"))
    assert sentences(cast.assumptions) == (USUAL_LOSS,)
    assert {one.outputs[0].dtype for one in cast.graph.signatures if one.kind == "matmul"} == {
        NUMBER_OF["DT_HALF"]
    }


def test_without_a_batch_values_are_random() -> None:
    """Zeros would all go to the same experts, and the others would learn nothing."""
    loaded = read("experts", batch_size=8, seq_len=16, step=StepOptions(trace="real"))
    assert sentence(loaded.assumptions[0]).startswith("the batch holds random values")
    assert all(loaded.graph.parameters.is_trained)
    again = read("experts", batch_size=8, seq_len=16, step=StepOptions(trace="real"))
    assert loaded.graph.kinds == again.graph.kinds


def test_a_model_that_returns_its_loss_takes_another_without_labels() -> None:
    loaded = read("returns_loss", batch_size=2, input_shape=(4,), loss="half_of_it")
    assert sentences(loaded.assumptions) == ()


@pytest.mark.parametrize(
    ("name", "loss", "words"),
    [
        ("in_float64", "as_numbers", "with class numbers as labels of the loss, as the batch has"),
        ("on_the_cpu", None, r"makes a tensor on the CPU: .*device=x.device.*--set trace=real"),
        ("two_models", None, r"returns \(Linear, Net\), more than one model"),
    ],
)
def test_messages_say_what_to_write_instead(name: str, loss: str | None, words: str) -> None:
    shape = (4,) if name != "two_models" else IMAGE
    given = {} if loss is None else {"loss": loss}
    with pytest.raises(DripleError, match=words):
        read(name, batch_size=2, input_shape=shape, **given)


def test_packed_sequences_are_read_at_their_full_length() -> None:
    """An LSTM over 4 x 16 packed tokens has the FLOPs of one over 4 x 16 padded ones."""
    packed = read("packed")
    assert sentences(packed.assumptions) == (sentence(WHOLE_SEQUENCES), USUAL_LOSS)
    kinds = list(packed.graph.kinds)
    assert (kinds.count("lstm"), kinds.count("lstm_gradient")) == (1, 1)
    plain = read("words", batch_size=4, seq_len=16)
    flops = [
        float(cost_of_graph(one.graph).flops[list(one.graph.kinds).index("lstm")])
        for one in (packed, plain)
    ]
    assert flops[0] == pytest.approx(flops[1], rel=0.01)


def test_frozen_parameters_send_no_gradient() -> None:
    """LoRA: two matrices of 64 x 4 are trained, and 64 x 64 are not."""
    assert read("lora", batch_size=8, input_shape=(64,)).graph.sent_bytes == 2 * 64 * 4 * 4


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("build_model", {}, "give --batch-size N"),
        ("build_model", {"batch_size": 4}, "give --input SHAPE, such as 3x224x224, or --data"),
        ("words", {"batch_size": 4}, "give --seq-len N, or --data"),
        ("words", {"batch_size": 4, "input_shape": IMAGE}, "give --seq-len N in place of --input"),
        ("build_model", {"data": "data"}, "give --batch-size N"),
        ("with_batch", {"batch_size": 8}, "has 4 samples, got --batch-size 8"),
        ("with_batch", {"input_shape": IMAGE}, "leave out --input"),
        ("with_batch", {"data": "data"}, "leave --data out"),
        ("needs", {}, "needs the argument config"),
        ("fails", {}, r"ValueError: no such thing \(.*own.py, line \d+\)"),
        ("no_model", {}, r"returns dict; it must return a torch.nn.Module, \(module, loss\)"),
        ("nothing", {}, r"has no 'nothing'; it has Net, Words, .* and \d+ more; give a function"),
        ("", {}, "is to be followed by the name of a function; it has Net, Words"),
        ("downloads", {}, r"nothing need be downloaded: .*weights=None"),
        ("reads_arguments", {}, 'under if __name__ == "__main__":'),
        ("distributed", {}, "--setting states how many devices"),
        ("build_model", {"data": "fails", "batch_size": 2}, "data|no such thing"),
    ],
)
def test_what_is_missing_or_wrong_is_one_line(
    name: str, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        read(name, **values)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("build_model", {"data": "wrong_batch"}, r"6x1x32x32|channel"),
        ("build_model", {"batch_size": 2, "seq_len": 8}, "own.py"),
        ("decides", {"batch_size": 2, "input_shape": (4,)}, "own.py"),
    ],
)
def test_a_step_that_cannot_be_followed_names_the_line(
    name: str, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(GraphError, match=words) as raised:
        read(name, **values)
    assert "own.py" in str(raised.value)
    assert ("--set trace=real" in str(raised.value)) == (name == "decides")


@pytest.mark.parametrize("name", ["decides", "build_model"])
def test_a_step_with_values_is_followed_on_the_cpu(name: str) -> None:
    """A model that decides by values needs it; for another, the products are the same."""
    shape = (4,) if name == "decides" else IMAGE
    real = read(name, batch_size=2, input_shape=shape, step=StepOptions(trace="real"))
    assert real.graph.sent_bytes > 0
    if name == "build_model":
        shapes = read(name, batch_size=2, input_shape=shape)
        kinds = [sorted(k for k in one.graph.kinds if "conv" in k) for one in (real, shapes)]
        assert kinds[0] == kinds[1] != []


def job(name: str, **values: Any) -> Any:
    """The same through a process of its own."""
    size = values.pop("batch_size", None)
    options = JobOptions(batch_size=size)
    return load_job(OWN + name, replace(options, **values))


def test_a_process_of_its_own_gives_the_same_job(capfd: pytest.CaptureFixture[str]) -> None:
    own_job = job("with_batch", precision="amp-bf16", optimizer="adamw")
    assert own_job.graph.op_types
    assert (own_job.batch_size, own_job.input_shape, own_job.kind) == (4, IMAGE, "own_model")
    assert (own_job.precision, own_job.optimizer) == ("amp-bf16", "adamw")
    assert facts_words(own_job) == "4 samples per device, input 3x32x32, amp-bf16, adamw, PyTorch 2"
    assert sentences(own_job.assumptions) == (USUAL_LOSS,)
    printed = capfd.readouterr()
    assert "a user's file may print" not in printed.out


def test_code_that_misbehaves_ends_in_one_line_and_nothing_stays() -> None:
    with pytest.raises(ConfigError, match=r"took longer than 6 s.*--set time_limit_s=N"):
        job("never_ends", own_code_s=6.0)
    with pytest.raises(ConfigError, match="exit status 3"):
        job("ends_the_process")
    with pytest.raises(ConfigError, match=r"allocates more memory.*--set memory_gib=N"):
        job("allocates")
    with pytest.raises(ConfigError, match="no such thing") as raised:
        job("fails")
    (traceback,) = raised.value.__notes__
    assert "own.py" in traceback
    assert "second line" in traceback
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    assert not children.exists() or "own_child" not in "".join(
        Path(f"/proc/{child}/cmdline").read_text() for child in children.read_text().split()
    )


LEFT_BEHIND = """
import mmap, multiprocessing, os, subprocess, sys, time
from pathlib import Path
from torch import nn

def sleeper(**options):
    process = subprocess.Popen(["sleep", "1000"], **options)
    Path(__file__).with_name("pids").open("a").write(f"{process.pid} ")

def net():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 10))

def leaves():
    sleeper()
    sleeper(start_new_session=True)
    return net()

def ends_beside_a_child():
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)).start()
    sys.exit("no data here")

def copies_itself():
    os.fork()
    return net()

def prints():
    line = b"x" * (1 << 20)
    for _ in range(300):
        os.write(1, line)
    os.write(1, b"\\nthe last line\\n")
    os._exit(5)

def shares():
    memory = mmap.mmap(-1, 4 << 30)
    for place in range(0, 4 << 30, 1 << 20):
        memory[place : place + (1 << 20)] = b"x" * (1 << 20)
    time.sleep(60)

def waits():
    sleeper(start_new_session=True)
    time.sleep(1000)
"""


@pytest.fixture
def left_behind(tmp_path: Path) -> Path:
    """A file whose functions leave processes, output and memory behind."""
    file = tmp_path / "left.py"
    file.write_text(LEFT_BEHIND)
    return file


def still_there(folder: Path) -> list[int]:
    """Processes that the code has started and that have not ended."""
    pids = [int(word) for word in (folder / "pids").read_text().split()]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def read_left(file: Path, name: str, **values: Any) -> Any:
    return load_job(f"{file}:{name}", JobOptions(batch_size=2, input_shape=(3, 8, 8), **values))


def test_children_of_the_code_end_with_it(left_behind: Path) -> None:
    """Those of its session and those of a session of their own; the model is read all the same."""
    assert read_left(left_behind, "leaves").batch_size == 2
    assert len((left_behind.parent / "pids").read_text().split()) == 2
    assert still_there(left_behind.parent) == []


def test_a_child_does_not_hold_up_the_end(left_behind: Path) -> None:
    """The reason is that of the code, and comes at once: no limit is waited for."""
    started = time.monotonic()
    with pytest.raises(ConfigError, match="SystemExit: no data here"):
        read_left(left_behind, "ends_beside_a_child")
    assert time.monotonic() - started < 60
    assert read_left(left_behind, "copies_itself").batch_size == 2


def test_of_what_the_code_prints_the_end_is_kept(left_behind: Path) -> None:
    """300 MB take no memory here."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConfigError, match=r"exit status 5\): the last line;"):
        read_left(left_behind, "prints")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


def test_shared_memory_counts(left_behind: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs more memory.*--set memory_gib=N"):
        read_left(left_behind, "shares", own_code_gib=1.0)


def test_after_a_kill_neither_processes_nor_folders_stay(left_behind: Path, tmp_path: Path) -> None:
    """The supervisor tidies up where the command cannot."""
    place = tmp_path / "temporary"
    place.mkdir()
    words = ("inspect", f"{left_behind}:waits", "--batch-size", "2", "--input", "3x8x8")
    with subprocess.Popen(
        [sys.executable, "-m", "driple", *words], env=os.environ | {"TMPDIR": str(place)}
    ) as command:
        pids = left_behind.parent / "pids"
        wait_until(lambda: pids.exists() and pids.read_text() != "")
        assert list(place.iterdir())
        command.kill()
    wait_until(lambda: not still_there(left_behind.parent) and not list(place.iterdir()))


def wait_until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_a_damaged_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a full disk, or of code that writes into the folder."""
    for content in ("{", "[]", '{"error": 5}', '{"batch_size": "x"}', "\\xff", "[" * 100_000):

        def ask(_: Any, folder: Path, outcome: Path, limit_s: float, text: str = content) -> int:
            outcome.write_text(text, encoding="latin-1")
            return 0

        monkeypatch.setattr(own_model._Child, "ask", ask)
        with pytest.raises(ConfigError, match=r"answer of the process of .*; run the command"):
            job("with_batch")


def test_within_one_question_one_process_reads_a_model_in_all_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The graphs are those that processes of their own read, and the process ends with it."""
    started: list[own_model._Child] = []
    start = own_model._Child.start
    monkeypatch.setattr(
        own_model._Child, "start", lambda b: started.append(start(b)) or started[-1]
    )
    ways = [JobOptions(batch_size=size, input_shape=(64,)) for size in (8, 4)]
    with own_model.kept_processes():
        kept = [load_job(f"{OWN}lora", way).graph for way in ways]
    assert len(started) == 1 and started[0].has_ended
    alone = [load_job(f"{OWN}lora", way).graph for way in ways]
    assert len(started) == 3
    for graph, other in zip(kept, alone, strict=True):
        assert graph.signatures == other.signatures
        assert (graph.lifetimes.nbytes == other.lifetimes.nbytes).all()
