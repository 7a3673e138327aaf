"""Time saved by running the frozen layers of a transfer once instead of at every step.

    python -m scripts.bench.transfer [--repeats 9] [--threads 1]

Prints medians of a training step of preset `paper` (100 groups, batches of 32 random graphs) with
the frozen half of phi_r done before, and done again. Run it on a machine where nothing else runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch.nn import functional

from driple.inspector.model import make_batch
from driple.training.fine_tuning import tuned_model
from driple.training.transfer_config import transfer_config
from scripts.bench.inspector import BATCH_SIZE, random_checkpoint, random_input
from scripts.bench.timing import median_s

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
LAYERS = ("phi_r", "mlp")  # tuned in the paper (section 4.2.2)


def steps_of(share: float) -> tuple[Callable[[], None], Callable[[], None]]:
    """A step on embeddings that are kept, and one that makes them anew."""
    config = transfer_config("paper", layers=LAYERS, tuned_share=share)
    model = tuned_model(random_checkpoint(), config)
    moving = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(moving, lr=config.train.learning_rate)
    batch = make_batch([random_input(i) for i in range(BATCH_SIZE)])
    targets = torch.rand(BATCH_SIZE, 12)
    with torch.no_grad():
        kept = model.kept(batch)

    def step(*, anew: bool) -> None:
        optimizer.zero_grad()
        done = kept
        if anew:
            with torch.no_grad():
                done = model.kept(batch)
        functional.mse_loss(model(done), targets).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return lambda: step(anew=False), lambda: step(anew=True)


def main() -> None:
    """Print a line for each share."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for share in SHARES:
        once_s, anew_s = (median_s(step, arguments.repeats) for step in steps_of(share))
        print(
            f"share {share:4.2f} of phi_r tuned: {once_s * 1e3:7.1f} ms a step, "
            f"{anew_s * 1e3:7.1f} ms with frozen layers at every step, {anew_s / once_s:5.1f} x"
        )


if __name__ == "__main__":
    main()
