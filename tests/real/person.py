"""A person's terminal beside the clients: takes operations over a socket and puts them to the daemon.

`person.py SOCKET`, with the environment of the home it belongs to. What a test itself starts descends from the host of the
test's clients, and the daemon takes nothing that raises trust from there (law 9). So this leaves that ancestry, as a terminal
that no client started: it forks twice. It says `ready` once it listens, and ends with the home (see `home` in conftest.py).
"""

import json
import os
import socket
import sys
from typing import Any

from earnest.core.errors import EarnestError
from earnest.gateway.process.control import connect_control


def main(path: str) -> None:
    """Entry point."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    print("ready", flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                connection.sendall(json.dumps(answer(json.loads(line))).encode() + b"\n")


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the daemon answers to `{"op": NAME, ...}`: `{"ok": ...}`, or `{"error": {"code", "message"}}`."""
    try:
        control = connect_control(os.environ)
        assert control is not None
        with control:
            return {"ok": control.call(request.pop("op"), **request)}
    except EarnestError as error:
        return {"error": {"code": error.code, "message": error.message}}


if __name__ == "__main__":
    main(sys.argv[1])
