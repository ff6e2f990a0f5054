"""Fields that say something else than the body.

MCP 2026-07-28 ("Streamable HTTP"): a server that reads the body refuses a request whose `MCP-Protocol-Version`, `Mcp-Method` or
`Mcp-Name` does not repeat it, with 400 and -32020. In 2025-11-25 `Mcp-Method` and `Mcp-Name` mean nothing, so they refuse
nothing; they go no further either.
"""

from base64 import b64encode
from dataclasses import dataclass, field

MISMATCH = -32020
Due = tuple[int, int]
PASSES: Due = (200, 0)
REFUSED: Due = (400, MISMATCH)


@dataclass(frozen=True)
class Mismatch:
    """One row: other fields for an honest call, or lines besides; what is due in each era as status and JSON-RPC code (0: the
    call reaches the server)."""

    name: str
    modern: Due = REFUSED
    legacy: Due = PASSES
    change: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    lines: tuple[bytes, ...] = ()


def base64(text: str) -> str:
    """A value as the specification encodes it."""
    return f"=?base64?{b64encode(text.encode()).decode()}?="


MISMATCHES = [
    Mismatch("another method", change={"Mcp-Method": "tools/list"}),
    Mismatch("a harmless method", change={"Mcp-Method": "ping"}),
    Mismatch("method in capitals", change={"Mcp-Method": "Tools/Call"}),
    Mismatch("no method", legacy=PASSES, drop=("Mcp-Method",)),
    Mismatch("method empty", change={"Mcp-Method": ""}),
    Mismatch("method in base64", PASSES, change={"Mcp-Method": base64("tools/call")}),
    Mismatch("method twice, the same", (400, 0), (400, 0), {"Mcp-Method": "tools/call"}, lines=(b"mcp-method: tools/call",)),
    Mismatch("method twice, another", (400, 0), (400, 0), {"Mcp-Method": "tools/call"}, lines=(b"MCP-METHOD: ping",)),
    Mismatch("another name", change={"Mcp-Name": "bad"}),
    Mismatch("name with a space behind", PASSES, change={"Mcp-Name": "echo "}),
    Mismatch("name in capitals", change={"Mcp-Name": "ECHO"}),
    Mismatch("two names in one", change={"Mcp-Name": "echo, bad"}),
    Mismatch("name of a server besides", change={"Mcp-Name": "up/echo"}),
    Mismatch("no name", drop=("Mcp-Name",)),
    Mismatch("name in base64", PASSES, change={"Mcp-Name": base64("echo")}),
    Mismatch("another name in base64", change={"Mcp-Name": base64("bad")}),
    Mismatch("name in base64 without its end", change={"Mcp-Name": base64("echo")[:-2]}),
    Mismatch("name in base64 of another spelling", change={"Mcp-Name": base64("echo").replace("==", "")}),
    Mismatch("name in base64 twice", change={"Mcp-Name": base64(base64("echo"))}),
    Mismatch("name twice", (400, 0), (400, 0), {"Mcp-Name": "echo"}, lines=(b"Mcp-name: bad",)),
    Mismatch("the other era's version", REFUSED, (400, -32602), change={"MCP-Protocol-Version": "OTHER"}),
    Mismatch("a version nobody speaks", REFUSED, (400, -32022), change={"MCP-Protocol-Version": "1999-01-01"}),
    Mismatch("no version", drop=("MCP-Protocol-Version",)),
    Mismatch("version twice", (400, 0), (400, 0), lines=(b"Mcp-Protocol-Version: 2026-07-28",)),
    Mismatch("a parameter that no tool declares", PASSES, change={"Mcp-Param-Region": "eu"}),
    Mismatch("a session", PASSES, (404, 0), change={"Mcp-Session-Id": "made-up"}),
    Mismatch("a session twice", (400, 0), (400, 0), {"Mcp-Session-Id": "made-up"}, lines=(b"mcp-session-id: other",)),
]
"""(400, 0): refused by HTTP itself, before there is a JSON-RPC message; (404, 0): no such session."""
