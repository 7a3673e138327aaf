"""Links within a machine as NCCL uses them: fitted to collectives by size and ranks.

    datasets/runs/kernels/collectives.csv.xz -> LinkEfficiency of each kind of link

    python -m scripts.fits.nccl

Prints what it fits, and errors before and after, of ranks, sizes and devices that a fit has not
seen. `driple/schemes/nccl_links.py` holds the result for NVLink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, fields

import numpy as np
import numpy.typing as npt
import pandas as pd

from driple.catalog import link_named
from driple.runs.solver import least_squares
from driple.schemes.collectives import COLLECTIVES, CollectiveKind, DeviceGroup
from driple.schemes.links import LinkEfficiency, ReachedLink
from scripts.fits.links import LATENCY_S
from scripts.published.kernels import long_table

__all__ = ["BEFORE", "LINKS", "collectives", "errors", "fit_link", "folds", "seconds"]

FloatArray = npt.NDArray[np.float64]
LINKS = {
    "A100-80G": "NVLink-A100", "H100": "NVLink-H100", "H200": "NVLink-H100",
    "B200": "NVLink-B200", "B300": "NVLink-B200", "GB200": "NVLink-B200", "GB300": "NVLink-B200",
    "RTXPRO6000-Server": "PCIe5",
}  # fmt: skip
"""Links of the devices in the tables. The L40S is left out: in its machine eight devices share
about 1.5 GB/s, as no other source shows."""
# What was taken before these tables: one share of all NVLinks, of nccl-tests on H100s (issue 212),
# and that of the fit to training over PCIe 3.
BEFORE = {
    **dict.fromkeys(
        ("NVLink-A100", "NVLink-H100", "NVLink-B200"),
        LinkEfficiency(share=0.8, latency_s=LATENCY_S["NVLink"], sharing=0.0),
    ),
    "PCIe5": LinkEfficiency(share=0.8, latency_s=LATENCY_S["PCIe"], sharing=0.0244095),
}
_SWITCHED = {"NVLink-H100"}  # whose switch is seen to sum faster than a ring
# Messages of training are large: they count more.
_LARGE_BYTES, _WEIGHT_OF_LARGE = 1e7, 2.0
_WITHIN_ONE = {"NVLink"}  # kinds without sharing: each device has its links to a switch
_MOST = np.log([1.0, 3e-5, 1.0, 3.0, 1.0, 1.0])
_LEAST = np.log([0.05, 1e-7, 1e-4, 0.3, 1e-3, 1e-3])
_START = LinkEfficiency(
    share=0.7, latency_s=LATENCY_S["NVLink"], sharing=0.3, start=1.0, own_part=0.4, switch_share=0.5
)


def collectives() -> pd.DataFrame:
    """Measured collectives that Driple prices: `device`, `link`, `kind`, `ranks`, `bytes`, `us`."""
    rows = long_table("collectives")
    rows = rows[rows["kind"].isin(COLLECTIVES) & rows["device"].isin(LINKS)]
    return rows.assign(link=rows["device"].map(LINKS)).reset_index(drop=True)


def seconds(rows: pd.DataFrame, reached: Callable[[str], LinkEfficiency]) -> FloatArray:
    """What the model says of each row, shape [n]."""
    predicted, sizes = np.empty(len(rows)), rows["bytes"].to_numpy(float)
    keys: list[tuple[str, CollectiveKind, int]] = list(
        zip(rows["link"], rows["kind"], rows["ranks"].tolist(), strict=True)
    )
    for name, kind, ranks in dict.fromkeys(keys):
        some = np.array([key == (name, kind, ranks) for key in keys])
        hop = ReachedLink(link_named(name), reached(name)).hop(ranks)
        group = DeviceGroup(count=ranks, within=hop)
        predicted[some] = group.seconds(kind, sizes[some])
    return predicted


def fit_link(rows: pd.DataFrame) -> LinkEfficiency:
    """The efficiency of the link that all these rows crossed."""
    name = str(rows["link"].iloc[0])
    shared = link_named(name).kind not in _WITHIN_ONE
    fits = {"sharing": shared, "switch_share": name in _SWITCHED, "own_part": not shared}
    free = [one.name for one in fields(LinkEfficiency) if fits.get(one.name, True)]
    places = [[one.name for one in fields(LinkEfficiency)].index(field) for field in free]
    start = np.log(np.array(astuple(_START)))[places]

    weight = np.where(rows["bytes"] >= _LARGE_BYTES, _WEIGHT_OF_LARGE, 1.0)

    def meaning(logs: FloatArray) -> LinkEfficiency:
        values = {"sharing": 0.0} | dict(zip(free, np.exp(logs).tolist(), strict=True))
        return LinkEfficiency(**values)

    def off(logs: FloatArray) -> FloatArray:
        link = meaning(logs)
        ratio: FloatArray = seconds(rows, lambda _: link) * 1e6 / rows["us"].to_numpy()
        return weight * np.log(ratio)

    fit = least_squares(
        off, start, bounds=(_LEAST[places], _MOST[places]), loss="soft_l1", diff_step=1e-3,
        max_nfev=60,
    )  # fmt: skip
    return meaning(fit.x)


def folds(rows: pd.DataFrame) -> Iterator[tuple[str, str, npt.NDArray[np.bool_]]]:
    """What is left out: of a link, each number of ranks, each third of sizes, each device."""
    size = np.digitize(rows["bytes"], [1e5, 1e7])
    for link in dict.fromkeys(rows["link"]):
        own = (rows["link"] == link).to_numpy()
        for what, values in (("ranks", rows["ranks"]), ("sizes", size), ("device", rows["device"])):
            for value in sorted(set(np.asarray(values)[own])):
                out = own & (np.asarray(values) == value)
                if (own & ~out).any():
                    yield link, what, out


def errors(said_s: FloatArray, us: FloatArray) -> tuple[float, float, float]:
    """Median and 90th percentile of the errors, and the signed median, percent."""
    off = 1e6 * said_s / us - 1.0
    return (
        100 * float(np.median(np.abs(off))),
        100 * float(np.quantile(np.abs(off), 0.9)),
        100 * float(np.median(off)),
    )


def main() -> None:
    """Fit all links and print how far they are from what was measured."""
    rows = collectives()
    us, before = rows["us"].to_numpy(), seconds(rows, BEFORE.__getitem__)
    for link, some in rows.groupby("link").indices.items():
        fitted = fit_link(rows.iloc[some])
        after = seconds(rows.iloc[some], lambda _, fitted=fitted: fitted)  # type: ignore[misc]
        print(link, fitted)
        print("  before", errors(before[some], us[some]), "after", errors(after, us[some]))
    unseen: dict[tuple[str, str], list[tuple[FloatArray, FloatArray]]] = {}
    for link, what, out in folds(rows):
        fitted = fit_link(rows[(rows["link"] == link).to_numpy() & ~out])
        said = seconds(rows[out], lambda _, fitted=fitted: fitted)  # type: ignore[misc]
        unseen.setdefault((link, what), []).append((said, us[out]))
    for (link, what), parts in unseen.items():
        said, measured = (np.concatenate(part) for part in zip(*parts, strict=True))
        print(f"{link}, {what} left out:", errors(said, measured))


if __name__ == "__main__":
    main()
