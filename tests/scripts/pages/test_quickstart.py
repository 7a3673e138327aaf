"""The table of extras has a row for each, and stands alone between its marks."""

from scripts.checks.extras import BASE, QUESTIONS, extras
from scripts.pages.quickstart import page, table

RESULTS = {
    name: {"size_mb": 1000 + i, "packages": i, "installed_s": 9, "date": f"2026-01-0{1 + i % 2}"}
    for i, name in enumerate(extras())
}
RESULTS[BASE] |= {"start_s": 0.449, "question": f"driple {QUESTIONS[BASE]}"}
TEXT = """before
<!-- sizes: python -m scripts.pages.quickstart -->
an older table
<!-- end of sizes -->
after
"""


def test_each_extra_has_a_row_with_its_size() -> None:
    rows = table(RESULTS).rows
    assert [row[0].strip("`") for row in rows] == ["none", *extras()[1:]]
    assert rows[0][1:4] == ("1,000", "0", "0.4")
    assert rows[1][1:] == ("1,001", "1", "", "")


def test_the_older_table_goes_and_all_else_stays() -> None:
    text = page(TEXT, RESULTS)
    assert text.startswith("before\n<!-- sizes")
    assert text.endswith("<!-- end of sizes -->\nafter\n")
    assert "an older table" not in text
    assert "Measured on 2026-01-01 and 2026-01-02" in text
    assert page(text, RESULTS) == text
