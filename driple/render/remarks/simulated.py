"""Sentences on what a simulation, a closed form or a sweep assumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driple.quantities import duration, rate
from driple.units import counted

__all__ = ["SENTENCES"]

_ON_SERVERS = "its variables and their updates are placed on the parameter servers"
_EXCHANGES: Mapping[str, str] = {
    "servers": _ON_SERVERS,
    "alone": "the device updates all variables itself; nothing crosses the network",
    "all_reduce": (
        "each worker updates all variables itself, and gradients are added up by all-reduce"
    ),
    "all_reduce_in_levels": (
        "each worker updates all variables itself; gradients are added up within machines, then "
        "between them"
    ),
    "sharded_states": "each worker updates a shard of all variables and gathers the others",
    "sharded_gradients": (
        "each worker gets the gradients of a shard of all variables, updates it and gathers the "
        "others"
    ),
    "sharded_parameters": (
        "each worker keeps a shard of all variables and gathers the others block by block"
    ),
    "sharded_in_machines": (
        "each worker keeps a shard of all variables, gathers the others from its machine block by "
        "block, and adds up gradients between machines"
    ),
}
_LAYOUTS: Mapping[str, str] = {
    "unplaced": "the graph names no device",
    "one_machine": "the graph is of one machine",
    "one_device": "the model is of one device",
    "servers": "the graph has parameter servers, this setting has none",
}


def _other_layout(layout: str, exchange: str) -> str:
    """A graph that was built for another kind of cluster, and what is assumed instead."""
    words = _EXCHANGES.get(exchange, exchange)  # a scheme of a user's own states it in words
    if layout != "all_reduce":
        return f"{_LAYOUTS[layout]}: {words}"
    if exchange == "servers":
        return (
            "the graph adds up gradients by all-reduce, this setting has parameter servers: "
            f"{words}, and workers wait for each other"
        )
    return f"the graph adds up gradients of several workers: {words}"


def _stated(link: str, bytes_per_s: float, share: float, latency_s: float | None) -> str:
    step = "" if latency_s is None else f", {duration(latency_s)} a step"
    return f"{link} reaches {rate(bytes_per_s / 1e6)} ({_pct(share)} of its rate{step}), as stated"


def _by_tcp(link: str, share: float, low: float, high: float, count: int) -> str:
    return (
        f"{link} reaches {_pct(share)} of its rate ({_pct(low)} to {_pct(high)}, which the "
        f"interval holds), the median of {count} published all-reduces by TCP; yours may differ "
        "(driple predict --link-bandwidth)"
    )


def _pct(share: float) -> str:
    return f"{100 * share:.0f} %"


def _not_measured(
    *,
    device: str,
    source: str,
    is_same_chip: bool,
    source_bytes_per_s: float | None,
    bytes_per_s: float | None,
) -> str:
    relative = f"{source} devices" if source else "the usual device"
    if is_same_chip:
        relative = f"{source}, the same chip"
        if source_bytes_per_s is not None and bytes_per_s is not None:
            relative += (
                f" with {source_bytes_per_s / 1e12:.3g} TB/s of memory in place of "
                f"{bytes_per_s / 1e12:.3g}"
            )
    return (
        f"no measured run on {device} is in the calibration: it takes the efficiency of {relative}"
    )


def _tuned(
    *,
    device: str,
    file: str,
    names: Sequence[str],
    factors: Sequence[float],
    num_runs: int | None,
    median_pct: float | None,
    p90_pct: float | None,
) -> str:
    listed = ", ".join(f"{name} {by:.3g}" for name, by in zip(names, factors, strict=True))
    words = f"{device} is tuned by {file} ({listed})"
    if num_runs is not None and median_pct is not None and p90_pct is not None:
        words += (
            f": {num_runs} runs, each predicted by the others with a median error of "
            f"{median_pct:.3g} %, 90th percentile {p90_pct:.3g} %"
        )
    return words


def _measured_host(
    *, file: str, us_per_op: float, low_us: float, high_us: float, launch_us: float | None
) -> str:
    words = (
        f"the host of {file} takes {us_per_op:.3g} us an op ({low_us:.3g} to {high_us:.3g} by "
        "program)"
    )
    if launch_us is None:
        return words
    return f"{words}, of which {launch_us:.3g} us for a launch are assumed: no GPU was there"


def _placement(
    placement: str,
    num_servers: Sequence[int],
    shares_pct: Sequence[float],
    greedy_pct: Sequence[float],
) -> str:
    shares = ", ".join(
        f"{share:.0f} % of the parameters with {count} servers ({greedy:.0f} % with greedy)"
        for count, share, greedy in zip(num_servers, shares_pct, greedy_pct, strict=True)
    )
    return (
        f"placement {placement} takes variables in turn, whatever their size: one server holds "
        f"{shares}; --set placement=greedy spreads them, as tf_cnn_benchmarks does"
    )


def _uneven_stages(num_blocks: int, blocks_per_stage: Sequence[int]) -> str:
    count = len(blocks_per_stage)
    listed = ", ".join(map(str, blocks_per_stage))
    if count > _MOST_STAGES_LISTED:
        most, fewest = max(blocks_per_stage), min(blocks_per_stage)
        of_most = list(blocks_per_stage).count(most)
        listed = f"{of_most} have {most}, {count - of_most} have {fewest}"
    return f"{num_blocks} blocks do not divide into {count} stages: {listed}"


_MOST_STAGES_LISTED = 8
_OPEN = "the graph does not show whether workers wait for each other"

SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "built_for_other_cluster": _other_layout,
    "taken_for_asynchronous": f"{_OPEN}: training is asynchronous, none waits",
    "taken_for_synchronous": (
        f"{_OPEN}; the closed forms take it for synchronous training, simulator and inspector for "
        "asynchronous"
    ),
    "asynchronous_graph": (
        "the graph is of asynchronous training; the closed forms take it for synchronous"
    ),
    "batch_of_replica": lambda num_replicas, num_devices: (
        f"the batch size is that of each of {counted(num_replicas, 'replica')} of {num_devices} "
        "devices, not of each device"
    ),
    "sequence_parallelism": (
        "norms, residuals and dropout between split matrices are shared out by tokens (sequence "
        "parallelism)"
    ),
    "even_all_to_all": (
        "each of the {num_devices} devices of an expert group gets as many tokens (capacity 1); "
        "experts are not split by tp"
    ),
    "host_updates": (
        "a host updates a billion parameters in {seconds:.3g} s, as two processors of 24 cores do "
        "(ZeRO-Offload, table 4)"
    ),
    "tensor_group_spans_machines": (
        "a tensor-parallel group of {num_devices} devices spans machines of {devices_per_machine}: "
        "its sums cross the network"
    ),
    "pipeline_passes": lambda num_stages, num_passes: (
        f"a pipeline of {num_stages} stages runs {counted(num_passes, 'micro-batch')} a step, the "
        "passes of an update; the targets are those of its first stage"
    ),
    "uneven_stages": _uneven_stages,
    "device_not_measured": _not_measured,
    "link_not_measured": (
        "no measured run over {link} is in the calibration: it takes the efficiency of links like "
        "it, such as {like}"
    ),
    "link_stated": _stated,
    "link_by_tcp": _by_tcp,
    "taken_as_rdma": lambda link, share, tcp_share: (
        f"{link} reaches {_pct(share)} of its rate, as with RDMA; by TCP it is {_pct(tcp_share)} "
        f"({link}-TCP)"
    ),
    "tuned_device": _tuned,
    "measured_host": _measured_host,
    "measured_processor": lambda file, gflops, gb_per_s, us_per_op, threads: (
        f"a worker of {file} computes with {counted(threads, 'thread')}: {gflops:.3g} GFLOP/s, "
        f"{gb_per_s:.3g} GB/s, {us_per_op:.3g} us to start an op"
    ),
    "processor_not_measured": "the processor was left out: {reason}",
    "measured_while_busy": (
        "other programs used {busy_cores:.1f} cores while {file} was measured: its times may be "
        "too long"
    ),
    "device_rates_assumed": (
        "{file} has no GPU: what the kernels of {device} reach is that of published runs"
    ),
    "link_of_machine_not_measured": (
        "{file} has no all-reduce over such machines: their link is that of the catalogue"
    ),
    "measured_by_gloo": "the links of {file} were measured by Gloo between CPUs; NCCL may differ",
    "measured_over_catalog": "{device}: values of {machine} count before those of {file}",
    "no_gpu_measured": "GPUs were left out: {reason}",
    "gpu_in_use": (
        "GPU {number} is in use: another program holds {held_gib:.1f} GiB of its memory, and its "
        "times may be too long"
    ),
    "slow_gpu": "GPU {number} ({name}) is {pct:.0f} % slower than the first of its kind",
    "gpu_clock": "GPU {number} runs matrix products at {mhz:.0f} MHz",
    "no_links_measured": (
        "links were left out: they join several GPUs or machines; start this by torchrun -m driple "
        "measure --machine on each"
    ),
    "host_given": "a host that takes {host_us_per_op:g} us for each op",
    # servers
    "uneven_placement": _placement,
    "largest_variable": (
        "the largest variable is {share_pct:.0f} % of the parameters and stays on one server, so "
        "{num_servers} or more servers cannot share them evenly"
    ),
    "slow_copies": lambda copy_bytes_per_s: (
        f"TensorFlow copies what crosses the network at {copy_bytes_per_s / 1e9:.1f} GB/s, which "
        "takes longer than the fastest of these links; --set copies=off leaves the copies out"
    ),
    "servers_update": (
        "parameter servers update the parameters, which takes no time of the device"
    ),
}
