"""What the data path has to hold, beside what a run of `measure.py` found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Found = dict[str, Any]


def _ratio(cell: str) -> Callable[[Found], float]:
    return lambda found: float(found["http"]["cells"][cell]["earnest"]["ratio"]["median"])


def _pipes(part: str, depth: str) -> Callable[[Found], float]:
    return lambda found: float(found[part]["earnest"]["cpu"][depth] / found[part]["relay"]["cpu"][depth])


def _flat(found: Found) -> float:
    times = found["decide"]["plain"]
    return float(times["last"] / times["first"])


GATES: list[tuple[str, float, str, Callable[[Found], float]]] = [
    ("CPU of a call by nginx's, 200 bytes, 16 connections", 2.0, "", _ratio("200 bytes, 16 connections")),
    ("CPU of a call by nginx's, 1 MB, 16 connections", 2.0, "", _ratio("1000000 bytes, 16 connections")),
    ("CPU of a call by a relay's, pipes, one at a time", 2.0, "", _pipes("stdio", "depth 1")),
    ("CPU of a call by a relay's, pipes, 16 at a time", 2.0, "", _pipes("stdio", "depth 16")),
    ("a verdict along a track, median", 6.0, "µs", lambda found: found["decide"]["plain"]["along"]),
    ("a verdict along a track with a path, median", 6.0, "µs", lambda found: found["decide"]["path"]["along"]),
    ("a verdict the long way, median", 6.0, "µs", lambda found: found["decide"]["plain"]["judge"]),
    ("last tenth of 10,000 calls by the first", 1.2, "", _flat),
    ("idle daemon", 60.0, "MB", lambda found: found["memory"]["idle"] / 1e6),
    ("an open conversation", 10.0, "kB", lambda found: found["memory"]["conversation"] / 1e3),
    ("growth over 100,000 calls of one client", 10.0, "bytes a call", lambda found: found["memory"]["growth"]),
    ("a warm daemon adds to a server's start", 40.0, "ms", lambda found: found["start"]["added"]),
    ("daemons that 50 shims at once start", 1.0, "", lambda found: float(found["start"]["daemons"])),
    ("a daemon's own start", 500.0, "ms", lambda found: found["start"]["daemon"]),
]  # fmt: skip
"""What, at most how much, unit, and how a run tells it."""


def table(found: Found) -> list[str]:
    """The gates as lines of Markdown; a gate whose part was not measured says so."""
    lines = ["\n## What has to hold\n", "| | at most | measured | |", "|---|---|---|---|"]
    for what, most, unit, told in GATES:
        try:
            value = told(found)
        except (KeyError, ZeroDivisionError):
            lines.append(f"| {what} | {most:g} {unit} | | not measured |")
            continue
        lines.append(f"| {what} | {most:g} {unit} | {value:.2f} {unit} | {'holds' if value <= most else '**missed**'} |")
    return lines
