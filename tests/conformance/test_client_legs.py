"""earnest as the client of the suite's servers: one scenario at a time, in each revision that has it."""

from pathlib import Path

import pytest

from conformance import client, legs
from conformance.expected import verdict

pytestmark = [pytest.mark.real, pytest.mark.slow]

SCENARIOS = {
    "2025-11-25": (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
"""All client scenarios but those of authorization, which is not earnest's toward servers yet."""


async def run(folder: Path, revision: str, scenario: str) -> legs.Checks:
    """One scenario."""
    wanted = ("--scenario", scenario, "--spec-version", revision, "--timeout", "60000")
    async with client.waiting() as command:
        checks = await legs.run_suite(folder, "client", "--command", command, *wanted)
    checks.status = {(scenario, *check[1:]): status for check, status in checks.status.items()}
    return checks


@pytest.mark.parametrize(("revision", "scenario"), [(r, scenario) for r, many in SCENARIOS.items() for scenario in many])
async def test_a_scenarios_server_finds_nothing_wrong_with_earnest(tmp_path: Path, revision: str, scenario: str) -> None:
    checks = await run(tmp_path, revision, scenario)
    assert checks.counts()[0] > 0
    assert verdict(f"client {revision}", checks) == [], checks.output[-3000:]
