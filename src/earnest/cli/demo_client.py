"""A small MCP client over HTTP for the demo, on the standard library: calls tools of the gateway, one at a time."""

from __future__ import annotations

import http.client
import json
from typing import Any, Final
from urllib.parse import urlsplit

from earnest.core.errors import EarnestError

_VERSION: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
_RECEIPT: Final = "dev.earnest/receipt"


class Answer:
    """What came back of a call: its text, whether it was an error, and the id of its receipt."""

    def __init__(self, message: dict[str, Any]) -> None:
        result = message.get("result", {})
        failure = message.get("error")
        parts = [part.get("text", "") for part in result.get("content", [])]
        self.text: str = failure["message"] if failure else "\n".join(parts)
        self.is_error: bool = bool(failure or result.get("isError"))
        self.receipt: str = result.get("_meta", {}).get(_RECEIPT, "")


class DemoClient:
    """A client called `local`, which is the token's name in the daemon."""

    def __init__(self, address: str, token: str, timeout_s: float) -> None:
        self._host = urlsplit(address).netloc
        self._token = token
        self._timeout = timeout_s
        self._next = 0

    def call(self, server: str, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool and wait for its answer. Raises `EarnestError` E1218 where none comes."""
        self._next += 1
        meta = {
            f"{_META}protocolVersion": _VERSION,
            f"{_META}clientCapabilities": {},
            f"{_META}clientInfo": {"name": "earnest-demo", "version": "1"},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": params})
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": _VERSION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        connection = http.client.HTTPConnection(self._host, timeout=self._timeout)
        try:
            connection.request("POST", f"/s/{server}/mcp", body, headers)
            reply = connection.getresponse()
            data = reply.read().decode()
            for text in _messages(reply.getheader("Content-Type", ""), data):
                message = json.loads(text)
                if message.get("id") == self._next:
                    return Answer(message)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EarnestError("E1218", f"the call of {server}/{tool} failed: {error}", exit_code=3) from None
        finally:
            connection.close()
        came = f"{reply.status} {data[:200]!r}"
        raise EarnestError("E1218", f"the call of {server}/{tool} got no answer, but {came}", exit_code=3)


def _messages(kind: str, data: str) -> list[str]:
    if not kind.startswith("text/event-stream"):
        return [data] if data else []
    return [line[5:].strip() for line in data.splitlines() if line.startswith("data:") and line[5:].strip()]
