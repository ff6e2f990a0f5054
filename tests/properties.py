"""How many examples a property is held to."""

import os

SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"


def examples(suite: int) -> int:
    """So many in the suite, fifty times as many in a search (`tests/conftest.py`)."""
    return suite * 50 if SEARCH else suite
