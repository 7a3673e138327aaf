"""Links between workers and parameter servers, and which of them a message crosses.

    machines of roles -> links and ports of machines, bridges and roles -> links from role to role

Roles are the workers, then the servers. Two roles of one machine communicate over ports of its
bridge; others cross the links of both machines, and what each role passes of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from driple.schemes.fair_shares import SharedLink

__all__ = ["Wiring"]


class Wiring:
    """Links of a cluster, outgoing and incoming in turn, so that link // 2 is the port of a link.

    Attributes:
        links: of each machine; then, of each role, the port of its machine's bridge; then, of each
            role, what it passes of its machine's link.

    Args:
        machines: machine of each role.
        link: a machine's link, each way, with its copies: each role copies what it passes.
        bridge_bytes_per_s: rate of a port of a machine's bridge, each way.
    """

    def __init__(
        self, machines: Sequence[int], link: SharedLink, bridge_bytes_per_s: float
    ) -> None:
        self._machines, self._num_roles = machines, Counter(machines)
        self._num_links, self._num_ports = 2 * (max(machines) + 1), 2 * len(machines)
        self.links = [replace(link, copy_s_per_byte=0.0)] * self._num_links
        self.links += [SharedLink(bridge_bytes_per_s)] * self._num_ports
        self.links += [link] * self._num_ports

    def path(self, sender: int, reader: int) -> tuple[int, ...]:
        """Numbers of the links from one role to another.

        The link of a machine with one role passes no less than the role does, and is left out.
        """
        ports = self._num_links + 2 * sender, self._num_links + 2 * reader + 1
        here, there = self._machines[sender], self._machines[reader]
        if here == there:
            return ports
        ends = ((here, 2 * here), (there, 2 * there + 1))
        shared = [link for machine, link in ends if self._num_roles[machine] > 1]
        return (*shared, *(port + self._num_ports for port in ports))
