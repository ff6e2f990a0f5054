"""A server's questions to a person, marked as the server's.

Theory. earnest asks people through their client, and so may servers. Both reach a person as the same kind of form, from what
the client takes for one server, so a server could word its question like earnest's ("allow this call?") and a person would
answer the wrong one. MCP wants it to be clear which server asks (2025-11-25, 2026-07-28, elicitation, security considerations);
behind a gateway only the gateway can say. So the message of every relayed elicitation begins with the server's name as the
configuration has it, which no server chooses. Nothing else in it changes, and earnest's own questions never begin so.
"""

from __future__ import annotations

from earnest.core.canonical import build, members
from earnest.core.errors import EarnestError
from earnest.protocol.calls import string, text, with_member

ELICITATION = "elicitation/create"


def question(server: str, method: str, params: bytes) -> bytes:
    """The params of a server's request to a client; an elicitation's message says whose it is. Params that cannot be read stay
    as they are: they are refused elsewhere."""
    if method != ELICITATION or not params:
        return params
    try:
        asked = text(members(params), "message")
    except EarnestError:
        return params
    return with_member(params, "message", string(f"The server {server} asks: {asked}"))


def questions(server: str, result: bytes) -> bytes:
    """A result (`input_required`) whose elicitations say whose they are; the rest as it came."""
    try:
        asked = members(members(result).get("inputRequests", b"{}"))
        marked = dict(asked)
        for key, one in asked.items():
            seen = members(one)
            method = text(seen, "method")
            if method == ELICITATION and "params" in seen:
                marked[key] = with_member(one, "params", question(server, method, seen["params"]))
    except EarnestError:
        return result
    return result if marked == asked else with_member(result, "inputRequests", build(marked))
