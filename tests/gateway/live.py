"""A gateway of a test's own, in the test's process, with real sockets in front and real servers behind.

What a daemon does about processes and descriptors is tested in `process`; here the application alone runs on the test's loop.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from earnest.gateway.app import App
from earnest.gateway.process.application import DaemonContext
from earnest.gateway.process.reap import Children
from servers.client import HttpClient, Reply

Json = dict[str, Any]


def tool(name: str, **hints: bool) -> Json:
    """A tool as a server lists it, with the hints that are given."""
    made: Json = {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}}
    return {**made, "annotations": hints} if hints else made


def reader(name: str) -> Json:
    """A tool that claims to read, at home."""
    return tool(name, readOnlyHint=True, openWorldHint=False)


def text_of(message: Json) -> str:
    """The first text of a tool's result."""
    return str(message["result"]["content"][0]["text"])


def toml(value: Any) -> str:
    """A value as TOML; JSON is near enough for strings, numbers, booleans and lists."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


class Live:
    """One running gateway. `servers`: name to table of `[servers.NAME]`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.app: App
        self.url = ""
        self._clients: list[HttpClient] = []

    async def start(self, servers: Mapping[str, Mapping[str, Any]], preset: str, more: str) -> None:
        """Write the configuration and run."""
        config = self.folder / "earnest.toml"
        lines = [f'preset = "{preset}"', more]
        for name, table in servers.items():
            lines += [f"[servers.{name}]", *(f"{key} = {toml(value)}" for key, value in table.items())]
        config.write_text("\n".join(lines) + "\n")
        instance = self.folder / "instance"
        instance.mkdir(mode=0o700, exist_ok=True)
        self.log = logging.Logger("gateway")
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())  # type: ignore[method-assign]
        self.log.addHandler(handler)
        children = Children(str(self.folder / "children"))
        children.end_leftovers()
        self.children = children
        self.app = App(DaemonContext(str(instance), str(config), True, self.log, children, lambda reason: None))
        await self.app.start()
        self.url = await self.app.listen("127.0.0.1", 0)

    async def stop(self) -> None:
        """End it; every process it started must be gone."""
        await asyncio.gather(*(client.close() for client in self._clients))
        await self.app.stop()

    @property
    def token(self) -> str:
        """The token of the client `local`."""
        return self.app.tokens.local()

    def client(self, path: str = "/mcp", token: str | None = None, headers: Mapping[str, str] | None = None) -> HttpClient:
        """A client of one route that was not opened yet; closed with the gateway."""
        client = HttpClient(self.url + path, token or self.token, headers)
        self._clients.append(client)
        return client

    async def opened(self, path: str = "/mcp", era: str = "legacy", **more: Any) -> HttpClient:
        """A client of one route, opened."""
        client = self.client(path)
        await client.open(era, **more)
        return client

    async def raw(
        self,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        path: str = "/mcp",
        method: str = "POST",
        token: str = "",
    ) -> Reply:
        """One HTTP request with exactly these headers beside Host and length (and the token, unless it is `-`)."""
        client = HttpClient(self.url + path, None if token == "-" else token or self.token)
        return await client.post(body, headers, method=method)


Start = Callable[..., Awaitable[Live]]


def names(result: Json) -> list[str]:
    """The names in an answer to `tools/list` or `prompts/list`."""
    listed: Iterable[Json] = result["result"].get("tools") or result["result"].get("prompts") or ()
    return [str(one["name"]) for one in listed]


@asynccontextmanager
async def gateways(folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """`await start(servers, preset="observe", more="")`; all are stopped at the end."""
    (folder / "home").mkdir(exist_ok=True)
    patch.setenv("HOME", str(folder / "home"))
    patch.setenv("EARNEST_HOME", str(folder / "state"))
    running: list[Live] = []

    async def start(servers: Mapping[str, Mapping[str, Any]], preset: str = "observe", more: str = "", name: str = "g") -> Live:
        place = folder / name
        place.mkdir(exist_ok=True)
        live = Live(place)
        await live.start(servers, preset, more)
        running.append(live)
        return live

    yield start
    for live in running:
        await live.stop()
