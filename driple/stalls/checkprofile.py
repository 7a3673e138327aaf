"""What the files of a stall profile must hold, before anything is computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.checks import check_number, check_whole
from driple.errors import ConfigError
from driple.stalls.steps import STEPS

__all__ = ["check_about", "check_launch", "checked_left_out"]

_MOST = 10**9  # processes, samples of a batch, batches of an epoch
_LONGEST_S = 1e9


def checked_left_out(found: object) -> dict[int, str]:
    """Why each step was left out, by its number.

    Raises:
        ConfigError: other keys than numbers of steps, or a reason that is no text.
    """
    steps = {str(step): step for step in STEPS}
    if not isinstance(found, dict) or not all(
        key in steps and isinstance(why, str) for key, why in found.items()
    ):
        raise ConfigError(f"left_out must give a reason for steps 1 to 5, got {found!r:.80}")
    return {steps[key]: why for key, why in found.items()}


def check_about(about: Mapping[str, Any]) -> None:
    """Check command and plan.

    Raises:
        ConfigError: one is missing or of another type.
    """
    command, plan = about.get("command"), about.get("plan")
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise ConfigError(f"command must be a list of words, got {command!r:.80}")
    if not isinstance(plan, dict):
        raise ConfigError(f"plan must be an object, got {plan!r:.80}")
    if "host" not in about:
        raise ConfigError("host is missing")
    check_whole("processes of the plan", plan.get("processes"), 1, _MOST)
    if plan.get("network_bits_per_s") is not None:
        check_number("network_bits_per_s of the plan", plan["network_bits_per_s"], above=0)


def check_launch(where: str, step: int, launch: object) -> None:
    """Check what one launch measured.

    Raises:
        ConfigError: something is missing or cannot be.
    """
    if step not in STEPS or not isinstance(launch, dict):
        raise ConfigError(f"{where}: no launch of steps 1 to 5")
    check_number(f"{where}: iteration_s", launch.get("iteration_s"), above=0, most=_LONGEST_S)
    for name in ("other_cores", "stolen_cores", "overhead_pct"):
        check_number(f"{where}: {name}", launch.get(name))
    check_whole(f"{where}: processes", launch.get("processes"), 1, _MOST)
    for name in ("batch_size", "batches_per_epoch", "bucket_mib", "cleared", "gradients"):
        if name not in launch:
            raise ConfigError(f"{where}: {name} is missing")
    for name in ("batch_size", "batches_per_epoch"):
        if launch[name] is not None:
            check_whole(f"{where}: {name}", launch[name], 0, _MOST)
    if launch["bucket_mib"] is not None:
        check_number(f"{where}: bucket_mib", launch["bucket_mib"], above=0)
    for name, kind in (("wrapped", bool), ("script", str), ("cleared", str | None)):
        if not isinstance(launch.get(name), kind):
            raise ConfigError(f"{where}: {name} is {launch.get(name)!r:.80}")
    if launch["gradients"] is not None:
        _check_gradients(where, launch["gradients"])


def _check_gradients(where: str, found: object) -> None:
    """Bytes of each gradient, and when it is ready, in seconds of a step."""
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: gradients are {found!r:.80}, not an object")
    nbytes, ready_s = found.get("nbytes"), found.get("ready_s")
    if not isinstance(nbytes, list) or not isinstance(ready_s, list) or len(nbytes) != len(ready_s):
        raise ConfigError(f"{where}: gradients need as many nbytes as ready_s")
    for value in nbytes:
        check_number(f"{where}: nbytes of a gradient", value, least=0)
    for value in ready_s:
        check_number(f"{where}: ready_s of a gradient", value, least=0)
    check_number(f"{where}: step_s of the gradients", found.get("step_s"), above=0)
