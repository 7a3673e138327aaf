"""`driple plan`: what an epoch costs where, and which instance to rent."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from tests.cli.test_main import ROOT, driple, refused
from tests.planning.gpt import write_gpt
from tests.profiler.profiles import write_profile

RESNET50 = ROOT / "datasets/examples/resnet50.pbtxt"
WIDE = ("plan", "resnet50/imagenet/b32/sgd/sync", "--scheme", "fsdp")  # few runs are like it
ONE_WAY = ("--set", "vary=none", "--scheme", "ddp")
TIMES = {1: [0.1, 0.1], 2: [0.15, 0.15], 3: [0.4, 0.4], 4: [0.2, 0.2]}


def unwrapped(shown: str) -> str:
    """What is printed, as if its lines were never broken."""
    return " ".join(shown.split())


@pytest.mark.parametrize("limits", [(), ("--budget", 100_000, "--deadline", "30d")])
def test_a_plan_fits_in_100_columns_and_begins_with_its_recommendation(
    limits: tuple[object, ...],
) -> None:
    """With long names of machines too; where a row is a guess, none of its numbers stands alone."""
    names = ("Standard_ND96isr_H100_v5", "a2-megagpu-16g", "p4d.24xlarge")
    chosen = [part for name in names for part in ("--instance", name)]
    shown = driple(*WIDE, "--machines", 64, *chosen, *limits).stdout
    assert shown.startswith("Rent ")
    assert max(map(len, shown.splitlines())) <= 100
    for name in names:
        assert re.search(rf"^64x{name}\b", shown, re.MULTILINE)
    guesses = [line for line in shown.splitlines() if re.search(r"\d  guess: ", line)]
    assert guesses
    for line in guesses:
        rates, dollars = r"[\d,]+ to [\d,]+", r"(-|[\d.]+ to [\d.]+)"
        assert re.search(rf"{rates}  guess: \S+ \S+ to \S+ \S+  +{dollars}  ", line)


def test_a_guess_in_a_plan_says_what_would_narrow_it() -> None:
    """Convolutions under FSDP on many machines are like few published runs; known hosts are not."""
    many = ("--setting", "64x8xH100/NVLink+400G", "--set", "vary=none")
    shown = unwrapped(driple(*WIDE, *many).stdout)
    assert ": a guess: " in shown
    narrowed = "a few runs of yours narrow it (driple transfer --from gpu)."
    assert f"A guess, as such jobs are this far off; {narrowed}" in shown
    assert ": a guess: " not in driple("plan", "bert-tiny", "--instance", "p5.4xlarge").stdout


def test_cost_recommends_and_users_prices_win(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[[instances]]\nname = "p3.16xlarge"\nprice_per_hour = 0.01\n')
    picture = tmp_path / "cost.png"
    done = driple(
        *("plan", RESNET50, "--batch-size", 32, "--instance", "p3,p2", "--json"),
        *("--catalog", mine, "--plot", picture),
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["offers"][0]["name"] == "p3.16xlarge"
    assert result["recommendation"]["text"].startswith("Rent p3.16xlarge")
    assert {offer["source"] for offer in result["offers"]} == {"simulated"}
    assert result["assumptions"]["precision"] == "float32"
    assert result["assumptions"]["samples_per_epoch"] == 1_281_167
    assert result["refused"] == []
    assert result["no_price"] is None
    assert result["job"]["op_types_without_cost"] == {}
    assert picture.stat().st_size > 10_000


def test_the_order_of_options_changes_no_error() -> None:
    """Each row states its own: a K80's is not a V100's, eight K80s' is that of rings."""
    cost = ("plan", RESNET50, "--batch-size", 32, "--json")
    stated = []
    for names in (("p2.xlarge", "p3.2xlarge", "p2.8xlarge"), ("p2.8xlarge", "p3.2xlarge", "p2")):
        chosen = [text for name in names for text in ("--instance", name)]
        offers = json.loads(driple(*cost, *chosen).stdout)["offers"]
        stated.append({offer["name"]: offer["stated_error"] for offer in offers})
    for name, error in stated[0].items():
        assert stated[1][name] == error
    assert "K80" in stated[0]["p2.xlarge"]["of"]["text"]
    assert stated[0]["p2.xlarge"]["median_pct"] != stated[0]["p3.2xlarge"]["median_pct"]
    assert "rings of K80" in stated[0]["p2.8xlarge"]["of"]["text"]
    assert "rings" not in stated[0]["p2.xlarge"]["of"]["text"]
    unknown = driple(*cost[:-1], "--instance", "Standard_ND96isr_MI300X_v5", "--explain").stdout
    assert "of the nearest kind: " in unknown
    assert "resnet50.pbtxt: 32 samples per device, fp32, momentum; 1,281,167 samples an" in unknown
    shown = driple(*cost[:-1], "--instance", "p2", "--explain").stdout
    assert "of the nearest kind: " not in shown
    assert "assumed: products in float32; optimizer momentum; batches of 32 samples" in shown


def test_a_transformer_carries_no_error_of_convolutional_networks() -> None:
    cost = ("plan", "bert-tiny", "--instance", "p5.4xlarge")
    done = driple(*cost, "--explain")
    assert "published runs of transformer networks" in done.stdout
    assert "convolutional" not in done.stdout
    (offer, *_) = json.loads(driple(*cost, "--json").stdout)["offers"]
    assert offer["stated_error"]["of"]["text"].startswith(
        "published runs of transformer networks, training"
    )


def test_unknown_dimensions_get_no_price_and_no_recommendation(tmp_path: Path) -> None:
    graph = tmp_path / "graph.pbtxt"
    control = (ROOT / "tests/data/cases/01_control.pbtxt").read_text()
    graph.write_text(control.replace("size: 56 ", "size: -1 "))  # height and width
    cost = ("plan", graph, "--batch-size", 32, "--instance", "p3")
    shown = driple(*cost)
    assert shown.returncode == 0, shown.stderr
    assert "no price and no recommendation: " in shown.stdout
    assert "Rent" not in shown.stdout
    result = json.loads(driple(*cost, "--json").stdout)
    assert result["recommendation"] is None
    assert "unknown dimensions" in result["no_price"]["text"]
    assert [offer["cost"] for offer in result["offers"]] == [None] * len(result["offers"])
    assert {offer["stated_error"]["checked"] for offer in result["offers"]} == {False}


def test_a_pytorch_model_needs_only_its_name() -> None:
    """BERT's epoch is SQuAD's 130,319 questions in batches of four on each device."""
    cost = ("plan", "bert-tiny", "--instance", "p3.8xlarge", "--json", *ONE_WAY)
    (offer,) = json.loads(driple(*cost).stdout)["offers"]
    assert offer["training_time_s"]["value"] == pytest.approx(
        130_319 / (4 * 4) * offer["iteration_time_s"]["value"]
    )
    (larger,) = json.loads(driple(*cost, "--batch-size", 8).stdout)["offers"]
    assert larger["iteration_time_s"]["value"] > offer["iteration_time_s"]["value"]
    done = driple("profile", "links", "vgg11", "--setting", "V100-R4/ho-NVLink", "--json")
    assert json.loads(done.stdout)["gradient_bytes"] == pytest.approx(4 * 132.86e6, rel=1e-3)


def test_only_models_of_images_have_an_epoch_without_samples(tmp_path: Path) -> None:
    """ImageNet is no epoch of a language model, of speech, or of a table."""
    declare_torchvision_ops()
    import transformers

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    transformers.GPT2Config(n_layer=1, n_embd=32, n_head=2).save_pretrained(tmp_path / "gpt2")
    transformers.ViTConfig(**sizes, intermediate_size=64).save_pretrained(tmp_path / "vit")
    table = tmp_path / "table.py"
    table.write_text("from torch import nn\n\ndef build_model():\n    return nn.Linear(8, 2)\n")
    cheap = ("--batch-size", 2, "--instance", "p3.2xlarge")
    tokens = ("plan", f"hf:{tmp_path}/gpt2", "--seq-len", 16, *cheap)
    assert "not known; give --samples N" in refused(*tokens)
    assert "give --samples N" in refused("plan", f"{table}:build_model", "--input", "8", *cheap)
    stated = driple(*tokens, "--samples", 1000)
    assert "1,000 samples an epoch (--samples)" in unwrapped(stated.stdout), stated.stderr
    images = driple("plan", f"hf:{tmp_path}/vit", *cheap)
    assert "1,281,167 samples an epoch (ImageNet" in unwrapped(images.stdout), images.stderr
    explained = driple("plan", f"hf:{tmp_path}/vit", *cheap, "--explain").stdout
    assert "1,281,167 samples per epoch (ImageNet" in explained


def test_an_update_takes_the_samples_of_all_its_passes() -> None:
    """Four passes per update: a quarter of the updates, each of about four times the time."""
    cost = ("plan", "bert-tiny", "--instance", "p3.2xlarge", "--json", *ONE_WAY)
    (single,) = json.loads(driple(*cost).stdout)["offers"]
    (four,) = json.loads(driple(*cost, "--grad-accumulation", 4).stdout)["offers"]
    assert four["training_time_s"]["value"] == pytest.approx(
        130_319 / (4 * 4) * four["iteration_time_s"]["value"]
    )
    assert four["training_time_s"]["value"] < 1.5 * single["training_time_s"]["value"]


OWN = """
import torch
from torch import nn

def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 4))

def build_dataset():
    return torch.utils.data.TensorDataset(torch.zeros(50, 3, 2, 2), torch.zeros(50).long())

class Decides(nn.Linear):
    def forward(self, images):
        made = super().forward(images.flatten(1))
        return made if made.sum() > 0 else -made

def build_decider():
    return Decides(12, 4)

class Large(nn.Linear):
    def __init__(self):
        super().__init__(30_000, 30_000, device="meta")

    def forward(self, images):
        return super().forward(images.flatten(1)[:, :1].expand(-1, 30_000))

def build_large():
    return Large()
"""


def test_a_model_of_the_users_own_is_read_from_its_file(tmp_path: Path) -> None:
    """An epoch is the 50 samples of its data set."""
    own = tmp_path / "own.py"
    own.write_text(OWN)
    ends = ("--data", f"{own}:build_dataset", "--batch-size", 5)
    done = driple("plan", f"{own}:build_model", *ends, "--instance", "p3.8xlarge",
                  "--json", *ONE_WAY)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (offer,) = json.loads(done.stdout)["offers"]
    assert offer["training_time_s"]["value"] == pytest.approx(
        50 / (5 * 4) * offer["iteration_time_s"]["value"]
    )
    cost = ("plan",)
    assert "give --input SHAPE" in refused(*cost, f"{own}:build_model", "--batch-size", 5)
    assert "has no 'other'" in refused(*cost, f"{own}:other", *ends)
    assert "not there" in refused(*cost, f"{tmp_path}/none.py:build_model", *ends)
    assert "torch.where or results of fixed shape" in refused(*cost, f"{own}:build_decider", *ends)


def test_what_cannot_fit_is_refused(tmp_path: Path) -> None:
    """900 million weights: 3.6 GB each for them, gradients and momenta do not fit in 4 GB."""
    own = tmp_path / "own.py"
    own.write_text(OWN)
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[[devices]]\nname = "K80"\nmemory_bytes = 4e9\n'
        '[[instances]]\nname = "p2.xlarge"\ndevice_memory_gb = 4\n'
    )
    cost = ("plan", f"{own}:build_large", "--data", f"{own}:build_dataset", "--catalog", mine)
    size = ("--batch-size", 5)
    both = (*cost, *size, "--instance", "p2.xlarge", "--instance", "p3.2xlarge")
    result = json.loads(driple(*both, "--json").stdout)
    assert {offer["name"] for offer in result["offers"]} == {"p3.2xlarge"}
    (small,) = result["refused"]
    assert small["name"] == "p2.xlarge"
    assert "each device needs" in small["reason"]
    assert "K80 has" in small["reason"]
    alone = driple(*cost, *size, "--instance", "p2.xlarge")
    assert alone.returncode == 0, alone.stderr
    assert "nothing fits in memory" in alone.stdout
    assert "not even a batch of 1 fits" in alone.stdout
    assert "Rent" not in alone.stdout


def test_a_profile_stands_in_for_a_simulation(tmp_path: Path) -> None:
    """Measured on p3.8xlarge: ten iterations of 0.2 s at 12.24 an hour; it is not simulated."""
    folder = write_profile(tmp_path / "p", TIMES)
    alone = driple("plan", "--profile", f"{folder}=p3.8xlarge", "--json")
    (offer,) = json.loads(alone.stdout)["offers"]
    assert json.loads(alone.stdout)["assumptions"] is None
    assert offer["stated_error"] is None
    assert (offer["name"], offer["source"]) == ("p3.8xlarge", "measured")
    assert offer["training_time_s"]["value"] == pytest.approx(2.0)
    assert offer["cost"]["value"] == pytest.approx(2.0 / 3600 * 12.24)
    both = driple(
        *("plan", RESNET50, "--batch-size", 32, "--instance", "p3", "--json"),
        *("--profile", f"{folder}=p3.8xlarge", "--samples", 800),
    )
    offers = {offer["name"]: offer for offer in json.loads(both.stdout)["offers"]}
    assert offers["p3.8xlarge"]["training_time_s"]["value"] == pytest.approx(800 / (2 * 4) * 0.2)
    assert offers["p3.2xlarge"]["source"] == "simulated"


def test_a_graph_that_fixes_its_batch_need_not_be_told() -> None:
    """As `predict` takes it, and as REST does."""
    ask = ("plan", RESNET50, "--instance", "p3.2xlarge", "--samples", 1000, "--json")
    done = driple(*ask)
    assert json.loads(done.stdout)["job"]["batch_size"] == 32
    assert done.stdout == driple(*ask, "--batch-size", 32).stdout


def test_bad_input_gets_one_line() -> None:
    assert "give a JOB" in refused("plan")
    for job in (RESNET50, "mobilenet_v2"):
        assert "--batch-size must be" in refused("plan", job, "--batch-size", 0)
    assert "did you mean resnet50" in refused("plan", "resnet51")
    zoo = ("plan", "resnet20/cifar10/b32/sgd/sync")
    assert "has batches of 32" in refused(*zoo, "--batch-size", 8)
    cost = ("plan", RESNET50, "--batch-size", 32)
    assert "p3.8xlarge" in refused(*cost, "--instance", "p99")
    assert "--machines" in refused(*cost, "--machines", "0")
    assert "2022-12-31" in refused(*cost, "--set", "on_date=yesterday")
    assert "us-east-1" in refused(*cost, "--set", "region=nowhere")
    assert "FOLDER=INSTANCE" in refused("plan", "--profile", "x")


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_gpt(tmp_path_factory.mktemp("gpt"))


def test_a_gpt_with_large_batches_is_not_sent_to_40_gb(tmp_path: Path) -> None:
    """GPT-2 of 125 million weights, 512 x 1024 tokens: its logits alone have 105 GB."""
    import transformers

    transformers.GPT2Config().save_pretrained(tmp_path / "gpt2")
    ask = ("plan", f"hf:{tmp_path}/gpt2", "--seq-len", 1024, "--tokens", "1B", "--instance", "p4d")
    done = driple(*ask, "--batch-size", 512)
    assert done.returncode == 0, done.stderr
    assert "nothing fits in memory" in done.stdout
    assert "Rent" not in done.stdout
    assert done.stdout.endswith("1 refused; why: --explain\n")
    assert "A100 has 40 GiB" in driple(*ask, "--batch-size", 512, "--explain").stdout
    words = r"(A100, 40 GiB each\) it would fit with a batch of at most (\d+) per device "
    match = re.search(rf"\{words}\(--batch-size \1\)", unwrapped(done.stdout))
    assert match is not None
    most = int(match[1])
    fitting = json.loads(driple(*ask, "--batch-size", most, "--json").stdout)
    ways = [one for one in fitting["offers"] if one["activation_checkpointing"] == "none"]
    assert {one["memory"]["fits"] for one in ways} == {"yes"}


def test_prices_of_a_file_win_and_zero_is_refused_by_name(gpt: str, tmp_path: Path) -> None:
    sky = tmp_path / "vms.csv"
    sky.write_text(
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,"
        "Region,AvailabilityZone\n"
        "p3.2xlarge,V100,1,8,61,,2.5,0.4,us-east-1,a\np3.8xlarge,V100,4,32,244,,0,,us-east-1,a\n"
    )
    ask = ("plan", gpt, "--seq-len", 32, "--samples", "1M", "--instance", "p3", "--json")
    result = json.loads(driple(*ask, "--prices", sky).stdout)
    by_name = {one["name"]: one for one in result["offers"]}
    assert by_name["p3.2xlarge"]["price"]["per_hour"] == 2.5
    assert by_name["p3.2xlarge"]["price"]["source"] == "vms.csv"
    assert by_name["p3.16xlarge"]["price"]["per_hour"] == 24.48
    assert by_name["p3.8xlarge"]["cost"] is None
    assert "price of 0" in by_name["p3.8xlarge"]["no_price"]["text"]
    assert result["offers"][result["recommended"]]["name"] != "p3.8xlarge"
    spot = json.loads(driple(*ask, "--prices", sky, "--spot").stdout)
    prices = {one["name"]: one["price_per_hour"] for one in spot["offers"]}
    assert prices == {"p3.2xlarge": 0.4, "p3.8xlarge": None, "p3.16xlarge": None}
    zero = tmp_path / "zero.csv"
    zero.write_text("name,per_hour\np3.2xlarge,0\n")
    assert "p3.2xlarge" in refused(*ask, "--prices", zero)


def test_budget_deadline_and_own_machines(gpt: str, tmp_path: Path) -> None:
    ask = ("plan", gpt, "--seq-len", 32, "--samples", "1M", "--scheme", "ddp")
    within = json.loads(
        driple(*ask, "--instance", "p3", "--budget", 1000, "--deadline", "3d", "--json").stdout
    )
    assert (within["budget"], within["deadline_s"]) == (1000.0, 3 * 86_400)
    assert within["recommendation"]["text"].startswith("Rent ")
    shown = driple(*ask, "--instance", "p3", "--deadline", "3d", "--budget", 1000).stdout
    head = r"^machines +how +samples/s .*  in limits(?: +largest batch)?$"
    assert re.search(head, shown, re.MULTILINE)
    row = r"^(p3\S+) +(?:ddp|-) .* GiB +(yes|no)(?: +\d+ \(\d+ surely\))?$"
    rows = re.findall(row, shown, re.MULTILINE)
    assert len(rows) == 3  # each row says whether it keeps them
    assert " within $1,000 and 72 h." in unwrapped(shown.split("\njob: ")[0])
    free = driple(*ask, "--instance", "p3").stdout
    assert "within" not in free
    assert "in limits" not in free
    late = driple(*ask, "--instance", "p3", "--deadline", "1ms")
    assert "No setting does it within 1 ms; the fastest is p3" in late.stdout
    own = driple(*ask, "--setting", "8xA100/NVLink", "--set", "rank=time", "--emit", "slurm")
    assert own.stdout.startswith("#!/bin/bash")
    assert "--gpus-per-node=8" in own.stdout
    priced = tmp_path / "mine.toml"
    priced.write_text('[[prices]]\nname = "8xA100/NVLink"\nper_hour = 3.0\n')
    mine = driple(*ask, "--setting", "8xA100/NVLink", "--prices", priced, "--what-would-help",
                  "--explain")  # fmt: skip
    assert "Take 8xA100/NVLink (ddp, batch" in mine.stdout
    assert "A step of 8xA100/NVLink" in mine.stdout
    assert "What would help 8xA100/NVLink" in mine.stdout
    assert "price on demand, your own (mine.toml)" in mine.stdout


def test_bad_questions_get_one_line(gpt: str, tmp_path: Path) -> None:
    ask = ("plan", gpt, "--seq-len", 32, "--samples", 1000, "--instance", "p3.2xlarge")
    assert "--deadline needs a time" in refused(*ask, "--deadline", "soon")
    assert "--tokens needs a number" in refused(*ask[:4], "--tokens", "many")
    assert "give one of them" in refused(*ask, "--tokens", "1B")
    assert "are less than one sample" in refused(*ask, "--epochs", 0.0001)
    assert "--set vary must name" in refused(*ask, "--set", "vary=colour")
    assert "rank" in refused(*ask, "--set", "rank=beauty")
    assert "--emit must be one of" in refused(*ask, "--emit", "pbs")
    assert "give one of them" in refused(*ask, "--emit", "slurm", "--json")
    assert "--catalog" in refused(*ask, "--devices", "own")
    assert "--setting names all machines" in refused(*ask, "--setting", "8xA100")
    assert "no scheme is called 'fsdp3'" in refused(*ask, "--scheme", "fsdp3")
    assert ".html" in refused(*ask, "--html", tmp_path / "page.txt")
    assert "did you mean" in refused(*ask[:-2], "--devices", "H1000")


def test_machines_of_ones_own_need_no_price(tmp_path: Path) -> None:
    """As in the examples of --help: without prices the fastest way is recommended, and printed."""
    ask = ("plan", "bert-tiny", "--setting", "8xH100", "--setting", "8xh100/NVLink", *ONE_WAY)
    done = driple(*ask)
    assert "Take 8xH100/NVLink (ddp, batch 4, fp32): " in done.stdout
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("8xH100/NVLink ")]
    assert re.search(r" -  [\d.]+ GiB( |$)", row)
    explained = driple(*ask, "--explain").stdout
    assert "no price is known of your own 8xH100/NVLink" in explained
    assert driple(*ask, "--emit", "slurm").stdout.startswith("#!/bin/bash")
    result = json.loads(driple(*ask, "--json").stdout)
    assert result["rank"] == "time"
    assert len(result["offers"]) == 1, "the same machines by two names"
    limited = driple(*ask, "--budget", 5).stdout
    words = "no offer has a price; give prices with --prices FILE, or leave out --budget"
    assert words in unwrapped(limited)
    prices = tmp_path / "prices.csv"
    prices.write_text("name,per_hour\n8xH100,10\n8xH10,1\n")
    priced = driple(*ask, "--prices", prices, "--explain")
    assert "your own (prices.csv)" in priced.stdout
    assert "no instance or setting is called '8xH10'; that price is not used" in priced.stderr
    sharded = json.loads(
        driple("plan", "bert-tiny", "--setting", "8xH100@fsdp", "--prices", prices, "--json").stdout
    )
    assert {offer["price_per_hour"] for offer in sharded["offers"]} == {10.0}


def test_flags_that_contradict_each_other_are_refused() -> None:
    own = ("bert-tiny", "--setting", "8xH100@fsdp")
    for command in ("plan", "predict"):
        words = refused(command, *own, "--scheme", "ddp")
        assert "8xH100/NVLink@fsdp states the scheme fsdp, and ddp was asked for" in words
    assert driple("plan", *own, "--scheme", "fsdp,ddp", "--set", "vary=none").returncode == 0
    passes = ("--global-batch", 64, "--grad-accumulation", 2)
    assert "--global-batch sets the passes" in refused("plan", own[0], *passes)
    assert "--scheme ps needs parameter servers" in refused("plan", own[0], "--scheme", "ps")


def test_no_output_overwrites_another_or_a_file_that_is_read(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("name,per_hour\np3.2xlarge,1\n")
    ask = ("plan", "bert-tiny", "--instance", "p3.2xlarge")
    words = refused(*ask, "--prices", prices, "--output", tmp_path / "." / "prices.csv")
    assert "that is the file of --prices, which would be lost" in words
    assert prices.read_text().endswith("p3.2xlarge,1\n")
    picture = tmp_path / "plan.svg"
    table = tmp_path / "plan.csv"
    odd = ("--output", table, "--catalog", table)
    table.write_text("[[devices]]\n")
    assert "the file of --catalog" in refused(*ask, *odd)
    assert not picture.exists()


def test_what_is_recommended_is_in_the_table_with_its_price() -> None:
    """The fastest within a budget is far down in a table by cost."""
    ask = ("plan", RESNET50, "--batch-size", 32, "--devices", "V100-SXM2,A100")
    done = driple(*ask, "--budget", 100_000, "--set", "rows=1", "--explain")
    recommended, table = done.stdout.split("\njob: ")
    taken = re.search(r"^Rent (\S+) .*Runner-up: (\S+) ", unwrapped(recommended))
    assert taken is not None
    for name in taken.groups():
        assert re.search(
            rf"^{name} +ddp +[\d,]+ +\d\S* min \(\S+ to \S+\) +\d", table, re.MULTILINE
        )
        assert re.search(rf"^(\S+, )*{name}(, \S+)*: price on demand", done.stdout, re.MULTILINE)


def test_an_onnx_file_states_its_batch_size(tmp_path: Path) -> None:
    """One that leaves it open needs --batch-size, as graphs of TensorFlow do."""
    onnx = pytest.importorskip("onnx")
    weight = onnx.numpy_helper.from_array(np.zeros((8, 4), np.float32), "w")
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    ask = ("--instance", "p3.2xlarge", "--samples", 1000)
    for first in (16, "batch"):
        ends = [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [first, size])
            for name, size in (("x", 8), ("y", 4))
        ]
        graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:], [weight])
        opset = [onnx.helper.make_opsetid("", 17)]
        file = tmp_path / f"{first}.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), file)
    done = driple("plan", tmp_path / "16.onnx", *ask)
    assert "16.onnx: 16 samples per device" in unwrapped(done.stdout)
    assert "give --batch-size" in refused("plan", tmp_path / "batch.onnx", *ask)
