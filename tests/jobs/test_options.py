"""Options of a job: those of a graph file's reader are given like all others."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import driple
from driple.errors import ConfigError
from driple.graph.low_precision import OTHER_SPELLINGS
from driple.graph.options import ReadOptions
from driple.graph.torch.options import PRECISIONS, StepOptions
from driple.jobs.training_config import TrainingConfig
from driple.render.job_facts import facts_words


def test_values_of_a_graph_file_reach_its_reader() -> None:
    """Each value of `ReadOptions` is one of `JobOptions`, and there is no second place for it."""
    values = {"batch_size": 8, "inputs": {"x": (8, 3)}, "target": "train", "loop_turns": 5}
    options = driple.JobOptions(**values)  # type: ignore[arg-type]
    assert options.read == ReadOptions(**values)  # type: ignore[arg-type]
    assert set(ReadOptions.__slots__) == set(values)
    with pytest.raises(TypeError, match="read"):
        driple.JobOptions(read=ReadOptions())  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"batch_size": 0}, "--batch-size must be a whole number from 1"),
        ({"batch_size": "8"}, "--batch-size must be a whole number from 1 .*, got '8'"),
        ({"batch_size": True}, "--batch-size must be a whole number"),
        ({"inputs": {"x": (0,)}}, "--input x needs"),
        ({"inputs": {"x": (2.0, 3)}}, "--input x needs"),
        ({"inputs": {"x": 3}}, "--input x needs"),
        ({"inputs": {"x": "23"}}, "--input x needs"),
        ({"inputs": {3: (3,)}}, "--input '3' is not the name"),
        ({"inputs": [3]}, "--input needs shapes by the names"),
        ({"loop_turns": 0}, "--set loop_turns must be a whole number from 1"),
        ({"loop_turns": "3"}, "--set loop_turns must be a whole number from 1 .*, got '3'"),
        ({"target": 3}, "--set target must be a text, got 3"),
    ],
)
def test_values_of_a_graph_file_are_checked_at_once(values: dict[str, object], words: str) -> None:
    for options in (driple.JobOptions, ReadOptions):
        with pytest.raises(ConfigError, match=words):
            options(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"input_shape": 3}, r"--input needs 1 to 6 sizes .*, got 3$"),
        ({"input_shape": (3.0, 224.0, 224.0)}, r"--input needs .*, got \(3.0, 224.0, 224.0\)$"),
        ({"input_shape": "3x224x224"}, "--input needs .*, got '3x224x224'$"),
        ({"input_shape": ()}, "--input needs 1 to 6 sizes"),
        ({"input_shape": (1,) * 7}, "--input needs 1 to 6 sizes"),
        ({"seq_len": 0}, "--seq-len must be a whole number"),
        ({"grad_accumulation": "2"}, "--grad-accumulation must be a whole number"),
        ({"precision": 16}, "--precision must be one of"),
        ({"compiled": "no"}, "--compile must be True or False, got 'no'"),
        ({"clip_gradients": 1}, "--set clip_gradients must be True or False"),
        ({"channels_last": None}, "--set channels_last must be True or False"),
        ({"task": None}, "--set task must be one of"),
        ({"library": None}, "--set library must be one of"),
        ({"trace": None}, "--set trace must be one of"),
        ({"data": 3}, "--data must be a text"),
        ({"loss": len}, "--loss must be a text"),
        ({"own_code_s": -1}, "own_code_s .* must be a number above 0"),
        ({"own_code_gib": "8"}, "own_code_gib .* must be a number above 0"),
        ({"max_bytes": -1}, "max_bytes .* must be a whole number of at least 1"),
        ({"config": None}, "config is None, and a TrainingConfig is needed"),
    ],
)
def test_values_of_a_model_are_checked_at_once(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        driple.JobOptions(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [driple.JobOptions, ReadOptions])
def test_options_are_values(options: type[ReadOptions]) -> None:
    """They travel to other processes, serve as keys, and equal others with the same values."""
    sizes = {"x": [8, 3]}
    value = options(inputs=sizes)  # type: ignore[arg-type]
    for same in (
        pickle.loads(pickle.dumps(value)),  # noqa: S301  # our own bytes
        copy.deepcopy(value),
        options(inputs={"x": (8, 3)}),
    ):
        assert same == value
        assert hash(same) == hash(value)
    assert options() != value
    sizes["x"] = [9, 3]
    assert value.inputs == {"x": (8, 3)}


def test_a_shape_may_be_a_list() -> None:
    assert driple.JobOptions(input_shape=[3, 8, 8]) == driple.JobOptions(input_shape=(3, 8, 8))  # type: ignore[arg-type]


def test_a_job_takes_the_name_of_its_setting() -> None:
    by_name = driple.load_job("resnet18", setting="1xV100")
    assert facts_words(by_name) == facts_words(
        driple.load_job("resnet18", setting=driple.Setting.parse("1xV100"))
    )
    with pytest.raises(driple.DripleError, match="nowhere"):
        driple.load_job("resnet18", setting="nowhere")


def test_options_of_a_job_are_no_dictionary() -> None:
    for source in ("resnet18", Path("resnet18")):
        with pytest.raises(ConfigError, match="options is a dict, and driple"):
            driple.load_job(source, {"batch_size": 3})  # type: ignore[arg-type]


def test_a_training_config_gives_the_batch_size_that_is_left_out() -> None:
    config = TrainingConfig(batch_size=4)
    assert driple.JobOptions(config=config).with_config().read.batch_size == 4
    assert driple.JobOptions(batch_size=8, config=config).with_config().read.batch_size == 8


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("mxfp8", "take fp8-block, the nearest on Blackwell"),
        ("MXFP4", "take nvfp4"),
        ("fp4", "take nvfp4"),
        ("float8", "take fp8, "),
        ("fp8_blockwise", "take fp8-block, "),
    ],
)
def test_formats_that_frameworks_name_otherwise_are_refused_with_what_to_take(
    name: str, offer: str
) -> None:
    with pytest.raises(ConfigError, match=f"--precision must be one of .*{offer}") as refused:
        driple.JobOptions(precision=name)
    assert "\n" not in str(refused.value)
    with pytest.raises(ConfigError, match=f"^precision must be one of .*{offer}"):
        StepOptions(precision=name)  # type: ignore[arg-type]


def test_the_page_names_every_other_spelling_with_what_to_take() -> None:
    page = (Path(__file__).parents[2] / "docs" / "job.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    for name, advice in OTHER_SPELLINGS.items():
        (take,) = {second.split("`")[1] for first, second in rows if f"`{name}`" in first}
        assert advice.split("take ")[1].split(",")[0] == take, name


def test_other_spellings_offer_precisions_that_there_are() -> None:
    for name, advice in OTHER_SPELLINGS.items():
        offered = advice.split("take ")[1].split(",")[0]
        assert offered in PRECISIONS, name
        assert name not in PRECISIONS
