"""Tier C, macOS: a Seatbelt profile around the command, copies at their own paths, and a proxy.

**Untested.** Written from the published grammar of profiles and from how other programs use `sandbox-exec`, read over, never
run: there was no macOS to run it on. `tiers.py` tries it like any other tier before it is used.

Seatbelt can forbid, it cannot make up: what does not go through the proxy variables fails and is not seen, processes are not
told, and files are seen in the box's own folders alone.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from earnest.sandbox.box import Plan, Sight
from earnest.sandbox.internet.outlet import environment
from earnest.sandbox.making import CopiedBox

NAME: Final = "seatbelt"
SIGHT: Final = Sight("granted", network=False, processes=False, sockets=False, holds_writes=True, holds_network=True)
_READABLE: Final = (
    "/usr", "/bin", "/sbin", "/System", "/Library/Apple", "/Library/Frameworks", "/Library/Developer", "/opt", "/private/etc",
    "/private/var/db/timezone", "/private/var/select", "/dev", "/Applications/Xcode.app",
)  # fmt: skip
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")
_SERVICES: Final = (
    "com.apple.system.opendirectoryd.libinfo", "com.apple.system.notification_center", "com.apple.system.logger",
    "com.apple.SystemConfiguration.configd", "com.apple.trustd.agent", "com.apple.trustd",
)  # fmt: skip


class Seatbelt:
    """Makes boxes of tier C. See `earnest.sandbox.box.Tier`."""

    name = NAME
    sight = SIGHT

    def box(self, plan: Plan) -> SeatbeltBox:
        return SeatbeltBox(plan)


class SeatbeltBox(CopiedBox):
    """See `earnest.sandbox.box.Box`."""

    tier = NAME
    sight = SIGHT
    launch = "caged.py"
    _port: socket.socket | None = None
    """Held so that the number is ours until the box's own process listens on it."""

    def _told(self, plan: Plan) -> dict[str, Any]:
        if plan.reach != "none":
            self._port = socket.socket()
            self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._port.bind(("127.0.0.1", 0))
        told = super()._told(plan)
        told |= {"owner": os.getpid(), "port": self._number()}
        return told | {"profile": profile(told["readable"], told["writable"], told["port"])}

    def _number(self) -> int:
        return int(self._port.getsockname()[1]) if self._port is not None else 0

    def _env(self) -> Mapping[str, str]:
        return environment(self._number()) if self._port is not None else {}

    def _end(self) -> None:
        """The box's process looks for our wish to close several times a second."""
        if self._port is not None:
            self._port.close()
        until = time.monotonic() + 10
        while os.path.exists(f"{self._state}/pid") and time.monotonic() < until:
            time.sleep(0.02)


def profile(readable: list[str], writable: list[str], port: int) -> str:
    """The profile, in Apple's language for them."""

    def paths(folders: list[str]) -> str:
        return " ".join(f"(subpath {_quoted(os.path.realpath(path))})" for path in folders)

    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow process-info* (target same-sandbox))",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        f"(allow process-exec* file-read* {paths([*_READABLE, *readable, *writable])})",
        f"(allow file-write* {paths(writable)})",
        f"(allow file-write* file-ioctl {' '.join(f'(literal {_quoted(device)})' for device in _DEVICES)})",
        f"(allow mach-lookup {' '.join(f'(global-name {_quoted(name)})' for name in _SERVICES)})",
        '(allow network-bind (local ip "localhost:*"))',
        '(allow network-inbound (local ip "localhost:*"))',
    ]
    if port:
        lines.append(f'(allow network-outbound (remote ip "localhost:{port}"))')
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
