"""What an assay of a configured server leaves behind: evidence in the store, by way of the daemon."""

from __future__ import annotations

from typing import Any

from earnest.assay.model import Report, ToolReport
from earnest.cli.daemon import current, person
from earnest.cli.style import Terminal
from earnest.core import pin


def keep(server: str, report: Report, artefact: str, config: str, support: bool, out: Terminal | None) -> None:
    """Keep violations; with `support` also what speaks for claims, after a person's yes at the terminal. Raises E15xx,
    E1610."""
    tools = [_told(tool) for tool in report.tools if tool.calls]
    broken = sum(one["verdict"] == "violated" for tool in tools for one in tool["hints"].values())
    held = sum(one["verdict"] == "supported" for tool in tools for one in tool["hints"].values())
    if support:
        with person("keeping evidence that speaks for a server") as terminal:
            terminal.line(f"{held} claims of {server} are supported by this assay, {broken} contradicted.")
            terminal.line(
                "Support counts once you verify the server, for these definitions, this artefact and this start alone."
            )
            if terminal.ask("Keep it?", {"y": "yes", "n": "no"}, "n") != "y":
                support = False
    if not broken and not support:
        if out is not None and held:
            out.line(f"{held} claims are supported; `earnest assay {server} --support` keeps that.", "dim")
        return
    with current(config) as daemon:
        done = daemon.call("assay-keep", server=server, tools=tools, tier=report.tier, artefact=artefact, support=support)
    if out is not None:
        count = sum(map(len, done["kept"].values()))
        out.line(f"{count} findings kept (receipt {done['receipt']}); `earnest explain {server}/TOOL` shows them.", "dim")


def _told(tool: ToolReport) -> dict[str, Any]:
    hints = {}
    for hint, found in tool.hints.items():
        if found.verdict == "CONTRADICTED":
            hints[hint] = {"verdict": "violated", "reason": found.reason}
        elif found.verdict in ("SUPPORTED", "SOFT") and found.claimed is not None:
            hints[hint] = {"verdict": "supported", "reason": found.reason}
    return {"name": tool.name, "pin": _pin(tool.definition), "calls": tool.calls, "hints": hints}


def _pin(definition: bytes) -> str:
    return pin.pin(definition) if definition and pin.ambiguity(definition) is None else ""
