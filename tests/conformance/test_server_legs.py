"""earnest in front of a server with everything passes exactly what that server passes bare, in both eras."""

from pathlib import Path

import pytest

from conformance import legs
from conformance.expected import lost, verdict
from conformance.relay import Relay
from servers.client import HttpClient

pytestmark = [pytest.mark.real, pytest.mark.slow]

PASSES = {"2025-11-25": 84, "2026-07-28": 169}
"""Checks that the bare server passes; fewer would mean that the suite was not run whole."""


@pytest.mark.parametrize("revision", legs.REVISIONS)
async def test_a_server_passes_through_earnest_what_it_passes_bare(tmp_path: Path, revision: str) -> None:
    async with legs.everything() as url, legs.gateway(tmp_path / "home", {"everything": f'url = "{url}"'}) as gateway:
        bare = await legs.run_suite(tmp_path / "bare", "server", "--url", url, "--requirements", revision)
        assert bare.counts()[0] == PASSES[revision]
        async with Relay(gateway.port, gateway.token) as relay:
            through = f"http://localhost:{relay.port}/s/everything/mcp"
            checks = await legs.run_suite(tmp_path / "through", "server", "--url", through, "--requirements", revision)
    lost = bare.of("SUCCESS") - checks.of("SUCCESS")
    assert not lost, {check: checks.why.get(check, "") for check in lost}
    assert verdict(f"server {revision}", checks) == []


async def test_a_server_of_the_other_era_passes_through_the_bridge_all_that_can_be_said_there(tmp_path: Path) -> None:
    bridged = {"2025-11-25": "modern", "2026-07-28": "legacy"}
    async with (
        legs.everything() as url,
        legs.everything("modern") as modern,
        legs.everything("legacy") as legacy,
        legs.gateway(tmp_path / "home", {"modern": f'url = "{modern}"', "legacy": f'url = "{legacy}"'}) as gateway,
        Relay(gateway.port, gateway.token) as relay,
    ):
        for revision, name in bridged.items():
            wanted = ("--requirements", revision)
            within = await legs.run_suite(tmp_path / "within" / revision, "server", "--url", url, *wanted)
            place = f"http://localhost:{relay.port}/s/{name}/mcp"
            across = await legs.run_suite(tmp_path / "across" / revision, "server", "--url", place, *wanted)
            assert set(within.scenarios) == set(across.scenarios)
            assert lost(f"cross {revision}", within, across) == []


async def test_the_servers_of_one_era_know_no_other() -> None:
    for only, other in (("modern", "legacy"), ("legacy", "modern")):
        async with legs.everything(only) as url:
            for era in (only, other):
                client = HttpClient(url)
                assert ("result" in await client.open(era)) is (era == only)
                await client.close()


async def test_without_the_relays_token_the_suite_gets_nowhere(tmp_path: Path) -> None:
    async with legs.gateway(tmp_path / "home", {"everything": 'url = "http://127.0.0.1:9/mcp"'}) as gateway:
        bare = f"http://localhost:{gateway.port}/s/everything/mcp"
        checks = await legs.run_suite(tmp_path / "bare", "server", "--url", bare, "--scenario", "ping")
    assert checks.counts()[0] <= 1 and checks.of("FAILURE")
