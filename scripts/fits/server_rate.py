"""What TensorFlow passed through one parameter server, by the published facts on networks.

network_and_utilisation_facts.csv.gz --most_passed_by_servers--> ServerRate
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from driple.errors import ConfigError
from scripts.published.rows.cells import read_raw

__all__ = ["FACTS", "ServerRate", "most_passed_by_servers"]

FACTS = "network_and_utilisation_facts"
_ONE_SERVER = re.compile(r"(?P<workers>\d+) workers \+ 1 PS; (?P<gbit>\d+) Gbit/s")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRate:
    """What TensorFlow passed through one parameter server.

    Attributes:
        bytes_per_s: rate of each direction.
        link: name of the server's link.
        num_workers: workers, each on a machine of its own.
    """

    bytes_per_s: float
    link: str
    num_workers: int


def most_passed_by_servers(folder: Path) -> ServerRate:
    """The fastest transfer of TensorFlow through one parameter server.

    The run passed at least that much, since the time that it was taken over includes computing.

    Args:
        folder: of the tables.

    Raises:
        ConfigError: the table is missing or damaged.
    """
    rows = read_raw(folder / f"{FACTS}.csv.gz")
    rates = []
    try:
        for row in rows:
            setup = _ONE_SERVER.match(row["setup"])
            if row["kind"] == "network (derived)" and row["unit"] == "Gbit/s" and setup:
                rate = float(row["value"]) * 1e9 / 8
                rates.append((rate, f"{setup['gbit']}G", int(setup["workers"])))
        rate, link, num_workers = max(rates)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{FACTS}.csv.gz has no rates of servers ({error})") from error
    return ServerRate(bytes_per_s=rate, link=link, num_workers=num_workers)
