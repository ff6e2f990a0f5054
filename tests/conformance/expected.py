"""The checks that are known to fail, read from `expected-failures.toml`, and what a leg's outcome is against them."""

from __future__ import annotations

import tomllib
from pathlib import Path

from conformance.legs import Checks

FILE = Path(__file__).parent / "expected-failures.toml"


def across(leg: str) -> dict[str, tuple[str, list[str]]]:
    """What a leg across eras is expected to lose: scenario to the reason and the checks."""
    found = tomllib.loads(FILE.read_text()).get(leg, {})
    return {scenario: (one["why"], one["checks"]) for scenario, one in found.items()}


def lost(leg: str, within: Checks, through: Checks) -> list[str]:
    """What is not as the file says of a leg across eras, against the same leg within its era."""
    listed = {f"{scenario}: {one}" for scenario, (_, checks) in across(leg).items() for one in checks}
    gone = {check: f"{check[0]}: {check[1]} {check[2]}" for check in within.of("SUCCESS") - through.of("SUCCESS")}
    new = [f"lost: {one}: {through.why.get(check, '')}" for check, one in sorted(gone.items()) if one not in listed]
    failing_too = failing(through) - failing(within) - listed
    new += [f"fails: {one}" for one in sorted(failing_too - set(gone.values()))]
    return new + [f"passes, so take it out of {FILE.name}: {one}" for one in sorted(listed - set(gone.values()))]


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
