"""Write docs/reliability.md, a table of the checks that were run and what they gave.

    python -m scripts.pages.reliability [--check]

results of scripts/checks, each with its date, and reliability.in.md -> docs/reliability.md
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.checks.compared import SIX_DIGITS
from scripts.settings.shipped import DOCS, ROOT
from scripts.studies.kit.page import fill
from scripts.studies.kit.written import Table, options_of, written

__all__ = ["Row", "main", "page", "rows"]

CHECKS = ROOT / "scripts" / "checks"
TEMPLATE = Path(__file__).with_name("reliability.in.md")
PAGE = DOCS / "reliability.md"
_NAMES = {
    "predict-jobs": "`predict --jobs`",
    "simulate": "`data simulate`",
    "train": "`train`",
    "evaluate": "`evaluate`",
    "transfer": "`transfer`",
    "label": "`data label`",
    "measure": "`measure`",
    "record": "`record`",
}
# By what is compared; what a measurement writes differs each time.
_EQUAL = {
    "bytes": "all equal to the byte",
    "names": "all with the same files, nothing runs on, killed records are readable",
}


class Row(NamedTuple):
    """A line of the table: what was tried, what came of it, the command and its date."""

    tried: str
    result: str
    command: str
    date: str


def rows(read: Mapping[str, Any]) -> Iterator[Row]:
    """All lines.

    Args:
        read: content of each result, by the name of its file without ending.
    """
    yield _damaged("files of each of {} readers, damaged", read["mutate_files"], "mutate_files")
    yield _damaged("inputs of each of {} parsers, damaged", read["fuzz_parsers"], "fuzz_parsers")
    for name, kills in read["kills"].items():
        equal = _all_or("fault", len(kills["faults"]), _EQUAL[kills["compared"]])
        yield Row(
            f"{_NAMES[name]} killed at {kills['kills']} random moments and started again",
            f"{kills['runs']} runs, {equal}",
            f"kills {name}",
            kills["date"],
        )
    chaos = read["chaos"]
    yield Row(
        f"{chaos['nodes_killed']} nodes of Ray killed in {sum(chaos['rounds'].values())} runs",
        _all_or("differs", chaos["failed"], "all results equal to the byte, each there once"),
        "chaos",
        chaos["date"],
    )
    web = read["web_requests"]
    yield Row(
        f"{web['requests']:,} requests to the server, drawn from its own description",
        _all_or("finding", len(web["findings"]), "no finding"),
        "web_requests",
        web["date"],
    )
    load = read["web_load"]
    answers = ", ".join(f"{count} with {status}" for status, count in load["by_status"].items())
    yield Row(
        f"{load['connections']:,} connections to the server at once",
        f"{answers}; {_all_or('lost', len(load['findings']), 'none lost')}; 99 % within "
        f"{load['p99_s']:.1f} s",
        "web_load",
        load["date"],
    )
    times = read["web_times"]
    asked = times["questions"]
    yield Row(
        f"{asked['read_job']} questions to the server about a job that is read, {asked['graph']} "
        f"with a graph of examples that it reads anew, one after another; {asked['batch']} in a "
        "batch",
        _all_or(
            "finding",
            len(times["findings"]),
            f"99 % within {times['read_job_p99_s']:.2f} s and {times['graph_p99_s']:.2f} s; "
            f"{times['batch_per_s']} predictions a second; 0.1 s, 1 s and 100 are the aims",
        ),
        "web_times",
        times["date"],
    )
    share = read["share"]
    low, high = share["interval_pct"]
    yield Row(
        f"{share['sample'] - share['not_run']} random mutants of {', '.join(share['packages'])}",
        f"tests of the same module notice {share['killed_pct']:.0f} % ({low:.0f} to {high:.0f}, "
        "95 % interval); 90 % is the aim",
        "mutation_share",
        share["date"],
    )
    pythons = [*read["pythons"].values()]
    versions = ", ".join(python["version"] for python in pythons)
    yield Row(
        f"wheel in a clean environment of Python {versions}",
        f"{min(python['commands'] for python in pythons)} commands of each answer",
        "pythons",
        max(python["date"] for python in pythons),
    )
    for kind, tried in read.get("dependencies", {}).items():
        yield Row(
            f"wheel with the {kind} versions of {len(tried['versions'])} dependencies",
            f"{tried['commands']} commands answer, {tried['tests']['passed']} tests pass",
            f"dependencies {kind}",
            tried["date"],
        )
    readme = read["readme_commands"]
    yield Row(
        f"{len(readme['commands'])} commands of the README as typed, in a clean environment",
        f"all end well; {readme['without_downloads_s']} s without downloads, installing included",
        "readme_commands",
        readme["date"],
    )
    stages = [*read["rebuild"].values()]
    yield Row(
        f"a shipped file of each of {len(stages)} stages deleted and made again",
        _rebuilt(Counter(stage["result"] for stage in stages)),
        "rebuild",
        max(stage["date"] for stage in stages),
    )


def _rebuilt(results: Counter[str]) -> str:
    """How many stages brought their file back; a stage of hours makes some rows of its file."""
    alike = sum(
        count
        for result, count in results.items()
        if result.startswith("equal ") and result != SIX_DIGITS
    )
    words = [
        f"{results['equal']} equal to the byte",
        f"{alike} equal in the rows of a sample, or but for dates and seconds" if alike else "",
        f"{results[SIX_DIGITS]} {SIX_DIGITS}" if results[SIX_DIGITS] else "",
        f"{results['not run']} not run here" if results["not run"] else "",
        *(f"**{results[bad]}: {bad}**" for bad in ("differs", "failed") if results[bad]),
    ]
    return "; ".join(filter(None, words))


def _damaged(what: str, readers: Mapping[str, Any], command: str) -> Row:
    results = [*readers.values()]
    counts = [result.get("files", result.get("inputs")) for result in results]
    least, most = min(counts), max(counts)
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return Row(
        f"{each} {what.format(len(results))}",
        _all_or(
            "fault",
            sum(len(result["faults"]) for result in results),
            "only refusals and answers, within the limits",
        ),
        command,
        max(result["date"] for result in results),
    )


def _all_or(word: str, count: int, well: str) -> str:
    return f"**{count}: {word}**" if count else well


def page(read: Mapping[str, Any]) -> str:
    """The page."""
    cells = [
        (row.tried, row.result, f"`python -m scripts.checks.{row.command}`", row.date)
        for row in rows(read)
    ]
    table = Table(("tried", "result", "command", "date"), cells)
    return fill(TEMPLATE.read_text(encoding="utf-8"), {"table": table.markdown()})


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or check it."""
    options = options_of(__doc__).parse_args(argv)
    files = [*CHECKS.glob("*.json"), CHECKS / "mutation" / "share.json"]
    read = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    pages = {PAGE: page(read)}
    return written(pages, check=options.check, program="python -m scripts.pages.reliability")


if __name__ == "__main__":
    sys.exit(main())
