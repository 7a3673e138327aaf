"""Measure the stalls of the built-in workloads on this machine, and pack the profiles.

    sudo OMP_NUM_THREADS=1 python -m scripts.studies.stalls.run

The machine must be quiet: nothing else may run for the two hours or so. It needs root (network
namespaces, clearing of caches), iproute2 and the extra `stalls`; two cores are enough. Stop it at
any time; the same command goes on. Profiles are kept in runs/stalls-report, and packed into
profiles.tar.xz. To try it in some minutes, with numbers that mean nothing, add `--macro resnet18
squeezenet shufflenet --micro resnet18 --rates 1G 5G --repeats 1 --iterations 2 --warmup 3
--batch-size 2 --images 64 --work /tmp/stalls --pack /tmp/profiles.tar.xz`.

What is measured (Stash, sections V and VI): the five steps for each model of Table II with one and
two processes of a core each, and two namespaces at three rates; for the models of figure 16 the
steps on synthetic data.

A repetition goes through all rates before the next begins, so that a drift of the machine's speed
spreads over them. Only step 5 depends on the rate: the other steps are launched once for all rates.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from driple.cli.progress import progress_bar
from driple.errors import DripleError
from driple.files import atomic_write
from driple.jobs.pytorch.samples import make_images, make_tokens
from driple.jobs.pytorch.workloads import MACRO, WORKLOADS
from driple.profiler.steps import Plan
from driple.profiler.steps_runner import profile_script
from driple.units import parse_rate
from scripts.settings.shipped import ROOT
from scripts.studies.stalls.models import MICRO

PACK = Path(__file__).parent / "profiles.tar.xz"

# BERT-large has 1.3 GB of gradients, 27 s of a link of 400 Mbit/s: BERT-base stands in for it.
MODELS = tuple("bert-base" if name == "bert-large" else name for name in MACRO)
RATES = ("400M", "1G", "5G")
TOKENS = 32  # of a sample, and a batch a quarter as large: a core does 0.2 TFLOP/s at best


@dataclass(frozen=True)
class Run:
    """One profile of the campaign."""

    model: str
    rate: str
    steps: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.model}-{self.rate}"


def runs_of(macro: Sequence[str], micro: Sequence[str], rates: Sequence[str]) -> Iterator[Run]:
    """All profiles, those of a model together; its first rate has the steps with real data."""
    for model in dict.fromkeys([*macro, *micro]):
        for i, rate in enumerate(rates):
            whole = i == 0 and model in macro
            yield Run(model, rate, (1, 2, 3, 4, 5) if whole else (1, 2, 5))


def command_of(run: Run, options: argparse.Namespace) -> list[str]:
    """The training script's."""
    train = ["-m", "driple.profiler.train", run.model, "--epochs", "1000000"]
    if WORKLOADS[run.model].kind == "tokens":
        train += ["--length", str(TOKENS), "--batch-size", str(max(options.batch_size // 4, 1))]
    else:
        train += ["--image-size", str(options.image_size), "--batch-size", str(options.batch_size)]
    return [*train, "--data", str(data_of(run, options))] if 3 in run.steps else train


def data_of(run: Run, options: argparse.Namespace) -> Path:
    """Training data of its model."""
    name = "tokens.npy" if WORKLOADS[run.model].kind == "tokens" else "images"
    path: Path = options.work / name
    return path


def measure(options: argparse.Namespace) -> None:
    """Run what is not there yet."""
    tokens, images = options.work / "tokens.npy", options.work / "images"
    if not images.is_dir():
        make_images(images, options.images, 2 * options.image_size)
    if not tokens.exists():
        make_tokens(tokens, options.images, TOKENS)
    models: dict[str, list[Run]] = {}
    for run in runs_of(options.macro, options.micro, options.rates):
        models.setdefault(run.model, []).append(run)
    with progress_bar() as bar:
        task = bar.add_task("measuring", total=len(models) * options.repeats)
        for runs in models.values():
            try:
                for repeat in range(options.repeats):
                    bar.update(task, description=f"{runs[0].model}, repetition {repeat + 1}")
                    measure_once(runs, repeat, options)
                    bar.advance(task)
            except DripleError as error:
                bar.console.print(f"{runs[0].model}: {error}", highlight=False)


def measure_once(runs: list[Run], repeat: int, options: argparse.Namespace) -> None:
    """One repetition of a model's profiles; the first rate's launches serve the others."""
    for run in runs:
        folder = options.work / run.name
        for step in {1, 2}.intersection(run.steps) if run is not runs[0] else ():
            launch = f"step{step}.r{repeat}.json"
            if not (folder / launch).exists():
                folder.mkdir(exist_ok=True)
                shutil.copy(options.work / runs[0].name / launch, folder / launch)
        plan = Plan(
            processes=2,
            network_bits_per_s=parse_rate("--rates", run.rate),
            iterations=options.iterations,
            warmup=options.warmup,
            repeats=repeat + 1,
            timeout_s=3600,
            tries=options.tries,
        )
        read = [data_of(run, options)] if 3 in run.steps else []
        profile_script(command_of(run, options), plan, folder, data=read, steps=run.steps)


def pack(options: argparse.Namespace) -> None:
    """All launches in one file, without the paths of this machine; the same bytes for the same."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for run in runs_of(options.macro, options.micro, options.rates):
            for file in sorted((options.work / run.name).glob("*.json")):
                text = file.read_text().replace(f"{options.work.resolve()}/", "").encode()
                member = tarfile.TarInfo(f"{run.name}/{file.name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
    atomic_write(options.pack, packed.getvalue(), error=DripleError)


def main() -> None:
    """Measure what is missing, and pack all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "stalls-report")
    parser.add_argument("--pack", type=Path, default=PACK)
    parser.add_argument("--macro", nargs="*", default=list(MODELS))
    parser.add_argument("--micro", nargs="*", default=list(MICRO))
    parser.add_argument("--rates", nargs="+", default=list(RATES), help="slowest first")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tries", type=int, default=4, help="tries of a launch that is disturbed")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--images", type=int, default=2048)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        measure(options)
    finally:  # stopped with Ctrl-C, what is there is packed
        pack(options)


if __name__ == "__main__":
    main()
