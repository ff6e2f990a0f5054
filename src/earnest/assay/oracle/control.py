"""What a server does without being asked: the session in which nothing is called.

Its differences, by path and kind, are no tool's. Never the whole path: real writes to a database that a server also opens at
its start would vanish with it.
"""

from __future__ import annotations

import msgspec

from earnest.assay.model import ServerFinding, ToolUnder
from earnest.assay.observe.effects import Noise
from earnest.assay.observe.masks import masked_path
from earnest.assay.observe.network import here
from earnest.assay.session import Bench, Session
from earnest.core.errors import EarnestError
from earnest.core.hints import raw_from_wire

MOST_TOOLS = 500


class Control(msgspec.Struct, frozen=True):
    """What was learned without a call."""

    tools: tuple[ToolUnder, ...]
    noise: Noise
    findings: tuple[ServerFinding, ...]
    version: str
    name: str


async def control(bench: Bench, patience: float) -> Control:
    """Start the server, wait, end it. Raises E12xx where it does not start, E1954 where it has no tools."""
    async with Session(bench) as session:
        tools = tuple(_tools(await session.listed()))
        info = session.info
        await session.seen()
        await session.wait(patience)
        await session.end()
        changed, events = session.since_start()
    if not tools:
        raise EarnestError("E1954", f"{bench.name} lists no tools, so there is nothing to assay", exit_code=3)
    contacts = frozenset(event.subject for event in events if event.doing in ("name", "connect", "datagram", "request"))
    kinds = frozenset((masked_path(change.path), change.kind) for change in changed)
    outside = sorted(name for name in contacts if not here(name))
    findings = []
    if outside:
        findings.append(ServerFinding("start", f"contacts {', '.join(outside[:6])} by itself, with no tool called", outside[0]))
    return Control(
        tools, Noise(kinds=kinds, contacts=contacts), tuple(findings), str(info.get("version", "")), str(info.get("name", ""))
    )


def _tools(raw: list[bytes]) -> list[ToolUnder]:
    found: dict[str, ToolUnder] = {}
    for definition in raw[:MOST_TOOLS]:
        try:
            value = msgspec.json.decode(definition)
        except msgspec.MsgspecError:
            continue
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            continue
        schema = value.get("inputSchema")
        found.setdefault(
            value["name"],
            ToolUnder(
                value["name"],
                str(value.get("description") or value.get("title") or ""),
                schema if isinstance(schema, dict) else {},
                raw_from_wire(value.get("annotations")),
                definition,
            ),
        )
    return list(found.values())
