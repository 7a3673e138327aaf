"""`driple predict` by simulator, closed forms and all methods; auto takes what answers best."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from driple.cluster.setting import Setting
from driple.features import FEATURES_VERSION
from driple.graph import READER_VERSION
from driple.inspector.checkpoint import load_checkpoint, save_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.quantities import rounded
from tests.cli.test_main import EXAMPLE, ROOT, driple, refused
from tests.texts import texts

QUICK = ("--set", "steps=20")
SIMULATE = ("predict", "--method", "simulator")
ANALYTIC = ("predict", "--method", "analytic")
ALL = ("predict", "--method", "all")
MEASURED = ROOT / "datasets/examples/resnet20.pbtxt"


def test_the_simulator_gives_the_twelve_targets_and_says_that_it_is_simulated() -> None:
    done = driple(*SIMULATE, EXAMPLE, "--setting", "V100-P1w2", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["answers"]
    assert result["setting"] == "V100-P1w2/ho-PCIe"
    assert result["iteration_time_s"]["source"] == "simulated"
    assert result["stated_error"]["checked"] is False  # its filters are small, as of CIFAR
    rx = result["targets"]["net_rx"]
    both = rx["burst_duration"]["value"] + rx["idle_duration"]["value"]
    assert both == pytest.approx(result["iteration_time_s"]["value"], rel=0.15)
    shown = driple(*SIMULATE, EXAMPLE, *QUICK)
    assert "\nhow sure  published runs with parameter servers are on several " in shown.stdout
    assert "; the nearest kind: " in shown.stdout
    assert "no --setting given" in shown.stderr
    rows = [line.split()[0] for line in shown.stdout.splitlines() if re.search(r" s +\S+ s$", line)]
    assert rows == ["device_util", "device_mem_util", "net_tx", "net_rx"]
    explained = driple(*SIMULATE, EXAMPLE, *QUICK, "--explain").stdout
    assert "resnet50.pbtxt on V100-P1w2/ho-PCIe: simulated\n" in explained
    assert "parameter servers are on several machines; of the nearest kind: " in explained


def test_the_error_is_that_of_the_setting_and_the_graph() -> None:
    """ResNet-50 with one server on a slow network was checked, on more servers it was not."""
    large = ROOT / "datasets/examples/resnet50.pbtxt"
    settings = ("--setting", "2080Ti-P1w2/ho-10G", "--setting", "2080Ti-P2w2/ho-10G")
    done = driple(*SIMULATE, large, *settings, *QUICK)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.replace("\n          ", " ")  # lines that are continued
    first, two = (line for line in shown.splitlines() if line.startswith("how sure"))
    assert re.fullmatch(
        r"how sure  \d+ % off in the median, \d+ % for one in ten, on 28 runs of convolutional "
        r"networks; each family left out",
        first,
    )
    assert "the nearest kind: " in two
    assert "up to 1 of them and 3 workers, this setting 2 and 2" in two
    done = driple(*SIMULATE, large, *settings, *QUICK, "--explain")
    first, two = (line for line in done.stdout.splitlines() if "published run" in line)
    assert first.startswith("expected error of the simulator on this job: median ")
    assert "from its error on 28 published runs of convolutional networks" in first
    assert "parameter servers with " in first
    assert "up to 1 of them and 3 workers, this setting 2 and 2" in two


def test_a_device_that_nobody_measured_is_said_to_be_one() -> None:
    asked = (*SIMULATE, EXAMPLE, "--setting", "2080-P1w2/ho-10G", *QUICK)
    done = driple(*asked)
    assert "\nassumed   no measured run on 2080 is in the calibration" in done.stdout
    assert "; 2080 itself left out" in " ".join(done.stdout.split())
    assert "2080" not in done.stderr
    done = driple(*asked, "--explain")
    assert "assumed: no measured run on 2080 is in the calibration" in done.stdout
    assert done.stdout.count("Turing devices") == 1
    assert "2080" not in done.stderr


def test_no_closed_form_is_trusted_on_a_device_that_nobody_measured() -> None:
    """Its known error is of measured devices; where it has none, neither has the answer."""
    setting = ("--setting", "2080-P1w2/ho-10G")
    (result,) = json.loads(driple(*ALL, EXAMPLE, *setting, *QUICK, "--json").stdout)["answers"]
    for method in ("zhang", "zeng-repaired", "zeng"):
        assert result["methods"][method]["p90_error_pct"] is None
    assert "trust the Z" not in result["trust"]["text"]
    done = driple("predict", EXAMPLE, "--method", "analytic", *setting)
    assert "\nhow sure  not known: no measurement of such a cluster\n" in done.stdout
    done = driple("predict", EXAMPLE, "--method", "analytic", *setting, "--explain")
    assert "error of Zhang: not known, no measurement of such a cluster" in done.stdout


def test_a_pytorch_job_has_no_servers_that_a_ring_lacks() -> None:
    asked = ("predict", "mobilenet_v2", *QUICK)
    for more in ((), ("--explain",)):
        assert "server" not in driple(*asked, "--setting", "V100-R8/ho-NVLink", *more).stdout
    servers = driple(*asked, "--setting", "V100-P1w2", *SIMULATE[1:], "--explain")
    assert "the model is of one device: its variables and their updates are placed on the" in (
        servers.stdout
    )


def test_unlike_workers_of_one_device_are_told_with_what_is_their_mean() -> None:
    done = driple(*SIMULATE, EXAMPLE, "--setting", "2080Ti-P5w5/he-1G", *QUICK, "--explain")
    assert "mean over the 3 workers on 2080Ti" in done.stderr


def test_workers_that_are_alike_are_one_row() -> None:
    explain = (*QUICK, "--explain")
    ring = driple("predict", "mobilenet_v2", "--setting", "V100-R8/ho-NVLink", *explain).stdout
    (row,) = [line.split() for line in ring.splitlines() if line.startswith("worker")]
    assert row[:5] == ["workers", "0", "to", "7,", "alike"]
    unlike = driple(*SIMULATE, EXAMPLE, "--setting", "2080Ti-P5w5/he-1G", *explain).stdout
    rows = [line for line in unlike.splitlines() if line.startswith("worker")]
    assert len(rows) > 1
    assert all(len(row.split()) >= 5 for row in rows)


def test_throughput_is_of_all_workers() -> None:
    """Samples per second, of tokens too; none for a graph that leaves its batch open."""
    tokens = ("predict", "bert-tiny", "--batch-size", 6, "--seq-len", 64, "--grad-accumulation", 2)
    done = driple(*tokens, "--setting", "V100-R8/ho-NVLink", *QUICK, "--json")
    (answer,) = json.loads(done.stdout)["answers"]
    rate = 8 * 6 * 2 / answer["iteration_time_s"]["value"]
    assert answer["throughput"]["samples_per_s"]["value"] == pytest.approx(rate, rel=1e-3)
    assert answer["throughput"]["tokens_per_s"]["value"] == pytest.approx(64 * rate, rel=1e-3)
    shown = driple(*tokens, "--setting", "V100-R8/ho-NVLink", *QUICK).stdout
    rates = re.match(r"step .*, ([\d,]+) samples/s, ([\d,]+) tokens/s per device", shown)
    assert rates is not None
    samples, tokens_each = (float(text.replace(",", "")) for text in rates.groups())
    assert samples == pytest.approx(rate, rel=0.05)
    assert tokens_each == pytest.approx(64 * rate / 8, rel=0.05)
    shown = driple(*tokens, "--setting", "V100-R8/ho-NVLink", *QUICK, "--explain").stdout
    assert re.search(
        r"^throughput [\d,]+ samples/s.*, [\d,]+ tokens/s.*, 8 workers", shown, re.MULTILINE
    )
    graph = ("predict", EXAMPLE, "--setting", "V100-P1w2")
    is_open = ("predict", EXAMPLE.parents[2] / "tests/data/cases/11_unknown_batch.pbtxt")
    (unknown,) = json.loads(driple(*is_open, "--json").stdout)["answers"]
    assert unknown["throughput"] is None
    assert "samples/s" not in driple(*is_open).stdout
    assert "throughput" not in driple(*is_open, "--explain").stdout
    (known,) = json.loads(driple(*graph, "--batch-size", 32, "--json").stdout)["answers"]
    time, throughput = known["iteration_time_s"], known["throughput"]["samples_per_s"]
    step, *_ = driple(*graph, "--batch-size", 32).stdout.splitlines()
    assert step.startswith("step ")
    assert f", {rounded(throughput['value'])} samples/s" in step
    assert throughput["value"] == pytest.approx(2 * 32 / time["value"])
    assert throughput["interval"]["low"] == pytest.approx(2 * 32 / time["interval"]["high"])
    assert throughput["interval"]["high"] == pytest.approx(2 * 32 / time["interval"]["low"])


def test_the_simulator_draws_a_step_of_gpus_and_every_worker_of_processors(tmp_path: Path) -> None:
    for setting in ("V100-P1w2", "CPU-P1w2"):
        picture = tmp_path / f"{setting}.png"
        done = driple(*SIMULATE, EXAMPLE, "--setting", setting, *QUICK, "--plot", picture)
        assert done.returncode == 0, done.stderr
        assert picture.stat().st_size > 10_000


def test_an_answer_says_where_one_server_holds_most_of_the_parameters() -> None:
    """ResNet-50 has five variables to a convolution: in turn, one of five servers gets them all."""
    large = ROOT / "datasets/examples/resnet50.pbtxt"
    asked = (*SIMULATE, large, "--setting", "V100-P5w2/ho-10G", *QUICK)
    words, first = "--set placement=greedy spreads them", "takes variables in turn"
    assert words in " ".join(driple(*asked, "--explain").stdout.split())
    assert f"\nassumed   placement round_robin {first}" in driple(*asked).stdout
    assert words not in driple(*asked, "--set", "placement=greedy", "--explain").stdout
    assert first not in driple(*asked, "--set", "placement=greedy").stdout
    command = (*SIMULATE, large, "--setting", "V100-P1w2/ho-10G", *QUICK)
    assert words not in driple(*command, "--explain").stdout
    assert first not in driple(*command).stdout


def test_bad_options_of_the_simulator_get_one_line(tmp_path: Path) -> None:
    assert "did you mean" in refused(*SIMULATE, EXAMPLE, "--setting", "V101-P1w2/ho-PCIe")
    assert "--set steps" in driple(*SIMULATE, EXAMPLE, "--set", "steps=1").stderr
    assert "--set placement" in refused(*SIMULATE, EXAMPLE, "--set", "placement=anywhere")
    assert "--method" in refused("predict", EXAMPLE, "--method", "magic")
    file = "checkpoints/V100-P1w2_ho-PCIe/default.safetensors"
    assert "--method all" in refused("predict", EXAMPLE, "--checkpoint", file, "--method", "all")
    both = ("--setting", "V100", "--setting", "2080Ti", "--plot", tmp_path / "x.png")
    done = driple(*SIMULATE, EXAMPLE, *both)
    assert done.returncode == 2
    assert "one --setting" in done.stderr.splitlines()[-1]


def test_ops_without_a_formula_are_named(tmp_path: Path) -> None:
    """One ReLU under a name that nobody knows."""
    text = Path(ROOT / EXAMPLE).read_text()
    odd = text.replace('op: "Relu"', 'op: "Fancy"', 1)
    assert odd != text
    (tmp_path / "odd.pbtxt").write_text(odd)
    done = driple(*SIMULATE, tmp_path / "odd.pbtxt", "--setting", "V100-P1w2", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answers"][0]["job"]["op_types_without_cost"] == {"Fancy": 1}
    assert "ops without a formula, counted without FLOPs: Fancy (1)" in done.stderr


def test_closed_forms_as_json_and_as_a_picture(tmp_path: Path) -> None:
    picture, setting = tmp_path / "parts.png", "2080Ti-P1w2/ho-10G"
    done = driple(*ANALYTIC, EXAMPLE, "--setting", setting, "--json", "--plot", picture)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["answers"]
    assert result["setting"] == setting
    assert list(result["methods"]) == ["zhang", "zeng-repaired", "zeng"]
    for model in result["methods"].values():
        time = model["iteration_time_s"]["value"]
        assert sum(model["parts_s"].values()) == pytest.approx(time)
        assert model["error"]["mean_pct"] > 0
        low, high = (model["iteration_time_s"]["interval"][end] for end in ("low", "high"))
        assert low < time
        assert high is None or high > time
    assert result["work"]["ops_of_unknown_flops"] == {}
    assert picture.stat().st_size > 10_000


def test_closed_forms_as_a_table() -> None:
    done = driple(*ANALYTIC, EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "\nlimit     the network links of the parameter servers\n" in done.stdout
    assert "\nhow sure  not known: " in done.stdout
    done = driple(*ANALYTIC, EXAMPLE, "--explain")
    assert done.returncode == 0, done.stderr
    for word in ("compute", "push", "pull", "wait", "aggregation", "held back by", "not known"):
        assert word in done.stdout


def test_bad_input_of_closed_forms_gets_one_line() -> None:
    ring = refused(*ANALYTIC, EXAMPLE, "--setting", "A100-R8")
    assert "ring" in ring
    assert "driple predict JOB --method simulator" in ring
    assert "no worker" in refused(*ANALYTIC, EXAMPLE, "--setting", "V100-P1w0/ho-1G")
    assert "no parameter server" in refused(*ANALYTIC, EXAMPLE, "--setting", "V100-P0w2/ho-1G")
    many = refused(*SIMULATE, EXAMPLE, "--setting", "A100-P100w9999/ho-10G")
    assert "9999 workers on 100 parameter servers exchange messages in 999,900 pairs" in many
    assert "such as A100-R128/ho-10G" in many
    assert "no graph file" in refused(*ANALYTIC, "nowhere.pb")
    assert "is no file" in refused(*ANALYTIC, "nowhere/mnist/b1/sgd/sync")
    assert "no workload is called" in refused(*ANALYTIC, "nowhere")
    assert "--plot" in refused(*ANALYTIC, EXAMPLE, "--plot", "parts.gif")


def test_all_puts_the_measured_value_beside_all_methods(tmp_path: Path) -> None:
    picture = tmp_path / "compared.png"
    settings = ("--setting", "CPU-P1w2", "--setting", "V100-P1w2", "--setting", "A100-R8")
    done = driple(*ALL, MEASURED, *settings, "--set", "steps=6", "--json", "--plot", picture)
    assert done.returncode == 0, done.stderr
    cpu, gpu, ring = json.loads(done.stdout)["answers"]
    assert set(cpu["methods"]) == {
        "measured", "inspector", "simulator", "zhang", "zeng-repaired", "zeng",
    }  # fmt: skip
    assert cpu["methods"]["measured"]["workload"] == "resnet20/cifar10/b24/adam/sync"
    assert cpu["silent"] == {}
    assert "measured" in gpu["silent"]
    assert {"simulator", "zhang", "zeng-repaired", "zeng"} <= set(gpu["methods"])
    assert "ring" in ring["silent"]["zhang"]
    assert "simulator" in ring["methods"]
    assert picture.stat().st_size > 10_000
    assert cpu["iteration_time_s"]["method"] == "measured"
    assert "trust the measured time" in cpu["trust"]["text"]
    assert gpu["trust"]["text"].startswith("V100-P1w2/ho-PCIe: ")


def test_all_tells_the_interval_that_predict_tells(tmp_path: Path) -> None:
    """Of an inspector that was calibrated; the others' follow from their errors.

    Of one that an earlier reader's graphs trained, none is stated.
    """
    setting = ("--setting", "CPU-P1w2", "--json")
    shipped = driple(*ALL, MEASURED, *setting, "--set", "steps=6")
    stated = json.loads(shipped.stdout)["answers"][0]["methods"]["inspector"]
    name = "checkpoints/CPU-P1w2_ho-200M/default.safetensors"
    installed = checkpoint_path(Setting.parse("CPU-P1w2"), "default")  # of a wheel, too
    checkpoint = load_checkpoint(installed)
    assert (stated["iteration_time_s"]["interval"] is None) == (
        checkpoint.reader_version < READER_VERSION
    )
    today = replace(checkpoint, reader_version=READER_VERSION, features_version=FEATURES_VERSION)
    (tmp_path / name).parent.mkdir(parents=True)
    save_checkpoint(today, tmp_path / name)
    alone = json.loads(driple("predict", MEASURED, *setting, cwd=tmp_path).stdout)["answers"][0]
    done = driple(*ALL, MEASURED, *setting, "--set", "steps=6", cwd=tmp_path)
    methods = json.loads(done.stdout)["answers"][0]["methods"]
    interval, wanted = (
        one["iteration_time_s"]["interval"] for one in (methods["inspector"], alone)
    )
    assert [interval["low"], interval["high"]] == pytest.approx([wanted["low"], wanted["high"]])
    time = methods["simulator"]["iteration_time_s"]
    assert time["interval"]["low"] < time["value"] < time["interval"]["high"]


def test_all_claims_no_share_where_the_interval_is_extrapolated() -> None:
    """A graph of 77 ops is further from all known ones than any that was left out.

    The interval is that of the inspector asked alone, and nobody knows what share it holds.
    """
    tiny = ROOT / "tests/data/graphs/functions.pb.gz"
    done = driple(*ALL, tiny, "--setting", "CPU-P1w2", "--set", "steps=6", "--json")
    inspector = json.loads(done.stdout)["answers"][0]["methods"]["inspector"]
    interval = inspector["iteration_time_s"]["interval"]
    assert (inspector["p90_error_pct"], interval["level"]) == (None, None)
    named = driple("predict", tiny, "--setting", "CPU-P1w2", "--method", "inspector", "--json")
    assert json.loads(named.stdout)["answers"][0]["iteration_time_s"]["interval"] == interval


def test_all_goes_on_without_an_inspector_and_says_so() -> None:
    """Nobody has an inspector of such a cluster."""
    setting = "RTX8000-P1w3/ho-25G"
    done = driple(*ALL, MEASURED, "--setting", setting, "--set", "steps=6")
    assert done.returncode == 0, done.stderr
    assert f"no inspector of preset default for {setting}" in done.stderr
    assert "simulator" in done.stdout


def test_auto_answers_by_the_simulator_where_no_inspector_is_trained() -> None:
    """Nobody trained one for this network; asked for by name, the refusal lists the others."""
    other = ("--setting", "V100-P1w3/ho-PCIe")
    done = driple("predict", EXAMPLE, *other, *QUICK, "--explain")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "no inspector is trained for V100-P1w3/ho-PCIe: the simulator answers" in lines
    named = ("--setting", "V100-P1w2", *other, *QUICK, "--json")
    by_inspector, by_simulator = json.loads(driple("predict", EXAMPLE, *named).stdout)["answers"]
    assert by_inspector["method"] == "inspector"
    assert by_inspector["reason"] is None
    assert by_simulator["method"] == by_simulator["iteration_time_s"]["method"] == "simulator"
    assert "CPU-P1w2/ho-200M" in refused("predict", EXAMPLE, *other, "--method", "inspector")


def test_on_gpus_without_servers_the_simulator_answers_though_there_is_an_inspector() -> None:
    """Such an inspector imitates the simulator, which was fitted to steps; by name it answers."""
    asked = ("predict", EXAMPLE, "--setting", "8xH100", *QUICK, "--json")
    (result,) = json.loads(driple(*asked).stdout)["answers"]
    assert result["method"] == "simulator"
    assert result["reason"]["text"].startswith(
        "for a GPU, alone or with all-reduce, the simulator answers"
    )
    (result,) = json.loads(driple(*asked, "--method", "inspector").stdout)["answers"]
    assert result["method"] == "inspector"


def test_where_an_inspector_would_guess_the_simulator_that_it_learned_from_answers() -> None:
    """A PyTorch model: its ops are none of the catalogue's; asked for by name it guesses on."""
    asked = ("predict", "resnet50", "--setting", "V100-P1w2", *QUICK, "--json")
    (result,) = json.loads(driple(*asked).stdout)["answers"]
    assert result["method"] == "simulator"
    assert result["reason"]["text"].startswith("the inspector of V100-P1w2/ho-PCIe would guess (")
    assert result["reason"]["text"].endswith("): the simulator answers")
    (result,) = json.loads(driple(*asked, "--method", "inspector").stdout)["answers"]
    assert result["method"] == "inspector"
    assert result["warnings"] or result["remarks"]


def test_where_an_inspector_imitates_step_times_badly_the_simulator_answers() -> None:
    """With five servers bursts and gaps do not add up to a step, which no inspector mends."""
    graph = str(EXAMPLE.with_name("resnet50.pbtxt"))
    asked = ("predict", graph, "--setting", "V100-P5w5", *QUICK, "--json")
    (result,) = json.loads(driple(*asked).stdout)["answers"]
    assert result["method"] == "simulator"
    assert "% off (mean) in the step times of its own test workloads" in result["reason"]["text"]


def test_without_a_setting_a_job_gets_the_one_it_is_made_for() -> None:
    """A graph on parameter servers the paper's setting, a PyTorch model one device."""
    settings = [
        json.loads(driple("predict", job, "--json").stdout)["answers"][0]["setting"]
        for job in (MEASURED, "mobilenet_v2")
    ]
    assert settings == ["V100-P1w2/ho-PCIe", "1xA100"]


def test_auto_and_the_method_that_it_takes_agree() -> None:
    setting = ("--setting", "V100-R2/ho-NVLink", *QUICK, "--json")
    auto = json.loads(driple("predict", MEASURED, *setting).stdout)["answers"][0]
    named = json.loads(driple(*SIMULATE, MEASURED, *setting).stdout)["answers"][0]
    assert {**auto, "reason": None} == named


def test_the_simulator_answers_from_one_step(tmp_path: Path) -> None:
    """Bursts per step x (burst + idle) is the iteration time; phases and counters are stated."""
    picture = tmp_path / "step.png"
    line = (*SIMULATE, EXAMPLE, "--setting", "V100-R8/ho-NVLink", *QUICK)
    done = driple(*line, "--plot", picture, "--explain")
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000
    assert "bursts per step" in done.stdout
    assert re.search(r"^one step: forward .* backward .* update", done.stdout, re.MULTILINE)
    assert re.search(r"^nvidia-smi would show \d+ % for the GPU", done.stdout, re.MULTILINE)
    assert "span" not in done.stdout
    (answer,) = json.loads(driple(*line, "--json").stdout)["answers"]
    bursts = answer["step"]["resources"]["device_util"]["bursts_per_step"]
    use = f"\nuse       GPU \\d+ % busy in {bursts} bursts? a step .*memory \\d+ %, network "
    assert re.search(use, driple(*line).stdout)
    step, whole_s = answer["step"], answer["iteration_time_s"]["value"]
    assert step["step_s"] == pytest.approx(whole_s)
    assert sum(step["phases_s"].values()) == pytest.approx(whole_s)
    for name, figures in answer["targets"].items():
        period_s = figures["burst_duration"]["value"] + figures["idle_duration"]["value"]
        assert max(step["resources"][name]["bursts_per_step"], 1) * period_s == pytest.approx(
            whole_s
        )


def test_an_inspector_of_a_gpu_setting_draws_one_step(tmp_path: Path) -> None:
    """Its twelve targets stay those of the checkpoint, and JSON has no step of the simulator."""
    picture = tmp_path / "step.svg"
    done = driple("predict", EXAMPLE, "--setting", "V100-P1w2", "--plot", picture, "--json")
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)["answers"]
    assert answer["step"] is None
    assert answer["method"] == "inspector"
    assert picture.stat().st_size > 10_000


def test_a_slower_host_lengthens_a_step_of_small_kernels() -> None:
    """A batch of one sample: 100 us for each op in place of about 10."""
    line = (*SIMULATE, "datasets/examples/resnet20.pbtxt", "--setting", "1xH100", *QUICK)
    shares, times = [], []
    for us in (5, 100):
        done = driple(*line, "--set", f"host_us_per_op={us}", "--json")
        assert done.returncode == 0, done.stderr
        (answer,) = json.loads(done.stdout)["answers"]
        assert f"a host that takes {us} us for each op" in texts(answer["assumptions"])
        shares.append(answer["step"]["resources"]["device_util"]["mean"])
        times.append(answer["iteration_time_s"]["value"])
    assert times[1] > 2 * times[0]
    assert shares[1] < shares[0] / 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("predict", EXAMPLE), "give --method simulator"),
        ((*SIMULATE, EXAMPLE, "--setting", "CPU-P1w2"), "is for GPUs"),
    ],
)
def test_the_hosts_speed_is_refused_where_it_changes_nothing(
    line: tuple[str, ...], words: str
) -> None:
    assert words in refused(*line, "--set", "host_us_per_op=20")


def test_an_answer_is_written_for_a_scheduler() -> None:
    """90 epochs of ImageNet in batches of 32 on 8 devices are 450,411 steps."""
    ask = ("predict", "resnet50", "--setting", "8xH100")
    done = driple(*ask, "--set", "epochs=90", "--emit", "slurm")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH --job-name=driple-resnet50\n")
    assert "450,411 steps of " in done.stdout
    assert re.search(r"^#SBATCH --time=0-\d\d:\d\d:00$", done.stdout, re.MULTILINE)
    several = driple(*ask, "--setting", "8xA100", "--set", "training_steps=1000",
                     "--emit", "skypilot-estimator")  # fmt: skip
    assert '("H100", 8, 1): 2' in several.stdout
    assert '("A100", 8, 1): ' in several.stdout


def test_a_scheduler_needs_to_know_how_much_is_trained() -> None:
    ask = ("predict", "resnet50", "--setting", "8xH100")
    assert "give --set training_steps=N, or --set samples=N" in refused(*ask, "--emit", "slurm")
    assert "are for --emit" in refused(*ask, "--set", "epochs=3")
    asked = (*ask, "--set", "training_steps=10")
    assert "both state the amount" in refused(*asked, "--emit", "kai", "--set", "epochs=2")
    assert "--emit must be one of slurm" in refused(*asked, "--emit", "pbs")
    assert "give one of them" in refused(*asked, "--emit", "slurm", "--json")
    both = (*asked, "--setting", "8xA100", "--emit", "slurm")
    assert "give one --setting" in refused(*both)
