"""A list that is another one the second time."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.pin import difference
from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    earlier = seen.server.earlier
    if earlier is None:
        return
    old = {tool.name: tool for tool in earlier}
    new = {tool.name: tool for tool in seen.server.tools}
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    if gone or come:
        told = [
            f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''} {word}"
            for names, word in ((gone, "gone"), (come, "new"))
            if names
        ]
        yield Note(
            f"two recordings list other tools: {'; '.join(told)}", fix="list the same tools to everyone, in the same order"
        )
    for name, tool in new.items():
        before = old.get(name)
        if before is None or before.definition == tool.definition:
            continue
        try:
            found = difference(msgspec.json.encode(before.definition), msgspec.json.encode(tool.definition))
        except EarnestError:
            continue
        if found.kind == "neutral":
            continue
        yield Note(
            f"differs between two recordings at {', '.join(change.path or 'the root' for change in found.changes[:3])}",
            tool,
            fix="keep what belongs to this start (folders, times, unordered sets) out of definitions",
        )


AUDIT = Audit(
    id="unstable-list",
    severity="warning",
    confidence="high",
    what="Two recordings of one server that differ in more than order, spelled-out defaults or order of sets. Needs two: "
    "a folder of snapshots.",
    why="Who pins definitions, so that a change is seen, is asked after every start; and stops looking.",
    how="Sort what comes from a set, and keep working directories and times out of definitions.",
    example="figma-framelink puts its working directory into a description; mcp-atlassian printed a default from an "
    "unordered set.",
    check=_check,
)
