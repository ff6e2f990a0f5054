"""Tier A: namespaces of its own and one overlay for each folder, as an ordinary user (man 7 user_namespaces, overlayfs).

Nothing of the box is privileged: the kernel lets every user have a user namespace, unless the system forbids it
(`tiers.py` tries, and says what does). What the box's own process does is in `launch/boxed.py`; this side writes its plan,
and reads what was done: uppers through a descriptor that process hands over, events from a file.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.sandbox import trust
from earnest.sandbox.box import Look, Plan, Sight
from earnest.sandbox.copies import measured
from earnest.sandbox.line import END_S, Line
from earnest.sandbox.making import MadeBox
from earnest.sandbox.overlay import Contents, Layer, Looker
from earnest.sandbox.plans import account, account_home
from earnest.sandbox.runtimes import needs

NAME: Final = "namespaces"
SIGHT: Final = Sight(
    "everywhere", network=True, processes=True, sockets=True, holds_writes=True, holds_network=True, copies_in_place=True
)


class Namespaces:
    """Makes boxes of tier A. See `earnest.sandbox.box.Tier`."""

    name = NAME
    sight = SIGHT

    def box(self, plan: Plan) -> NamespaceBox:
        return NamespaceBox(plan)


class NamespaceBox(MadeBox):
    """See `earnest.sandbox.box.Box`."""

    tier = NAME
    sight = SIGHT
    launch = "boxed.py"
    _line: Line | None = None
    _heard: socket.socket | None = None
    _looker: Looker | None = None
    _layers = -1

    def _told(self, plan: Plan) -> dict[str, Any]:
        os.mkdir(f"{self._state}/layers", 0o700)
        self._line = Line(self._state)
        files, more = trust.files_and_env(plan)
        return _beside(plan, self._state, files | account(plan), {"HOME": plan.home, **plan.env, **more})

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

    def _end(self) -> None:
        if self._line is not None:
            self._line.close()

    def _remove(self) -> None:
        if self._layers >= 0:
            os.close(self._layers)
            self._layers = -1
        self._looker = None
        super()._remove()

    def _open(self) -> Looker | None:
        """The looker, once the box has told what it is made of."""
        if self._kept is not None or self._line is None:
            return None
        control = self._line.current()
        if control is not None and control is not self._heard:
            told = _told(control)
            if told is not None:
                self._heard = control
                if self._layers >= 0:
                    os.close(self._layers)
                text, self._layers = told
                root = f"/proc/self/fd/{self._layers}"
                layers = [
                    Layer(target, f"{root}/up/{number}", (f"{root}/made/{number}", *lowers), _times(access, root, number))
                    for target, access, number, lowers in json.loads(text)["layers"]
                    if access in ("copy", "plain")
                ]
                self._contents = Contents(f"{self._state}/kept")
                self._looker = Looker(layers, self._contents)
        return self._looker


def _beside(plan: Plan, state: str, files: Mapping[str, str], env: Mapping[str, str]) -> dict[str, Any]:
    home = account_home()
    needed = needs(plan.argv, env, plan.cwd, home)
    folders: list[dict[str, Any]] = msgspec.to_builtins(plan.folders)
    for number, folder in enumerate(folders):
        if folder["access"] == "copy" and folder["source"] is not None and os.path.isdir(folder["source"]):
            folder["source"], small = measured(folder["source"], f"{state}/copy-{number}")
            folder["access"] = "plain" if small else "copy"
    return {
        "folders": folders,
        "env": env,
        "in_memory": True,
        "files": dict(files),
        "account": home if os.path.isabs(home) and home != "/" else "/home",
        "runtimes": needed.paths,
        "links": needed.links,
    }


def _times(access: str, root: str, number: int) -> dict[str, int] | None:
    """When each part of a plain layer was changed before the command began."""
    if access != "plain":
        return None
    with open(f"{root}/made/{number}.json") as file:
        times: dict[str, int] = json.load(file)
    return times


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
