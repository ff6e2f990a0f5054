"""The process that is a box of tier C (macOS, **untested**: see `seatbelt.py`): runs the proxy, starts the command under
`sandbox-exec`, ends it with all it started.

Run as `python -I -S caged.py PLAN`. macOS has no pid namespace and no subreaper: what leaves its session and its parent can be
found only while its parent lives, so the list of descendants is kept as it grows.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Final, NoReturn

if __name__ == "__main__":  # started as a file, in isolation: nobody else says where the package is
    sys.path.append(os.path.abspath(__file__).removesuffix("/earnest/sandbox/launch/caged.py"))

from earnest.sandbox.internet import outlet, sink
from earnest.sandbox.internet.hosts import Hosts
from earnest.sandbox.launch.keeper import FAILED, FORWARDED
from earnest.sandbox.launch.limits import hold, size_below
from earnest.sandbox.launch.report import Report

_PERIOD_S: Final = 0.1
_ROUNDS: Final = 50


def main(path: str) -> NoReturn:
    begun = time.monotonic()
    parent = os.getppid()
    with open(path, "rb") as file:
        plan: dict[str, Any] = json.load(file)
    state: str = plan["state"]
    with open(f"{state}/pid", "w") as file_out:
        file_out.write(str(os.getpid()))
    events = os.open(f"{state}/events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if plan["watch"] else -1
    report = Report(events, begun)
    if plan["port"]:
        _internet(plan, report)
    bounds = plan["limits"]
    command = ["/usr/bin/sandbox-exec", "-p", plan["profile"], *plan["argv"]]

    def bound() -> None:
        hold(bounds["memory"], bounds["processes"], bounds["disk"], bounds["cpu_s"])

    try:
        child = subprocess.Popen(command, env=plan["env"], cwd=plan["cwd"], start_new_session=True, preexec_fn=bound)
    except OSError as error:
        print(f"earnest: the box could not be made: {error}", file=sys.stderr)
        _finish(state, None, "failed")
    for number in FORWARDED:
        signal.signal(number, lambda number, frame: child.send_signal(number))
    family: set[int] = {child.pid}
    limit = ""
    while child.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_PERIOD_S)
        family |= _below(family)
        if os.getppid() != parent or os.path.exists(f"{state}/closing") or not _is_there(plan["owner"]):
            break
        if time.monotonic() - begun > bounds["wall_s"]:
            limit = "wall"
        elif len(family) > bounds["processes"]:
            limit = "processes"
        elif sum(size_below(folder) for folder in plan["counted"]) > bounds["disk"]:
            limit = "disk"
        if limit:
            report.say("refused", limit, detail="limit of the box")
            break
    status = child.poll()
    _end_all(family)
    _finish(state, status, limit)


def _internet(plan: dict[str, Any], report: Report) -> None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", plan["port"]))
    listener.listen(64)
    if plan["reach"] == "hosts":
        run = outlet.Outlet(Hosts(plan["hosts"]), report).accept
    else:
        inside = sink.Sink(plan, report, None, lambda connection, name, port: None)

        def run(listener: socket.socket) -> None:
            while True:
                with contextlib.suppress(OSError):
                    connection, _ = listener.accept()
                    threading.Thread(target=inside.one, args=(connection, "proxy", 80), daemon=True).start()

    threading.Thread(target=run, args=(listener,), daemon=True).start()


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _below(family: set[int]) -> set[int]:
    listed = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = [line.split() for line in listed.splitlines()]
    found = set(family)
    for _ in range(_ROUNDS):
        more = {int(pid) for pid, parent in pairs if int(parent) in found} - found
        if not more:
            break
        found |= more
    return found


def _end_all(family: set[int]) -> None:
    for _ in range(_ROUNDS):
        members = {pid for pid in _below(family) if pid != os.getpid() and _is_there(pid)}
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


def _finish(state: str, status: int | None, limit: str) -> NoReturn:
    with contextlib.suppress(OSError):
        with open(f"{state}/ended", "w") as file:
            json.dump({"status": None if limit else status, "limit": limit}, file)
        os.unlink(f"{state}/pid")
    os._exit(FAILED if limit or status is None else status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main(sys.argv[1])
