"""Every command that takes a graph reads it in the same way, and says the same of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main

from driple.cli.joboptions import options_of
from driple.cli.main import app
from driple.errors import ConfigError
from tests.cli.test_main import EXAMPLE, ROOT, driple, refused
from tests.cli.test_numbers import commands
from tests.texts import texts

CASES = ROOT / "tests/data/cases"
CONTROL, UNKNOWN = CASES / "01_control.pbtxt", CASES / "11_unknown_batch.pbtxt"
SETTING = "V100-P1w2"
BATCHES = {"08_inference_only": 8, "09_no_output_shapes": 8}  # fixed in the file

# A command for each that answers with a number, with the graph as its next word.
ANSWERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "predict": (("predict",), ("--setting", SETTING)),
    "simulator": (
        ("predict",),
        ("--method", "simulator", "--setting", SETTING, "--set", "steps=4"),
    ),
    "analytic": (("predict",), ("--method", "analytic", "--setting", SETTING)),
    "all": (("predict",), ("--method", "all", "--setting", SETTING, "--set", "steps=4")),
    "sweep": (("sweep",), ("--setting", SETTING)),
    "plan": (("plan",), ("--instance", "p3.2xlarge")),
    "profile links": (("profile", "links"), ("--setting", "V100-R2/ho-PCIe")),
}
WITH_GRAPHS = {
    "predict", "plan", "sweep", "inspect", "profile links", "data import", "data label",
}  # fmt: skip
FLAGS = {"--batch-size", "--input", "--set"}
MODEL_FLAGS = {
    "--seq-len", "--precision", "--optimizer", "--grad-accumulation", "--activation-checkpointing",
    "--compile", "--data", "--loss", "--training-config",
}  # fmt: skip


def answer(name: str, graph: Path, *options: object) -> Any:
    """What a command prints for a graph."""
    words, others = ANSWERS[name]
    return driple(*words, graph, *others, *options)


def test_every_command_with_a_graph_has_the_same_options() -> None:
    """And no other command has them all."""
    commands_with_all = {
        " ".join(path)
        for path, command in commands(typer.main.get_command(app))
        if {flag for one in command.params for flag in one.opts} >= FLAGS
    }
    assert commands_with_all == WITH_GRAPHS
    with_models = {
        " ".join(path)
        for path, command in commands(typer.main.get_command(app))
        if {flag for one in command.params for flag in one.opts} >= MODEL_FLAGS
    }
    assert with_models == WITH_GRAPHS - {"data import"}  # a table of graph files


def test_options_become_those_of_the_reader() -> None:
    typed = {"batch_size": 8, "inputs": ["images=8x3x3x1", "a/b:0=4"]}
    options = options_of(typed, ["target=train_op", "loop_turns=35", "max_mib=1.5"])
    assert options.batch_size == 8
    assert dict(options.inputs) == {"images": (8, 3, 3, 1), "a/b:0": (4,)}
    assert (options.target, options.loop_turns) == ("train_op", 35)
    assert options.max_bytes == 3 * 2**19
    assert options.given == (
        "--batch-size", "--input NAME=SHAPE", "--set target", "--set loop_turns"
    )  # fmt: skip
    assert options_of({}).given == ()


@pytest.mark.parametrize(
    "text", ["images", "=3x3", "images=", "images=3x", "images=axb", "images=-3", "x=1.5", "x=٣",
             "x=" + "9" * 5000]
)  # fmt: skip
def test_inputs_that_are_no_shapes_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--input needs the shape"):
        options_of({"inputs": [text]})


def test_inputs_out_of_range_or_given_twice_are_refused() -> None:
    with pytest.raises(ConfigError, match="--input x needs"):
        options_of({"inputs": ["x=0x3"]})
    with pytest.raises(ConfigError, match="--input x is given twice"):
        options_of({"inputs": ["x=1", "x=2"]})
    with pytest.raises(ConfigError, match="--input x:0 is given twice"):
        options_of({"inputs": ["x=1", "x:0=2"]})
    assert "--input" in refused("predict", EXAMPLE, "--input", "images")


def test_a_train_op_may_be_named_as_its_first_output() -> None:
    assert options_of({}, ["target=train:0"]).target == "train"
    assert "NAME:OUTPUT=SHAPE" in " ".join(driple("predict", "--help").stdout.split())


@pytest.mark.parametrize("name", ANSWERS)
def test_a_batch_size_gives_what_a_graph_of_that_size_gives(name: str) -> None:
    """Case 11 is case 01 with a batch that it leaves open."""
    bound = answer(name, UNKNOWN, "--batch-size", 32, "--json")
    control = answer(name, CONTROL, "--batch-size", 32, "--json")
    assert bound.returncode == 0, bound.stderr
    assert numbers(json.loads(bound.stdout)) == pytest.approx(numbers(json.loads(control.stdout)))


def facts_of(result: dict[str, Any]) -> dict[str, Any]:
    """What the JSON of any command states about the job."""
    facts: dict[str, Any] = (result["answers"][0] if "answers" in result else result)["job"]
    return facts


def numbers(value: Any) -> list[float]:
    """All times of a JSON object, in order."""
    if isinstance(value, dict):
        times = [
            key
            for key in value
            if key.endswith("_s") or key == "value" or isinstance(value[key], dict | list)
        ]
        return [number for key in times if key != "job" for number in numbers(value[key])]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [float(value)] if isinstance(value, int | float) else []


@pytest.mark.parametrize("name", ANSWERS)
def test_json_holds_what_the_reader_says(name: str) -> None:
    done = answer(name, CONTROL, "--batch-size", 32, "--json")
    assert done.returncode == 0, done.stderr
    facts = facts_of(json.loads(done.stdout))
    assert facts["unknown_dimensions"] == 0
    assert facts["unknown_share"] == 0
    assert facts["op_types_without_cost"] == {}
    for sentence in texts(facts["notes"]):
        assert sentence in done.stderr


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "plan"])
def test_unknown_dimensions_come_first_and_with_the_flags_that_set_them(name: str) -> None:
    """Without them there is no price, no advice and no known error."""
    done = answer(name, UNKNOWN)
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert "unknown" in first
    assert "--batch-size" in first
    assert "--input" in first
    facts = facts_of(json.loads(answer(name, UNKNOWN, "--json").stdout))
    assert facts["unknown_dimensions"] > 0
    assert 0 < facts["unknown_share"] <= 1


def test_unknown_dimensions_leave_no_price_and_no_recommendation(tmp_path: Path) -> None:
    """Height and width are open, so that the batch size alone does not settle them."""
    graph = tmp_path / "open.pbtxt"
    graph.write_text(CONTROL.read_text().replace("size: 56 ", "size: -1 "))
    done = answer("plan", graph, "--batch-size", 32)
    assert done.returncode == 0, done.stderr
    assert "unknown" in done.stdout.splitlines()[0]
    assert "no price and no recommendation" in done.stdout
    result = json.loads(answer("plan", graph, "--batch-size", 32, "--json").stdout)
    assert result["recommendation"] is None
    assert {(one["price_per_hour"], one["cost"]) for one in result["offers"]} == {(None, None)}


@pytest.fixture(scope="module")
def open_loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recurrent network whose loop ends where the graph does not say."""
    graph = tmp_path_factory.mktemp("loop") / "loop.pbtxt"
    known = (CASES / "17b_rnn_length_constant.pbtxt").read_text()
    graph.write_text(known.replace('op: "Less"', 'op: "MyLess"'))
    return graph


@pytest.mark.parametrize("name", [*ANSWERS, "inspect"])
def test_unknown_turns_come_first_and_with_the_flag_that_sets_them(
    name: str, open_loop: Path
) -> None:
    words, others = ANSWERS.get(name, (("inspect",), ()))
    sizes = ["--batch-size", "50", "--samples", "1000"] if name == "plan" else []
    options = (*others, *sizes)
    first = driple(*words, open_loop, *options).stdout.splitlines()[0]
    assert "while" in first
    assert "--set loop_turns=N" in first
    facts = facts_of(json.loads(driple(*words, open_loop, *options, "--json").stdout))
    assert "while/while_context" in facts["unknown_turns"]
    assert any("--set loop_turns=N" in note for note in texts(facts["notes"]))
    known = driple(*words, open_loop, *options, "--set", "loop_turns=25", "--json")
    assert facts_of(json.loads(known.stdout))["unknown_turns"] == []


def test_unknown_turns_leave_no_price_no_known_error_and_no_advice(open_loop: Path) -> None:
    sizes = ("--batch-size", 50, "--samples", 1000)
    priced = json.loads(answer("plan", open_loop, *sizes, "--json").stdout)
    assert "--set loop_turns" in priced["no_price"]["text"]
    assert "--input" not in priced["no_price"]["text"]
    assert priced["recommendation"] is None
    assert {(one["price_per_hour"], one["cost"]) for one in priced["offers"]} == {(None, None)}
    assert "loop" in priced["offers"][0]["stated_error"]["of"]["text"]
    assert claims_nothing("predict", open_loop)
    (simulated,) = json.loads(answer("simulator", open_loop, "--json").stdout)["answers"]
    assert "loop" in simulated["stated_error"]["of"]["text"]
    assert "no advice: the turns of" in answer("sweep", open_loop).stdout
    assert levels_of("all", open_loop) == [None] * 5
    assert "\nhow sure  not known: the turns of" in answer("analytic", open_loop).stdout
    assert "not known, the turns of" in answer("analytic", open_loop, "--explain").stdout
    given = answer("plan", open_loop, *sizes, "--set", "loop_turns=25", "--json")
    assert json.loads(given.stdout)["recommendation"]


def claims_nothing(name: str, graph: Path) -> bool:
    """Whether an answer states no share of values for its interval."""
    (result,) = json.loads(answer(name, graph, "--json").stdout)["answers"]
    interval = result["iteration_time_s"]["interval"]
    return interval is None or interval["level"] is None


def levels_of(name: str, graph: Path) -> list[Any]:
    """Share of values that the interval of each method claims; None where it claims none."""
    (result,) = json.loads(answer(name, graph, "--json").stdout)["answers"]
    intervals = [one["iteration_time_s"]["interval"] for one in result["methods"].values()]
    return [None if one is None else one["level"] for one in intervals]


def test_unknown_dimensions_leave_no_known_error_and_no_advice() -> None:
    assert claims_nothing("predict", UNKNOWN)
    (simulated,) = json.loads(answer("simulator", UNKNOWN, "--json").stdout)["answers"]
    assert simulated["stated_error"]["checked"] is False
    swept = answer("sweep", UNKNOWN)
    assert "no advice" in swept.stdout
    assert "held back by" not in swept.stdout
    result = json.loads(answer("sweep", UNKNOWN, "--json").stdout)
    assert result["bottleneck"] is None
    assert not any(name.startswith("saved") for name in result["estimates"])
    assert set(levels_of("all", UNKNOWN)) == {None}
    assert "% of the nodes have unknown dimensions" in answer("analytic", UNKNOWN).stdout
    assert "% of the nodes have" in answer("analytic", UNKNOWN, "--explain").stdout


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(
    "case", ["08_inference_only", "09_no_output_shapes", "21b_same_no_devices"]
)
def test_a_graph_without_a_training_step_is_refused(name: str, case: str) -> None:
    """With the reason, and the way to write a training step."""
    words, others = ANSWERS[name]
    size = ("--batch-size", BATCHES.get(case, 32)) if name == "plan" else ()
    line = refused(*words, CASES / f"{case}.pbtxt", *others, *size)
    assert "training" in line


@pytest.mark.parametrize(
    "case", ["08_inference_only", "09_no_output_shapes", "21b_same_no_devices"]
)
def test_inspect_describes_it_all_the_same(case: str) -> None:
    done = driple("inspect", CASES / f"{case}.pbtxt")
    assert done.returncode == 0, done.stderr
    assert "kind of op" in done.stdout


def test_one_limit_on_the_size_of_files_in_all_commands() -> None:
    for name, (words, others) in ANSWERS.items():
        size = ("--batch-size", 32) if name == "plan" else ()
        line = refused(*words, EXAMPLE, *others, *size, "--set", "max_mib=0.001")
        assert "raise the limit with --set max_mib=N" in line
    assert "max_mib" in refused("inspect", EXAMPLE, "--set", "max_mib=0.001")


def test_options_of_files_are_refused_where_there_is_no_file() -> None:
    workload = "lenet/mnist/b32/sgd/sync"
    assert "--set loop_turns" in refused("predict", workload, "--set", "loop_turns=3")
    assert "has batches of 32" in refused("predict", workload, "--batch-size", "64")
    assert "--set target" in refused("plan", "resnet18", "--set", "target=train")
    assert "--batch-size" in refused("plan", "--profile", "x=p3.2xlarge", "--batch-size", "3")
    assert "--data" in refused("inspect", EXAMPLE, "--data", "a.py:f")


@pytest.mark.parametrize("name", ["predict", "simulator", "sweep", "all", "analytic"])
def test_every_answer_says_whether_workers_are_taken_to_wait(name: str) -> None:
    """A graph without a strategy leaves it open; methods differ in what they take it for."""
    graph = CASES / "14_one_machine_localhost_saver.pbtxt"
    explain = ("--explain",) if name in ("predict", "simulator", "analytic") else ()
    done = answer(name, graph, *explain)
    wanted = "asynchronous" if name in ("predict", "simulator") else "for synchronous training"
    said = [line for line in done.stdout.splitlines() if line.startswith("assumed: ")]
    assert any(wanted in line for line in said), done.stdout
    result = json.loads(answer(name, graph, "--json").stdout)
    stated = result if name == "sweep" else result["answers"][0]
    assert [f"assumed: {one}" for one in texts(stated["assumptions"])] == said


@pytest.mark.parametrize("flag", ["--loss", "--data"])
@pytest.mark.parametrize("command", ["plan", "profile links"])
def test_options_of_an_own_model_are_refused_for_anything_else(command: str, flag: str) -> None:
    """They would be ignored."""
    options = ("--batch-size", 32, flag, "own.py:f")
    for job in (EXAMPLE, "resnet50"):
        said = refused(*command.split(), job, *options)
        assert f"{flag}: for a model of your own (FILE.py:FUNCTION)" in said
    if command == "plan":
        said = refused("plan", "--profile", "runs=p3.2xlarge", flag, "own.py:f")
        assert f"{flag}: for JOB, and none is given" in said
