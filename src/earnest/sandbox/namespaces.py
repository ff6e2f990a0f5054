"""Tier A: namespaces of its own and one overlay for each folder, as an ordinary user (man 7 user_namespaces, overlayfs).

Nothing of the box is privileged: the kernel lets every user have a user namespace, unless the system forbids it
(`tiers.py` tries, and says what does). What the box's own process does is in `launch/boxed.py`; this side writes its plan,
and reads what was done: uppers through a descriptor that process hands over, events from a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.sandbox import trust
from earnest.sandbox.box import Ended, Event, Look, Plan, Sight
from earnest.sandbox.journal import Journal
from earnest.sandbox.overlay import Contents, Layer, Looker
from earnest.sandbox.runtimes import needs

NAME: Final = "namespaces"
SIGHT: Final = Sight("everywhere", network=True, processes=True, sockets=True, holds_writes=True, holds_network=True)
END_S: Final = 10.0
_LAUNCH: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch", "boxed.py")


class Namespaces:
    """Makes boxes of tier A. See `earnest.sandbox.box.Tier`."""

    name = NAME
    sight = SIGHT

    def box(self, plan: Plan) -> NamespaceBox:
        return NamespaceBox(plan)


class NamespaceBox:
    """See `earnest.sandbox.box.Box`."""

    tier = NAME
    sight = SIGHT

    def __init__(self, plan: Plan) -> None:
        check(plan)
        self._state = tempfile.mkdtemp(prefix="earnest-box-")
        self._kept: Ended | None = None
        self._control: socket.socket | None = None
        self._looker: Looker | None = None
        self._layers = -1
        self._journal = Journal(f"{self._state}/events")
        try:
            for name in ("layers", "kept"):
                os.mkdir(f"{self._state}/{name}", 0o700)
            self._listener = _listen(self._state)
            files, more = trust.files_and_env(plan)
            self.env: Mapping[str, str] = {"HOME": plan.home, **plan.env, **more}
            with open(f"{self._state}/plan", "w") as file:
                json.dump(_as_json(plan, self._state, files, self.env), file)
        except BaseException:
            shutil.rmtree(self._state, ignore_errors=True)
            raise
        self.argv: tuple[str, ...] = (sys.executable, "-I", "-S", _LAUNCH, f"{self._state}/plan")

    def look(self) -> Look:
        looker = self._open()
        return looker.look() if looker is not None else Look({})

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None:
        looker = self._open()
        if looker is None:
            return None
        entry = look.entries.get(path) if look is not None else None
        file = entry.now if entry is not None else looker.base(path)
        if file is None or file.kind != "file":
            return None
        return self._contents.bytes_of(file.digest, file.size)

    def events(self, since: int = 0) -> tuple[Event, ...]:
        return self._journal.events(since)

    def close(self) -> Ended:
        if self._kept is not None:
            return self._kept
        self._journal.events()
        with contextlib.suppress(OSError):
            open(f"{self._state}/closing", "w").close()
        control = self._accept()
        if control is not None:
            end(control)
        self._listener.close()
        self._journal.events()
        self._kept = ended(self._state)
        if self._layers >= 0:
            os.close(self._layers)
            self._layers = -1
        self._looker = None
        shutil.rmtree(self._state, onerror=_force)
        return self._kept

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _accept(self) -> socket.socket | None:
        """The line to the box's process; None while it was not started."""
        if self._control is None:
            try:
                self._control, _ = self._listener.accept()
            except OSError:
                return None
        return self._control

    def _open(self) -> Looker | None:
        """The looker, once the box has told what it is made of."""
        if self._looker is None and self._kept is None and (control := self._accept()) is not None:
            told = _told(control)
            if told is not None:
                text, self._layers = told
                root = f"/proc/self/fd/{self._layers}"
                layers = [
                    Layer(target, f"{root}/up/{number}", (f"{root}/made/{number}", *lowers))
                    for target, access, number, lowers in json.loads(text)["layers"]
                    if access == "copy"
                ]
                self._contents = Contents(f"{self._state}/kept")
                self._looker = Looker(layers, self._contents)
        return self._looker


def check(plan: Plan) -> None:
    """Raise E1801 for a plan that no box can follow."""
    if not plan.argv:
        raise EarnestError("E1801", "a box needs a command", "Give the command that is to run.")
    for path in (plan.cwd, plan.home, *(folder.target for folder in plan.folders)):
        if not os.path.isabs(path) or os.path.normpath(path) != path or (path == "/" and path != plan.cwd):
            raise EarnestError("E1801", f"{path!r} is no path inside a box", "Give an absolute path without `..`, not `/`.")
    for folder in plan.folders:
        if folder.source is not None and not os.path.exists(folder.source):
            raise EarnestError("E1801", f"there is no {folder.source!r}, which a box is to have at {folder.target!r}")
        if folder.access == "write" and folder.source is None:
            raise EarnestError("E1801", f"{folder.target!r} is to be written to, and is no folder of this machine")


def account_home() -> str:
    """The home that the system has for this user, whatever HOME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.environ.get("HOME", "/nonexistent")


def _as_json(plan: Plan, state: str, files: Mapping[str, str], env: Mapping[str, str]) -> dict[str, Any]:
    home = account_home()
    needed = needs(plan.argv, env, plan.cwd, home)
    return {
        **msgspec.to_builtins(plan),
        "env": {},
        "state": state,
        "files": dict(files),
        "account": home if os.path.isabs(home) and home != "/" else "/home",
        "runtimes": needed.paths,
        "links": needed.links,
        "authority": trust.command(),
        "certificates": trust.authority().folder if plan.reach == "pretend" else "",
    }


def _listen(state: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(state, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{folder}/box")
    finally:
        os.close(folder)
    listener.listen(1)
    listener.setblocking(False)
    return listener


def _told(control: socket.socket) -> tuple[bytes, int] | None:
    """What the box says of itself and the descriptor it hands over; None where it has not yet."""
    control.setblocking(False)
    try:
        head = control.recv(4, socket.MSG_PEEK)
    except OSError:
        return None
    if len(head) < 4:
        return None
    control.settimeout(END_S)
    size = 4 + struct.unpack("=I", head)[0]
    data, descriptors, _, _ = socket.recv_fds(control, size, 1)
    while data and len(data) < size:
        more = control.recv(size - len(data))
        if not more:
            break
        data += more
    return (data[4:], descriptors[0]) if descriptors else None


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
    """How a box ended, as its process wrote it down; raises E1802 where it could not be made."""
    try:
        with open(f"{state}/ended") as file:
            told = json.load(file)
    except (OSError, ValueError):
        return Ended(None)
    return Ended(told["status"], told.get("limit", "") or ("failed" if told.get("error") else ""))


def _force(function: Any, path: str, _: Any) -> None:
    """Take away what a command left without permissions."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
