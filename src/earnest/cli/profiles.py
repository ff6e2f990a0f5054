"""How hints, profiles and the row that settled a value are written for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from earnest.core.hints import HINTS
from earnest.core.profile import NAMES, RISKY_VALUES

_CLAIMED: Final = {
    "read_only": {True: "reads only", False: "writes"},
    "destructive": {True: "destructive", False: "not destructive"},
    "idempotent": {True: "idempotent", False: "not idempotent"},
    "open_world": {True: "open world", False: "closed world"},
}
TITLES: Final = {
    "read_only": "read-only",
    "destructive": "destructive",
    "idempotent": "idempotent",
    "open_world": "open-world",
    "reads_private": "reads private",
    "sees_untrusted": "sees untrusted",
    "can_exfiltrate": "can exfiltrate",
}
_ROWS: Final = {"operator": (1, "operator"), "enforced": (2, "containment"), "pack": (4, "pack"), "claimed": (5, "claim")}


def claims(raw: Mapping[str, bool | None]) -> str:
    """What a server claims of a tool, in words."""
    return ", ".join(_CLAIMED[hint][value] for hint in HINTS if (value := raw.get(hint)) is not None) or "nothing"


def value(one: Mapping[str, Any]) -> str:
    """A resolved value with its basis."""
    return f"{'yes' if one['value'] else 'no'} {one['basis']}"


def row(name: str, one: Mapping[str, Any]) -> tuple[int, str]:
    """The row of the resolution table that settled a value, and what it is called."""
    basis = one["basis"]
    if basis == "observed":
        risky = one["value"] == RISKY_VALUES[name]
        return (3, "observed violation") if risky else (6, "observed support")
    if basis == "default":
        return (7, "default of the specification") if name in HINTS else (7, "default: nothing says no")
    if basis == "enforced" and one["source"] == "outputSchema":
        return 2, "enforced by the pinned output schema"
    return _ROWS[basis]


def supplier(name: str, one: Mapping[str, Any]) -> str:
    """Who supplied a value: pack and line, operator label, hint."""
    source = str(one["source"])
    if not source:
        return "nobody; the worst is taken"
    if one["basis"] == "claimed" and name in HINTS:
        return f"the server's {source}"
    if one["basis"] == "claimed":
        return f"the trusted server's {source}" if source.endswith("Hint") else source
    return source


def with_rows(profile: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """A profile for `--json`, each value with the number of its row."""
    return {name: {**profile[name], "row": row(name, profile[name])[0]} for name in NAMES}
