"""What the results of all questions share: tables whose columns are all that any row has."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from driple.api.results import job_facts, schema_text
from driple.graph.cost import cost_of_graph
from driple.jobs.job import Job, JobOrigin
from driple.jobs.options import JOB_OPTIONS
from tests.api.test_tables import Rows
from tests.simulate.jobs import net

SOME = Rows([{"name": "<a&b>", "share": 0.123456}, {"name": "c", "count": 1234567, "share": None}])


class _Cells(HTMLParser):
    """Texts of heads and cells of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._tag = tag
        if tag in {"th", "td"}:
            self.found.append((tag, ""))

    def handle_data(self, data: str) -> None:
        tag, text = self.found[-1]
        self.found[-1] = (tag, text + data)


def test_a_notebook_shows_every_column_of_every_row() -> None:
    """Four digits of a number, nothing of an unknown one, and no text as markup."""
    parser = _Cells()
    html = SOME._repr_html_()
    parser.feed(html)
    heads = [text for tag, text in parser.found if tag == "th"]
    cells = [text for tag, text in parser.found if tag == "td"]
    assert heads == ["name", "share", "count"]
    assert cells == ["<a&b>", "0.1235", "", "c", "", "1234567"]
    assert "<a&b>" not in html
    assert html.count("<tr>") == html.count("</tr>") == 3


def test_a_frame_has_a_row_for_each_answer() -> None:
    frame = pytest.importorskip("pandas") and SOME.to_frame()
    assert list(frame.columns) == ["name", "share", "count"]
    assert frame["name"].tolist() == ["<a&b>", "c"]


def test_a_result_says_how_many_rows_it_has() -> None:
    assert repr(SOME) == "<Rows: 2 rows; to_frame(), to_dict()>"


def test_facts_of_a_job_are_those_that_the_schema_asks_for() -> None:
    graph = net(4)
    job = Job(source="x.pbtxt", origin=JobOrigin(name="file"), graph=graph,
              cost=cost_of_graph(graph), batch_size=4, samples=50)  # fmt: skip
    facts = dict(job_facts(job))
    assert (facts["source"], facts["kind"], facts["samples"], facts["batch_size"]) == (
        "x.pbtxt", "file", 50, 4)  # fmt: skip
    assert {row.name for row in JOB_OPTIONS if row.stated} <= set(facts)
    schema = json.loads(schema_text())
    properties = schema["$defs"]["job"]["properties"]
    assert set(facts) == set(properties)
