"""Keys in annotations that are misspelt hints, or something else altogether."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.model import WIRE

_KNOWN: Final = frozenset((*WIRE.values(), "title"))
_SCHEMA: Final = frozenset(
    ("_def", "~standard", "_cached", "_type", "properties", "required", "$schema", "inputSchema", "shape")
)
_BY_SHORT: Final = {wire.lower().replace("hint", ""): (hint, wire) for hint, wire in WIRE.items()}


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        keys = [key for key in tool.annotations if key not in _KNOWN]
        if not keys:
            continue
        if _SCHEMA.intersection(keys):
            yield Note(
                f"annotations hold a schema ({', '.join(sorted(keys)[:4])}): it was passed in the place of the annotations",
                tool,
                fix="pass the schema as inputSchema, and the annotations after it",
                severity="error",
                confidence="high",
            )
            continue
        for key in keys:
            short = key.lower().replace("_", "").replace("-", "").removesuffix("hint")
            near = _BY_SHORT.get(short)
            if near is None:
                close = difflib.get_close_matches(short, _BY_SHORT, 1, 0.85)
                near = _BY_SHORT[close[0]] if close else None
            if near is not None:
                yield Note(
                    f"{key} is not {near[1]}: readers of the specification do not see it",
                    tool,
                    near[0],
                    f"call it {near[1]}",
                    severity="error",
                    confidence="high" if tool.annotations.get(near[1]) is None else "medium",
                )
            elif key in tool.properties:
                yield Note(f"annotations hold {key!r}, which is a parameter of the tool", tool, fix="move it into inputSchema")
            else:
                yield Note(
                    f"{key!r} is no hint of the specification",
                    tool,
                    fix="put it into _meta, under a prefix of your own",
                    severity="note",
                )


AUDIT = Audit(
    id="foreign-annotation",
    severity="warning",
    confidence="medium",
    what="Keys in `annotations` that the specification does not know: a misspelt hint, a serialised schema, a parameter, "
    "or an extra word.",
    why="What is misspelt is not heard: the default counts. A schema in the annotations means that the arguments of a "
    "registration call slipped, and that no hint is there at all.",
    how="Use the four names of the specification, and `_meta` for what is your own.",
    example="Two Google Drive servers and an nmap server (2025-07) carry a serialised Zod schema (`_def`, `~standard`) "
    "in annotations; chrome-devtools-mcp has `category`.",
    check=_check,
)
