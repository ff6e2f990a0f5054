"""Names that collide inside one server."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import Tool


def _check(seen: Seen) -> Iterator[Note]:
    groups: dict[str, list[Tool]] = defaultdict(list)
    for tool in seen.server.tools:
        folded = unicodedata.normalize("NFKC", tool.name).casefold()
        groups[folded.replace("-", "_").replace(".", "_").replace(" ", "_")].append(tool)
    for tools in groups.values():
        if len(tools) < 2:
            continue
        same = len({tool.name for tool in tools}) < len(tools)
        names = ", ".join(repr(tool.name) for tool in tools)
        yield Note(
            f"is listed {len(tools)} times" if same else f"collides with another after folding: {names}",
            tools[1],
            fix="give each tool a name of its own",
            severity="error" if same else "warning",
            confidence="high" if same else "medium",
        )


AUDIT = Audit(
    id="colliding-names",
    severity="error",
    confidence="high",
    what="Two tools of one server with the same name, or with names that differ only in case, in compatible characters, "
    "or in `-`, `_` and `.`.",
    why="A call names its tool. With two of one name it is chance which runs, and a client may show one and call the other.",
    how="Name them apart.",
    example="Three servers of the 2025-07 dump list a tool twice.",
    check=_check,
)
