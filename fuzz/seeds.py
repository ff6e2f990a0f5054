"""What a fuzzer begins with: the shapes of tests/faults, the files that ship, and inputs that once broke something."""

from __future__ import annotations

import asyncio
from pathlib import Path

from faults.wire.answer_shapes import LIES
from faults.wire.client import Ground
from faults.wire.http_shapes import SHAPES
from faults.wire.json_shapes import TEXTS
from faults.wire.upstream import Turn

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 20_000
"""Larger shapes test limits, which a fuzzer of bytes cannot learn from."""


class _Sink:
    """The writing side of a connection of a server that lies."""

    def __init__(self) -> None:
        self.data = b""
        self.transport = self

    def write(self, data: bytes) -> None:
        self.data += data

    def is_closing(self) -> bool:
        return len(self.data) > 1000

    async def drain(self) -> None:
        return None

    def __getattr__(self, name: str) -> object:
        return lambda *args: None


async def _answers() -> list[bytes]:
    async def one(lie: object) -> bytes:
        sink = _Sink()
        turn = Turn("7", True, None, sink, asyncio.Event())  # type: ignore[arg-type]
        await lie.act(turn)  # type: ignore[attr-defined]
        return sink.data

    return list(await asyncio.gather(*(one(lie) for lie in LIES)))


def seeds(target: str) -> list[bytes]:
    """Seeds of one target."""
    found = [file.read_bytes() for file in sorted((ROOT / "fuzz" / "regressions").glob(f"{target}-*"))]
    grounds = [Ground(80, "t" * 43, True), Ground(80, "t" * 43, False, session="s")]
    if target == "listener":
        for shape in SHAPES:
            parts = [part for part in shape.send(grounds[0]) if isinstance(part, bytes)]
            found.append(b"\x80" + b"".join(parts))
    elif target == "response":
        found += [b"\x80" + data for data in asyncio.run(_answers())]
    elif target == "sse":
        bodies = [data.partition(b"\r\n\r\n")[2] for data in asyncio.run(_answers()) if b"event-stream" in data]
        found += [b"\x40" + body for body in bodies] + [b"\x80id: 1\nevent: x\ndata: a\r\ndata:b\r\rretry: 5\n: c\n\n"]
    elif target == "tracks":
        whole = [data.partition(b"\r\n\r\n")[2] for data in asyncio.run(_answers())]
        found += [body.partition(b'"result":')[2][:-1] for body in whole]
        found += [text.body(grounds[1]).partition(b'"arguments":')[2][:-2] for text in TEXTS]
        found += [b'{"path":"~/.claude.json"}', b'{"a":"e.a.r.n.e.s.t"}', b'{"content":[],"isError":true}']
    elif target in ("message", "line"):
        found += [text.body(ground) for text in TEXTS for ground in grounds]
        found += [data.partition(b"\r\n\r\n")[2] for data in asyncio.run(_answers())]
    elif target == "canonical":
        bodies = [text.body(grounds[1]) for text in TEXTS]
        found += bodies + [body.partition(b'"arguments":')[2][:-2] for body in bodies]
    elif target == "headers":
        found += [b"=?base64?ZWNobw==?=", b"echo", b"a b ", b'{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}']
    elif target == "settings":
        found += [file.read_bytes() for file in sorted((ROOT / "examples").glob("*.toml"))]
    elif target == "policy":
        found += [file.read_bytes() for file in sorted((ROOT / "src" / "earnest" / "presets").glob("*.toml"))]
        found += [b"tool.read_only && !(args.n in [1, 'a']) || size(args.l) > 2 ? true : args.s.matches('^a')"]
    elif target == "clients":
        found += [b'{"mcpServers":{"a":{"command":"npx","args":["-y","x"],"env":{"K":"${V}"}}}}', b"// c\n[1,]"]
        found += [b'[mcp_servers.a]\ncommand = "npx"\nargs = ["x"]\n']
    return [data for data in dict.fromkeys(found) if len(data) <= MOST_BYTES]
