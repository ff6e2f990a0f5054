"""docs/faults.md says what the tables of this folder hold."""

from faults import page


def test_the_page_is_made_of_the_tables() -> None:
    assert page.PAGE.read_text() == page.page(), "run: python tests/faults/page.py"
