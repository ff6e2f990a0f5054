"""docs/errors.md holds every error code of the source, and none that the source does not know."""

import re
from pathlib import Path

from earnest.cli.reference import error_codes, errors_page

ROOT = Path(__file__).parents[2]


def codes_of_the_source() -> set[str]:
    texts = [path.read_text() for path in (ROOT / "src").rglob("*.py")] + [(ROOT / "bin" / "earnest").read_text()]
    return {code for text in texts for code in re.findall(r"\bE1[0-9]{3}\b", text)}


def test_every_code_has_a_meaning_and_every_meaning_a_code() -> None:
    assert codes_of_the_source() == set(error_codes())


def test_what_to_do_is_said_of_each() -> None:
    for code, (means, do) in error_codes().items():
        assert means.endswith(".") and len(means) > 15 and do.endswith((".", "?")), code
        assert "|" not in means + do, f"{code}: a bar would end the table's cell"


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "errors.md").read_text() == errors_page(), "run: python -m earnest.cli.reference"
    assert all(f"\n| {code} | " in errors_page() for code in error_codes())
