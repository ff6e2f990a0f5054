"""Input schemas that say nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        schema = tool.definition.get("inputSchema")
        if not isinstance(schema, Mapping):
            yield Note(
                "has no inputSchema, or one that is no object",
                tool,
                fix='inputSchema: {"type": "object", "properties": {}}',
                severity="error",
            )
        elif schema.get("type") != "object":
            said = f"has type {schema['type']!r}" if "type" in schema else "has no type"
            empty = not ({"properties", "$ref", "allOf", "anyOf", "oneOf"} & schema.keys())
            yield Note(
                f"its inputSchema {said}{' and no properties: its parameters are not described' if empty else ''}",
                tool,
                fix='"type": "object", and the properties it takes',
            )


AUDIT = Audit(
    id="schema-type",
    severity="warning",
    confidence="high",
    what='An `inputSchema` that is missing or has no `"type": "object"`.',
    why="The specification demands it. Clients drop the tool or call it without arguments, and nobody can judge "
    "arguments that are not described.",
    how="Write the type and the properties.",
    example='All nine tools of the archived GitLab reference server carry `{"$schema": …}` and nothing else.',
    check=_check,
)
