"""A scripted MCP server over stdio: `scripted.py SCRIPT`, where SCRIPT is a path or the JSON itself.

Each request runs in a thread of its own, so a slow one delays no other. Ends when its input ends.
"""

import os
import sys
import threading
import time

from behaviour import Call, Server, load


class Stdout:
    """The one channel of a stdio server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        self.raw(text + "\n")

    def raw(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        with self._lock:
            try:
                while data:
                    data = data[os.write(1, data) :]
            except OSError:
                os._exit(0)  # nobody reads any more

    def gone(self) -> bool:
        return False


class StdioServer(Server):
    """The server with verbs that only a pipe has."""

    def do_close(self, call: Call, value: bool) -> None:
        os.close(1)

    def do_stop_reading(self, call: Call, value: float) -> None:
        self.deaf_until = time.monotonic() + value

    deaf_until = 0.0

    def _notified(self, call: Call) -> None:
        if call.method == "notifications/initialized":
            self.legacy_listeners.append(call.channel)
        super()._notified(call)


def main() -> None:
    """Entry point."""
    server = StdioServer(load(sys.argv[1]))
    server.record.add("start", argv=sys.argv, cwd=os.getcwd(), env=dict(os.environ))
    channel = Stdout()
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        work = server.accept(text, channel)
        if work:
            threading.Thread(target=work, daemon=True).start()
        while (left := server.deaf_until - time.monotonic()) > 0:
            time.sleep(left)
    server.record.add("eof")
    if server.script.get("linger"):
        time.sleep(server.script["linger"])
    # Quick answers still leave; what waits longer has nobody to answer to.
    end = time.monotonic() + 0.3
    while server.flying and time.monotonic() < end:
        time.sleep(0.01)
    os._exit(server.script.get("exit_code", 0))


if __name__ == "__main__":
    main()
