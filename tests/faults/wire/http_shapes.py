# ruff: noqa: E501 (one row is one line)
"""Requests that are wrong as HTTP, or that two HTTP programs could read in two ways. RFC 9112 unless a row says else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from faults.wire.client import Ground

Part = bytes | float | Literal["half close", "reset", "wait for 100"]
Fate = Literal["kept", "closed"]


@dataclass(frozen=True)
class Shape:
    """One row: what is sent, the answers that are due, what becomes of the connection, how many calls reach the server.

    `answers` are HTTP statuses, or pairs of one and a JSON-RPC code."""

    name: str
    send: Callable[[Ground], list[Part]]
    answers: tuple[int | tuple[int, int], ...]
    fate: Fate
    calls: int = 0

    @property
    def slow(self) -> bool:
        """Whether it ends by a time limit."""
        return self.answers == (408,)


def line(text: bytes) -> Callable[[Ground], list[Part]]:
    """An honest request with another request line."""
    return lambda g: [g.request(g.body(), line=text.replace(b"PATH", g.path.encode()))]


def more(*lines: bytes) -> Callable[[Ground], list[Part]]:
    """An honest request with more lines in its head."""
    return lambda g: [g.request(g.body(), *lines)]


def change(drop: tuple[str, ...] = (), **fields: str) -> Callable[[Ground], list[Part]]:
    """An honest request with other fields; `_` stands for `-`."""
    return lambda g: [g.request(g.body(), change={n.replace("_", "-"): v for n, v in fields.items()}, drop=drop)]


def framed(*lines: bytes, body: Callable[[bytes], bytes] = lambda body: body) -> Callable[[Ground], list[Part]]:
    """An honest call framed by these lines alone; LENGTH stands for its right length."""

    def send(g: Ground) -> list[Part]:
        whole = g.body()
        return [g.head(*(one.replace(b"LENGTH", b"%d" % len(whole)) for one in lines)) + body(whole)]

    return send


def chunked(*chunks: bytes, te: bytes = b"Transfer-Encoding: chunked") -> Callable[[Ground], list[Part]]:
    """A body in chunks as they stand; BODY stands for the call, SIZE for its size."""

    def send(g: Ground) -> list[Part]:
        body = g.body()
        return [g.head(te) + b"".join(chunks).replace(b"SIZE", b"%x" % len(body)).replace(b"BODY", body)]

    return send


def cut(part: Callable[[bytes], int], *then: Part) -> Callable[[Ground], list[Part]]:
    """An honest request, cut at a place, and what follows instead of the rest."""

    def send(g: Ground) -> list[Part]:
        whole = g.honest()
        return [whole[: part(whole)], *then]

    return send


def _head_end(whole: bytes) -> int:
    return whole.index(b"\r\n\r\n") + 4


def _smuggled(g: Ground) -> bytes:
    return g.honest(b'{"n":"smuggled"}', b"8")


GOOD = b"SIZE\r\nBODY\r\n0\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: LENGTH"

SHAPES: list[Shape] = [
    # time and endings
    Shape("head byte by byte", lambda g: [g.honest()[n : n + 1] for n in range(len(g.honest()))], (200,), "kept", 1),
    Shape("slow head", cut(lambda whole: 60), (408,), "closed"),
    Shape("slow body", cut(lambda whole: len(whole) - 9), (408,), "closed"),
    Shape("half close in the head", cut(lambda whole: 60, "half close"), (), "closed"),
    Shape("half close in the body", cut(lambda whole: len(whole) - 9, "half close"), (), "closed"),
    Shape("reset in the head", cut(lambda whole: 60, "reset"), (), "closed"),
    Shape("reset in the body", cut(lambda whole: len(whole) - 9, "reset"), (), "closed"),
    Shape("reset in a chunked body", lambda g: [g.head(CHUNKED) + b"ff\r\n{", "reset"], (), "closed"),
    Shape("nothing at all, then half close", lambda g: ["half close"], (), "closed"),
    # length
    Shape("length too short", lambda g: [g.head(b"Content-Length: 20") + g.body()], ((400, -32700), 400), "closed"),
    Shape("length too long", lambda g: [g.head(b"Content-Length: 9000") + g.body()], (408,), "closed"),
    Shape("length too long, a request inside", lambda g: [g.head(b"Content-Length: 4000") + g.body() + _smuggled(g)], (408,), "closed"),
    Shape("bytes behind the body", lambda g: [g.honest() + b"\0\0\0"], (200, 400), "closed", 1),
    Shape("no length at all", lambda g: [g.head() + g.body()], ((400, -32700), 400), "closed"),
    Shape("negative length", framed(b"Content-Length: -5"), (400,), "closed"),
    Shape("signed length", framed(b"Content-Length: +LENGTH"), (400,), "closed"),
    Shape("hexadecimal length", framed(b"Content-Length: 0x80"), (400,), "closed"),
    Shape("length with a fraction", framed(b"Content-Length: LENGTH.0"), (400,), "closed"),
    Shape("length as a list", framed(b"Content-Length: LENGTH, LENGTH"), (400,), "closed"),
    Shape("length of 30 digits", framed(b"Content-Length: 1" + b"0" * 29), (400,), "closed"),
    Shape("length past the limit", framed(b"Content-Length: 5000000"), (413,), "closed"),
    Shape("length twice, the same", framed(LENGTH, LENGTH), (400,), "closed"),
    Shape("length twice, another", framed(LENGTH, b"Content-Length: 3"), (400,), "closed"),
    # chunks
    Shape("chunks", chunked(GOOD), (200,), "kept", 1),
    Shape("chunks of one byte", lambda g: [g.head(CHUNKED) + b"".join(b"1\r\n%c\r\n" % c for c in g.body()) + b"0\r\n\r\n"], (200,), "kept", 1),
    Shape("coding in capitals", chunked(GOOD, te=b"transfer-ENCODING: CHUNKED"), (200,), "kept", 1),
    Shape("chunk shorter than its size", chunked(b"fff\r\nBODY\r\n0\r\n\r\n"), (408,), "closed"),
    Shape("chunk longer than its size", chunked(b"5\r\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("chunk size no number", chunked(b"zz\r\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("chunk size negative", chunked(b"-1\r\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("chunk size with 0x", chunked(b"0xSIZE\r\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("chunk size past 64 bits", chunked(b"fffffffffffffffff\r\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("chunk size of 63 bits", chunked(b"7fffffffffffffff\r\nBODY\r\n0\r\n\r\n"), (408,), "closed"),
    Shape("space before a chunk's size", chunked(b" SIZE\r\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("space behind a chunk's size", chunked(b"SIZE \r\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("chunks with bare line feeds", chunked(b"SIZE\nBODY\n0\n\n"), (400,), "closed"),
    Shape("chunk extension without end", lambda g: [g.head(CHUNKED) + b"5;x=" + b"y" * 400_000], (400,), "closed"),
    Shape("line break in a chunk extension", chunked(b"SIZE;x\nBODY\r\n0\r\n\r\n"), (400,), "closed"),
    Shape("trailers", chunked(b"SIZE\r\nBODY\r\n0\r\nMcp-Name: other\r\n\r\n"), (400,), "closed"),
    Shape("no last chunk", lambda g: [g.head(CHUNKED) + b"%x\r\n%b\r\n" % (len(g.body()), g.body())], (408,), "closed"),
    # length against coding
    Shape("length and coding", lambda g: [g.head(b"Content-Length: 4", CHUNKED) + b"0\r\n\r\n" + _smuggled(g)], (400,), "closed"),
    Shape("coding and length", lambda g: [g.head(CHUNKED, b"Content-Length: 4") + b"0\r\n\r\n" + _smuggled(g)], (400,), "closed"),
    Shape("coding twice", chunked(GOOD, te=CHUNKED + b"\r\n" + CHUNKED), (400,), "closed"),
    Shape("coding twice, one unknown", chunked(GOOD, te=CHUNKED + b"\r\nTransfer-Encoding: x"), (400,), "closed"),
    Shape("chunked before identity", chunked(GOOD, te=b"Transfer-Encoding: chunked, identity"), (400,), "closed"),
    Shape("coding identity", chunked(GOOD, te=b"Transfer-Encoding: identity"), (501,), "closed"),
    Shape("coding gzip, chunked", chunked(GOOD, te=b"Transfer-Encoding: gzip, chunked"), (501,), "closed"),
    Shape("coding with a misprint", chunked(GOOD, te=b"Transfer-Encoding: xchunked"), (501,), "closed"),
    Shape("coding with a vertical tab", chunked(GOOD, te=b"Transfer-Encoding: \x0bchunked"), (400,), "closed"),
    Shape("space before the coding's colon", chunked(GOOD, te=b"Transfer-Encoding : chunked"), (400,), "closed"),
    Shape("coding on a folded line", chunked(GOOD, te=b"Transfer-Encoding:\r\n chunked"), (400,), "closed"),
    Shape("coding in HTTP/1.0", lambda g: [g.head(CHUNKED, line=b"POST %b HTTP/1.0" % g.path.encode()) + b"0\r\n\r\n"], (400,), "closed"),
    # lines
    Shape("folded line", more(b"X-A: a\r\n b"), (400,), "closed"),
    Shape("bare line feed", more(b"X-A: a\nX-B: b"), (400,), "closed"),
    Shape("bare carriage return", more(b"X-A: a\rX-B: b"), (400,), "closed"),
    Shape("NUL in a value", more(b"X-A: a\0b"), (400,), "closed"),
    Shape("NUL in a name", more(b"X-\0A: a"), (400,), "closed"),
    Shape("space before a colon", more(b"X-A : a"), (400,), "closed"),
    Shape("space before a name", more(b" X-A: a"), (400,), "closed"),
    Shape("line without a colon", more(b"X-A"), (400,), "closed"),
    Shape("empty name", more(b": a"), (400,), "closed"),
    Shape("name that is no token", more(b"X(A): a"), (400,), "closed"),
    Shape("empty value", more(b"X-A:"), (200,), "kept", 1),
    Shape("Latin-1 in a value", more(b"X-A: \xe4"), (200,), "kept", 1),
    Shape("more fields than the limit", more(*(b"X-%d: a" % n for n in range(101))), (431,), "closed"),
    Shape("a head past the limit", more(b"X-A: " + b"a" * 33_000), (431,), "closed"),
    Shape("a name without end", lambda g: [b"POST / HTTP/1.1\r\n" + b"x" * 400_000], (431,), "closed"),
    # request line
    Shape("target with a scheme", line(b"POST http://127.0.0.1PATH HTTP/1.1"), (400,), "closed"),
    Shape("target with a foreign scheme", line(b"POST https://other.examplePATH HTTP/1.1"), (400,), "closed"),
    Shape("target that is a host", line(b"CONNECT 127.0.0.1:80 HTTP/1.1"), (501,), "closed"),
    Shape("target *", line(b"OPTIONS * HTTP/1.1"), (400,), "closed"),
    Shape("target with a fragment", line(b"POST PATH#x HTTP/1.1"), (400,), "closed"),
    Shape("target with a space", line(b"POST PATH x HTTP/1.1"), (400,), "closed"),
    Shape("target not ASCII", line(b"POST /s/\xc3\xbcp/mcp HTTP/1.1"), (400,), "closed"),
    Shape("target too long", line(b"POST /" + b"a" * 9000 + b" HTTP/1.1"), (414,), "closed"),
    Shape("target with dots", line(b"POST /s/up/../up/mcp HTTP/1.1"), (404,), "kept"),
    Shape("target with an escape", line(b"POST /s/%75p/mcp HTTP/1.1"), (404,), "kept"),
    Shape("target with two slashes", line(b"POST //s/up/mcp HTTP/1.1"), (404,), "kept"),
    Shape("target of no server", line(b"POST /s/nobody/mcp HTTP/1.1"), (404,), "kept"),
    Shape("target with a query", line(b"POST PATH?a=b HTTP/1.1"), (200,), "kept", 1),
    Shape("HTTP/0.9", lambda g: [b"POST /\r\n\r\n"], (505,), "closed"),
    Shape("HTTP/1.0", line(b"POST PATH HTTP/1.0"), (200,), "closed", 1),
    Shape("HTTP/1.2", line(b"POST PATH HTTP/1.2"), (400,), "closed"),
    Shape("HTTP/2 preface", lambda g: [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], (400,), "closed"),
    Shape("TLS", lambda g: [bytes.fromhex("16030100c8010000c40303") + b"\0" * 200], (400,), "closed"),
    Shape("method in small letters", line(b"post PATH HTTP/1.1"), (400,), "closed"),
    Shape("unknown method", line(b"FOO PATH HTTP/1.1"), (400,), "closed"),
    Shape("TRACE", line(b"TRACE PATH HTTP/1.1"), (501,), "closed"),
    Shape("PUT", line(b"PUT PATH HTTP/1.1"), (405,), "kept"),
    Shape("two spaces in the request line", line(b"POST  PATH HTTP/1.1"), (200,), "kept", 1),
    Shape("empty lines first", lambda g: [b"\r\n\r\n" + g.honest()], (200,), "kept", 1),
    # who and where
    Shape("no Host", change(drop=("Host",)), (400,), "closed"),
    Shape("Host twice", more(b"Host: other.example"), (400,), "closed"),
    Shape("foreign Host", change(Host="other.example"), (421,), "kept"),
    Shape("Host with a user", change(Host="a@127.0.0.1"), (421,), "kept"),
    Shape("foreign Origin", change(Origin="https://other.example"), (403,), "kept"),
    Shape("Origin null", change(Origin="null"), (403,), "kept"),
    Shape("no token", change(drop=("Authorization",)), (401,), "kept"),
    Shape("another token", change(Authorization="Bearer " + "x" * 43), (401,), "kept"),
    Shape("token twice", more(b"Authorization: Bearer x"), (400,), "closed"),
    Shape("earnest's token twice", more(b"X-Earnest-Token: x", b"X-Earnest-Token: y"), (401,), "kept"),
    # content
    Shape("type twice", more(b"Content-Type: text/plain"), (400,), "closed"),
    Shape("another type", change(Content_Type="text/plain"), (415,), "kept"),
    Shape("another character set", change(Content_Type="application/json; charset=utf-16"), (415,), "kept"),
    Shape("gzip", lambda g: [g.request(_gzip(g.body()), b"Content-Encoding: gzip")], (415,), "kept"),
    Shape("gzip bomb", lambda g: [g.request(_gzip(b" " * 50_000_000), b"Content-Encoding: gzip")], (415,), "kept"),
    Shape("Accept without event streams", change(Accept="application/json"), (406,), "kept"),
    Shape("10 MiB of spaces", lambda g: [g.request(b" " * (10 << 20))], (413,), "closed"),
    Shape("10 MiB of spaces in chunks", lambda g: [g.head(CHUNKED), *([b"100000\r\n" + b" " * (1 << 20) + b"\r\n"] * 10)], (413,), "closed"),
    Shape("3 MiB of spaces before the call", lambda g: [g.request(b" " * (3 << 20) + g.body())], (200,), "kept", 1),
    # between requests
    Shape("100-continue", lambda g: [g.head(b"Content-Length: %d" % len(g.body()), b"Expect: 100-continue"), "wait for 100", g.body()], (200,), "kept", 1),
    Shape("another expectation", more(b"Expect: 200-ok"), (417,), "closed"),
    Shape("two calls at once", lambda g: [g.honest() + g.honest(b'{"n":2}', b"8")], (200, 200), "kept", 2),
    Shape("40 calls at once", lambda g: [b"".join(g.honest(b'{"n":%d}' % n, b"%d" % n) for n in range(40))], (*(200,) * 17, 503), "closed", 17),
    Shape("a good call, then a bad one", lambda g: [g.honest() + g.request(g.body(), b"X : y")], (200, 400), "closed", 1),
    Shape("connection: close", more(b"Connection: close"), (200,), "closed", 1),
    Shape("h2c offered", more(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"), (200,), "kept", 1),
    Shape("websocket offered", more(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: x"), (200,), "kept", 1),
]  # fmt: skip


def _gzip(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data)
