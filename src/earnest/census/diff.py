"""What changed between two datasets: tools that came or went, and how bad each change is, by the change classes of pins.

Servers are compared by name, within cohorts of one name; where each dataset has a single cohort, these two are compared
whatever they are called, and that is said. A server that gave no answer on one side is not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from earnest.census.dataset import about, opened
from earnest.core.errors import EarnestError
from earnest.core.pin import Difference, difference, render

KINDS: Final = ("added", "removed", "loosening", "tightening", "neutral", "refused", "unreadable")
"""Of one tool. `added` is as bad as loosening: nobody was shown it."""
HARMLESS: Final = frozenset(("removed", "neutral"))


class ToolChange(msgspec.Struct, frozen=True):
    """How one tool differs. `hints`: changes of its hints alone, `name: was -> now`; `lines`: all changes, for people."""

    server: str
    tool: str
    kind: str
    hints: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


class Drift(msgspec.Struct, frozen=True):
    """Two cohorts compared. `servers`: on both sides; `appeared`, `gone`, `silent` (no answer on one side) are names."""

    earlier: str
    later: str
    earlier_date: str
    later_date: str
    servers: int
    appeared: tuple[str, ...]
    gone: tuple[str, ...]
    silent: tuple[str, ...]
    unchanged: int
    changes: tuple[ToolChange, ...]

    def counts(self) -> Counter[str]:
        """Tools by kind of change."""
        return Counter(change.kind for change in self.changes)

    @property
    def worst(self) -> bool:
        """Whether anything changed that is not neutral."""
        return any(change.kind not in HARMLESS for change in self.changes) or bool(self.appeared)


def compare(earlier: Path, later: Path) -> list[Drift]:
    """The drift of each cohort that both have. Raises E1904, E1905 where they have none in common, E1915."""
    pairs = _pairs(earlier, later)
    with opened(later, earlier) as connection:
        return [_drift(connection, old, new) for old, new in pairs]


def _pairs(earlier: Path, later: Path) -> list[tuple[str, str]]:
    old, new = list(about(earlier).cohorts), list(about(later).cohorts)
    if len(old) == len(new) == 1:
        return [(old[0], new[0])]
    both = [name for name in new if name in old]
    if not both:
        raise EarnestError(
            "E1905",
            f"the datasets have no cohort in common: {', '.join(old)} and {', '.join(new)}",
            "Make datasets of one cohort each: earnest census dataset RUN --cohort NAME --out DIR.",
        )
    return [(name, name) for name in both]


def _drift(connection: Any, old: str, new: str) -> Drift:
    before, after = _servers(connection, "earlier_", old), _servers(connection, "", new)
    both = sorted(before.keys() & after.keys())
    answered = [name for name in both if before[name][0] and after[name][0]]
    earlier, later = _tools(connection, "earlier_", old), _tools(connection, "", new)
    changes: list[ToolChange] = []
    unchanged = 0
    for server in answered:
        was, now = earlier.get(server, {}), later.get(server, {})
        for tool in sorted(was.keys() | now.keys()):
            if was.get(tool) == now.get(tool):
                unchanged += 1
                continue
            change = _change(server, tool, was.get(tool), now.get(tool))
            if change is None:
                unchanged += 1
            else:
                changes.append(change)
    return Drift(
        earlier=old,
        later=new,
        earlier_date=max((one[1] for one in before.values()), default="")[:10],
        later_date=max((one[1] for one in after.values()), default="")[:10],
        servers=len(answered),
        appeared=tuple(sorted(after.keys() - before.keys())),
        gone=tuple(sorted(before.keys() - after.keys())),
        silent=tuple(name for name in both if name not in answered),
        unchanged=unchanged,
        changes=tuple(changes),
    )


def _change(server: str, tool: str, was: bytes | None, now: bytes | None) -> ToolChange | None:
    if was is None or now is None:
        return ToolChange(server, tool, "removed" if now is None else "added")
    try:
        found = difference(was, now)
    except EarnestError as error:
        return ToolChange(server, tool, "unreadable", lines=(str(error.message),))
    if not found.changes:
        return None
    return ToolChange(server, tool, found.kind, tuple(_hints(found)), tuple(render(found)))


def _hints(found: Difference) -> Iterator[str]:
    for change in found.changes:
        if change.path.startswith("/annotations") and change.path.endswith("Hint"):
            name = change.path.rsplit("/", 1)[-1]
            yield f"{name}: {change.old or 'absent'} -> {change.new or 'absent'} ({change.kind})"


def _servers(connection: Any, prefix: str, cohort: str) -> dict[str, tuple[bool, str]]:
    asked = f"SELECT server, status, recorded FROM {prefix}servers WHERE cohort = ?"
    found = connection.execute(asked, [cohort]).fetchall()
    return {name: (status == "answered", recorded or "") for name, status, recorded in found}


def _tools(connection: Any, prefix: str, cohort: str) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    asked = f"SELECT server, name, definition FROM {prefix}tools WHERE cohort = ? ORDER BY server, position"
    for server, name, definition in connection.execute(asked, [cohort]).fetchall():
        found.setdefault(server, {})[name] = definition.encode()
    return found
