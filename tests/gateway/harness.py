"""A gateway in the test's own process, with scripted servers behind it and scripted clients in front.

Real are the application, its store, receipts, policy and catalog; scripted are the links to servers (`ScriptedServer`), the
transport of clients (`ScriptedClient`) and the clock. What happens is told in one log, `Bench.log`, in the order in which it
happened:

    ("decision", id, decision)   ("outcome", decision's id, word)   ("flushed",)   ("dispatched", server, subject, serial)

so that a test can hold the order itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from earnest.core import receipt
from earnest.core.errors import EarnestError
from earnest.gateway import app as app_module
from earnest.gateway.app import App
from earnest.gateway.client import Client, Route
from earnest.gateway.process.application import DaemonContext
from earnest.gateway.process.reap import Children
from earnest.gateway.served import Served
from earnest.gateway.session import Session
from earnest.pdp.conversations import process_part
from earnest.protocol import envelope
from earnest.protocol.envelope import Message
from earnest.upstream.base import ExchangeHandler, Reply, ServerHello
from earnest.upstream.opening import ClientHello

Json = dict[str, Any]
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
PRINCIPAL = "user:1000"


def tool(name: str, *, description: str = "", **hints: bool) -> Json:
    """A tool as a server lists it; hints in snake case."""
    wire = {
        "read_only": "readOnlyHint",
        "destructive": "destructiveHint",
        "idempotent": "idempotentHint",
        "open_world": "openWorldHint",
    }
    made: Json = {"name": name, "description": description or f"does {name}", "inputSchema": {"type": "object"}}
    if hints:
        made["annotations"] = {wire[key]: value for key, value in hints.items()}
    return made


def reads(name: str, **more: bool) -> Json:
    """A tool that claims to read, at home."""
    return tool(name, **{"read_only": True, "open_world": False, **more})  # type: ignore[arg-type]


def raw(value: object) -> bytes:
    """JSON bytes; bytes stay as they are."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


class Clock:
    """A wall clock and a monotonic one that move together, by the test's word."""

    def __init__(self) -> None:
        self.offset = 0.0
        self._start = 1_800_000_000.0

    def time(self) -> float:
        return self._start + self.offset

    def advance(self, seconds: float) -> None:
        self.offset += seconds


class Arrived:
    """One request as it reached a scripted server."""

    def __init__(self, link: ScriptedLink, id: int, method: str, params: bytes, handler: ExchangeHandler) -> None:
        self.link = link
        self.id = id
        self.method = method
        self.params = params
        self.handler = handler
        self.cancelled: str | None = None
        self.open = True

    @property
    def members(self) -> Json:
        """The params, parsed."""
        found: Json = json.loads(self.params)
        return found

    def answer(self, result: object, *, error: bool = False) -> None:
        """Answer with a result (or an error object)."""
        assert self.open, "a call is answered once"
        self.open = False
        self.handler.reply(Reply(error=raw(result)) if error else Reply(result=raw(result)))

    def text(self, text: str = "done", **more: Any) -> None:
        """Answer with a tool result of one text."""
        result: Json = {"content": [{"type": "text", "text": text}], **more}
        if self.link.server.modern:
            result.setdefault("resultType", "complete")
        self.answer(result)

    def cancel(self, reason: str = "") -> None:
        """Called by the gateway (`Exchange`)."""
        self.cancelled = reason
        self.open = False


class ScriptedServer:
    """What a server lists and says. `on_call` is called with each request; without it each is answered `done`."""

    def __init__(self, name: str, tools: list[Any], *, modern: bool = False, instructions: str = "") -> None:
        self.name = name
        self.tools = tools
        self.modern = modern
        self.instructions = instructions
        self.capabilities: Json = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
        self.lists: dict[str, list[Any]] = {}
        self.calls: list[Arrived] = []
        self.notified: list[tuple[str, bytes]] = []
        self.responses: list[tuple[bytes, Reply]] = []
        self.asked: list[tuple[str, Json]] = []
        """Requests of the gateway's own, other than for lists."""
        self.links: list[ScriptedLink] = []
        self.on_call: Callable[[Arrived], None] | None = None
        self.walks = 0
        self.gate: asyncio.Event | None = None
        """Where set, lists are answered only once it is."""

    @property
    def subjects(self) -> list[str]:
        """What was called, in order."""
        return [str(call.members.get("name") or call.members.get("uri") or call.method) for call in self.calls]

    def list_changed(self) -> None:
        """Tell every link that the tools changed."""
        for link in self.links:
            link.on_notification(Message("notification", b"", "notifications/tools/list_changed", b"{}"))

    async def wait(self, count: int) -> Arrived:
        """The call with this number (from 1), once it is there."""
        await until(lambda: len(self.calls) >= count)
        return self.calls[count - 1]


class ScriptedLink:
    """`Link` to a scripted server."""

    def __init__(self, bench: Bench, server: ScriptedServer, client: ClientHello) -> None:
        self.bench = bench
        self.server = server
        self.client = client
        self.hello = ServerHello(modern=server.modern, version=MODERN if server.modern else LEGACY)
        self.on_notification: Callable[[Message], None] = lambda message: None
        self.on_lost: Callable[[EarnestError], None] = lambda error: None
        self.alive = False
        self._serial = 0

    async def open(self) -> ServerHello:
        server = self.server
        self.alive = True
        self.hello = ServerHello(
            modern=server.modern,
            version=MODERN if server.modern else LEGACY,
            capabilities=raw(server.capabilities),
            server_info=b'{"name":"scripted","version":"1"}',
            instructions=server.instructions,
            raw=b'{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"scripted","version":"1"}}',
        )
        server.links.append(self)
        return self.hello

    def reserve(self) -> int:
        self._serial += 1
        return self._serial

    def call(
        self,
        method: str,
        params: bytes,
        handler: ExchangeHandler,
        *,
        id: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        named: str = "",
    ) -> Arrived:
        arrived = Arrived(self, id if id is not None else self.reserve(), method, params, handler)
        if not self.alive:
            asyncio.get_running_loop().call_soon(handler.lost, EarnestError("E1203", "the server is gone"), False)
            return arrived
        self.server.calls.append(arrived)
        subject = str(arrived.members.get("name") or arrived.members.get("uri") or method)
        self.bench.log.append(("dispatched", self.server.name, subject, arrived.id))
        asyncio.get_running_loop().call_soon(self._heard, arrived)
        return arrived

    def _heard(self, arrived: Arrived) -> None:
        if not arrived.open:
            return
        if self.server.on_call is not None:
            self.server.on_call(arrived)
        elif arrived.method == "tools/call":
            arrived.text()
        elif arrived.method == "resources/read":
            arrived.answer({"contents": [{"uri": arrived.members["uri"], "text": "x"}], "resultType": "complete"})
        else:
            arrived.answer({"resultType": "complete"})

    async def ask(self, method: str, params: bytes = b"{}", timeout: float = 30.0) -> Reply:
        if self.server.gate is not None:
            await self.server.gate.wait()
        if method == "tools/list":
            self.server.walks += 1
            return Reply(result=b'{"tools":[%b]}' % b",".join(raw(t) for t in self.server.tools))
        if not method.endswith("/list"):
            self.server.asked.append((method, json.loads(params)))
            return Reply(result=b"{}")
        key = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}[
            method
        ]
        return Reply(result=raw({key: self.server.lists.get(key, [])}))

    def notify(self, method: str, params: bytes) -> None:
        self.server.notified.append((method, params))

    def respond(self, id: bytes, reply: Reply) -> None:
        self.server.responses.append((id, reply))

    def lose(self) -> None:
        """The server dies."""
        self.alive = False
        error = EarnestError("E1203", "the server is gone")
        for arrived in [a for a in self.server.calls if a.link is self and a.open]:
            arrived.open = False
            arrived.handler.lost(error, True)
        self.on_lost(error)

    async def close(self) -> None:
        self.alive = False


class Call:
    """One request of a scripted client, and its way back (`Outlet`)."""

    def __init__(self, client: ScriptedClient, id: Any) -> None:
        self.client = client
        self.id = id
        self.sent: list[Json] = []
        self.answer: Json | None = None
        self.raw_answer = b""
        self.status = 0
        self.answers = 0
        self.abandoned = 0

    def send(self, message: bytes) -> None:
        self.sent.append(json.loads(message))

    def finish(self, message: bytes, status: int = 200) -> None:
        self.answers += 1
        self.raw_answer = bytes(message)
        self.answer = json.loads(message)
        self.status = status

    def abandon(self) -> None:
        self.abandoned += 1

    @property
    def done(self) -> bool:
        """Whether it was answered or let go."""
        return self.answer is not None or bool(self.abandoned)

    async def asked(self, count: int = 1) -> Json:
        """The request that the gateway sent inside this one, once it is there."""
        await until(lambda: self.done or len([m for m in self.sent if "method" in m and "id" in m]) >= count)
        requests = [m for m in self.sent if "method" in m and "id" in m]
        assert len(requests) >= count, f"nothing was asked: {self.answer}"
        return requests[count - 1]

    async def over(self) -> Json:
        """The whole answer."""
        await until(lambda: self.done)
        assert self.answer is not None, "the call was let go without an answer"
        assert self.answers == 1
        return self.answer

    async def result(self) -> Json:
        """The result."""
        answer = await self.over()
        assert "result" in answer, answer
        found: Json = answer["result"]
        return found

    async def said(self) -> str:
        """The first text of a tool's result."""
        return str((await self.result())["content"][0]["text"])


class ScriptedClient:
    """One client's session; also its transport."""

    def __init__(
        self, bench: Bench, session_of: Callable[[ScriptedClient], Session], *, modern: bool, capabilities: Json
    ) -> None:
        self.bench = bench
        self.modern = modern
        self.capabilities = capabilities
        self.told: list[Json] = []
        self.session = session_of(self)
        self._serial = 0

    # Transport

    def notify(self, message: bytes) -> None:
        self.told.append(json.loads(message))

    def begin(self, id: bytes) -> None:
        pass

    # what a client does

    async def open(self) -> Json:
        """`initialize` and `initialized`, or nothing in the modern era."""
        if self.modern:
            return {}
        hello = self.request(
            "initialize",
            {"protocolVersion": LEGACY, "capabilities": self.capabilities, "clientInfo": {"name": "scripted", "version": "1"}},
        )
        answer = await hello.over()
        self.notification("notifications/initialized", {})
        return answer

    def request(self, method: str, params: object = None, *, id: Any = None, meta: Json | None = None) -> Call:
        """Send a request. Bytes go as they are."""
        self._serial += 1
        given = id if id is not None else self._serial
        if not isinstance(params, bytes):
            whole: Json = dict(params) if isinstance(params, dict) else {}
            own: Json = dict(meta or {})
            if self.modern:
                own["io.modelcontextprotocol/protocolVersion"] = MODERN
                own["io.modelcontextprotocol/clientCapabilities"] = self.capabilities
                own["io.modelcontextprotocol/clientInfo"] = {"name": "scripted", "version": "1"}
            if own:
                whole["_meta"] = {**own, **whole.get("_meta", {})}
            params = raw(whole)
        call = Call(self, given)
        line = envelope.request(raw(given), method, params)
        self.session.handle(envelope.parse(line), call)
        return call

    def call(self, name: str, arguments: object = None, *, id: Any = None, meta: Json | None = None, **more: Any) -> Call:
        """Call a tool."""
        params = {"name": name, **({"arguments": arguments} if arguments is not None else {}), **more}
        return self.request("tools/call", params, id=id, meta=meta)

    def notification(self, method: str, params: object) -> None:
        """Send a notification."""
        self.session.handle(envelope.parse(envelope.notification(method, raw(params))), Call(self, None))

    def cancel(self, id: Any, reason: str = "") -> None:
        """Say that an answer is no longer wanted."""
        self.notification("notifications/cancelled", {"requestId": id, **({"reason": reason} if reason else {})})

    def reply(self, request: Json, result: object) -> None:
        """Answer a request of the gateway's."""
        self.session.handle(envelope.parse(envelope.result(raw(request["id"]), raw(result))), Call(self, None))

    def leave(self) -> None:
        """Close the connection."""
        self.session.close()


class _SpyLog:
    """The receipt log, with what goes by told in the bench's log."""

    def __init__(self, bench: Bench, log: Any) -> None:
        self._bench = bench
        self._log = log
        self.records: dict[str, receipt.Record] = {}
        self.fail: EarnestError | None = None

    def append(self, record: receipt.Record) -> str:
        id: str = self._log.append(record)
        self.records[id] = record
        if isinstance(record, receipt.Decision):
            self._bench.log.append(("decision", id, record.decision))
        elif isinstance(record, receipt.Outcome):
            self._bench.log.append(("outcome", record.decision, record.outcome))
        return id

    def flush(self) -> None:
        if self.fail is not None:
            raise self.fail
        self._log.flush()
        self._bench.log.append(("flushed",))


class Person:
    """Who answers at a terminal (`ControlPeer`); `by_model` where a model started the command."""

    def __init__(self, by_model: bool = False) -> None:
        self.uid = 1000
        self.pid = 4242
        self.by_model = by_model
        self.env: dict[str, str] = {}
        self.cwd = "/"
        self.config = ""
        self.chain: tuple[object, ...] = ()
        self.items: list[Any] = []

    async def reply(self, item: Any) -> None:
        self.items.append(item)


class Bench:
    """One gateway with what stands around it. `close` ends the application; `again` makes a new one on the same instance."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.clock = Clock()
        self.log: list[tuple[Any, ...]] = []
        self.servers: dict[str, ScriptedServer] = {}
        self.app: App
        self.receipts: _SpyLog
        self.person = Person()
        self._monkeypatch = monkeypatch
        self._clients: list[ScriptedClient] = []
        self._failures: list[dict[str, Any]] = []

    # the application

    def write(self, text: str) -> None:
        """Write `earnest.toml`; the servers of the bench are added."""
        tables = "".join(
            f'\n[servers.{name}]\ncommand = ["/bin/true", "{name}"]\n'
            for name in self.servers
            if f"[servers.{name}]" not in text
        )
        (self.folder / "earnest.toml").write_text(text + tables)

    async def start(self) -> None:
        """Build and start the application."""
        patch = self._monkeypatch
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        instance = self.folder / "instance"
        instance.mkdir(mode=0o700, exist_ok=True)
        patch.setenv("HOME", str(home))
        patch.setenv("EARNEST_HOME", str(self.folder / "state"))
        patch.setattr(app_module, "time", self.clock)
        log = logging.getLogger("earnest-bench")
        ctx = DaemonContext(
            instance=str(instance),
            config=str(self.folder / "earnest.toml"),
            named=True,
            log=log,
            children=Children(str(self.folder / "children")),
            stop=lambda reason: None,
        )
        app = self.app = App(ctx)
        self.receipts = _SpyLog(self, app.records._log)
        app.records._log = self.receipts
        await app.start()
        app.gateway._connect = self._connect
        app.gateway.now = self.clock.time
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: self._failures.append(context))

    def _connect(self, served: Served, client: ClientHello, *more: object) -> ScriptedLink:
        return ScriptedLink(self, self.servers[served.name], client)

    async def close(self) -> None:
        """End clients and application."""
        for client in self._clients:
            client.leave()
        self._clients.clear()
        await self.app.stop()

    async def again(self) -> None:
        """A new application on the same instance, as after a restart."""
        await self.close()
        await self.start()

    # clients

    async def client(
        self,
        server: str | None = "s",
        *,
        name: str = "c",
        modern: bool = False,
        process: str = "1",
        view: str = "",
        read_only: bool = False,
        capabilities: Json | None = None,
    ) -> ScriptedClient:
        """A client that has said hello. `server`: its route; None for all servers. `process`: its host."""
        settings = self.app.world.settings.client(name)
        key = (PRINCIPAL, process_part(int(process), "0"))
        who = Client(name, PRINCIPAL, key, settings.asks_person, settings.ask_host)
        if settings.idle_s:
            self.app.conversations.open(key, minted=True, idle_s=settings.idle_s)
        route = (
            Route("view", view, read_only)
            if view
            else Route("server", server, read_only)
            if server
            else Route("all", "", read_only)
        )

        def session_of(transport: ScriptedClient) -> Session:
            session = Session(self.app.gateway, who, route, transport, id=self.app.new_id("s"), modern=modern)
            self.app.gateway.join(session)
            return session

        client = ScriptedClient(self, session_of, modern=modern, capabilities=capabilities if capabilities is not None else {})
        self._clients.append(client)
        await client.open()
        return client

    # what a person does

    async def op(self, name: str, person: Person | None = None, **members: Any) -> Any:
        """Run an operation of the command line."""
        return await self.app.ops[name]({"op": name, **members}, person or self.person)  # type: ignore[arg-type]

    async def pending(self, count: int = 1) -> list[Json]:
        """What waits for a person, once there is that much."""
        await until(lambda: len(self.app.approvals.listed()) >= count)
        found: list[Json] = await self.op("approvals")
        return found

    async def approve(self, answer: str = "once") -> str:
        """Answer the oldest ask; its id."""
        id: str = (await self.pending())[0]["id"]
        await self.op("approve", id=id, answer=answer)
        return id

    # what was recorded

    def decisions(self) -> list[str]:
        """The words of all decision records, in order."""
        return [str(entry[2]) for entry in self.log if entry[0] == "decision"]

    def outcomes(self) -> list[str]:
        """The words of all outcome records, in order."""
        return [str(entry[2]) for entry in self.log if entry[0] == "outcome"]

    def dispatched(self) -> list[tuple[str, str]]:
        """Server and subject of each call that went out."""
        return [(entry[1], entry[2]) for entry in self.log if entry[0] == "dispatched"]

    def last_reasons(self) -> list[str]:
        """The rules that spoke in the last decision record."""
        last = [r for r in self.receipts.records.values() if isinstance(r, receipt.Decision)][-1]
        return [reason.rule for reason in last.reasons]

    def check_records(self) -> None:
        """Hold what every test leaves behind: each decision has one outcome at most, and no call was sent twice."""
        decided: set[str] = set()
        ended: set[str] = set()
        for entry in self.log:
            if entry[0] == "decision":
                decided.add(entry[1])
            elif entry[0] == "outcome":
                assert entry[1] in decided and entry[1] not in ended, f"{entry} has no decision of its own"
                ended.add(entry[1])
        for server in self.servers.values():
            assert len({(id(call.link), call.id) for call in server.calls}) == len(server.calls), "a call was sent twice"


async def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until a condition holds; the loop is given every chance first."""
    for _ in range(50):
        if condition():
            return
        await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        assert loop.time() < end, "what was waited for did not happen"
        await asyncio.sleep(0.002)


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(30):
        await asyncio.sleep(0)


@asynccontextmanager
async def bench(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *servers: ScriptedServer,
    text: str = "",
    trust: Mapping[str, str] | None = None,
) -> AsyncIterator[Bench]:
    """A running gateway with these servers. `text`: what `earnest.toml` says besides; `trust`: by server."""
    made = Bench(folder, monkeypatch)
    made.servers = {server.name: server for server in servers}
    tables = "".join(
        f'\n[servers.{name}]\ncommand = ["/bin/true", "{name}"]\ntrust = "{word}"\n' for name, word in (trust or {}).items()
    )
    made.write(text + tables)
    await made.start()
    try:
        yield made
        made.check_records()
        assert not made._failures, made._failures
    finally:
        await made.close()
