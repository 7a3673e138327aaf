"""How many commands and options the command line has, and that a name has one meaning.

Typer's tree  ->  (command, option, help)  ->  counts, and names with two meanings

`python -m scripts.checks.count_options` prints the counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import typer.main

from driple.cli.main import app
from scripts.checks.count_options import command_options, count_lines, job_flags
from tests.cli.test_numbers import commands

# The numbers today; lower them when an option goes. The options of a JOB are rows of one table
# (driple/jobs/options.py) that every command with one takes.
MOST_COMMANDS, MOST_OPTIONS, MOST_JOB_OPTIONS, MOST_NAMES = 27, 243, 13, 71

# Each name with what every help text of it contains: words of its one meaning.
MEANING = {
    "--against": ("names with commas", "scored beside"),
    "--all": ("every workload",),
    "--bandwidth": ("links in bit/s", "link in bit/s"),
    "--catalog": ("your own", "of your own"),
    "--emit": ("job file for a scheduler",),
    "--engine": ("processes of this machine (--set processes)",),
    "--explain": ("parts of the step", "where a step's time goes"),
    "--batch-size": ("samples of a",),
    "--activation-checkpointing": ("of a model",),
    "--compile": ("torch.compile",),
    "--data": ("of your own model",),
    "--devices": ("devices",),
    "--dataset": ("data set folder",),
    "--datasets": ("folder",),
    "--html": ("page of the answer",),
    "--input": ("shape of an input",),
    "--json": ("one JSON",),
    "--link": ("driple trace link",),
    "--link-bandwidth": ("bus bandwidth of a large all-reduce",),
    "--machine": ("your machine",),
    "--measured": ("measured beside",),
    "--list": ("paper", "cpu"),
    "--grad-accumulation": ("passes per update",),
    "--lora": ("LoRA adapters",),
    "--weights": ("quantized",),
    "--loss": ("outputs and labels",),
    "--optimizer": ("of a model",),
    "--output": ("to write",),
    "--placement": ("variables on servers",),
    "--plot": ("draw ",),
    "--preset": ("inspector",),
    "--processes": ("parallel processes",),
    "--repeats": ("repeated measurements",),
    "--samples": ("samples",),
    "--seed": ("random seed",),
    "--set": ("change a value",),
    "--scheme": ("share the work",),
    "--setting": ("setting", "ring"),
    "--steps": ("steps",),
    "--precision": ("of a model",),
    "--seq-len": ("tokens of a sample",),
    "--training-config": ("training arguments",),
}
SHORT = {"-o": "--output", "-h": "--help"}


def options() -> Iterator[tuple[str, str, str]]:
    """(command, long name, help) of every option."""
    for path, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            if parameter.opts[0].startswith("-"):
                yield " ".join(path), max(parameter.opts, key=len), parameter.help or ""


def by_name() -> dict[str, list[tuple[str, str]]]:
    """Commands and help texts of each name."""
    texts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for command, name, words in options():
        texts[name].append((command, words))
    return texts


def test_the_numbers_do_not_grow() -> None:
    rows, counted = command_options(), "\n".join(count_lines())
    assert len(rows) <= MOST_COMMANDS, counted
    assert sum(len(row.options) for row in rows) <= MOST_OPTIONS, counted
    assert len(job_flags()) <= MOST_JOB_OPTIONS, counted
    assert len({name for row in rows for name in row.options}) <= MOST_NAMES, counted


def test_an_option_of_a_command_counts_once() -> None:
    """Short names, `--help` and values of `--set` do not count; options of a JOB do, and once."""
    counted = {row.name: row for row in command_options()}
    assert counted["list"].options == ("--catalog", "--json")
    assert counted["train"].options[3:] == ("--output", "--set", "--json")
    assert "max_epochs" in counted["train"].set_names
    assert counted["predict"].takes_job
    assert not counted["data import"].takes_job
    total = sum(len(row.options) for row in counted.values())
    with_job = sum(row.takes_job for row in counted.values())
    assert f"{total - (with_job - 1) * len(job_flags())} options with the" in count_lines()[-1]


def test_a_name_has_one_meaning() -> None:
    """Every name of several commands has its words here, and every help text contains them."""
    shared = {name: uses for name, uses in by_name().items() if len(uses) > 1}
    assert not set(shared) - set(MEANING), "give the meaning of a new shared name"
    wrong = [
        f"{command} {name}: {words}"
        for name, uses in shared.items()
        for command, words in uses
        if not any(meant in words for meant in MEANING[name])
    ]
    assert not wrong


def test_short_names_and_help_texts() -> None:
    """A short name belongs to one long name; every option is explained."""
    for _, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            for name in parameter.opts:
                if name.startswith("-") and not name.startswith("--"):
                    assert SHORT[name] in parameter.opts
    assert not [f"{command} {name}" for command, name, words in options() if not words]


def test_every_command_has_json() -> None:
    given: dict[str, set[str]] = defaultdict(set)
    for command, name, _ in options():
        given[command].add(name)
    lacking: list[Any] = [command for command, names in given.items() if "--json" not in names]
    assert lacking == ["serve"], "a server, whose answers are JSON already"
