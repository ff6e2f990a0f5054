"""A web site of a test's own, on loopback: as itself, and as the proxy through which every other site is this one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """A running site. `visits` are the request targets it was asked for, in order, robots.txt left out."""

    def __init__(self, port: int, visits: list[str]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.visits = visits


@contextmanager
def site(page: str) -> Iterator[Site]:
    """Serve `page` as plain text under every path."""
    visits: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            robots = self.path.endswith("/robots.txt")
            if not robots:
                visits.append(self.path)
            body = b"" if robots else page.encode()
            self.send_response(404 if robots else 200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Site(server.server_address[1], visits)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
