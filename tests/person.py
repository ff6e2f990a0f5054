"""A person at a terminal beside the clients: the operations that no client's own processes may ask for.

What a test starts descends from the host of the test's clients, and the daemon takes nothing that raises trust from there
(law 9). So `person.py SOCKET`, started once a home with its environment, leaves that ancestry as a terminal does that no client
started: it forks twice. It says `ready` once it listens, and ends with its home (`home` in conftest.py).
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from earnest.core.errors import EarnestError
from earnest.gateway.process.control import connect_control


class Person:
    """The person of one home. `env`: the environment of its terminal."""

    def __init__(self, home: Any, env: Mapping[str, str] | None = None) -> None:
        self._env = dict(home.env if env is None else env)
        self._socket = str(home.path / "person")

    async def __call__(self, op: str, **members: Any) -> Any:
        """What the daemon answers a person at a terminal of their own. Raises `EarnestError` as it does."""
        if not os.path.exists(self._socket):
            command = [sys.executable, __file__, self._socket]
            child = await asyncio.create_subprocess_exec(*command, env=self._env, stdout=asyncio.subprocess.PIPE)
            assert child.stdout is not None
            assert await child.stdout.readline() == b"ready\n"
            await child.wait()
        reader, writer = await asyncio.open_unix_connection(self._socket, limit=1 << 26)
        try:
            writer.write(json.dumps({"op": op, **members}).encode() + b"\n")
            said = json.loads(await reader.readline())
        finally:
            writer.close()
        if "error" in said:
            raise EarnestError(said["error"]["code"], said["error"]["message"])
        return said["ok"]

    async def listening(self) -> tuple[str, str]:
        """Address of the daemon's listener, opened if need be, and the token of `local`."""
        told = await self("listen", port=0)
        return told["address"], Path(told["token_file"]).read_text().strip()

    async def as_model(self, op: str, **members: Any) -> Any:
        """The same operation as `op`, sent by this process, the host of its clients: no person."""

        def work() -> Any:
            control = connect_control(self._env, start=False)
            assert control is not None, "no daemon runs"
            with control:
                return control.call(op, **members)

        return await asyncio.to_thread(work)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the daemon answers to `{"op": NAME, ...}`: `{"ok": ...}`, or `{"error": {"code", "message"}}`."""
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
