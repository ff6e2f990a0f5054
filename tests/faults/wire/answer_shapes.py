# ruff: noqa: E501 (one row is one line)
"""What a server may do wrong with its answer, or oddly but rightly: each the other direction of a client's shape."""

import asyncio
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from faults.wire.upstream import Misbehaviour, Turn

Outcome = Literal["ok", "protocol-error", "malformed", "lost", "timeout"]


@dataclass(frozen=True)
class Lie:
    """One row: what the server does, what the receipt says came of the call, whether its connection may be used again.

    `outcome` `ok`: the client has the server's result; anything else: it is told that there is none, and never a part of one.
    """

    name: str
    act: Misbehaviour
    outcome: Outcome
    kept: bool = False

    @property
    def slow(self) -> bool:
        """Whether it ends by a time limit."""
        return self.outcome == "timeout" or self.name == "an answer, then more without end"


def raw(*parts: bytes | float, then: str = "") -> Misbehaviour:
    """These bytes, BODY standing for an honest result and SIZE for its size; numbers are seconds. `then`: close or reset."""

    async def act(turn: Turn) -> None:
        body = turn.result()
        for part in parts:
            if isinstance(part, float):
                await asyncio.sleep(part)
            else:
                turn.send(part.replace(b"LENGTH", b"%d" % len(body)).replace(b"SIZE", b"%x" % len(body)).replace(b"BODY", body))
        await turn.writer.drain()
        if then == "reset":
            turn.reset()
        elif then == "close":
            turn.writer.close()
        elif then == "half":
            turn.writer.write_eof()

    return act


def says(body: Callable[[Turn], bytes], *headers: str, status: str = "200 OK", kind: str = "application/json") -> Misbehaviour:
    """A well-framed answer with this body."""

    async def act(turn: Turn) -> None:
        turn.answer(body(turn), *headers, status=status, kind=kind)

    return act


def swapped(old: bytes, new: bytes) -> Misbehaviour:
    """An honest result with one part replaced."""

    def body(turn: Turn) -> bytes:
        whole = turn.result()
        assert whole.count(old) == 1, (old, whole)
        return whole.replace(old, new)

    return says(body)


def inside(raw_json: str) -> Misbehaviour:
    """An honest result with one more member."""
    return says(lambda turn: turn.result(more=f',"structuredContent":{raw_json}'))


def stream(*events: bytes, end: bool = True, endless: bytes = b"") -> Misbehaviour:
    """An event stream; BODY is an honest result. `endless`: sent again and again until the connection ends."""

    async def act(turn: Turn) -> None:
        turn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

        def chunk(data: bytes) -> None:
            turn.send(b"%x\r\n%b\r\n" % (len(data), data))

        for event in events:
            chunk(event.replace(b"BODY", turn.result()).replace(b"ID", turn.id.encode()))
        while endless and not turn.writer.is_closing():
            chunk(endless)
            await turn.writer.drain()
            await asyncio.sleep(0.01 if len(endless) < 1000 else 0)
        if end and not endless:
            turn.send(b"0\r\n\r\n")

    return act


async def silent(turn: Turn) -> None:
    """No answer at all."""


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
FRAMED = HEAD + b"Content-Length: LENGTH\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GOOD = b"SIZE\r\nBODY\r\n0\r\n\r\n"
ERROR = b'"error":{"code":-32000,"message":"no"}'
EVENT = b"data: BODY\n\n"
BOMB = gzip.compress(b" " * 50_000_000)

LIES: list[Lie] = [
    # time and endings
    Lie("silence", silent, "timeout"),
    Lie("slow head", raw(HEAD), "timeout"),
    Lie("slow body", raw(FRAMED + b"\r\n", b"{"), "timeout"),
    Lie("close before an answer", raw(then="close"), "lost"),
    Lie("reset before an answer", raw(then="reset"), "lost"),
    Lie("close in the head", raw(HEAD, then="close"), "lost"),
    Lie("reset in the head", raw(HEAD, then="reset"), "lost"),
    Lie("close in the body", raw(FRAMED + b'\r\n{"jsonrpc":', then="close"), "lost"),
    Lie("reset in the body", raw(FRAMED + b'\r\n{"jsonrpc":', 0.02, then="reset"), "lost"),
    Lie("half close in the body", raw(FRAMED + b'\r\n{"jsonrpc":', then="half"), "lost"),
    Lie("half close behind the answer", raw(FRAMED + b"\r\nBODY", then="half"), "ok"),
    Lie("body byte by byte", raw(FRAMED + b"\r\n", *(bytes([c]) for c in b" " * 20), b"BODY", then="close"), "lost"),
    # length
    Lie("length too short", raw(HEAD + b"Content-Length: 30\r\n\r\nBODY"), "lost"),
    Lie("length too long", raw(HEAD + b"Content-Length: 9000\r\n\r\nBODY", then="close"), "lost"),
    Lie("a second answer behind the first", raw(FRAMED + b"\r\nBODY" + FRAMED + b"\r\nBODY"), "ok"),
    Lie("bytes behind the answer", raw(FRAMED + b"\r\nBODY\0\0"), "ok"),
    Lie("no length, end by close", raw(HEAD + b"\r\nBODY", then="close"), "ok"),
    Lie("no length, half an answer", raw(HEAD + b'\r\n{"jsonrpc":', then="close"), "lost"),
    Lie("negative length", raw(HEAD + b"Content-Length: -5\r\n\r\nBODY"), "lost"),
    Lie("signed length", raw(HEAD + b"Content-Length: +LENGTH\r\n\r\nBODY"), "lost"),
    Lie("length as a list", raw(HEAD + b"Content-Length: LENGTH, LENGTH\r\n\r\nBODY"), "lost"),
    Lie("length of 30 digits", raw(HEAD + b"Content-Length: 1" + b"0" * 29 + b"\r\n\r\nBODY"), "lost"),
    Lie("length past the limit", raw(HEAD + b"Content-Length: 99000000\r\n\r\n"), "timeout"),
    Lie("length twice", raw(FRAMED + b"Content-Length: LENGTH\r\n\r\nBODY"), "lost"),
    Lie("length twice, another", raw(FRAMED + b"Content-Length: 3\r\n\r\nBODY"), "lost"),
    # chunks
    Lie("chunks", raw(CHUNKED + GOOD), "ok", True),
    Lie("chunk longer than its size", raw(CHUNKED + b"5\r\nBODY\r\n0\r\n\r\n"), "lost"),
    Lie("chunk shorter than its size", raw(CHUNKED + b"fff\r\nBODY\r\n0\r\n\r\n", then="close"), "lost"),
    Lie("chunk size no number", raw(CHUNKED + b"zz\r\nBODY\r\n0\r\n\r\n"), "lost"),
    Lie("chunk size past 64 bits", raw(CHUNKED + b"fffffffffffffffff\r\nBODY\r\n0\r\n\r\n"), "lost"),
    Lie("no last chunk", raw(CHUNKED + b"SIZE\r\nBODY\r\n", then="close"), "lost"),
    Lie("length and coding", raw(FRAMED + b"Transfer-Encoding: chunked\r\n\r\n" + GOOD), "lost"),
    Lie("coding twice", raw(HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + GOOD), "lost"),
    Lie("coding gzip, chunked", raw(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + GOOD), "lost"),
    Lie("coding in HTTP/1.0", raw(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + GOOD), "lost"),
    # lines
    Lie("folded line", raw(FRAMED + b"X-A: a\r\n b\r\n\r\nBODY"), "lost"),
    Lie("bare line feeds", raw(b"HTTP/1.1 200 OK\nContent-Length: LENGTH\n\nBODY"), "lost"),
    Lie("NUL in a value", raw(FRAMED + b"X-A: a\0b\r\n\r\nBODY"), "lost"),
    Lie("space before a colon", raw(FRAMED + b"X-A : b\r\n\r\nBODY"), "lost"),
    Lie("line without a colon", raw(FRAMED + b"X-A\r\n\r\nBODY"), "lost"),
    Lie("1,000 fields", raw(FRAMED + b"".join(b"X-%d: a\r\n" % n for n in range(1000)) + b"\r\nBODY"), "lost"),
    Lie("a head of 1 MB", raw(FRAMED + b"X-A: " + b"a" * 1_000_000 + b"\r\n\r\nBODY"), "lost"),
    Lie("a head without end", raw(FRAMED + b"X-A: " + b"a" * 1_000_000), "lost"),
    # status
    Lie("no HTTP", raw(b"BODY\r\n\r\n", then="close"), "lost"),
    Lie("HTTP/2", raw(b"HTTP/2 200 OK\r\n\r\nBODY"), "lost"),
    Lie("status 99", raw(b"HTTP/1.1 99 Odd\r\n\r\n"), "lost"),
    Lie("status of four digits", raw(b"HTTP/1.1 2000 OK\r\n\r\n"), "lost"),
    Lie("an unasked 100 first", raw(b"HTTP/1.1 100 Continue\r\n\r\n" + FRAMED + b"\r\nBODY"), "ok", True),
    Lie("103 first", raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + FRAMED + b"\r\nBODY"), "ok", True),
    Lie("5,000 times 100", raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 5000), "lost"),
    Lie("101", raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nBODY"), "lost"),
    Lie("204 with a body", raw(b"HTTP/1.1 204 No Content\r\nContent-Length: LENGTH\r\n\r\nBODY"), "lost"),
    Lie("301", says(lambda turn: b"", "Location: http://127.0.0.1:1/mcp", status="301 Moved"), "lost", True),
    Lie("307 to another host", says(lambda turn: b"", "Location: https://other.example/mcp", status="307 Moved"), "lost", True),
    Lie("401", says(lambda turn: b"{}", status="401 Unauthorized"), "lost", True),
    Lie("404", says(lambda turn: b"nothing here", status="404 Not Found", kind="text/plain"), "lost", True),
    Lie("500 with a page", says(lambda turn: b"<html>", status="500 Internal", kind="text/html"), "lost", True),
    Lie("500 with a result", says(lambda turn: turn.result(), status="500 Internal"), "lost", True),
    Lie("500 with an error", says(lambda turn: b'{"jsonrpc":"2.0","id":%b,%b}' % (turn.id.encode(), ERROR), status="500 X"), "protocol-error", True),
    Lie("200 and nothing", says(lambda turn: b""), "lost", True),
    Lie("202", says(lambda turn: b"", status="202 Accepted"), "lost", True),
    # content
    Lie("gzip", says(lambda turn: gzip.compress(turn.result()), "Content-Encoding: gzip"), "lost"),
    Lie("gzip bomb", says(lambda turn: BOMB, "Content-Encoding: gzip"), "lost"),
    Lie("gzip that is none", says(lambda turn: turn.result(), "Content-Encoding: gzip"), "lost"),
    Lie("no type", says(lambda turn: turn.result(), kind=""), "lost", True),
    Lie("a page", says(lambda turn: b"<html>", kind="text/html"), "lost", True),
    Lie("type twice", says(lambda turn: turn.result(), "Content-Type: text/html"), "lost", True),
    Lie("UTF-16", says(lambda turn: turn.result().decode().encode("utf-16"), kind="application/json; charset=utf-16"), "lost", True),
    Lie("10 MiB of spaces first", says(lambda turn: b" " * (10 << 20) + turn.result()), "ok", True),
    Lie("25 MiB of spaces first", says(lambda turn: b" " * (25 << 20) + turn.result()), "lost"),
    # JSON
    Lie("no JSON", says(lambda turn: b"nonsense"), "lost", True),
    Lie("byte order mark", says(lambda turn: b"\xef\xbb\xbf" + turn.result()), "lost", True),
    Lie("bytes that are no UTF-8", swapped(b"hello", b"\xff"), "malformed", True),
    Lie("NaN", inside('{"a":NaN}'), "malformed", True),
    Lie("lone surrogate", swapped(b"hello", b"\\ud800"), "malformed", True),
    Lie("nested 100,000 deep", inside("[" * 100_000 + "]" * 100_000), "lost", True),
    Lie("id twice", swapped(b'"result":', b'"id":1,"result":'), "lost", True),
    Lie("result twice", swapped(b'"result":', b'"result":{},"result":'), "malformed", True),
    Lie("Result besides", swapped(b'"result":', b'"Result":{},"result":'), "malformed", True),
    Lie("content twice", swapped(b'"content":', b'"content":[],"content":'), "malformed", True),
    Lie("Content besides", swapped(b'"content":', b'"Content":[],"content":'), "malformed", True),
    Lie("result and error", swapped(b'"result":', ERROR + b',"result":'), "malformed", True),
    Lie("neither", says(lambda turn: b'{"jsonrpc":"2.0","id":%b}' % turn.id.encode()), "lost", True),
    Lie("another id", says(lambda turn: turn.result(id="999999")), "lost", True),
    Lie("the id as text", says(lambda turn: turn.result(id=f'"{turn.id}"')), "lost", True),
    Lie("id null", says(lambda turn: turn.result(id="null")), "lost", True),
    Lie("a batch", says(lambda turn: b"[" + turn.result() + b"]"), "lost", True),
    Lie("a request instead", says(lambda turn: b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), "lost", True),
    Lie("result no object", says(lambda turn: b'{"jsonrpc":"2.0","id":%b,"result":[]}' % turn.id.encode()), "malformed", True),
    Lie("an error without a code", says(lambda turn: b'{"jsonrpc":"2.0","id":%b,"error":{}}' % turn.id.encode()), "protocol-error", True),
    Lie("large numbers", inside('{"a":[18446744073709551616,1e999,0.1000,-0]}'), "ok", True),
    Lie("5,000 digits", inside('{"a":' + "7" * 5000 + "}"), "ok", True),
    # event streams
    Lie("a stream", stream(EVENT), "ok", True),
    Lie("a stream in pieces", stream(b"da", b"ta: BO".replace(b"BO", b""), b"BODY\r", b"\n\r\n"), "ok", True),
    Lie("a stream with a byte order mark", stream(b"\xef\xbb\xbf" + EVENT), "ok", True),
    Lie("a stream without an answer", stream(), "lost", True),
    Lie("a stream cut in an event", stream(b"data: BODY\n"), "lost", True),
    Lie("comments without end", stream(endless=b": x\n\n"), "timeout"),
    Lie("notifications without end", stream(endless=b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n'), "timeout"),
    Lie("one event without end", stream(endless=b"data: " + b"x" * 1_000_000), "lost"),
    Lie("an answer, then more without end", stream(EVENT, endless=b": x\n\n"), "ok"),
    Lie("an answer, then another to it", stream(EVENT, EVENT), "ok", True),
    Lie("an answer to nobody first", stream(b'data: {"jsonrpc":"2.0","id":999999,"result":{"content":[]}}\n\n', EVENT), "ok", True),
    Lie("a request nobody expects first", stream(b'data: {"jsonrpc":"2.0","id":1,"method":"roots/list"}\n\n', EVENT), "ok", True),
    Lie("no message first", stream(b"data: {oops\n\n", EVENT), "ok", True),
    Lie("progress of another call first", stream(b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}\n\n', EVENT), "ok", True),
    Lie("a list has changed, 1,000 times", stream(b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n' * 1000, EVENT), "ok", True),
    # odd, but right
    Lie("a session id nobody asked for", says(lambda turn: turn.result(), "Mcp-Session-Id: \x01"), "lost"),
    Lie("a cookie", says(lambda turn: turn.result(), "Set-Cookie: a=b"), "ok", True),
    Lie("connection: close", raw(FRAMED + b"Connection: close\r\n\r\nBODY", then="close"), "ok"),
]  # fmt: skip
