"""Requests whose heads are the same bytes: what was read of the first holds for the next only as far as it still is so."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.live import Live, Start, reader

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def call(name: str = "read", id: Any = 1, meta: dict[str, Any] | None = None, **arguments: Any) -> bytes:
    params = {"name": name, "arguments": arguments, "_meta": META if meta is None else meta}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()


def head(name: str = "read") -> dict[str, str]:
    return {
        "Connection": "keep-alive",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }


@pytest.fixture
async def live(gateway: Start, scripted: Callable[..., Any]) -> Live:
    command, _ = scripted({"tools": [reader("read"), reader("dear")]})
    return await gateway({"one": {"command": command}}, more='[views.few]\nservers = ["one"]\n')


Send = Callable[..., Any]


async def kept(live: Live, path: str = "/s/one/mcp") -> Send:
    """Sends bodies behind one head, which is known to the listener by now."""

    async def send(body: bytes) -> Any:
        return await live.raw(body, head(name), path)

    name = "read" if path.startswith("/s/") else "one__read"
    for _ in range(3):
        assert (await send(call(name))).status == 200
    listener = live.app.listener
    assert listener is not None and any(known.memo is not None for known in listener.heads.values())
    return send


async def test_a_token_that_is_taken_away_opens_nothing_any_more(live: Live) -> None:
    send = await kept(live)
    tokens = live.app.tokens.digests()
    saved = dict(tokens)
    tokens.clear()
    assert (await send(call())).status == 401
    tokens.update(saved)
    assert (await send(call())).status == 200
    tokens.update(dict.fromkeys(saved, "someone-else"))
    assert (await send(call())).status == 200
    assert {session.client.name for session in live.app.gateway.sessions} == {"local", "someone-else"}


@pytest.mark.parametrize("path", ["/s/one/mcp", "/v/few/mcp"])
async def test_a_server_or_view_that_is_taken_away_is_not_found_any_more(live: Live, path: str) -> None:
    send = await kept(live, path)
    (live.folder / "earnest.toml").write_text("")
    live.app.reload()
    assert (await send(call("read" if path.startswith("/s/") else "one__read"))).status == 404


async def test_names_of_the_listener_that_change_are_looked_at_again(live: Live) -> None:
    send = await kept(live)
    assert live.app.http is not None
    live.app.http.hosts = frozenset(("other.example",))
    assert (await send(call())).status == 421


async def test_what_the_head_must_repeat_is_compared_with_each_body(live: Live) -> None:
    send = await kept(live)
    body = call("dear")
    assert len(body) == len(call())
    answer = await send(body)
    assert (answer.status, answer.json()["error"]["code"]) == (400, -32020)
    assert (await send(call())).status == 200


async def test_each_body_has_its_own_id_arguments_and_facts(live: Live) -> None:
    send = await kept(live)
    for id in (2, 3):
        answer = await send(call(id=id))
        assert answer.json()["id"] == id
    for meta in ({**META, "io.modelcontextprotocol/protocolVersion": "2026-07-27"}, {}, {"x": 1}):
        assert (await send(call(meta=meta))).status == 400
    assert (await send(call())).status == 200
