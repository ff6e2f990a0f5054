"""What the fake internet says to an HTTP request: what a plan has for it, else something of the kind that was asked for."""

from __future__ import annotations

import base64
import json
import re
import threading
from typing import Any, Final, NamedTuple

_PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_GIF: Final = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
_ZIP: Final = b"PK\x05\x06" + bytes(18)
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="description" content="A page of {host}."></head>
<body><header><nav><a href="/">Home</a> <a href="/about">About</a></nav></header>
<main><article><h1>{title}</h1>
<p>This is the page {path} of {host}. It says what a page of this kind says: a little about its subject, in plain words.</p>
<p>The second paragraph goes on about the same subject, so that there is something to read, to count and to summarise.</p>
<ul><li><a href="/item/1">First item</a></li><li><a href="/item/2">Second item</a></li></ul>
</article></main><footer><p>Contact: <a href="mailto:info@{host}">info@{host}</a></p></footer></body></html>
"""
_KINDS: Final[dict[str, tuple[str, bytes]]] = {
    "txt": ("text/plain; charset=utf-8", b"First line.\nSecond line.\nThird line.\n"),
    "md": ("text/markdown; charset=utf-8", b"# A title\n\nA paragraph.\n\n- one\n- two\n"),
    "csv": ("text/csv; charset=utf-8", b"id,name,value\n1,first,10\n2,second,20\n"),
    "xml": ("application/xml", b'<?xml version="1.0"?>\n<items><item id="1">first</item><item id="2">second</item></items>\n'),
    "rss": (
        "application/rss+xml",
        b'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>News</title><link>https://example.com/</link>'
        b"<description>News</description><item><title>First</title><link>https://example.com/1</link></item></channel></rss>\n",
    ),
    "js": ("text/javascript; charset=utf-8", b"export const answer = 42;\n"),
    "css": ("text/css; charset=utf-8", b"body { margin: 0 }\n"),
    "yaml": ("application/yaml", b"name: first\nitems: [1, 2]\n"),
    "yml": ("application/yaml", b"name: first\nitems: [1, 2]\n"),
    "toml": ("application/toml", b'name = "first"\n'),
    "svg": ("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n'),
    "png": ("image/png", _PNG),
    "ico": ("image/png", _PNG),
    "gif": ("image/gif", _GIF),
    "zip": ("application/zip", _ZIP),
    "bin": ("application/octet-stream", bytes(range(256))),
    "pdf": (
        "application/pdf",
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
        b"trailer<</Root 1 0 R>>\n%%EOF\n",
    ),
}


class Said(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class _Own(NamedTuple):
    """Answers of a plan for one host, method and path, in turn."""

    host: re.Pattern[str]
    method: str
    path: re.Pattern[str]
    turns: list[Said]


class Answers:
    """`own`: a plan's, as JSON has them."""

    def __init__(self, own: list[dict[str, Any]]) -> None:
        self._lock = threading.Lock()
        grouped: dict[tuple[str, str, str], _Own] = {}
        for each in own:
            key = each["host"], each["method"].upper(), each["path"]
            if key not in grouped:
                host, path = _glob(key[0].lower(), "."), _glob(key[2], "/")
                grouped[key] = _Own(host, key[1], path, [])
            headers = [(name, value) for name, value in each["headers"]]
            grouped[key].turns.append(Said(each["status"], headers, base64.b64decode(each["body"])))
        self._own = list(grouped.values())

    def to(self, host: str, method: str, target: str, accept: str) -> Said:
        path = target.split("?", 1)[0].split("#", 1)[0] or "/"
        for own in self._own:
            if own.method in ("", method) and own.host.fullmatch(host) and own.path.fullmatch(path):
                with self._lock:
                    return own.turns.pop(0) if len(own.turns) > 1 else own.turns[0]
        return _usual(host, method, path, accept)


def _glob(text: str, separator: str) -> re.Pattern[str]:
    one = f"[^{re.escape(separator)}]*"
    parts = [{"**": ".*", "*": one}.get(part, re.escape(part)) for part in re.split(r"(\*\*?)", text)]
    return re.compile("".join(parts), re.DOTALL)


def _usual(host: str, method: str, path: str, accept: str) -> Said:
    if path == "/robots.txt":
        return _said("text/plain", b"User-agent: *\nAllow: /\n")
    if path.startswith("/.well-known/"):
        return _said("application/json", b'{"error":"not found"}\n', 404)
    if method == "OPTIONS":
        return Said(204, [("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"), ("Access-Control-Allow-Origin", "*")], b"")
    name = path.rsplit("/", 1)[-1]
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if method in ("GET", "HEAD") and ending in _KINDS:
        return _said(*_KINDS[ending])
    wants_page = "text/html" in accept or ("json" not in accept and not host.startswith("api."))
    if method in ("GET", "HEAD") and ending != "json" and wants_page:
        title = name.replace("-", " ").replace("_", " ").title() or f"Welcome to {host}"
        safe = {key: re.sub(r"[<>&\"]", "", value) for key, value in (("title", title), ("host", host), ("path", path))}
        return _said("text/html; charset=utf-8", _PAGE.format(**safe).encode())
    body = {"ok": True, "id": "1", "name": "first", "items": [{"id": "1", "name": "first"}, {"id": "2", "name": "second"}]}
    return _said("application/json", json.dumps(body).encode() + b"\n", 201 if method == "POST" else 200)


def _said(kind: str, body: bytes, status: int = 200) -> Said:
    return Said(status, [("Content-Type", kind)], body)
