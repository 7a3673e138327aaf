"""Old names of commands and options, and what replaced each: one table, one line on stderr.

["stalls", "run", "--", "train.py"]  ->  "'driple stalls run' is now: driple profile run -- SCRIPT"

A row applies once its new command exists, so that a command and its successor never both hide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["OLD_NAMES", "OldName", "new_name"]


@dataclass(frozen=True, slots=True)
class OldName:
    """An old command, or an old option of a command that stays.

    Attributes:
        old: the words of the command, such as `stalls run`.
        new: what a user types instead, after `driple`.
        flag: the option that makes the command old; None: the command itself is old.
    """

    old: str
    new: str
    flag: str | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the new command: those of `new` before its first option or argument."""
        words: list[str] = []
        for word in self.new.split():
            if not word.isalpha() or not word.islower():
                break
            words.append(word)
        return tuple(words)

    @property
    def flags(self) -> tuple[str, ...]:
        """Options that `new` names."""
        words = self.new.split(" -- ")[0].split()
        return tuple(word for word in words if word.startswith("-") and word != "--")

    @property
    def sentence(self) -> str:
        """The line that a user reads."""
        typed = self.old if self.flag is None else f"{self.old} {self.flag}"
        return f"'driple {typed}' is now: driple {self.new}"


# Options of every command that takes a JOB, and what stands for each.
_JOB_OPTIONS = {
    "--data-function": "--data FILE.py:FUNCTION",
    "--loss-function": "--loss FILE.py:FUNCTION",
    "--target": "--set target=NAME",
    "--loop-turns": "--set loop_turns=N",
    "--max-mib": "--set max_mib=N",
}
_JOB_COMMANDS = ("predict JOB", "plan JOB", "sweep JOB", "inspect JOB", "profile links JOB")
_OF_JOBS = tuple(
    OldName(command.rpartition(" ")[0], f"{command} {new}", old)
    for command in (*_JOB_COMMANDS, "data import FILE")
    for old, new in _JOB_OPTIONS.items()
    if not (command.startswith("data") and old.endswith("-function"))
)

# A row with a flag stands before the row of its command: the first that fits is printed.
OLD_NAMES = (
    *_OF_JOBS,
    OldName("simulate", "data simulate FOLDER -o FOLDER", "--all"),
    OldName("simulate", "validate", "--validate"),
    OldName("simulate", "predict JOB --method simulator"),
    OldName("compare", "predict JOB --method all"),
    OldName("model zeng", "predict JOB --method analytic"),
    OldName("model zhang", "predict JOB --method analytic"),
    OldName("model", "predict JOB --method analytic"),
    OldName("whatif", "sweep JOB"),
    OldName("graph show", "inspect JOB"),
    OldName("graph", "inspect JOB"),
    OldName("stalls cost", "plan JOB"),
    OldName("plan", "plan JOB --emit NAME", "--format"),
    OldName("plan", "plan JOB --output FILE.csv", "--csv"),
    OldName("stalls run", "profile run -- SCRIPT"),
    OldName("stalls show", "profile show PROFILE"),
    OldName("stalls fit", "profile links PROFILE..."),
    OldName("stalls predict", "profile links JOB"),
    OldName("stalls data", "jobs build --samples N -o FOLDER"),
    OldName("stalls", "profile --help"),
    OldName("throughput predict", "sweep TRACE"),
    OldName("throughput profile", "trace run WORKLOAD"),
    OldName("throughput import", "trace import FILE..."),
    OldName("throughput platform", "trace link"),
    OldName("throughput", "trace --help"),
    OldName("dataset info", "data list DATASET"),
    OldName("dataset show", "data show DATASET WORKLOAD"),
    OldName("dataset import", "data import FILE --setting SETTING"),
    OldName("dataset build", "data label CAMPAIGN -o FOLDER"),
    OldName("dataset", "data --help"),
    OldName("zoo list", "jobs list"),
    OldName("zoo build", "jobs build WORKLOAD -o FILE"),
    OldName("zoo", "jobs --help"),
    OldName("train", "train -o FOLDER", "--out"),
    OldName("train", "train --set max_epochs=N", "--max-epochs"),
    OldName("train", "train --set patience_epochs=N", "--patience-epochs"),
    OldName("train", "train --set split_seed=N", "--split-seed"),
    OldName("train", "train --set threads=N", "--threads"),
    OldName("transfer", "transfer -o FOLDER", "--out"),
    OldName("transfer", "transfer --set layers=NAMES", "--layers"),
    OldName("transfer", "transfer --set tuned_share=SHARE", "--tuned-share"),
    OldName("transfer", "transfer --set align=on", "--align"),
    OldName("transfer", "transfer --set align=off", "--no-align"),
    OldName("transfer", "transfer --set curve=on", "--curve"),
    OldName("transfer", "transfer --set curve=off", "--no-curve"),
    OldName("transfer", "transfer --set split_seed=N", "--split-seed"),
    OldName("transfer", "transfer --set threads=N", "--threads"),
    OldName("evaluate", "evaluate -o FOLDER", "--work"),
    OldName("evaluate", "evaluate --set max_epochs=N", "--max-epochs"),
    OldName("evaluate", "evaluate --set patience_epochs=N", "--patience-epochs"),
    OldName("evaluate", "evaluate --set threads=N", "--threads"),
    OldName("measure", "measure -o FOLDER", "--out"),
    OldName("measure", "measure $(driple jobs list --list cpu)", "--all"),
    OldName("measure", "measure $(cat FILE)", "--list"),
    OldName("measure", "measure $(driple jobs list --list cpu | head -n N)", "--first"),
    OldName("measure", "measure --set repeat_every=N", "--repeat-every"),
    OldName("measure", "measure --set iterations=N", "--iterations"),
    OldName("measure", "measure --set seconds=S", "--seconds"),
    OldName("measure", "measure --set share=CORES", "--share"),
    OldName("measure", "measure --set tries=N", "--tries"),
    OldName("measure", "measure --set quiet_wait=S", "--quiet-wait"),
)


def new_name(
    arguments: Sequence[str], exists: Callable[[tuple[str, ...], tuple[str, ...]], bool]
) -> str | None:
    """The line for an old command or option; None if the arguments have none.

    Args:
        arguments: as typed after `driple`.
        exists: whether a command (its words) with some options is there.
    """
    before_script = list(arguments[: arguments.index("--")]) if "--" in arguments else arguments
    flags = {word.split("=")[0] for word in before_script if word.startswith("-")}
    for row in OLD_NAMES:
        words = row.old.split()
        if (
            list(before_script[: len(words)]) == words
            and (row.flag is None or row.flag in flags)
            and exists(row.command, row.flags)
        ):
            return row.sentence
    return None
