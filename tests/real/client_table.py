"""Run every client library of `scripts/clients.toml` through earnest, over pipes and over HTTP; write what came out as a page.

    python tests/real/client_table.py docs/clients-tested.md [NAME...]

Each lists the tools of a published server and calls three of them; what it got is compared with what the server says. Exit code
1 where one does not work.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from conformance import legs  # noqa: E402
from conformance.relay import Relay  # noqa: E402

HERE = Path(__file__).parent / "clients"
INSTALLED = ROOT / ".servers"
PINS = tomllib.loads((ROOT / "scripts" / "clients.toml").read_text())
SERVER = tomllib.loads((ROOT / "scripts" / "servers.toml").read_text())["filesystem"]
PATIENCE_S = 120.0
TEXT = "ünï\U0001f600"

HEAD = """# Clients that were tried

Made by `make clients`; not written by hand.

Client libraries against a running `earnest serve` with `{server}` {version} behind it, over pipes
(`earnest stdio files`) and over HTTP (`/s/files/mcp`, with a token), under one rule that allows all. Each lists the server's
tools, reads a file whose text is no ASCII, writes one, and reads one that the server refuses; it works if the list is whole,
both texts are right and the refusal arrives as an error. The revision is the one that was spoken when the tools were called,
overheard on the way.

| client | package | version | over pipes | over HTTP |
|---|---|---|---|---|
"""


class Overhearing(Relay):
    """A relay that adds nothing and notes the revision that each request names."""

    def __init__(self, port: int) -> None:
        super().__init__(port, "")
        self.heard: list[str] = []

    def _changed(self, head: bytes) -> bytes:
        self.heard += [one.decode() for one in re.findall(rb"(?i)\r\nmcp-protocol-version: *([0-9-]+)", head)]
        changed = super()._changed(head)
        return changed.replace(b"Authorization: Bearer \r\n", b"")


@dataclass(frozen=True)
class Outcome:
    """How one client fared one way: the revision, and what is wrong (empty if nothing is)."""

    revision: str
    wrong: str

    def __str__(self) -> str:
        return f"works, {self.revision}" if not self.wrong else f"**does not**: {self.wrong}"


def program(client: Mapping[str, Any]) -> list[str]:
    """The command of a client's small program, without what it is given."""
    place = INSTALLED / client["place"]
    file = str(HERE / client["program"])
    if client["program"].endswith(".mjs"):
        return [shutil.which("node") or "node", file]
    return [str(place / "bin" / "python") if "pypi" in client else sys.executable, file]


def behind(client: Mapping[str, Any]) -> list[str]:
    """What its program needs to know of where the package is."""
    if "npm" not in client:
        return []
    package = INSTALLED / client["place"] / "node_modules" / client["npm"]
    if client["program"].endswith(".mjs"):
        return [str(package)]
    node = str(legs.node() or "node")  # it wants a newer one than most machines have
    return [json.dumps([node, str(package.parents[1] / ".bin" / "mcp-inspector")])]


async def said(client: Mapping[str, Any], given: Mapping[str, Any], home: Path) -> tuple[dict[str, Any], str]:
    """What a client says of its tools and results, and what went wrong if it says nothing."""
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    process = await asyncio.create_subprocess_exec(
        *program(client), json.dumps(given), *behind(client), env=env, cwd=home, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return {}, f"did not end within {PATIENCE_S:g} s"
    if process.returncode:
        last = err.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
        print(err.decode(errors="replace"), file=sys.stderr)
        return {}, last[-1][:200]
    return json.loads(out.decode().strip().splitlines()[-1]), ""


def judged(answer: Mapping[str, Any], folder: Path, tools: int) -> str:
    """What is wrong with what a client got; empty if nothing is."""
    names = {tool["name"] for tool in answer["tools"]}
    if len(names) != tools:
        return f"lists {len(names)} of {tools} tools"
    read, wrote, refused = answer["results"]
    text = "".join(block.get("text", "") for block in read.get("content", ()))
    if TEXT not in text:
        return f"reads {text[:60]!r}"
    if wrote.get("isError") or (folder / "b.txt").read_text() != TEXT:
        return "does not write"
    if not refused.get("isError"):
        return "takes a refusal for a result"
    return ""


def spoken(log: str) -> str:
    """The revision that was spoken over pipes when tools were called."""
    calls = [line for line in log.splitlines() if line.startswith("> ") and '"tools/call"' in line.replace(" ", "")]
    own = re.findall(r'modelcontextprotocol/protocolVersion"\s*:\s*"([0-9-]+)"', calls[-1]) if calls else []
    told = [
        one
        for line in log.splitlines()
        if line.startswith("< ")
        for one in re.findall(r'"protocolVersion"\s*:\s*"([0-9-]+)"', line)
    ]
    return own[0] if own else told[-1] if told else "?"


async def tried(name: str, gateway: legs.Gateway, folder: Path, tools: int) -> tuple[Outcome, Outcome]:
    """One client, both ways."""
    client = PINS[name]
    calls = [
        ["read_text_file", {"path": str(folder / "a.txt")}],
        ["write_file", {"path": str(folder / "b.txt"), "content": TEXT}],
        ["read_text_file", {"path": "/etc/hostname"}],
    ]
    outcomes = []
    for way in ("stdio", "http"):
        (folder / "b.txt").unlink(missing_ok=True)
        log = folder.parent / f"{name}.log"
        async with Overhearing(gateway.port) as relay:
            if way == "stdio":
                earnest = [
                    sys.executable,
                    str(HERE / "overhear.py"),
                    str(log),
                    str(ROOT / ".venv" / "bin" / "earnest"),
                    "stdio",
                    "files",
                ]
                env = {**os.environ, **gateway.env, "HOME": str(gateway.home)}
                given: dict[str, Any] = {"stdio": {"command": earnest, "env": env, "cwd": str(folder)}}
            else:
                given = {"http": {"url": f"http://127.0.0.1:{relay.port}/s/files/mcp", "token": gateway.token}}
            answer, wrong = await said(client, {**given, "calls": calls}, folder.parent)
        revision = relay.heard[-1] if relay.heard else spoken(log.read_text()) if log.exists() else "?"
        outcomes.append(Outcome(revision, wrong or judged(answer, folder, tools)))
    return outcomes[0], outcomes[1]


async def main() -> int:
    """The page; how many do not work."""
    wanted = sys.argv[2:] or list(PINS)
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "files"
        folder.mkdir()
        (folder / "a.txt").write_text(TEXT)
        command = [str(INSTALLED / "npm" / "node_modules" / ".bin" / SERVER["program"]), str(folder)]
        lines = [HEAD.format(server=SERVER["npm"], version=SERVER["version"])]
        async with legs.gateway(Path(name) / "home", {"files": f"command = {json.dumps(command)}"}) as gateway:
            tools = await count(gateway)
            for one in wanted:
                print(f"{one} …", file=sys.stderr)
                pipes, http = await tried(one, gateway, folder, tools)
                bad += bool(pipes.wrong or http.wrong)
                client = PINS[one]
                package = client.get("npm") or client["pypi"]
                lines.append(f"| {client['title']} | `{package}` | {client['version']} | {pipes} | {http} |\n")
    Path(sys.argv[1]).write_text("".join(lines))
    return min(bad, 1)


async def count(gateway: legs.Gateway) -> int:
    """How many tools there are, asked by hand."""
    from servers.client import HttpClient

    client = HttpClient(f"http://127.0.0.1:{gateway.port}/s/files/mcp", gateway.token)
    await client.open()
    tools = await client.list_all()
    await client.close()
    return len(tools)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
