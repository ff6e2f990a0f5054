"""Skips what needs the suite where it is not installed; a run that must be complete (`EARNEST_REQUIRE_REAL`) fails there."""

import os

import pytest

from conformance import legs


@pytest.fixture(autouse=True)
def _suite() -> None:
    if legs.node() is None:
        if os.environ.get("EARNEST_REQUIRE_REAL"):
            pytest.fail("the conformance suite is not installed; run scripts/setup-conformance")
        pytest.skip("the conformance suite is not installed; run scripts/setup-conformance")
