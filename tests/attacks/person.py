"""A person's terminal: takes operations over a socket and puts them to the daemon. `person.py SOCKET`.

What a test starts descends from the host of the test's clients, and the daemon grants nothing to what does. So this leaves
that ancestry, as a terminal does that no client started: it forks twice. It ends with its home (`home` in conftest.py).
"""

import json
import os
import socket
import sys
from typing import Any

from earnest.core.errors import EarnestError
from earnest.gateway.process.control import connect_control


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the daemon answers, as `{"ok": ...}` or `{"error": {"code", "message"}}`."""
    try:
        control = connect_control(os.environ)
        assert control is not None
        with control:
            return {"ok": control.call(request.pop("op"), **request)}
    except EarnestError as error:
        return {"error": {"code": error.code, "message": error.message}}
    except (OSError, ValueError) as error:  # the daemon was killed while it answered
        return {"error": {"code": "", "message": str(error)}}


def main(path: str) -> None:
    """Listen, leave, serve."""
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


if __name__ == "__main__":
    main(sys.argv[1])
