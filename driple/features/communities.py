"""Group the nodes of a graph into M super-nodes (paper, section 3.1.3).

    OpGraph -> connected components -> groups for each -> fluid communities -> group of each node

Fluid communities (Parés et al., "Fluid Communities: A Competitive and Highly Scalable Community
Detection Algorithm", 2017) are those of networkx's `asyn_fluidc` for the same seed, found
faster: plain lists in place of counters, and a vertex is looked at only while a neighbour of it
belongs to another community, since otherwise it can neither change nor draw a random number.

Everything here is deterministic. The communities depend on the order of the nodes (the seeds are
drawn by position), hence the same graph in another node order gets other groups, unless it has no
more nodes than groups.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError, GraphError
from driple.features.config import InputConfig
from driple.graph.opgraph import OpGraph

__all__ = ["fluid_communities", "group_nodes", "num_groups_of", "proportional_num_groups"]

IntArray = npt.NDArray[np.int32]
Neighbours = list[list[int]]

MAX_ITERATIONS = 100
# Densities that differ by less than this are equal (networkx).
DENSITY_TOLERANCE = 0.0001
PROPORTIONAL_BATCH_SIZE = 32


def fluid_communities(
    num_nodes: int, edges: npt.NDArray[np.integer], num_groups: int, seed: int
) -> IntArray:
    """Group of each node by asynchronous fluid communities, as networkx 3 finds them.

    Args:
        num_nodes: number of nodes; the graph should be connected.
        edges: shape [num_edges, 2], pairs of node numbers, taken as undirected; repeated pairs
            count once. Their order matters: it is the order of the neighbours.
        num_groups: number of communities, 1 to `num_nodes`.
        seed: seed of Python's random generator.

    Returns:
        Shape [num_nodes], int32, communities 0 to `num_groups` - 1, none of them empty; -1 for a
        node that none has reached in 100 rounds (networkx leaves such nodes out as well).

    Raises:
        ConfigError: `num_groups` below 1 or above `num_nodes`.
    """
    if not 1 <= num_groups <= num_nodes:
        raise ConfigError(f"{num_groups} groups of {num_nodes} nodes; give 1 to {num_nodes} groups")
    generator = random.Random(seed)  # noqa: S311  # not for cryptography: the same as networkx
    fluid = _Fluid(
        neighbours=_neighbours(num_nodes, edges),
        community=[-1] * num_nodes,
        foreign=[0] * num_nodes,
        sizes=[1] * num_groups,
        density=[1.0] * num_groups,
    )
    order = list(range(num_nodes))
    _shuffle(order, generator)
    for group, node in enumerate(order[:num_groups]):
        _move(node, group, fluid)
    for _ in range(MAX_ITERATIONS):
        order = list(range(num_nodes))
        _shuffle(order, generator)
        if not _one_round(order, fluid, generator):
            break
    return np.array(fluid.community, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class _Fluid:
    """The state of the algorithm; plain lists, since they are walked one number at a time.

    Attributes:
        neighbours: neighbours of each node, in the order of the edges.
        community: community of each node, -1 for none yet.
        foreign: how many neighbours of each node are in a community that is not its own.
        sizes: nodes of each community.
        density: 1 / size of each community.
    """

    neighbours: Neighbours
    community: list[int]
    foreign: list[int]
    sizes: list[int]
    density: list[float]


def _one_round(order: list[int], fluid: _Fluid, generator: random.Random) -> bool:
    """Visit every node once and let it join the densest community around; whether any moved."""
    community, density, sizes = fluid.community, fluid.density, fluid.sizes
    moved = False
    for node in order:
        if not fluid.foreign[node]:
            continue
        own = community[node]
        total = {own: density[own]} if own >= 0 else {}
        for other in fluid.neighbours[node]:
            group = community[other]
            if group >= 0:
                total[group] = total.get(group, 0.0) + density[group]
        highest = max(total.values())
        if own >= 0 and highest - total[own] < DENSITY_TOLERANCE:
            continue
        best = [group for group in total if highest - total[group] < DENSITY_TOLERANCE]
        new = generator.choice(best)
        if own >= 0:
            sizes[own] -= 1
            density[own] = 1.0 / sizes[own]
        sizes[new] += 1
        density[new] = 1.0 / sizes[new]
        _move(node, new, fluid)
        moved = True
    return moved


def _move(node: int, new: int, fluid: _Fluid) -> None:
    """Put the node into the community `new` and keep the counts of foreign neighbours right."""
    community, foreign = fluid.community, fluid.foreign
    old = community[node]
    community[node] = new
    own_foreign = 0
    for other in fluid.neighbours[node]:
        group = community[other]
        if other == node:
            continue
        if group >= 0 and group != new:
            own_foreign += 1
        was_foreign = old >= 0 and old != group
        is_foreign = new != group
        foreign[other] += is_foreign - was_foreign
    foreign[node] = own_foreign


def _shuffle(items: list[int], generator: random.Random) -> None:
    """`random.Random.shuffle`, the same draws in the same order, written out to be fast."""
    draw = generator.getrandbits
    last = len(items) - 1
    while last > 0:
        num_bits = (last + 1).bit_length()
        lowest = max(1, (1 << (num_bits - 1)) - 1)  # down to here the number of bits is the same
        for i in range(last, lowest - 1, -1):
            j = draw(num_bits)
            while j > i:
                j = draw(num_bits)
            items[i], items[j] = items[j], items[i]
        last = lowest - 1


def _neighbours(num_nodes: int, edges: npt.NDArray[np.integer]) -> Neighbours:
    """Neighbours of each node, each once, in the order in which the edges name them."""
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    both = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)
    _, first = np.unique(both[:, 0] * num_nodes + both[:, 1], return_index=True)
    kept = both[np.sort(first)]
    kept = kept[np.argsort(kept[:, 0], kind="stable")]
    bounds = np.searchsorted(kept[:, 0], np.arange(num_nodes + 1)).tolist()
    flat = kept[:, 1].tolist()
    return [flat[start:end] for start, end in pairwise(bounds)]


def proportional_num_groups(
    num_nodes: Sequence[int], batch_size: int = PROPORTIONAL_BATCH_SIZE
) -> IntArray:
    """M of each graph under the policy `proportional` (paper, section 3.1.3).

    The graphs are sorted by their number of nodes and cut into batches; M is log10 of the mean
    node number of the batch, rounded, and at least 1.

    Args:
        num_nodes: node number of each graph.
        batch_size: graphs of a batch.

    Returns:
        Shape [number of graphs], M of each graph, in the order given.
    """
    sizes = np.asarray(num_nodes, dtype=np.float64)
    groups = np.ones(len(sizes), dtype=np.int32)
    order = np.argsort(sizes, kind="stable")
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        groups[batch] = max(1, round(math.log10(max(1.0, float(sizes[batch].mean())))))
    return groups


def num_groups_of(graph: OpGraph, config: InputConfig) -> int:
    """M of one graph on its own: a batch of one under the policy `proportional`."""
    if config.policy == "uniform":
        return config.num_groups
    return int(proportional_num_groups([graph.num_nodes])[0])


def group_nodes(graph: OpGraph, config: InputConfig, num_groups: int | None = None) -> IntArray:
    """Group of each node of the graph (paper, section 3.1.3).

    A component with no more nodes than its share of groups has each node as its own group. With
    `components="all"` the groups are shared over the components in proportion to their numbers of
    nodes, at least one each; where there are more components than groups, the small ones, those
    whose share is below one group, pool their shares and are spread over them.

    Args:
        graph: the graph; its edges are taken as undirected.
        config: seed and which components.
        num_groups: M; the policy's own if not given.

    Returns:
        Shape [num_nodes], int32, groups 0 to some G - 1 <= M - 1, none empty; -1 for nodes that
        are left out (outside the largest component, with `components="largest"`).

    Raises:
        GraphError: the graph has no nodes.
        ConfigError: `num_groups` below 1.
    """
    wanted = num_groups_of(graph, config) if num_groups is None else num_groups
    if graph.num_nodes == 0:
        raise GraphError("the graph has no nodes on the worker's device, needed is one at least")
    if wanted < 1:
        raise ConfigError(f"{wanted} groups wanted; give 1 or more")
    neighbours = _neighbours(graph.num_nodes, graph.edges)
    components = _components(neighbours)
    if config.components == "largest":
        bins = [(components[0], wanted)]
    else:
        bins = _share_groups(components, wanted)
    groups = np.full(graph.num_nodes, -1, dtype=np.int32)
    next_group = 0
    for nodes, share in bins:
        own = _group_component(nodes, graph.edges, share, config.seed)
        groups[nodes] = own + next_group
        next_group += int(own.max()) + 1
    return groups


def _components(neighbours: Neighbours) -> list[IntArray]:
    """Connected components, each its nodes in rising order; largest first, then by lowest node."""
    seen = [False] * len(neighbours)
    components = []
    for start in range(len(neighbours)):
        if seen[start]:
            continue
        seen[start] = True
        nodes = [start]
        for node in nodes:  # grows while it is walked
            for other in neighbours[node]:
                if not seen[other]:
                    seen[other] = True
                    nodes.append(other)
        components.append(np.array(sorted(nodes), dtype=np.int32))
    return sorted(components, key=lambda nodes: (-len(nodes), int(nodes[0])))


def _share_groups(components: list[IntArray], num_groups: int) -> list[tuple[IntArray, int]]:
    """Pairs of nodes and the number of groups that they get together."""
    if len(components) <= num_groups:
        shares = _apportion([len(nodes) for nodes in components], num_groups)
        return list(zip(components, shares, strict=True))
    total = sum(len(nodes) for nodes in components)
    large = [nodes for nodes in components if len(nodes) * num_groups >= total]
    small = components[len(large) :]
    num_small = sum(len(nodes) for nodes in small)
    shares = _apportion([*(len(nodes) for nodes in large), num_small], num_groups)
    pools: list[list[IntArray]] = [[] for _ in range(shares[-1])]
    fill = [0] * len(pools)
    for nodes in small:
        emptiest = fill.index(min(fill))
        pools[emptiest].append(nodes)
        fill[emptiest] += len(nodes)
    pooled = [(np.sort(np.concatenate(pool)), 1) for pool in pools]
    return list(zip(large, shares[:-1], strict=True)) + pooled


def _apportion(sizes: list[int], num_groups: int) -> list[int]:
    """Share groups in proportion to the sizes: each at least 1, none more than its size.

    Groups go one after another to the part with the most nodes per group (Jefferson's method), ties
    to the first; what the sizes cannot take is not given out.
    """
    shares = [1] * len(sizes)
    quota = [max(1, size * num_groups // sum(sizes)) for size in sizes]
    if sum(quota) <= num_groups:
        shares = [min(start, size) for start, size in zip(quota, sizes, strict=True)]
    for _ in range(num_groups - sum(shares)):
        weights = [
            size / (share + 1) if share < size else 0.0
            for size, share in zip(sizes, shares, strict=True)
        ]
        best = weights.index(max(weights))
        if weights[best] == 0.0:
            break
        shares[best] += 1
    return shares


def _group_component(
    nodes: IntArray, edges: npt.NDArray[np.int32], num_groups: int, seed: int
) -> IntArray:
    """Group of each of the nodes, which lie in one component (or share one group)."""
    if num_groups >= len(nodes):
        return np.arange(len(nodes), dtype=np.int32)
    if num_groups == 1:
        return np.zeros(len(nodes), dtype=np.int32)
    number = np.full(int(max(nodes[-1], edges.max(initial=0))) + 1, -1, dtype=np.int32)
    number[nodes] = np.arange(len(nodes), dtype=np.int32)
    local = number[edges]
    local = local[(local >= 0).all(axis=1)]
    groups = fluid_communities(len(nodes), local, num_groups, seed)
    return _reach_the_rest(groups, local)


def _reach_the_rest(groups: IntArray, edges: IntArray) -> IntArray:
    """Give each node that no community has reached the group of the nearest node that has one."""
    if groups.min() >= 0:
        return groups
    neighbours = _neighbours(len(groups), edges)
    filled = groups.tolist()
    queue = deque(node for node, group in enumerate(filled) if group >= 0)
    while queue:
        node = queue.popleft()
        for other in neighbours[node]:
            if filled[other] < 0:
                filled[other] = filled[node]
                queue.append(other)
    return np.array(filled, dtype=np.int32)
