"""`earnest assay doctor`: which sandbox this machine gives, what was tried, how to get a better one."""

from __future__ import annotations

import json

import msgspec

from earnest.cli.daemon import output
from earnest.cli.options import Json
from earnest.sandbox import tiers
from earnest.sandbox.box import Sight

_SEEN: dict[str, str] = {
    "everywhere": "files everywhere",
    "granted": "files in its own folders",
    "none": "no files",
}


def doctor(as_json: Json = False) -> int:
    """Try what sandboxes are made of, by doing it, and say which tier this machine gives. Exit code 1 if there is none.

    \b
    Examples:
      earnest assay doctor
      earnest assay doctor --json
    """
    found, parts = tiers.tried(), tiers.mechanisms()
    best = next((tier for tier in found if tier.works), None)
    if as_json:
        said = {
            "tier": best.name if best else None,
            "tiers": msgspec.to_builtins(found),
            "mechanisms": msgspec.to_builtins(parts),
        }
        print(json.dumps(said, ensure_ascii=False))
        return 0 if best else 1
    terminal = output()
    if parts:
        terminal.table(
            ("mechanism", "works", "needed by", "detail"),
            [(part.name, "yes" if part.works else "NO", ", ".join(part.tiers), part.detail) for part in parts],
        )
        terminal.line()
    for tier in found:
        terminal.line(f"tier {tier.letter} ({tier.name}): {'works' if tier.works else 'no: ' + tier.why}")
        if tier.works:
            terminal.prose(f"  sees {_sight(tiers.choose(tier.name).sight)}")
    terminal.line()
    if best is None:
        terminal.line("Nothing can be run in a sandbox here.", "bad")
    else:
        terminal.line(f"Assays run in tier {best.letter}.", "good")
    for remedy in dict.fromkeys(tier.remedy for tier in found if tier.remedy):
        terminal.prose(remedy)
    return 0 if best else 1


def _sight(sight: Sight) -> str:
    others = (("network", sight.network), ("programs", sight.processes), ("sockets", sight.sockets))
    blind = [name for name, seen in others if not seen]
    parts = [_SEEN[sight.files], *(name for name, seen in others if seen)]
    return ", ".join(parts) + (f"; not: {', '.join(blind)}" if blind else "")
