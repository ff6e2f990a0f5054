"""Hints that contradict the permissions a tool says it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_GRAFANA: Final = "grafana.com/requiredPermissions"
_KUBERNETES: Final = "io.kubernetes-mcp-server/rbac"
_WRITES: Final = re.compile(r":(?:write|create|delete|add|remove|update|edit|set|install)\b|\.(?:write|create|delete)\b", re.I)
_READS: Final = re.compile(r":(?:read|query|list|get|view)\b", re.I)
_VERBS_THAT_WRITE: Final = frozenset(
    ("create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate")
)
_DELETES: Final = re.compile(r":delete\b", re.I)


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        if tool.meta.get(_GRAFANA) == [] and tool.raw.read_only is False and tool.raw.destructive is False:
            # With `destructiveHint: true` the list is empty because nobody can tell (a tool that calls any endpoint).
            yield Note(
                "needs no permission at all, but claims to write",
                tool,
                "read_only",
                "readOnlyHint: true, if it changes nothing",
                severity="note",
                confidence="medium",
            )
        writes, deletes, reads = _needed(tool.meta)
        if tool.raw.read_only is True and writes:
            yield Note(
                f"claims to be read-only, but needs {writes[0]}", tool, "read_only", "readOnlyHint: false", severity="error"
            )
        elif tool.raw.read_only is not True and reads and not writes:
            yield Note(
                f"needs only {', '.join(reads[:2])}, but is not marked read-only",
                tool,
                "read_only",
                "readOnlyHint: true",
                confidence="medium",
            )
        if tool.raw.read_only is not True and tool.raw.destructive is False and deletes:
            yield Note(
                f"claims to destroy nothing, but needs {deletes[0]}",
                tool,
                "destructive",
                "destructiveHint: true",
                confidence="medium",
            )


def _needed(meta: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """What is needed to write, to delete, to read."""
    words: list[str] = []
    grafana = meta.get(_GRAFANA)
    if isinstance(grafana, list):
        words = [word for word in grafana if isinstance(word, str)]
        return (
            [w for w in words if _WRITES.search(w)],
            [w for w in words if _DELETES.search(w)],
            [w for w in words if _READS.search(w)],
        )
    rbac = meta.get(_KUBERNETES)
    bounded = rbac.get("bounded") if isinstance(rbac, Mapping) else None
    rows = bounded.get("requirements") if isinstance(bounded, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        verbs = row.get("verbs") if isinstance(row, Mapping) else None
        target = (
            row.get("target", {}).get("resource", {})
            if isinstance(row, Mapping) and isinstance(row.get("target"), Mapping)
            else {}
        )
        name = str(target.get("resource", "resource")) if isinstance(target, Mapping) else "resource"
        # Execution in a pod is `create` on `pods/exec`: what it does cannot be told from it.
        if isinstance(verbs, list) and "/" not in name:
            words += [f"{verb} on {name}" for verb in verbs if isinstance(verb, str)]
    writes = [word for word in words if word.split()[0] in _VERBS_THAT_WRITE]
    return writes, [w for w in writes if w.startswith("delete")], [w for w in words if w not in writes]


AUDIT = Audit(
    id="permission-denied",
    severity="warning",
    confidence="high",
    what="Hints beside `_meta` that names the permissions a call needs (`grafana.com/requiredPermissions`, "
    "`io.kubernetes-mcp-server/rbac`): read-only with a permission to write, "
    "additive with one to delete, or a write that needs only reading, or nothing.",
    why="The permission is what the backend checks, so it is the better witness.",
    how="Correct the hint, or ask for less.",
    example="`generate_deeplink` of grafana is a write by its hints, and the list of permissions it needs is empty.",
    check=_check,
)
