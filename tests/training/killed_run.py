"""Train and never finish: the process that a test kills. Arguments: the folder of the run.

Prints the number of each epoch when it is done and its state is saved.
"""

from __future__ import annotations

import sys
import time

from driple.dataset import random_split
from driple.training.loop import Progress
from driple.training.train import RunOptions, train
from tests.dataset.examples import synthetic_dataset
from tests.training.presets import small_preset


def main(folder: str) -> None:
    dataset = synthetic_dataset()

    def tell(progress: Progress) -> None:
        if progress.stage == "epochs":
            print(progress.done, flush=True)
            time.sleep(0.05)  # the one who kills needs time to do it in the middle

    train(
        dataset,
        random_split(dataset.workloads, 0),
        small_preset(),
        folder,
        # A state every second or third epoch: the log gets ahead of it.
        options=RunOptions(progress=tell, save_every_s=0.12, threads=1),
    )


if __name__ == "__main__":
    main(sys.argv[1])
