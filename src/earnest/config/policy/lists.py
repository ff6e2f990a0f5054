"""`allow`, `ask` and `deny` lists: rules in the style that clients use.

`server/tool` with `*` and `?` in either part, or a client's spelling `mcp__server__tool` (`mcp__server`
means all of it).
"""

from __future__ import annotations

from earnest.config.policy.findings import Wrong
from earnest.core.expr import And, Binary, Call, Const, Expr, Name
from earnest.core.verdict import Verdict

_SERVER = Name("server.name")
_TOOL = Name("tool.name")


def entry(text: str, then: Verdict) -> Expr:
    """The condition that one entry means. Raises `Wrong` E1108.

    An `allow` speaks of tool calls alone; `ask` and `deny` hold for whatever a server's name and a called
    name match, so that `deny = ["files/*"]` closes the resources of that server too.
    """
    parts = _parts(text, then)
    if then is Verdict.ALLOW:
        parts.insert(0, Binary("==", Name("call.method"), Const("tools/call")))
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


def _parts(text: str, then: Verdict) -> list[Expr]:
    if "/" not in text and text.startswith("mcp__"):
        rest = text.removeprefix("mcp__")
        if not rest:
            raise Wrong("E1108", f"`{text}` names no server", 0, "write `server/tool`")
        if "__" not in rest:
            return [_match(_SERVER, rest)]
        if then is Verdict.ALLOW and rest.find("__") != rest.rfind("__"):
            # More than one split is possible, and an allow must not mean more than was meant.
            server, tool = rest.split("__", 1)
            raise Wrong(
                "E1108", f"`{text}` can be read in two ways", 0, f"write `{server}/{tool}`, or where else the server ends"
            )
        return [_match(Call("mcp", (_SERVER, _TOOL)), text)]
    server, slash, tool = text.partition("/")
    if not slash or not server or not tool:
        raise Wrong("E1108", f"`{text}` is no `server/tool`", 0, f"write `{text.strip('/') or 'server'}/*` for a whole server")
    return [part for part in (_match(_SERVER, server), _match(_TOOL, tool)) if part != Const(True)] or [Const(True)]


def _match(of: Expr, pattern: str) -> Expr:
    if pattern == "*":
        return Const(True)
    if "*" in pattern or "?" in pattern:
        return Call("glob", (of, Const(pattern)))
    return Binary("==", of, Const(pattern))
