"""Every method of both eras, in both directions, and what it means for a decision.

Theory. A method that is not in this table is refused; so is a method that its sender may not send, or not in
this era. `judged` says that the message carries data its sender chose and is therefore a call to be decided
like a tool call (a resource read with a URI that the model made up is a way out). `claims` are hints that the
method itself makes by its definition and nothing more: reading a resource says read-only, it says nothing of
an open world, so the specification's defaults hold for the rest. The answer of a client to a request of a
server (sampling, elicitation, roots) carries the client's data too; `answer` finds its row.

Sources: MCP schema 2025-11-25 (with its experimental tasks) and 2026-07-28; extensions
`io.modelcontextprotocol/tasks` (SEP-2663) and `io.modelcontextprotocol/tool-resolution`.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from earnest.core.hints import RawHints

Era = Literal["legacy", "modern"]
Side = Literal["client", "server"]
MethodKind = Literal[
    "lifecycle",
    "list",
    "tool",
    "resource",
    "prompt",
    "completion",
    "logging",
    "subscription",
    "task",
    "sampling",
    "elicitation",
    "roots",
    "notification",
    "answer",
    "resolve",
]
Naming = Literal["", "name", "uri", "taskId", "ref"]

TASKS: Final = "io.modelcontextprotocol/tasks"
TOOL_RESOLUTION: Final = "io.modelcontextprotocol/tool-resolution"

_NO_CLAIM: Final = RawHints()
_READS: Final = RawHints(read_only=True)


class Method(msgspec.Struct, frozen=True):
    """One row: a method as one side sends it in one era.

    `names`: the member of `params` that names the object (`""` if none; `ref` holds a reference to a prompt
    or a resource). `mcp_name`: over HTTP of the modern era the header `Mcp-Name` repeats that member.
    `cacheable`: a complete result carries `ttlMs` and `cacheScope`. `may_ask`: the result may be
    `input_required`. `extension`: the extension that must have been declared. `request` is false for a
    notification.
    """

    name: str
    era: Era
    sender: Side
    kind: MethodKind
    request: bool = True
    judged: bool = False
    claims: RawHints = _NO_CLAIM
    names: Naming = ""
    mcp_name: bool = False
    cacheable: bool = False
    may_ask: bool = False
    extension: str = ""


def _rows() -> list[Method]:
    rows: list[Method] = []

    def add(
        eras: str,
        senders: str,
        kind: MethodKind,
        *names: str,
        request: bool = True,
        judged: bool = False,
        claims: RawHints = _NO_CLAIM,
        object: Naming = "",
        mcp_name: bool = False,
        cacheable: bool = False,
        may_ask: bool = False,
        extension: str = "",
    ) -> None:
        """`eras`: letters of `lm` (legacy, modern); `senders`: letters of `cs` (client, server)."""
        for name in names:
            for era in eras:
                modern = era == "m"
                for sender in senders:
                    rows.append(
                        Method(
                            name,
                            "modern" if modern else "legacy",
                            "client" if sender == "c" else "server",
                            kind,
                            request=request,
                            judged=judged,
                            claims=claims,
                            names=object,
                            mcp_name=mcp_name and modern,
                            cacheable=cacheable and modern,
                            may_ask=may_ask and modern,
                            extension=extension if modern else "",
                        )
                    )

    add("l", "c", "lifecycle", "initialize")
    add("l", "cs", "lifecycle", "ping")
    add("l", "c", "lifecycle", "notifications/initialized", request=False)
    add("m", "c", "lifecycle", "server/discover", cacheable=True)

    add(
        "lm",
        "c",
        "list",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        cacheable=True,
    )
    add("lm", "c", "tool", "tools/call", judged=True, object="name", mcp_name=True, may_ask=True)
    add(
        "lm",
        "c",
        "resource",
        "resources/read",
        judged=True,
        claims=_READS,
        object="uri",
        mcp_name=True,
        cacheable=True,
        may_ask=True,
    )
    add(
        "lm",
        "c",
        "prompt",
        "prompts/get",
        judged=True,
        claims=_READS,
        object="name",
        mcp_name=True,
        may_ask=True,
    )
    add("lm", "c", "completion", "completion/complete", judged=True, claims=_READS, object="ref")
    add(
        "lm",
        "c",
        "resolve",
        "tools/resolve",
        judged=True,
        claims=_READS,
        object="name",
        extension=TOOL_RESOLUTION,
    )

    add("l", "c", "logging", "logging/setLevel")
    # The URI of a subscription is chosen like that of a read, and tells a server as much.
    add(
        "l",
        "c",
        "subscription",
        "resources/subscribe",
        "resources/unsubscribe",
        judged=True,
        claims=_READS,
        object="uri",
    )
    add("m", "c", "subscription", "subscriptions/listen", judged=True, claims=_READS)

    # In 2025-11-25 either side may own tasks; in 2026-07-28 only servers do.
    add("l", "cs", "task", "tasks/get", "tasks/result", judged=True, claims=_READS, object="taskId")
    add("l", "cs", "task", "tasks/list", claims=_READS)
    add("l", "cs", "task", "tasks/cancel", judged=True, object="taskId")
    add(
        "m",
        "c",
        "task",
        "tasks/get",
        judged=True,
        claims=_READS,
        object="taskId",
        mcp_name=True,
        extension=TASKS,
    )
    add(
        "m",
        "c",
        "task",
        "tasks/update",
        "tasks/cancel",
        judged=True,
        object="taskId",
        mcp_name=True,
        extension=TASKS,
    )

    add("l", "s", "sampling", "sampling/createMessage", judged=True)
    add("l", "s", "elicitation", "elicitation/create", judged=True)
    add("l", "s", "roots", "roots/list", judged=True)

    add("lm", "cs", "notification", "notifications/cancelled", request=False)
    add("l", "cs", "notification", "notifications/progress", request=False)
    add("m", "s", "notification", "notifications/progress", request=False)
    add("l", "c", "notification", "notifications/roots/list_changed", request=False)
    add("l", "cs", "notification", "notifications/tasks/status", request=False)
    add("l", "s", "notification", "notifications/elicitation/complete", request=False)
    add(
        "lm",
        "s",
        "notification",
        "notifications/message",
        "notifications/resources/updated",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        request=False,
    )
    add("m", "s", "notification", "notifications/subscriptions/acknowledged", request=False)
    return rows


METHODS: Final[tuple[Method, ...]] = tuple(_rows())
"""The whole table."""

_BY_KEY: Final = {(row.name, row.era, row.sender): row for row in METHODS}

ANSWERS: Final[dict[str, Method]] = {
    name: Method(name, "legacy", "client", "answer", judged=True)
    for name in ("sampling/createMessage", "elicitation/create", "roots/list")
}
"""The client's answers to requests of a server, by the method of the request. In the modern era the same
answers travel as `inputResponses` of a retry or of `tasks/update`."""


def lookup(method: str, era: Era, sender: Side = "client") -> Method | None:
    """The row of a method, or `None`: unknown, or not this sender's, or not of this era. `None` is
    refused."""
    return _BY_KEY.get((method, era, sender))


def answer(method: str) -> Method | None:
    """The row of a client's answer to a server's request of that method; `None` is declined."""
    return ANSWERS.get(method)
