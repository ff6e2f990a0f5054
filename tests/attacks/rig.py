"""A home, a configuration, the real daemon, clients, and a person beside them, for attacks and faults."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from earnest.core.receipt import Checkpoint
from earnest.gateway.app import SIGNING_KEYS
from earnest.gateway.process.peers import process
from earnest.store.read import Receipt, receipts, verify_all
from earnest.store.sqlite import open_store
from person import Person
from servers.client import HttpClient, StdioClient
from servers.record import Record

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent.parent
SHIM = ["sh", str(ROOT / "bin" / "earnest")]
SCRIPTED = str(ROOT / "tests" / "servers" / "scripted.py")


def tool(name: str, *, schema: Json | None = None, **annotations: bool) -> Json:
    """A tool as a server lists it."""
    made: Json = {"name": name, "description": f"does {name}", "inputSchema": schema or {"type": "object"}}
    return {**made, "annotations": annotations} if annotations else made


READ = {"readOnlyHint": True, "openWorldHint": False}
"""What a tool claims that reads at home."""


def text_of(message: Json) -> str:
    """The first text of a tool's result."""
    return str(message["result"]["content"][0]["text"])


def refused(message: Json) -> bool:
    """Whether a call was answered with a refusal of earnest's: an error result or an error."""
    return "error" in message or bool(message["result"].get("isError"))


class Rig:
    """See the module. Add servers, then start clients; the daemon comes with the first."""

    def __init__(self, home: Any, folder: Path) -> None:
        self.home = home
        self.folder = folder
        # The command looks for an interpreter beside itself, then on the PATH.
        self.env: dict[str, str] = {**home.env, "PATH": f"{os.path.dirname(sys.executable)}:{home.env['PATH']}"}
        self.clients: list[StdioClient] = []
        self._https: list[HttpClient] = []
        self._toml: list[str] = []
        self.person = Person(home, self.env)
        self.asking = "hold_s = 1"
        """What `[asking]` holds: a call that nobody approves is told so soon."""

    # the configuration

    def add(self, toml: str) -> None:
        """More of earnest.toml. Lines without a table come first."""
        self._toml.append(toml)
        self._toml.sort(key=lambda part: part.lstrip().startswith("["))
        self.home.config.write_text("\n".join([*self._toml, f"[asking]\n{self.asking}\n"]))

    def server(self, name: str, script: Mapping[str, Any], *, trust: str = "", more: str = "") -> Record:
        """Configure a scripted server; what it received is in the record."""
        command, record = self.script(name, script)
        trusted = f"trust = {json.dumps(trust)}\n" if trust else ""
        self.add(f"[servers.{name}]\ncommand = {json.dumps(command)}\n{trusted}{more}")
        return record

    def script(self, name: str, script: Mapping[str, Any]) -> tuple[list[str], Record]:
        """A scripted server's command and record."""
        record = self.folder / f"{name}.record.jsonl"
        file = self.folder / f"{name}.script.json"
        file.write_text(json.dumps({**script, "record": str(record)}))
        return [sys.executable, "-S", SCRIPTED, str(file)], Record(record)

    @property
    def instance(self) -> Path:
        """The folder of the daemon's instance."""
        return self.home.earnest / "default"

    # clients

    async def stdio(
        self, name: str, *own: str, client: str = "", cwd: Path | None = None, era: str = "legacy", **more: Any
    ) -> StdioClient:
        """A client on `earnest stdio NAME`, opened."""
        found = await self.shim(name, *own, client=client, cwd=cwd)
        await found.open(era, **more)
        return found

    async def shim(self, name: str, *own: str, client: str = "", cwd: Path | None = None) -> StdioClient:
        """The same, not opened."""
        words = [*SHIM, "stdio", name, *(("--client", client) if client else ()), *(("--", *own) if own else ())]
        found = await StdioClient.start(words, env=self.env, cwd=str(cwd or self.folder))
        self.clients.append(found)
        return found

    async def http(self, path: str, era: str = "legacy", token: str | None = None, **more: Any) -> HttpClient:
        """A client over HTTP, opened."""
        address, own = await self.person.listening()
        client = HttpClient(address + path, own if token is None else token)
        self._https.append(client)
        await client.open(era, **more)
        return client

    # people

    async def asked(self, count: int = 1, timeout: float = 60.0) -> list[Json]:
        """What waits for a person, once it is as much as `count`."""
        end = time.monotonic() + timeout
        while len(found := await self.person("approvals")) < count:
            assert time.monotonic() < end, f"{len(found)} asks, not {count}; {self.log()}"
            await asyncio.sleep(0.03)
        return list(found)

    async def approve(self, answer: str = "once") -> Json:
        """Answer the one ask that waits; returns it."""
        (ask,) = await self.asked()
        await self.person("approve", id=ask["id"], answer=answer)
        return ask

    # the daemon

    async def daemon(self) -> int:
        """Its process id."""
        return int((await self.person.as_model("ping"))["pid"])

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Signal the daemon and wait for its end; returns its former id."""
        pid = await self.daemon()
        os.kill(pid, number)
        await gone(pid)
        return pid

    def log(self) -> str:
        """The end of the daemon's log."""
        with contextlib.suppress(OSError):
            return (self.instance / "daemon.log").read_text(errors="replace")[-3000:]
        return "(no log)"

    async def close(self) -> None:
        """End the clients."""
        await asyncio.gather(*(client.close() for client in self._https))
        await asyncio.gather(*(client.close(timeout=3) for client in self.clients))

    # the record

    def receipts(self, **by: Any) -> list[Receipt]:
        """All receipts that are written, oldest first."""
        return list(receipts(str(self.instance / "receipts"), **by))

    def decided(self, **by: Any) -> list[tuple[str, str, str | None]]:
        """Tool, decision and outcome of tool calls, oldest first."""
        return [(r.tool, r.decision, r.outcome) for r in self.receipts(**by) if r.method == "tools/call"]

    async def settled(self, *decided: tuple[str, str, str | None], timeout: float = 60.0) -> None:
        """Wait until exactly these are the receipts of tool calls."""
        end = time.monotonic() + timeout
        while self.decided() != list(decided):
            assert time.monotonic() < end, f"{self.decided()}, not {list(decided)}; {self.log()}"
            await asyncio.sleep(0.02)

    def verify(self) -> int:
        """Verify all chains against what the store knows of them; returns how many records are intact."""
        store = open_store(str(self.instance / "store.db"), read_only=True)
        try:
            heads = [Checkpoint(h.writer, h.seq, h.head, h.time) for h in store.heads()]
            keys = json.loads(store.meta(SIGNING_KEYS) or "[]")
        finally:
            store.close()
        whole = 0
        for report in verify_all(str(self.instance / "receipts"), heads, keys):
            assert report.intact, report
            whole += report.records
        return whole


async def gone(pid: int, timeout: float = 60.0) -> None:
    """Wait until a process has ended (a zombie has)."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        await asyncio.sleep(0.01)
    raise TimeoutError(f"process {pid} is still there: {process(pid)}")


async def eventually(condition: Callable[[], Any], timeout: float = 60.0, why: str = "") -> Any:
    """Wait until a condition on the outside world holds; returns what it gave."""
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, why or "it did not come to be"
        await asyncio.sleep(0.02)
    return found


@asynccontextmanager
async def rigged(home: Any, folder: Path) -> AsyncIterator[Rig]:
    """A rig that ends its clients."""
    rig = Rig(home, folder)
    try:
        yield rig
    finally:
        await rig.close()


def run_words(words: Sequence[str]) -> str:
    """An argument list as one line of shell."""
    import shlex

    return " ".join(shlex.quote(word) for word in words)
