"""The picture of what a call costs, as SVG with no outside part, from what `measure.py` found."""

from __future__ import annotations

import math
from html import escape
from typing import Any

WIDTH, LEFT, ROW, TOP = 860, 190, 26, 64
CLASSES = {"nginx": "b", "haproxy-tcp": "b", "relay": "b", "earnest": "e"}


def rows(found: dict[str, Any]) -> list[tuple[str, list[tuple[str, float]]]]:
    """What is drawn: title of a group, then ways with microseconds a call."""
    groups = []
    cell = found.get("http", {}).get("cells", {}).get("200 bytes, 16 connections", {})
    fast = [(way, one["cpu_us"]["median"]) for way, one in cell.items() if isinstance(one, dict) and "cpu_us" in one]
    peers = found.get("peers", {})
    slow = [
        (way, one["8"]["cpu_us"]["median"])
        for way, one in peers.get("HTTP to HTTP", {}).items()
        if way not in ("nginx", "earnest")
    ]
    if fast or slow:
        groups.append(("HTTP to HTTP, 200 bytes (16 connections; peers at 8)", fast + slow))
    if peers:
        bridged = [(way, one["8"]["cpu_us"]["median"]) for way, one in peers["HTTP to pipes"].items()]
        groups.append(("HTTP to a server on pipes, 8 connections, the server's own time with it", bridged))
        piped = [(way, one["depth 1"]["median"]) for way, one in peers["pipes to pipes"].items()]
        groups.append(("Pipes to pipes, one call at a time", piped))
    return groups


def svg(found: dict[str, Any]) -> str:
    """The whole picture. Lengths are logarithmic, and each bar says its value."""
    groups = rows(found)
    most = max((value for _, ways in groups for _, value in ways), default=10.0)
    scale = (WIDTH - LEFT - 130) / math.log10(max(most, 10.0))
    at = TOP
    parts = []
    for title, ways in groups:
        parts.append(f'<text class="h" x="16" y="{at}">{escape(title)}</text>')
        at += 12
        for way, value in ways:
            length = max(2.0, scale * math.log10(max(value, 1.0)))
            kind = CLASSES.get(way, "p")
            parts.append(f'<text x="{LEFT - 10}" y="{at + 16}" text-anchor="end">{escape(way)}</text>')
            parts.append(f'<rect class="{kind}" x="{LEFT}" y="{at + 4}" width="{length:.1f}" height="17" rx="3"/>')
            parts.append(f'<text class="v" x="{LEFT + length + 8:.1f}" y="{at + 16}">{value:,.0f} µs</text>')
            at += ROW
        at += 34
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {at}" role="img" aria-labelledby="t">'
        '<title id="t">Processor time of one call by way, in microseconds, on a logarithmic scale</title>'
        "<style>svg{background:#fff}text{font:13px system-ui,sans-serif;fill:#333}.h{font-weight:600}.v{fill:#555}"
        ".b{fill:#b9b4a6}.e{fill:#1b7a72}.p{fill:#bf7a2c}"
        "@media(prefers-color-scheme:dark){svg{background:#16191c}text{fill:#ddd}.v{fill:#aaa}.b{fill:#6d6a61}}</style>"
        f'<text x="16" y="28" class="h">Processor time of one call, microseconds (logarithmic)</text>'
    )
    return head + "".join(parts) + "</svg>\n"
