"""Run every leg and write what came out as a page.

python tests/conformance/report.py docs/conformance.md
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import legs
from conformance.expected import across, known
from conformance.relay import Relay
from conformance.test_client_legs import SCENARIOS, run

HEAD = """# Conformance

Made by `make conformance`; not written by hand.

The official suite, `@modelcontextprotocol/conformance` {version}, judges earnest on both sides. **In front of a server**: the
suite talks to a server with everything, on the official Python SDK, once bare and once through `/s/everything/mcp` of a running
`earnest serve`, with the policy on and one rule that allows all. The suite knows of no tokens, so a small relay adds one; no
switch turns tokens off. **As a client**: earnest is put in front of the server of each client scenario and made to use it.
Scenarios of authorization toward servers are not run, because earnest does not do that yet.

Numbers are checks passed / failed. The build breaks where a check passes bare and not through earnest, where one fails that is
not in `tests/conformance/expected-failures.toml`, and where one in that file does not fail any more.

**Across eras**: the same scenarios, with a server that knows only the other era behind earnest. It has the tools that the
scenarios call and asks in its own era's words; whatever arrives was said by the bridge (docs/bridge.md).
"""
BRIDGED = {"2025-11-25": "modern", "2026-07-28": "legacy"}


def table(bare: legs.Checks, through: legs.Checks, heads: tuple[str, str] = ("bare", "through earnest")) -> list[str]:
    """One revision's server leg."""
    lines = [f"| scenario | {heads[0]} | {heads[1]} |", "|---|---|---|"]
    for scenario in through.scenarios:
        (passed, failed), (also, not_also) = bare.counts(scenario), through.counts(scenario)
        lines.append(f"| `{scenario}` | {passed} / {failed} | {also} / {not_also} |")
    (passed, failed), (also, not_also) = bare.counts(), through.counts()
    return [*lines, f"| **all** | **{passed} / {failed}** | **{also} / {not_also}** |", ""]


def reasons(revision: str) -> list[str]:
    """What cannot be bridged of a revision's scenarios."""
    lines = ["| what is lost | why, and what happens then |", "|---|---|"]
    for scenario, (why, checks) in across(f"cross {revision}").items():
        lines.append(f"| `{scenario}`: {', '.join(one.split()[-1] for one in checks)} | {why} |")
    return [*lines, ""]


async def page() -> str:
    """The whole page."""
    version = json.loads((legs.SUITE / "package.json").read_text())["version"]
    parts = [HEAD.format(version=version)]
    crossed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with (
            legs.everything() as url,
            legs.everything("modern") as modern,
            legs.everything("legacy") as legacy,
            legs.gateway(
                folder / "home",
                {
                    name: f"url = {json.dumps(where)}"
                    for name, where in (("everything", url), ("modern", modern), ("legacy", legacy))
                },
            ) as gateway,
            Relay(gateway.port, gateway.token) as relay,
        ):
            for revision in legs.REVISIONS:
                place = f"http://localhost:{relay.port}/s/everything/mcp"
                wanted = ("--requirements", revision)
                bare = await legs.run_suite(folder / "bare" / revision, "server", "--url", url, *wanted)
                through = await legs.run_suite(folder / "through" / revision, "server", "--url", place, *wanted)
                parts += [f"## Server, {revision}", "", *table(bare, through)]
                place = f"http://localhost:{relay.port}/s/{BRIDGED[revision]}/mcp"
                crossing = await legs.run_suite(folder / "across" / revision, "server", "--url", place, *wanted)
                crossed += [f"## Across eras: scenarios of {revision}, a server that is {BRIDGED[revision]} alone", ""]
                crossed += [*table(bare, crossing, ("within the era", "across")), *reasons(revision)]
                failing = known(f"server {revision}")
                if failing:
                    scenarios = sorted({one.partition(":")[0] for one in failing})
                    parts += ["Expected to fail, in front of the bare server as well: " + ", ".join(scenarios) + ".", ""]
        parts += crossed
        for revision, scenarios in SCENARIOS.items():
            parts += [f"## Client, {revision}", "", "| scenario | passed / failed |", "|---|---|"]
            for scenario in scenarios:
                checks = await run(folder / "client" / revision / scenario, revision, scenario)
                passed, failed = checks.counts()
                parts.append(f"| `{scenario}` | {passed} / {failed} |")
            parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    written = asyncio.run(page())
    Path(sys.argv[1]).write_text(written)
