"""A tool that runs others, chosen by a parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen

_CHOICE: Final = frozenset(
    (
        "tool",
        "toolname",
        "tool_name",
        "function",
        "function_name",
        "action",
        "endpoint",
        "operation",
        "operation_id",
        "actionname",
        "operationid",
    )
)
_ARGUMENTS: Final = frozenset(
    ("params", "parameters", "arguments", "args", "payload", "input", "inputs", "tool_args", "toolargs")
)


def _check(seen: Seen) -> Iterator[Note]:
    for tool in seen.server.tools:
        names = {name.lower(): schema for name, schema in tool.properties.items()}
        choice = next((name for name in names if name in _CHOICE), None)
        handed = next((name for name in names if name in _ARGUMENTS and _loose(names[name])), None)
        if choice is not None and handed is not None:
            yield Note(
                f"runs what {choice!r} names with {handed!r}: its own hints say nothing of that",
                tool,
                fix="list the targets as tools of their own, or say by which parameter a gateway can find the target",
            )


def _loose(schema: object) -> bool:
    """Whether a schema lets any object through."""
    if not isinstance(schema, Mapping):
        return True
    kind: Any = schema.get("type")
    return (
        kind in (None, "object", "string") and not schema.get("properties") and not schema.get("enum")
        if kind != "string"
        else False
    )


AUDIT = Audit(
    id="dispatcher",
    severity="note",
    confidence="medium",
    what="A tool with one parameter that names another action and one that carries its arguments.",
    why="The hints, the description and the schema that a client judges are the dispatcher's; what runs is another tool, "
    "which nobody judged.",
    how="List the targets as tools. A gateway can judge a dispatcher as its target if it knows the two parameters.",
    example="The 47 tools of a GitLab server take `action` and a free `params`.",
    check=_check,
)
