"""A whole profile on Gloo, with a delay injected for each stall: each is found within 15 %.

prep         the data set sleeps            fetch     a control group limits the disk's rate
network      links of 100 Mbit/s            compute   next to none
"""

import json
import multiprocessing
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Self

import pytest

from driple.codec import to_json
from driple.errors import MeasureError
from driple.processes import end_with_parent
from driple.profiler.caches import choose_clearer
from driple.profiler.machines import stand_in_machines
from driple.profiler.stall_profile import StallProfile
from driple.profiler.steps import Plan
from driple.profiler.steps_runner import profile_script
from driple.render.remarks import sentences

# Injected delays are long beside what other load on the machine adds to an exchange of gradients.
SLEEP_S = 0.6  # of a batch
NUM_FILES, FILE_BYTES, BATCH = 64, 2**19, 4
DISK_BYTES_PER_S = 4 * 2**20
WIDTH = 1200  # of a square matrix: 5.8 MB of gradients
LINK_BITS_PER_S = 100e6
WITHIN = 0.15

# What a user may have written; it knows nothing of the profiler, but for where it reads from.
SCRIPT = """
import os, sys, time
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

folder, group, width, batch, sleep_s = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])

class Slow(Dataset):
    def __init__(self):
        self.files = sorted(os.scandir(folder), key=lambda entry: entry.name)
    def __len__(self):
        return len(self.files)
    def __getitems__(self, indices):
        if group != "-":
            with open(group, "w") as procs:
                procs.write(str(os.getpid()))
        time.sleep(sleep_s)
        return [self.read(i) for i in indices]
    def read(self, i):
        with open(self.files[i].path, "rb") as file:
            return torch.full((int(width),), float(len(file.read()) % 7))

distributed.init_process_group("gloo")
model = DistributedDataParallel(nn.Linear(int(width), int(width), bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
data = Slow()
loader = DataLoader(data, batch_size=int(batch), sampler=DistributedSampler(data))
for inputs in loader:
    model(inputs).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder of files, and the file through which a process gets a slow disk; `-` if none can."""
    folder = tmp_path_factory.mktemp("files")
    for i in range(NUM_FILES):
        (folder / f"{i:03d}").write_bytes(os.urandom(FILE_BYTES))
    os.sync()
    group = Path("/sys/fs/cgroup/blkio/driple_test_stalls")
    if os.geteuid() != 0 or not group.parent.is_dir():
        yield folder, "-"
        return
    group.mkdir(exist_ok=True)
    number = folder.stat().st_dev
    try:
        limit = f"{os.major(number)}:{os.minor(number)} {DISK_BYTES_PER_S}"
        (group / "blkio.throttle.read_bps_device").write_text(limit)
        joined = str(group / "cgroup.procs")
    except OSError:  # no disk of its own, such as an overlay of a container
        joined = "-"
    yield folder, joined
    group.rmdir()


# Noise of the machine passes, an error of ours stays: where one profile does not find a delay, the
# median of so many has to.
ATTEMPTS = 3
NETWORK_S = 8 * 4 * WIDTH**2 / LINK_BITS_PER_S  # gradients, once in each direction of the link
FETCH_S = 2 * BATCH * FILE_BYTES / DISK_BYTES_PER_S  # the batches of two processes


def read_again_and_again(folder: Path) -> None:
    """What a process of its own does: were it this one, the reading would be the profiler's."""
    end_with_parent()
    files = sorted(folder.iterdir())
    while True:
        for file in files:
            file.read_bytes()
        time.sleep(0.5)


class UsedInStep4:
    """Has the files read again and again while step 4 runs, which wants them in the cache.

    Some virtual machines have the kernel forget, within seconds and however much memory is free,
    what was not used lately (DAMON); the slow disk would have to read it anew.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader: SpawnProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def progress(self, words: str, done: int, total: int) -> None:
        """What the profiler begins with now."""
        self._stop()
        if words.startswith("step 4"):
            context = multiprocessing.get_context("spawn")
            self._reader = context.Process(target=read_again_and_again, args=(self._folder,))
            self._reader.start()

    def _stop(self) -> None:
        if self._reader is not None:
            self._reader.kill()
            self._reader.join()
            self._reader = None


def is_found(stall_profile: StallProfile, stall: str, injected_s: float) -> bool:
    """Whether a profile has that delay, or could not look for it."""
    stalls = stall_profile.stalls()
    return stall not in stalls or stalls[stall].seconds == pytest.approx(injected_s, rel=WITHIN)


@pytest.fixture(scope="module")
def profiles(
    slow_disk: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> list[StallProfile]:
    """The five steps, as many of them as this machine can do; three times if once is not enough."""
    folder, group = slow_disk
    place = tmp_path_factory.mktemp("profile")
    script = place / "train.py"
    script.write_text(SCRIPT)
    command = [str(script), str(folder), group, *map(str, (WIDTH, BATCH, SLEEP_S))]
    plan = Plan(
        processes=2,
        network_bits_per_s=LINK_BITS_PER_S,
        iterations=4,
        warmup=3,
        repeats=1,
        tries=1,
        timeout_s=120,
    )
    injected = {"prep": SLEEP_S, "network": NETWORK_S} | (
        {"fetch": FETCH_S} if group != "-" else {}
    )
    taken: list[StallProfile] = []
    while len(taken) < ATTEMPTS:
        with UsedInStep4(folder) as used:
            out = place / f"out-{len(taken)}"
            taken.append(profile_script(command, plan, out, data=[folder], progress=used.progress))
        if len(taken) == 1 and all(is_found(taken[0], *each) for each in injected.items()):
            break
    return taken


@pytest.fixture(scope="module")
def profile(profiles: list[StallProfile]) -> StallProfile:
    """The first of them."""
    return profiles[0]


def median_s(profiles: list[StallProfile], stall: str) -> float:
    """What the profiles say of a stall."""
    return statistics.median(each.stalls()[stall].seconds for each in profiles)


def test_a_data_set_that_sleeps_is_a_prep_stall(profiles: list[StallProfile]) -> None:
    """Every batch sleeps as long in the main process, on one machine."""
    assert median_s(profiles, "prep") == pytest.approx(SLEEP_S, rel=WITHIN), profiles[0].warnings()


def test_a_slow_disk_is_a_fetch_stall(
    profiles: list[StallProfile], slow_disk: tuple[Path, str]
) -> None:
    """The files of both processes' batches pass a disk of a set rate, where no cache has them."""
    if slow_disk[1] == "-":
        pytest.skip("limiting a disk's rate needs root, blkio control groups and a disk")
    assert median_s(profiles, "fetch") == pytest.approx(FETCH_S, rel=WITHIN), profiles[0].warnings()
    assert profiles[0].launches[3, 0].cleared == choose_clearer([slow_disk[0]])


def test_a_slow_link_is_a_network_stall(profiles: list[StallProfile]) -> None:
    """Two processes send their gradients once in each direction of a link of 100 Mbit/s."""
    if 5 in profiles[0].left_out:
        pytest.skip(profiles[0].left_out[5])
    found_s = median_s(profiles, "network")
    assert found_s == pytest.approx(NETWORK_S, rel=WITHIN), profiles[0].warnings()


def test_the_profile_tells_what_it_is(profile: StallProfile) -> None:
    """Batches, epoch, gradients, exchange and its own cost are in it; little of it waits on one."""
    assert profile.batches_per_epoch == NUM_FILES // 2 // BATCH
    assert profile.gradients is not None
    assert profile.gradients.nbytes == (4 * WIDTH**2,)
    assert profile.launches[2, 0].backend == "gloo"
    assert profile.launches[2, 0].batch_size == BATCH
    assert profile.overhead_pct() <= 1.0
    as_json = to_json(profile.to_dict())
    assert json.loads(json.dumps(as_json)) == as_json
    assert as_json["stalls"]["prep"]["epoch_s"]["value"] == pytest.approx(
        profile.stalls()["prep"].seconds * profile.batches_per_epoch
    )
    assert all(
        "one repetition" in line for line in sentences(profile.warnings()) if "other" not in line
    )


def test_done_steps_are_not_repeated(profile: StallProfile) -> None:
    """The same call ends at once; another script or plan in the same folder is refused."""
    before = {file: file.stat().st_mtime_ns for file in profile.folder.glob("step*.json")}
    shutil.rmtree(profile.folder / "launch")
    plan = Plan(
        processes=2, network_bits_per_s=LINK_BITS_PER_S, iterations=4, warmup=3, repeats=1, tries=1
    )
    data = [Path(place) for place in profile.about.data]
    again = profile_script(profile.about.command, plan, profile.folder, data=data)
    assert again.times == profile.times
    assert not (profile.folder / "launch").exists()
    assert before == {file: file.stat().st_mtime_ns for file in before}
    other = Plan(processes=2, iterations=5, warmup=3, repeats=1, tries=1)
    with pytest.raises(MeasureError, match="another plan"):
        profile_script(profile.about.command, other, profile.folder, data=data)


def test_namespaces_are_gone(profile: StallProfile) -> None:
    """What step 5 made is removed; it can be made again at once."""
    if 5 in profile.left_out:
        pytest.skip(profile.left_out[5])
    with stand_in_machines(2, 2, 1e9) as (places, _):
        assert [place.processes for place in places] == [1, 1]
    assert not list(Path("/run/netns").glob("dpl_m*"))
