"""One gateway between raw sockets, and a bystander: a client that calls all the while and must not notice anything."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from earnest.core.receipt import Decision, Line, Outcome, read_line
from earnest.store import segments
from faults.wire.client import Ground, Wire
from faults.wire.reading import digest
from faults.wire.upstream import Called, Upstream
from gateway.live import Live, gateways

LIMITS = """[limits]
head_s = 2
body_s = 2
call_timeout_s = 2
call_hard_timeout_s = 2
restarts = 1000
restart_wait_s = 0.01
"""


class Field:
    """See the module."""

    def __init__(self, live: Live, upstream: Upstream, other: Upstream, cross: Upstream, ground: Ground) -> None:
        self.live = live
        self.cross = cross
        """A server of the other era, `cross`."""
        self.upstream = upstream
        """The server `up`."""
        self.other = other
        """The server `other`, which the bystander calls."""
        self.ground = ground
        self._record = Tail(Path(live.app.ctx.instance) / "receipts")
        self._seen = 0
        self._after = 0
        self._bystander: Bystander

    async def begin(self) -> None:
        """Start the bystander."""
        ground = Ground(self.ground.port, self.ground.token, self.ground.modern, "/s/other/mcp")
        await ground.enter()
        self._bystander = Bystander(ground)
        await self._bystander.called(1)

    async def end(self) -> None:
        """Stop it; all of its calls must have been answered, each with its own answer. No call reached a server without a
        receipt, and none is on record that did not."""
        await self._bystander.stop()
        await self.receipts(allowed=0)
        assert len(self.other.calls) == self._bystander.count

    async def undisturbed(self) -> None:
        """Hold that the bystander still gets its answers, in time."""
        await self._bystander.called(2)

    def reached(self) -> list[Called]:
        """The calls that reached the server since this was last asked."""
        new = self.upstream.calls[self._seen :]
        self._seen = len(self.upstream.calls)
        return new

    def reached_by(self, lie: str) -> list[Called]:
        """The calls of `bad` that reached the server, with this argument."""
        return [call for call in self.upstream.calls if call.name == "bad" and call.arguments["lie"] == lie]

    async def receipts(self, *, allowed: int) -> list[Decision]:
        """The last so many receipts of calls that were let through to `up`, once each has its outcome."""
        for _ in range(500):
            found = [one for one in self._record.decisions("up") if one.decision == "allow" and one.method == "tools/call"]
            if len(found) >= len(self.upstream.calls) and self._record.settled("up"):
                break
            await asyncio.sleep(0.01)
        assert len(found) == len(self.upstream.calls), "calls that reached the server, and receipts that allow one"
        return found[len(found) - allowed :]

    async def receipt(self, arguments: Any) -> tuple[Decision, Outcome]:
        """The one receipt of a call of `bad` with these arguments, once it has its outcome."""
        wanted = digest(arguments)
        for _ in range(500):
            found = [one for one in self._record.pairs("up") if one[0].tool == "bad" and one[0].arguments_sha256 == wanted]
            if found and all(outcome for _, outcome in found):
                break
            await asyncio.sleep(0.01)
        ((decision, outcome),) = found
        assert outcome is not None
        return decision, outcome

    async def what_was_judged_is_what_was_forwarded(self, *, calls: int) -> list[Called]:
        """Hold that so many calls reached the server since the last look, each as its receipt has it."""
        reached = self.reached()
        assert len(reached) == calls
        if not calls:
            return []
        for call, receipt in zip(reached, await self.receipts(allowed=calls), strict=True):
            assert (receipt.server, receipt.method, receipt.tool) == ("up", "tools/call", call.name)
            assert receipt.arguments_sha256 == digest(call.arguments)
            if self.upstream.modern:
                assert (call.headers["mcp-method"], call.headers["mcp-name"]) == ("tools/call", call.name)
            else:
                assert not [name for name in call.headers if name.startswith("mcp-") and name not in LEGACY_FIELDS]
        return reached

    async def serves(self, wire: Wire) -> bool:
        """Whether a connection still serves: an honest call on it gets its own answer. It is taken off the record."""
        self._after += 1  # one session may serve several of these at once
        await wire.send(self.ground.honest(id=b'"after-%d"' % self._after))
        answer = await wire.answer()
        self.reached()
        return answer is not None and answer.status == 200 and "result" in answer.message


LEGACY_FIELDS = ("mcp-protocol-version", "mcp-session-id")


class Tail:
    """The receipts on disk, of which each look reads what is new: the bystander writes all the while."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}
        self._decisions: dict[str, Decision] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._of: dict[str, list[str]] = {}

    def pairs(self, server: str) -> list[tuple[Decision, Outcome | None]]:
        """Decisions on calls of a server with their outcomes, in the order written."""
        folder = str(self._folder)
        for writer in segments.writers(folder):
            for path in segments.segments(folder, writer):
                with open(path, "rb") as file:
                    file.seek(self._read.get(path, 0))
                    data = file.read()
                whole = data[: data.rfind(b"\n") + 1]
                self._read[path] = self._read.get(path, 0) + len(whole)
                for line in whole.splitlines():
                    self._take(read_line(line))
        return [(self._decisions[id], self._outcomes.get(id)) for id in self._of.get(server, ())]

    def _take(self, line: Line) -> None:
        if isinstance(line.record, Decision):
            self._decisions[line.id] = line.record
            self._of.setdefault(line.record.server, []).append(line.id)
        elif isinstance(line.record, Outcome):
            self._outcomes[line.record.decision] = line.record

    def decisions(self, server: str) -> list[Decision]:
        """All decisions on calls of a server."""
        return [decision for decision, _ in self.pairs(server)]

    def settled(self, server: str) -> bool:
        """Whether each call of a server that was let through has its outcome."""
        return all(outcome for decision, outcome in self.pairs(server) if decision.decision == "allow")


class Bystander:
    """A client of its own connection and server that calls one after the other."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._going = True
        self._news = asyncio.Event()
        self.count = 0
        self._task = asyncio.create_task(self._call())

    async def _call(self) -> None:
        wire = await Wire.open(self._ground.port)
        while self._going:
            n = self.count
            await wire.send(self._ground.honest(b'{"n":%d}' % n, b'"by-%d"' % n))
            answer = await wire.answer()
            assert answer is not None and answer.status == 200, f"the bystander got {answer}"
            message: Any = answer.message
            assert message["id"] == f"by-{n}" and "result" in message, f"the bystander got {json.dumps(message)[:300]}"
            self.count += 1
            self._news.set()
            await asyncio.sleep(0.005)
        wire.close()

    async def called(self, more: int) -> None:
        """Wait until it has been answered so many times more."""
        wanted = self.count + more
        async with asyncio.timeout(20):
            while self.count < wanted:
                assert not self._task.done(), self._task.exception()
                self._news.clear()
                await self._news.wait()

    async def stop(self) -> None:
        """Stop behind the call under way."""
        self._going = False
        await self._task


@asynccontextmanager
async def fielded(folder: Path, patch: pytest.MonkeyPatch, *, modern: bool) -> AsyncIterator[Field]:
    """A running one."""
    upstream, other, cross = Upstream(modern=modern), Upstream(modern=modern), Upstream(modern=not modern)
    async with gateways(folder, patch) as start:
        servers = {"up": upstream, "other": other, "cross": cross}
        tables = {name: {"url": await server.start(), "trust": "trusted"} for name, server in servers.items()}
        live = await start(tables, more=LIMITS)
        assert live.app.listener is not None
        ground = Ground(live.app.listener.address[1], live.token, modern)
        await ground.enter()
        made = Field(live, upstream, other, cross, ground)
        await made.begin()
        try:
            yield made
            await made.end()
        finally:
            await asyncio.gather(*(server.stop() for server in servers.values()))
