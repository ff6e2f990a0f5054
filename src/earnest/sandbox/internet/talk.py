"""HTTP/1.1 (RFC 9112) and mail (RFC 5321) as the fake internet speaks them: anything is read, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final, NamedTuple

from earnest.sandbox.internet.answers import Said

LINE: Final = 64 << 10
HEADERS: Final = 200
BODY: Final = 32 << 20
"""Bytes of a body that are read; what is larger ends the connection."""
_KEPT: Final = 64 << 10
_MAILS: Final = 200


class Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    """Its first 64 KiB."""
    keep_alive: bool


class Malformed(Exception):
    """What came is no HTTP/1.1, or past a bound."""


def looks_like_http(first: bytes) -> bool:
    method, space, _ = first.partition(b" ")
    return bool(space) and method.isalpha() and method.isupper() and len(method) <= 16 and not first.startswith(b"PRI * HTTP/2")


def read(stream: BinaryIO, send: Callable[[bytes], object]) -> Request | None:
    """The next request, or None at the end. Raises Malformed."""
    line = stream.readline(LINE)
    while line in (b"\r\n", b"\n"):
        line = stream.readline(LINE)
    if not line:
        return None
    parts = line.decode("latin-1").split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise Malformed
    headers: dict[str, str] = {}
    for _ in range(HEADERS):
        line = stream.readline(LINE)
        if line in (b"\r\n", b"\n", b""):
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    else:
        raise Malformed
    if headers.get("expect", "").lower() == "100-continue":
        send(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _chunks(stream)
    else:
        size = headers.get("content-length", "0")
        body = _exactly(stream, int(size)) if size.isdigit() else b""
    said = headers.get("connection", "").lower()
    keep = "close" not in said and (parts[2] != "HTTP/1.0" or "keep-alive" in said)
    return Request(parts[0].upper(), parts[1], headers, body, keep)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    if size > BODY:
        raise Malformed
    kept = b""
    while size > 0:
        piece = stream.read(min(size, LINE))
        if not piece:
            raise Malformed
        size -= len(piece)
        kept += piece[: _KEPT - len(kept)]
    return kept


def _chunks(stream: BinaryIO) -> bytes:
    kept, total = b"", 0
    while True:
        size = int(stream.readline(LINE).split(b";")[0].strip() or b"x", 16)
        total += size
        if total > BODY:
            raise Malformed
        if size == 0:
            while stream.readline(LINE) not in (b"\r\n", b"\n", b""):
                pass
            return kept
        kept += _exactly(stream, size)[: _KEPT - len(kept)]
        stream.readline(LINE)


def written(said: Said, request: Request) -> bytes:
    """An answer's bytes."""
    body = b"" if said.status in (204, 304) or 100 <= said.status < 200 else said.body
    named = {name.lower() for name, _ in said.headers}
    lines = [f"HTTP/1.1 {said.status} {'OK' if said.status < 300 else 'Answer'}"]
    lines += [f"{name}: {value}" for name, value in said.headers if name.lower() not in ("content-length", "transfer-encoding")]
    if "content-type" not in named and body:
        lines.append("Content-Type: application/octet-stream")
    if said.status != 204:
        lines.append(f"Content-Length: {len(body)}")
    lines.append(f"Connection: {'keep-alive' if request.keep_alive else 'close'}")
    head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
    return head if request.method == "HEAD" else head + body


def mail(stream: BinaryIO, send: Callable[[bytes], object], heard: Callable[[str, str, bytes], None]) -> None:
    """Take mails; `heard` is told sender, recipients and text of each."""
    send(b"220 mail ready\r\n")
    sender = ""
    recipients: list[str] = []
    for _ in range(_MAILS):
        line = stream.readline(LINE)
        word = line[:4].upper()
        if not line or word == b"QUIT":
            send(b"221 bye\r\n")
            return
        text = line.decode("latin-1").strip()
        if word in (b"EHLO", b"HELO"):
            send(b"250-mail\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME\r\n" if word == b"EHLO" else b"250 mail\r\n")
        elif word == b"AUTH":
            send(b"235 welcome\r\n")
        elif word == b"MAIL":
            sender, recipients = text[10:], []
            send(b"250 ok\r\n")
        elif word == b"RCPT":
            recipients.append(text[8:])
            send(b"250 ok\r\n")
        elif word == b"DATA":
            send(b"354 go on\r\n")
            kept = b""
            while (line := stream.readline(LINE)) and line not in (b".\r\n", b".\n"):
                kept += line[: _KEPT - len(kept)]
            heard(sender, " ".join(recipients), kept)
            send(b"250 taken\r\n")
        else:
            send(b"250 ok\r\n")
