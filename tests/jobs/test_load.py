"""One grammar of JOB: a text goes to one reader, which refuses options that it has no use for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driple.cluster.setting import Setting
from driple.errors import ConfigError, GraphError
from driple.graph import read_graph
from driple.jobs.graph_file import _other_batch
from driple.jobs.job import Job, JobOrigin, job_of
from driple.jobs.load import JOB_HELP, JobOptions, JobReads, load_job, load_jobs
from driple.jobs.readers import (
    JobReader,
    JobRequest,
    added_reader,
    reader_of,
    register_reader,
    registered_readers,
)
from driple.render.job_facts import facts_words
from driple.render.remarks import sentence, sentences
from tests.cli.test_main import EXAMPLE, driple

OTHER = JobOrigin(name="other")
ALL = JobOptions(
    batch_size=2,
    inputs={"x": (1,)},
    target="t",
    loop_turns=3,
    input_shape=(3, 4, 4),
    seq_len=8,
    precision="bf16",
    optimizer="adamw",
    grad_accumulation=2,
    activation_checkpointing="full",
    compiled=True,
    clip_gradients=True,
    channels_last=True,
    library="torch1",
    data="a.py:f",
    loss="a.py:g",
    trace="real",
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hf:some/folder", "a Hugging Face model"),
        ("timm:resnet50", "a model of timm"),
        ("train.py:build_model", "a model of your own (FILE.py:FUNCTION)"),
        ("package.module:build_model", "a model of your own (FILE.py:FUNCTION)"),
        (str(EXAMPLE), "a TensorFlow graph file"),
        ("none.pbtxt", "a TensorFlow graph file"),
        ("none.pb.gz", "a TensorFlow graph file"),
        ("resnet50", "a built-in PyTorch model"),
        ("resnet50/imagenet/b32/sgd/sync", "a workload of the catalogue"),
    ],
)
def test_each_text_has_one_reader(text: str, name: str) -> None:
    assert reader_of(text, JobOptions()).name == name


@pytest.mark.parametrize("reader", registered_readers(), ids=lambda one: one.name)
def test_a_reader_refuses_by_name_what_it_has_no_use_for(reader: JobReader) -> None:
    """And nothing else: all flags that are given are either taken or named."""
    text = {
        "a Hugging Face model": "hf:x", "a model of timm": "timm:x", "a workload of the catalogue":
        "a/b/c", "a built-in PyTorch model": "resnet50", "a TensorFlow graph file": str(EXAMPLE),
        "an ONNX file": "x.onnx",
    }.get(reader.name, "own.py:f")  # fmt: skip
    odd = [flag for flag in ALL.given if flag not in reader.flags]
    assert odd, "no reader takes both files' and models' options"
    with pytest.raises(ConfigError) as raised:
        reader_of(text, ALL)
    assert str(raised.value).startswith(" and ".join(odd))


def test_the_help_names_every_form() -> None:
    assert all(reader.form in JOB_HELP for reader in registered_readers())
    assert "executed" in JOB_HELP


def test_a_reader_is_one_object_and_its_registration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It works in Python and on the command line at once, and its job is like any other."""

    def read(request: JobRequest) -> Job:
        graph = read_graph(EXAMPLE)
        return job_of(request.text, OTHER, graph, batch_size=request.options.batch_size)

    reader = JobReader(
        origin=OTHER,
        name="a job of a test",
        form="test:NAME",
        claims=lambda text: text.startswith("test:"),
        flags=frozenset({"--batch-size"}),
        read=read,
    )
    from driple.cli.main import run

    with added_reader(reader):
        assert load_job("test:x", JobOptions(batch_size=3)).batch_size == 3
        with pytest.raises(ConfigError, match="registered already"):
            register_reader(reader)
        with pytest.raises(ConfigError, match=r"^--seq-len: "):
            load_job("test:x", JobOptions(seq_len=3))
        with pytest.raises(SystemExit) as ended:
            run(["inspect", "test:x", "--json"])
        assert ended.value.code == 0
    result = json.loads(capsys.readouterr().out)
    assert result["job"]["kind"] == "other"
    with pytest.raises(ConfigError):
        load_job("test:x")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"precision": "fp4"}, "--precision must be one of fp32"),
        ({"optimizer": "x"}, "--optimizer must be one of sgd"),
        ({"activation_checkpointing": "some"}, "--activation-checkpointing must be one of none"),
        ({"seq_len": 0}, "--seq-len must be"),
        ({"grad_accumulation": 0}, "--grad-accumulation must be"),
        ({"input_shape": ()}, "--input needs 1 to 6 sizes"),
        ({"input_shape": (3, 0)}, "--input needs 1 to 6 sizes"),
    ],
)
def test_options_are_checked_once_for_all_jobs(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        JobOptions(**values)  # type: ignore[arg-type]


def test_built_in_models_take_the_options_of_models() -> None:
    job = load_job("mobilenet_v2", JobOptions(batch_size=2, precision="bf16"))
    assert facts_words(job) == "2 samples per device, input 3x224x224, bf16, momentum, PyTorch 2"
    assert sentences(job.assumptions) == (
        "input 3x224x224, optimizer momentum; set them with --input, --optimizer",
    )
    smaller = load_job("mobilenet_v2", JobOptions(batch_size=2, input_shape=(3, 64, 64)))
    assert smaller.cost.total_flops < job.cost.total_flops / 8
    with pytest.raises(ConfigError, match="give --input 3xHEIGHTxWIDTH"):
        load_job("mobilenet_v2", JobOptions(seq_len=3))
    with pytest.raises(ConfigError, match="square RGB images"):
        load_job("mobilenet_v2", JobOptions(input_shape=(1, 64, 64)))


def test_every_answer_states_the_job() -> None:
    done = driple("inspect", EXAMPLE)
    assert done.stdout.startswith("job: 32 samples per device, fp32, momentum\n")
    with pytest.raises(GraphError, match="there is no graph file"):
        load_job(Path("none.pb"))


def test_verbose_shows_the_traceback_and_may_stand_anywhere() -> None:
    for words in (("--verbose", "inspect", "none.pb"), ("inspect", "none.pb", "--verbose")):
        done = driple(*words)
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("driple: there is no graph file")
    assert "Traceback" not in driple("inspect", "none.pb").stderr


def test_a_file_that_is_missing_is_no_workload() -> None:
    with pytest.raises(ConfigError, match=r"there is no file model\.pt"):
        load_job("model.pt")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JOB is empty; give hf:PATH"),
        (" ", "JOB is empty"),
        ("a" * 300, "has 300 characters, which no file's path has"),
        ("a/" * 3000, "has 6000 characters"),
        ("https://huggingface.co/gpt2", "Driple downloads nothing"),
    ],
)
def test_what_names_nothing_here_is_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        load_job(text)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_graph_says_so_whatever_its_options(tmp_path: Path) -> None:
    """The function of a file is easily forgotten; options of models do not make it a graph."""
    file = tmp_path / "train.py"
    file.write_text("def build_model():\n    pass\n")
    with pytest.raises(GraphError, match=r"is Python: name the function .*train.py:build_model"):
        load_job(str(file), JobOptions(input_shape=(3, 32, 32)))


def test_a_models_config_without_hf_says_so_whatever_its_options(tmp_path: Path) -> None:
    """Options of models are not judged first: they are right, and the prefix is what is missing."""
    file = tmp_path / "config.json"
    for values in ({"model_type": "gpt2"}, {"architectures": ["GPT2LMHeadModel"]}):
        file.write_text(json.dumps(values))
        for options in (
            JobOptions(seq_len=128),
            JobOptions(precision="amp-bf16", compiled=True, batch_size=8),
        ):
            with pytest.raises(GraphError, match=f"give hf:{file}$"):
                load_job(str(file), options)
            with pytest.raises(GraphError, match=f"give hf:{tmp_path}$"):
                load_job(str(tmp_path), options)


@pytest.mark.parametrize("batch_size", [2, 16, 64, 4096])
def test_a_batch_that_a_graph_does_not_have_is_refused(batch_size: int) -> None:
    """The convolutions of this file, and its loss, take 32 images."""
    graph = EXAMPLE.with_name("resnet50.pbtxt")
    assert sentences(load_job(graph, JobOptions(batch_size=32)).assumptions) == ()
    with pytest.raises(GraphError, match=f"--batch-size {batch_size}: .* fixes its batch to 32; "):
        load_job(graph, JobOptions(batch_size=batch_size))


def test_several_images_of_a_sample_are_a_doubt() -> None:
    """Such as frames of a video: a loss is of fewer samples, or there is none that tells."""
    graph = load_job(EXAMPLE.with_name("resnet50.pbtxt")).graph
    frames = replace(
        graph,
        signatures=tuple(
            replace(op, inputs=(replace(op.inputs[0], shape=(8, 1001)), *op.inputs[1:]))
            if op.kind == "cross_entropy"
            else op
            for op in graph.signatures
        ),
    )
    (doubt,) = _other_batch(EXAMPLE, 8, frames)
    assert "32 images at once" in sentence(doubt)
    with pytest.raises(GraphError, match="fixes its batch to 32"):
        _other_batch(EXAMPLE, 64, frames)


def test_clipping_reads_all_gradients_again() -> None:
    """For their norm, and to scale them."""
    usual, clipped = (
        load_job("mobilenet_v2", JobOptions(batch_size=2, clip_gradients=on)).graph
        for on in (False, True)
    )
    gradients = usual.sent_bytes
    assert clipped.update.moved_bytes - usual.update.moved_bytes >= 3 * gradients


def test_what_decides_a_job_tells_its_readings_apart() -> None:
    """Options and kernels do, links do not; a refusal is kept, too."""
    reads = JobReads("resnet18")
    a100, other = Setting.parse("1xA100"), Setting.parse("2x8xA100/NVLink+100G")
    small = JobOptions(batch_size=2)
    assert reads.job(small, a100) is reads.job(JobOptions(batch_size=2), other)
    assert reads.job(small, a100) is not reads.job(JobOptions(batch_size=4), a100)
    assert reads.job(small, a100) is not reads.job(small, Setting.parse("1xV100"))
    wrong = JobOptions(seq_len=7)
    with pytest.raises(ConfigError) as refused:
        reads.job(wrong, a100)
    with pytest.raises(ConfigError) as again:
        reads.job(wrong, other)
    assert again.value is refused.value
    with pytest.raises(ConfigError, match="JOB is a int"):
        JobReads(3)  # type: ignore[arg-type]


def test_settings_share_a_job_that_is_the_same_on_all() -> None:
    """A file is read once; the graph of a workload has the servers and workers of its setting."""
    pytest.importorskip("tensorflow")
    names = ["V100-P1w2", "2080Ti-P1w2", "V100-P5w5", "1xH100", "8xH100"]
    settings = [Setting.parse(name) for name in names]
    (file,) = {id(job) for job in load_jobs(EXAMPLE, None, settings)}
    assert file
    jobs = load_jobs("resnet20/cifar10/b24/adam/sync", None, settings)
    first, other, five, alone, ring = jobs
    assert first is other and alone is ring
    assert first is not five is not alone
    # Without servers it is the graph of two workers on one, which the answer says.
    assert {job.graph.layout for job in jobs} == {"servers"}
    assert alone.graph.signatures == first.graph.signatures
