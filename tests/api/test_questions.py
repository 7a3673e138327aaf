"""The questions from Python: what may be asked, what comes back, what is imported for it."""

import subprocess
import sys
from pathlib import Path

import pytest

import driple
from driple.api.results import Result
from driple.errors import ConfigError, MissingExtraError

ROOT = Path(__file__).resolve().parents[2]
GRAPH = ROOT / "datasets/examples/resnet50.pbtxt"
OTHER = ROOT / "tests/data/cases/01_control.pbtxt"
RING = "V100-R8/ho-NVLink"


def test_lists_of_jobs_and_settings_give_an_answer_for_each_pair() -> None:
    result = driple.predict([GRAPH, OTHER], ["V100", RING], num_steps=4)
    pairs = [(one.job.source, one.setting.name, one.method) for one in result.answers]
    assert pairs == [
        (str(GRAPH), "V100-P1w2/ho-PCIe", "inspector"),
        (str(GRAPH), RING, "simulator"),
        (str(OTHER), "V100-P1w2/ho-PCIe", "simulator"),  # far from what the inspector knows
        (str(OTHER), RING, "simulator"),
    ]
    frame = result.to_frame()
    assert len(frame) == 4
    assert frame["iteration_time_s"][0] == result.answers[0].iteration_time_s.value
    assert result._repr_html_().count("<tr>") == 5


def test_a_graph_and_a_job_answer_as_their_file_does() -> None:
    by_file = driple.predict(GRAPH).answers[0].iteration_time_s
    assert driple.predict(driple.load_job(GRAPH)).answers[0].iteration_time_s == by_file
    assert driple.predict(driple.read_graph(GRAPH)).answers[0].iteration_time_s == by_file


def test_a_checkpoint_stands_for_its_setting() -> None:
    checkpoint = driple.load_checkpoint(
        ROOT / "checkpoints/2080Ti-P1w2_ho-PCIe/default.safetensors"
    )
    (answer,) = driple.predict(GRAPH, checkpoint=checkpoint).answers
    assert answer.setting.name == "2080Ti-P1w2/ho-PCIe"
    assert answer.iteration_time_s == driple.predict(GRAPH, "2080Ti").answers[0].iteration_time_s
    with pytest.raises(ConfigError, match="checkpoint="):
        driple.predict(GRAPH, checkpoint)  # type: ignore[arg-type]  # as earlier versions took it
    with pytest.raises(ConfigError, match="--checkpoint or --setting"):
        driple.predict(GRAPH, "V100", checkpoint=checkpoint)


def test_a_table_without_pandas_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    result: Result = driple.inspect(GRAPH)
    frame = result.to_frame()
    assert frame[frame["part"] == "kind"]["ops"].sum() > 500
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="needs pandas"):
        result.to_frame()


def test_asking_an_inspector_imports_nothing_heavy() -> None:
    """Neither torch nor SciPy nor pandas; importing the package imports no module below it."""
    program = (
        "import sys, driple; "
        "assert not [one for one in sys.modules if one.startswith('driple.')], sys.modules; "
        f"driple.predict({str(GRAPH)!r}); "
        "print([one for one in ('torch', 'scipy', 'pandas', 'sklearn', 'tensorflow') "
        "if one in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
