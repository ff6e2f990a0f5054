"""docs/census.md: what is made from the code is current, and its figures are those of the dataset that is kept beside it."""

from pathlib import Path

import pytest

from earnest.census.dataset import about, opened
from earnest.census.figures import figures, query
from earnest.census.page import filled, made, main
from earnest.census.schema import TABLES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "census.md"
KEPT = ROOT / "examples" / "census" / "dataset"


def test_the_page_is_current():
    text = PAGE.read_text("utf-8")
    assert filled(text, made()) == text, "run: python -m earnest.census.page docs/census.md"


def test_the_page_tells_the_figures_of_the_kept_dataset():
    text = PAGE.read_text("utf-8")
    with opened(KEPT) as connection:
        (total,) = figures(connection, query("totals")).dicts()
    head = next(line for line in text.splitlines() if line.startswith("| tools, unless said otherwise"))
    column = [cell.strip() for cell in head.split("|")].index(total["cohort"])
    said = {}
    for line in text[text.index(head) :].splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > column:
            said[cells[1]] = cells[column]
    for label, key in (("tools", "tools"), ("with at least one hint", "hinted"), ("readOnlyHint true", "readonly_true")):
        assert said[label] == f"{total[key]:,}"
    assert f"{total['answered']} of {total['servers']} servers answered" in text


def test_the_kept_dataset_is_small_whole_and_of_forty_live_servers():
    files = list(KEPT.iterdir())
    assert sum(path.stat().st_size for path in files) < 2_000_000
    facts = about(KEPT)
    assert facts.cohorts == {"live": 40} and set(facts.sha256) == set(TABLES)
    with opened(KEPT) as connection:
        asked = "SELECT count(*), count(*) FILTER (status = 'answered'), count(DISTINCT containment) FROM servers"
        servers, answered, held = connection.execute(asked).fetchone()
        empty = connection.execute("SELECT count(*) FROM tools WHERE licence = '' OR provenance = ''").fetchone()[0]
        rows = " ".join(str(row) for row in connection.execute("FROM servers").fetchall())
    assert (servers, answered, held, empty) == (40, 40, 1, 0)
    assert "/root" not in rows and "/tmp/" not in rows


def test_the_command_makes_the_parts_it_is_given(tmp_path, capsys):
    page = tmp_path / "page.md"
    names = ("schema", "queries", "grade", "figures")
    page.write_text("\n".join(f"<!-- begin {name} -->\nold\n<!-- end {name} -->" for name in names))
    assert main([str(page)]) == 0 and page.read_text().count("\nold\n") == 1, "figures stay without a dataset"
    assert main([str(page), str(KEPT)]) == 0
    assert "\nold\n" not in page.read_text() and "| reference survey | live |" in page.read_text()
    assert main([]) == 2
    with pytest.raises(ValueError, match="no place for schema"):
        filled("nothing", made())
