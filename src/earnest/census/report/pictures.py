"""Pictures as data: rows of bars, columns of servers. The templates draw them as inline SVG, each with its table.

Bars are SVG without text, stretched to the width there is; labels and values are text of the page beside them, so they stay
legible on a small screen and can be read aloud, copied and enlarged. Colours are classes of the style sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from earnest.census.risk import CLASSES

WIRE: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
RISK: Final = {
    "reads_closed": "reads, closed world",
    "reads_open": "reads, open world",
    "adds_closed": "adds, closed world",
    "adds_open": "adds, open world",
    "destroys_closed": "destroys, closed world",
    "destroys_open": "destroys, open world",
}
VIEWS: Final = {
    "untrusted": "server nobody trusts",
    "claimed": "claims believed",
    "checked": "believed, but not against its own words",
}
_MANY: Final = 200
"""Columns above which neighbours that look alike are drawn as one."""


class Part(msgspec.Struct, frozen=True):
    """A part of a bar: `x` and `width` in percent, `kind` its class, `text` its value (empty where there is no room)."""

    kind: str
    x: float
    width: float
    text: str = ""


class Row(msgspec.Struct, frozen=True):
    """A bar with its label and its value."""

    label: str
    value: str
    parts: tuple[Part, ...]
    cells: str = ""
    """For combinations: four letters out of T, F and -."""
    href: str = ""


class Picture(msgspec.Struct, frozen=True):
    """A picture: bars (`rows`) or `columns`; `legend` names kinds; `head` and `table` are the same as text."""

    id: str
    title: str
    about: str
    legend: tuple[tuple[str, str], ...]
    head: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...] = ()
    columns: tuple[tuple[Part, ...], ...] = ()
    count: int = 0
    """Of what `columns` stand for."""
    said: str = ""
    """The gist in one sentence, for who does not see it."""


def hints(found: Sequence[Mapping[str, Any]]) -> Picture:
    """Set, true, false, for each hint."""
    rows, table = [], []
    for hint, wire in WIRE.items():
        states = {row["state"]: row["tools"] for row in found if row["hint"] == hint}
        total = sum(states.values())
        rows.append(Row(wire, "", _stack([(state, states.get(state, 0)) for state in ("true", "false", "absent")], total)))
        table.append((wire, *(_of(states.get(state, 0), total) for state in ("true", "false", "absent"))))
    first = {row["state"]: row["share"] for row in found if row["hint"] == "read_only"}
    return Picture(
        "hints",
        "What is said, and what is not",
        "Of all tools, how many set each hint to true, to false, or not at all. Absent means the specification's default: not "
        "read-only, destructive, not idempotent, open world.",
        (("true", "true"), ("false", "false"), ("absent", "absent")),
        ("hint", "true", "false", "absent"),
        tuple(table),
        rows=tuple(rows),
        said=f"readOnlyHint is set on {1 - first.get('absent', 0.0):.0%} of tools.",
    )


def coverage(found: Sequence[Mapping[str, Any]], links: Mapping[str, str]) -> Picture:
    """One column a server: complete, some, nothing."""
    ordered = sorted(found, key=lambda row: (-row["complete"] / row["tools"], -row["hinted"] / row["tools"], -row["tools"]))
    width = 100.0 / max(len(ordered), 1)
    columns: list[tuple[Part, ...]] = []
    for place, row in enumerate(ordered):
        shares = (row["complete"], max(row["hinted"] - row["complete"], 0), row["tools"] - row["hinted"])
        parts = list(zip(("complete", "some", "absent"), shares, strict=True))
        column = _column(place * width, width, parts, row["tools"])
        if columns and len(ordered) > _MANY and columns[-1][1:] == column[1:]:
            before = columns.pop()[0]
            column = (Part("place", before.x, round(before.width + width, 4)), *column[1:])
        columns.append(column)
    full = sum(row["complete"] == row["tools"] for row in ordered)
    none = sum(row["hinted"] == 0 for row in ordered)
    return Picture(
        "coverage",
        "Coverage by server",
        "One column a server. Complete: every hint that means something is set (readOnlyHint and openWorldHint; unless read-"
        "only, also destructiveHint and idempotentHint).",
        (("complete", "complete"), ("some", "at least one hint"), ("absent", "nothing")),
        ("server", "tools", "complete", "at least one hint", "grade"),
        tuple(
            (row["server"], str(row["tools"]), str(row["complete"]), str(row["hinted"]), row["grade"] or "–") for row in ordered
        ),
        columns=tuple(columns),
        count=len(ordered),
        said=f"{full} of {len(ordered)} servers are complete, {none} say nothing at all.",
    )


def combinations(found: Sequence[Mapping[str, Any]], shown: int = 12) -> Picture:
    """The most frequent combinations of the four hints."""
    total = sum(row["tools"] for row in found)
    most = max((row["tools"] for row in found), default=1)
    rows = [
        Row("", f"{row['tools']}", _stack([("bar", row["tools"])], most, label=False), cells=row["combination"])
        for row in found[:shown]
    ]
    return Picture(
        "combinations",
        "Combinations",
        "The most frequent ways to fill in the four hints, in the order read-only, destructive, idempotent, open world.",
        (("true", "true"), ("false", "false"), ("absent", "absent")),
        ("read-only, destructive, idempotent, open world", "tools", "share", "servers"),
        tuple(
            (_spelled(row["combination"]), str(row["tools"]), _share(row["tools"], total), str(row["servers"])) for row in found
        ),
        rows=tuple(rows),
        said=f"The most frequent is {_spelled(found[0]['combination'])}." if found else "",
    )


def eras(found: Sequence[Mapping[str, Any]]) -> Picture:
    """Versions agreed on, and who knows the modern era."""
    total = sum(row["servers"] for row in found)
    kinds = {"both eras": "true", "modern only": "complete", "legacy only": "some", "not asked": "absent"}
    versions = list(dict.fromkeys(row["protocol"] for row in found))
    rows = []
    for version in versions:
        parts = {row["eras"]: row["servers"] for row in found if row["protocol"] == version}
        count = sum(parts.values())
        rows.append(Row(version, f"{count}", _stack([(kinds[name], parts.get(name, 0)) for name in kinds], total)))
    both = sum(row["servers"] for row in found if row["eras"] in ("both eras", "modern only"))
    return Picture(
        "eras",
        "Era adoption",
        "Which version servers agree on when they are asked for 2025-11-25, and whether they also answer as servers of "
        "2026-07-28.",
        tuple((kind, name) for name, kind in kinds.items() if any(row["eras"] == name for row in found)),
        ("version agreed on", "eras", "servers", "same tools in both"),
        tuple((row["protocol"], row["eras"], str(row["servers"]), str(row["same_tools_in_both"])) for row in found),
        rows=tuple(rows),
        said=f"{both} of {total} servers know 2026-07-28.",
    )


def risk(found: Sequence[Mapping[str, Any]]) -> Picture:
    """Risk classes in three views."""
    rows, table = [], []
    for view, label in VIEWS.items():
        counts = {row["class"]: row["tools"] for row in found if row["view"] == view}
        total = sum(counts.values())
        rows.append(Row(label, "", _stack([(name, counts.get(name, 0)) for name in CLASSES], total)))
        table.append((label, *(_of(counts.get(name, 0), total) for name in CLASSES)))
    moved = {
        view: sum(row["tools"] for row in found if row["view"] == view and row["class"] == "destroys_open") for view in VIEWS
    }
    return Picture(
        "risk",
        "Risk classes",
        "What a tool may do at worst, as earnest resolves it: if nothing is believed where it lowers risk, if claims are "
        "believed, and if those are left out that the tool's own words contradict with high confidence.",
        tuple(RISK.items()),
        ("view", *RISK.values()),
        tuple(table),
        rows=tuple(rows),
        said=f"Believed, {moved['claimed']} tools may still destroy in an open world.",
    )


def findings(found: Sequence[Mapping[str, Any]], shown: int = 14) -> Picture:
    """Lint findings by audit, with their confidence."""
    audits: dict[str, dict[str, int]] = {}
    for row in found:
        audits.setdefault(row["audit"], {}).setdefault(row["confidence"], 0)
        audits[row["audit"]][row["confidence"]] += row["findings"]
    # What is sure comes first; a missing hint is the picture above.
    order = sorted(audits, key=lambda name: [-audits[name].get(one, 0) for one in ("high", "medium", "low")])
    order = [name for name in order if name != "missing-hint"]
    most = max((sum(audits[name].values()) for name in order), default=1)
    rows = [
        Row(
            name,
            f"{sum(audits[name].values())}",
            _stack([(one, audits[name].get(one, 0)) for one in ("high", "medium", "low")], most, label=False),
        )
        for name in order[:shown]
    ]
    return Picture(
        "findings",
        "Lint findings",
        "What earnest lint says of these definitions, by audit and confidence. Missing hints are counted above, not here.",
        (("high", "high confidence"), ("medium", "medium"), ("low", "low")),
        ("audit", "severity", "confidence", "findings", "servers"),
        tuple((row["audit"], row["severity"], row["confidence"], str(row["findings"]), str(row["servers"])) for row in found),
        rows=tuple(rows),
        said=f"{sum(audits[name].get('high', 0) for name in order)} findings have high confidence.",
    )


def contradictions(found: Sequence[Mapping[str, Any]], shown: int = 10) -> Picture:
    """Claims against their own words."""
    most = max((row["high"] + row["medium"] for row in found), default=1)
    rows = [
        Row(
            f"{row['audit']} · {WIRE.get(row['hint'], row['hint'])}",
            f"{row['high'] + row['medium']}",
            _stack([(f"{row['side']}-high", row["high"]), (f"{row['side']}-medium", row["medium"])], most, label=False),
        )
        for row in found[:shown]
    ]
    legend = (
        ("understates-high", "claims less than it does, high confidence"),
        ("understates-medium", "medium"),
        ("overstates-high", "claims more than it does, high confidence"),
        ("overstates-medium", "medium"),
    )
    return Picture(
        "contradictions",
        "Most common contradictions",
        "Hints that are set, against what the same definition says in words. Only what the words give away: a server whose "
        "description lies as its hints do is not found this way.",
        legend,
        ("audit", "hint", "the claim", "high", "medium", "servers", "example"),
        tuple(
            (
                row["audit"],
                WIRE.get(row["hint"], row["hint"]),
                row["side"],
                str(row["high"]),
                str(row["medium"]),
                str(row["servers"]),
                row["example"] or "",
            )
            for row in found
        ),
        rows=tuple(rows),
        said=f"{sum(row['high'] + row['medium'] for row in found)} contradictions in all.",
    )


def grades(found: Sequence[Mapping[str, Any]]) -> Picture:
    """Servers by grade."""
    counts = {row["grade"]: row["servers"] for row in found}
    most = max(counts.values(), default=1)
    return Picture(
        "grades",
        "Grades",
        "How completely a server says what its tools do, and whether its own words agree. The formula stands with the method.",
        (),
        ("grade", "servers", "tools", "mean score"),
        tuple((row["grade"], str(row["servers"]), str(row["tools"]), f"{row['mean_score']:g}") for row in found),
        rows=tuple(
            Row(letter, f"{counts.get(letter, 0)}", _stack([(f"grade-{letter}", counts.get(letter, 0))], most, label=False))
            for letter in "ABCDE"
        ),
        said=f"{counts.get('A', 0)} of {sum(counts.values())} graded servers have an A.",
    )


def drift(counts: Mapping[str, int], unchanged: int, table: Iterable[tuple[str, ...]], about: str) -> Picture:
    """What changed between two dates, by class."""
    # What did not change is told in words: beside it no change would show.
    kinds = {"neutral": "some", "tightening": "true", "loosening": "false", "added": "understates-high", "removed": "bar"}
    most = max([*(counts.get(name, 0) for name in kinds), 1])
    return Picture(
        "drift",
        "Drift between two dates",
        about,
        (),
        ("server", "tool", "change", "hints"),
        tuple(table),
        rows=tuple(
            Row(name, f"{counts.get(name, 0)}", _stack([(kind, counts.get(name, 0))], most, label=False))
            for name, kind in kinds.items()
        ),
        said=f"{sum(counts.values())} tools differ, {unchanged} do not.",
    )


def _stack(parts: Sequence[tuple[str, int]], total: int, *, label: bool = True) -> tuple[Part, ...]:
    made = []
    at = 0.0
    for kind, count in parts:
        width = 100.0 * count / total if total else 0.0
        if width > 0:
            made.append(Part(kind, round(at, 3), round(width, 3), _share(count, total) if label else ""))
        at += width
    return tuple(made)


def _column(x: float, width: float, parts: Sequence[tuple[str, int]], total: int) -> tuple[Part, ...]:
    """Parts of a column: `x` is the place from the top in percent, `width` the height; the first part holds its own place."""
    made = [Part("place", round(x, 3), round(width, 3))]
    at = 100.0
    for kind, count in parts:
        height = 100.0 * count / total if total else 0.0
        at -= height
        if height > 0:
            made.append(Part(kind, round(max(at, 0.0), 3), round(height, 3)))
    return tuple(made)


def _of(count: int, total: int) -> str:
    return f"{count} ({_share(count, total)})"


def _share(count: int, total: int) -> str:
    share = count / total if total else 0.0
    return f"{share:.0%}" if share >= 0.1 or not count else f"{share:.1%}"


def _spelled(combination: str) -> str:
    words = {"T": "true", "F": "false", "-": "absent"}
    return ", ".join(words[letter] for letter in combination)
