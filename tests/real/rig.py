"""The real daemon with published servers behind it, and the official Python client in front."""

import asyncio
import fcntl
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from earnest.store.read import Receipt, receipts
from person import Person

LIMIT_S = 60.0
"""No exchange of these tests takes longer; a hang fails."""

ERAS = ("legacy", "2026-07-28")
"""The two ways in which the official client opens a connection: `initialize`, or none at all."""


class Finished(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


class Rig:
    """One home with a configuration and its daemon."""

    def __init__(self, home: Any, earnest: Sequence[str], make: Callable[[str], Any], folder: Path) -> None:
        self.home = home
        self.folder = folder
        self._earnest = list(earnest)
        self._make = make
        self._config: list[str] = []
        self.person = Person(home)

    # the configuration

    def server(self, name: str, real: str = "", *args: str, trust: str = "", env: Mapping[str, str] | None = None) -> Any:
        """Configure a published server (`real`, or of this name) as `name`; returns it, with its folder."""
        server = self._make(real or name)
        self.configure(name, server, *args, trust=trust, env=env)
        return server

    def replaced(self, name: str, server: Any, *args: str) -> None:
        """The same configuration with another command for this one server, the last that was configured."""
        self._config.pop()
        self.configure(name, server, *args)

    def configure(self, name: str, server: Any, *args: str, trust: str = "", env: Mapping[str, str] | None = None) -> None:
        """Configure a server made before, perhaps with more arguments or environment."""
        text = f"[servers.{name}]\ncommand = {json.dumps([*server.command, *args])}\ncwd = {json.dumps(str(server.folder))}\n"
        text += f"trust = {json.dumps(trust)}\n" if trust else ""
        values = {**server.env, **(env or {})}
        if values:
            text += "env = { " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items()) + " }\n"
        self.add(text)

    def add(self, toml: str) -> None:
        """More of earnest.toml, before the daemon starts."""
        self._config.append(toml)
        self.home.config.write_text("\n".join(self._config))

    def first(self, toml: str) -> None:
        """What stands before all sections of earnest.toml, before the daemon starts."""
        self._config.insert(0, toml)
        self.home.config.write_text("\n".join(self._config))

    # the person

    async def answered(self, call: Any, answer: str = "once") -> tuple[Any, dict[str, Any]]:
        """Await a call that must ask; the person gives `answer`. Returns the call's result and the ask."""
        task = asyncio.ensure_future(call)
        try:
            while not (waiting := await self.person("approvals")):
                await asyncio.wait({task}, timeout=0.02)
                assert not task.done(), f"the call did not ask: {task.result()}"
            assert len(waiting) == 1
            await self.person("approve", id=waiting[0]["id"], answer=answer)
            async with asyncio.timeout(LIMIT_S):
                return await task, waiting[0]
        finally:
            task.cancel()

    async def command(self, *words: str) -> Finished:
        """A command line of earnest, started by this process, with nobody at a terminal."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._earnest,
            *words,
            env=self.home.env,
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        async with asyncio.timeout(LIMIT_S):
            out, err = await process.communicate()
        return Finished(process.returncode or 0, out.decode(), err.decode())

    async def restarted(self) -> None:
        """End the daemon in good order; the next client starts another."""
        await self.person("stop")
        async with asyncio.timeout(LIMIT_S):
            while self._locked():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def _locked(self) -> bool:
        with open(self.instance / "lock", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    async def nobody_waits(self) -> None:
        """Until no call waits for a person any more."""
        async with asyncio.timeout(LIMIT_S):
            while await self.person("approvals"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def somebody_waits(self) -> dict[str, Any]:
        """The first call that waits for a person."""
        async with asyncio.timeout(LIMIT_S):
            while not (waiting := await self.person("approvals")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return dict(waiting[0])

    # clients

    def stdio(self, name: str, *own: str, mode: str = "legacy", **more: Any) -> AbstractAsyncContextManager[Client]:
        """The official client on `earnest stdio NAME`, or on `earnest stdio NAME -- OWN...`."""
        words = [*self._earnest, "stdio", name, *(("--", *own) if own else ())]
        env = {**self.home.env, **more.pop("env", {})}
        cwd = more.pop("cwd", self.folder)
        parameters = StdioServerParameters(command=words[0], args=words[1:], env=env, cwd=cwd)
        return opened(stdio_client(parameters), mode, **more)

    @asynccontextmanager
    async def http(self, path: str, mode: str = "legacy", **more: Any) -> AsyncIterator[Client]:
        """The official client on a route of the HTTP listener, with the bearer token of `local`."""
        address, token = await self.person.listening()
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http,
            opened(streamable_http_client(address + path, http_client=http), mode, **more) as client,
        ):
            yield client

    # the record

    async def receipts(self, **by: Any) -> list[Receipt]:
        """All receipts so far, oldest first."""
        await self.person("checkpoint")
        return list(receipts(str(self.instance / "receipts"), **by))

    async def decided(self, **by: Any) -> list[tuple[str, str, str | None]]:
        """Tool, decision and outcome of all calls of tools so far, oldest first."""
        return [(r.tool, r.decision, r.outcome) for r in await self.receipts(**by) if r.method == "tools/call"]

    @property
    def instance(self) -> Path:
        """The folder of the daemon's instance."""
        return self.home.earnest / "default"


@asynccontextmanager
async def opened(transport: Any, mode: str, **more: Any) -> AsyncIterator[Client]:
    """The official client on a transport, without a cache, so that each list and read is a request."""
    async with asyncio.timeout(LIMIT_S):
        async with Client(transport, mode=mode, cache=None, read_timeout_seconds=LIMIT_S, **more) as client:
            yield client


def bare(server: Any, mode: str = "legacy", **more: Any) -> AbstractAsyncContextManager[Client]:
    """The official client on a server itself, nothing between."""
    parameters = StdioServerParameters(command=server.command[0], args=server.command[1:], env=server.env, cwd=server.folder)
    return opened(stdio_client(parameters), mode, **more)


def wire(model: Any) -> Any:
    """A result as the JSON it came as, without the label that earnest adds (tests/gateway/test_labels.py)."""
    found = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    meta = found.get("_meta")
    if isinstance(meta, dict) and meta.pop("dev.earnest/labels", None) is not None and not meta:
        del found["_meta"]
    return found


def text(result: Any) -> str:
    """The text of a result's first block."""
    return str(result.content[0].text)


WAYS = tuple(f"{kind} {era}" for kind in ("stdio", "typed", "http", "all") for era in ("legacy", "modern"))
"""Ways in: `earnest stdio NAME`, the same with `-- COMMAND`, `/s/NAME/mcp`, `/mcp`; and the era of the client."""


class Through:
    """A client of one server on some way in: `call` takes the server's own names of tools."""

    def __init__(self, client: Client, prefix: str) -> None:
        self.client = client
        self._prefix = prefix

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """The result of a call."""
        return await self.client.call_tool(self._prefix + tool, arguments)


@asynccontextmanager
async def way_in(rig: Rig, way: str, name: str, server: Any, **more: Any) -> AsyncIterator[Through]:
    """A client of the configured server `name` on one of `WAYS`; `typed` brings the command itself, under the same name."""
    kind, era = way.split()
    mode = "legacy" if era == "legacy" else "2026-07-28"
    opening = {
        "stdio": lambda: rig.stdio(name, mode=mode, **more),
        "typed": lambda: rig.stdio(name, *server.command, mode=mode, env=server.env, cwd=server.folder, **more),
        "http": lambda: rig.http(f"/s/{name}/mcp", mode=mode, **more),
        "all": lambda: rig.http("/mcp", mode=mode, **more),
    }
    async with opening[kind]() as client:
        yield Through(client, f"{name}__" if kind == "all" else "")
