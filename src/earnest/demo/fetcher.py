"""Fetches pages of a small site of its own: `python -m earnest.demo.fetcher FOLDER`.

The site stands on a free port of loopback for as long as the server runs; `http://site.localhost/` leads there.
Other addresses of loopback work too, everything else is refused. Each visit, with all that its address carried, is
written to `FOLDER/visits.txt`: reading a page is also a way to send something out.
"""

import http.client
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from earnest.demo.kit import Context, Json, Server, Tool, ToolError

PAGES = Path(__file__).parent / "data" / "site"
SITE = "site.localhost"
LOOPBACK = (SITE, "localhost", "127.0.0.1", "::1")
LARGEST = 200_000
FETCH = {"readOnlyHint": True, "openWorldHint": True}


class Site:
    """The site and the book of its visitors."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._visits = folder / "visits.txt"
        site = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = site.visit(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """The book of visits is enough."""

        listener = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        listener.daemon_threads = True
        self.port = listener.server_port
        threading.Thread(target=listener.serve_forever, daemon=True).start()

    def visit(self, target: str) -> tuple[int, bytes]:
        """Status and body of one page."""
        with self._visits.open("a") as book:
            book.write(target + "\n")
        name = urlsplit(target).path.lstrip("/") or "index.html"
        if name == "collect":
            return 200, b"Thank you."
        pages = {path.name: path for path in PAGES.glob("*.html")}
        return (200, pages[name].read_bytes()) if name in pages else (404, b"There is no such page.")


class Fetcher:
    """GET on loopback; no redirect is followed."""

    def __init__(self, port: int) -> None:
        self._port = port

    def fetch(self, arguments: Json, context: Context) -> str:
        """The text of one page."""
        host, port, target = self.address(arguments["url"])
        connection = http.client.HTTPConnection(host, port, timeout=10)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            text = self._body(answer, context).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise ToolError(f"{arguments['url']} cannot be fetched: {error}") from error
        finally:
            connection.close()
        return text if answer.status == 200 else f"{answer.status} {answer.reason}\n{text}"

    def _body(self, answer: http.client.HTTPResponse, context: Context) -> bytes:
        body = b""
        while len(body) < LARGEST and (piece := answer.read(min(16_384, LARGEST - len(body)))):
            body += piece
            context.progress(len(body), max(len(body), answer.length or 0), "reading")
        return body

    def address(self, url: str) -> tuple[str, int, str]:
        """Host, port and target of an allowed URL; raises `ToolError` for any other."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ToolError(f"{url!r} is no address: {error}") from error
        if parts.scheme != "http" or parts.hostname not in LOOPBACK or parts.username is not None:
            raise ToolError(f"only http:// addresses of this machine are fetched, as in http://{SITE}/")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        target = quote(target, safe="%/?#[]@!$&'()*+,;=:~")
        if parts.hostname == SITE:
            return "127.0.0.1", self._port, target
        return parts.hostname, port or 80, target

    def tools(self) -> Sequence[Tool]:
        """The one tool."""
        url: Json = {"type": "string", "description": f"such as http://{SITE}/"}
        return (Tool("fetch", "Fetch a web page.", self.fetch, {"url": url}, hints=FETCH),)


def main() -> None:
    """Entry point."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m earnest.demo.fetcher FOLDER")
    site = Site(Path(sys.argv[1]))
    Server("fetcher", f"Fetches pages; start at http://{SITE}/.", Fetcher(site.port).tools).serve()


if __name__ == "__main__":
    main()
