"""The process that is a box of tier A: what a caller starts and, when it ends, has ended.

Run as `python -I -S boxed.py PLAN`, PLAN a JSON file that `namespaces.py` wrote. It enters namespaces of its own, starts the
box's first process (`first.py`), hands on signals, ends with the command's status. It ends, and with it everything,
when its parent does, when the Box it belongs to is closed, and when the box's time is over.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

if __name__ == "__main__":  # started as a file, in isolation: nobody else says where the package is
    sys.path.append(os.path.abspath(__file__).removesuffix("/earnest/sandbox/launch/boxed.py"))

from earnest.sandbox.launch import first, kernel
from earnest.sandbox.launch.keeper import FAILED, Inner, Keeper, begin, give_up, look_out
from earnest.sandbox.launch.report import Report


def main(path: str) -> NoReturn:
    begun = begin(path)
    try:
        process, status, helpers = _start(begun.plan, begun.report, begun.control)
    except OSError as error:
        give_up(begun.plan["state"], str(error))

    def end() -> None:
        for each in (process, *helpers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    Keeper(begun, status, Inner(process, end)).serve()


def _start(plan: dict[str, Any], report: Report, control: socket.socket) -> tuple[int, int, list[int]]:
    """The box's first process, where it tells how the command ended, and the helpers that stay outside of its namespace."""
    helpers: list[int] = []
    look_out()
    way_out: socket.socket | None = None
    if plan["reach"] == "hosts":
        way_out, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        from earnest.sandbox.internet import outlet

        helpers.append(_helper(lambda: outlet.serve(theirs, plan["hosts"], report)))
        theirs.close()
    kernel.become_itself_in_a_user_namespace(plan["user"])
    kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
    socket.sethostname("localhost")
    raise_loopback()
    ready = -1
    if plan["reach"] != "none":
        from earnest.sandbox.internet import sink

        ready, done = os.pipe()
        helpers.append(_helper(lambda: sink.serve(plan, report, way_out, done)))
        os.close(done)
    status, told = os.pipe()
    kernel.unshare(kernel.CLONE_NEWPID)
    process = os.fork()
    if process == 0:
        try:
            os.close(status)
            first.run(plan, report, told, control, ready)
        except BaseException as error:
            os.write(told, json.dumps({"error": f"{error}"}).encode())
        os._exit(FAILED)
    os.close(told)
    return process, status, helpers


def _helper(serve: Callable[[], None]) -> int:
    me = os.getpid()
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        kernel.die_with(me)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):
            os.dup2(null, number)
        serve()
    finally:
        os._exit(FAILED)


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("=16sH14x", b"lo", 0)
        flags = struct.unpack("=16sH14x", fcntl.ioctl(any_socket, 0x8913, request))[1]
        fcntl.ioctl(any_socket, 0x8914, struct.pack("=16sH14x", b"lo", flags | 1))


if __name__ == "__main__":
    main(sys.argv[1])
