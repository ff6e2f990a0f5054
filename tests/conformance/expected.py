"""The checks that are known to fail, read from `expected-failures.toml`, and what a leg's outcome is against them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from conformance.legs import Checks

FILE = Path(__file__).parent / "expected-failures.toml"


def known(leg: str) -> set[str]:
    """The checks of a leg (`server 2025-11-25`) that are expected to fail, each as `scenario: id name`."""
    return {f"{scenario}: {one}" for scenario, many in tomllib.loads(FILE.read_text()).get(leg, {}).items() for one in many}


def failing(checks: Checks) -> set[str]:
    """What failed, in the file's words."""
    return {f"{scenario}: {id} {name}" for scenario, id, name, _ in checks.of("FAILURE")}


def verdict(leg: str, checks: Checks) -> list[str]:
    """What is not as the file says: new failures with the suite's reason, and entries that do not fail any more."""
    why = {f"{scenario}: {id} {name}": text for (scenario, id, name, _), text in checks.why.items()}
    new = [f"fails: {one}: {why.get(one, '')}" for one in sorted(failing(checks) - known(leg))]
    return new + [f"passes, so take it out of {FILE.name}: {one}" for one in sorted(known(leg) - failing(checks))]
