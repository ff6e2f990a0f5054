"""The line between a Box and the process that is the box: a socket in the box's folder. Who closes it ends the box."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
from typing import Final

from earnest.sandbox.box import Ended

END_S: Final = 10.0
ENV: Final = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
"""The environment of a box's own process. The command's stands in the plan: what it names must change nothing outside."""


class Line:
    """This end of the line. A box that is started again talks on a new one, and the old one is let go."""

    def __init__(self, state: str) -> None:
        self._listener = listen(state)
        self._now: socket.socket | None = None

    def current(self) -> socket.socket | None:
        """The line to the process that was started last; None while there was none."""
        while True:
            try:
                newer, _ = self._listener.accept()
            except OSError:
                return self._now
            if self._now is not None:
                self._now.close()
            self._now = newer

    def close(self) -> None:
        """Close it, which ends the box, and wait until that has happened."""
        now = self.current()
        if now is not None:
            end(now)
        self._listener.close()


def listen(state: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(state, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{folder}/box")
    finally:
        os.close(folder)
    listener.listen(8)
    listener.setblocking(False)
    return listener


def end(control: socket.socket) -> None:
    """Close the line to a box's process, which ends it, and wait until that has happened."""
    pid = struct.unpack("=3i", control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    process = -1
    with contextlib.suppress(OSError):
        process = os.pidfd_open(pid)
    control.close()
    if process < 0:
        return
    try:
        for _ in range(2):
            poll = select.poll()
            poll.register(process, select.POLLIN)
            if poll.poll(END_S * 1000):
                return
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
    finally:
        os.close(process)


def ended(state: str) -> Ended:
    """How a box ended, as its process wrote it down."""
    try:
        with open(f"{state}/ended") as file:
            told = json.load(file)
    except (OSError, ValueError):
        return Ended(None)
    return Ended(told["status"], told.get("limit", "") or ("failed" if told.get("error") else ""))
