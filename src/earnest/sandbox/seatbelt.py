"""Tier C, macOS: a Seatbelt profile around the command, copies at their own paths, and a proxy.

**Untested.** Written from the published grammar of profiles and from how other programs use `sandbox-exec`, read over, never
run: there was no macOS to run it on. `tiers.py` tries it like any other tier before it is used.

Seatbelt can forbid, it cannot make up: what does not go through the proxy variables fails and is not seen, processes are not
told, and files are seen in the box's own folders alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from earnest.sandbox import trust
from earnest.sandbox.box import Ended, Event, Look, Plan, Sight
from earnest.sandbox.copies import Copies
from earnest.sandbox.internet.outlet import environment
from earnest.sandbox.journal import Journal
from earnest.sandbox.line import ENV, ended
from earnest.sandbox.places import Place
from earnest.sandbox.plans import account_home, check
from earnest.sandbox.runtimes import needs

NAME: Final = "seatbelt"
SIGHT: Final = Sight("granted", network=False, processes=False, sockets=False, holds_writes=True, holds_network=True)
_LAUNCH: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch", "caged.py")
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


class SeatbeltBox:
    """See `earnest.sandbox.box.Box`."""

    tier = NAME
    sight = SIGHT

    def __init__(self, plan: Plan) -> None:
        check(plan)
        self._place = Place()
        self._state = self._place.path
        os.mkdir(f"{self._state}/kept", 0o700)
        self._kept: Ended | None = None
        self._journal = Journal(f"{self._state}/events")
        self._copies = Copies(plan, self._state)
        self._port = socket.socket()  # held so that the number is ours until the box's own process listens on it
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._port.bind(("127.0.0.1", 0))
        port = self._port.getsockname()[1] if plan.reach != "none" else 0
        readable = [*self._copies.readable]
        more = {"TMPDIR": self._copies.temporary, **(environment(port) if port else {})}
        if plan.reach == "pretend":
            folder, variables = trust.folder_and_env(plan, self._state)
            readable.append(folder)
            more |= variables
        env = {"HOME": plan.home, **plan.env, **more}
        readable += needs(plan.argv, env, plan.cwd, account_home()).paths
        told = {
            **msgspec.to_builtins(plan),
            "env": env,
            "state": self._state,
            "owner": os.getpid(),
            "port": port,
            "profile": profile(readable, self._copies.writable, port),
            "counted": self._copies.own,
            "made": self._copies.made,
            "authority": trust.command(),
            "certificates": trust.authority().folder if plan.reach == "pretend" else "",
        }
        with open(f"{self._state}/plan", "w") as file:
            json.dump(told, file)
        self.argv: tuple[str, ...] = (sys.executable, "-I", "-S", _LAUNCH, f"{self._state}/plan")
        self.env: Mapping[str, str] = ENV

    def look(self) -> Look:
        return self._copies.look()

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None:
        return self._copies.bytes_of(path, look)

    def events(self, since: int = 0) -> tuple[Event, ...]:
        return self._journal.events(since)

    def close(self) -> Ended:
        if self._kept is None:
            with contextlib.suppress(OSError):
                open(f"{self._state}/closing", "w").close()
            self._port.close()
            self._wait()
            self._journal.events()
            self._kept = ended(self._state)
            self._copies.remove()
            self._place.remove()
        return self._kept

    def _wait(self) -> None:
        """Until the box's process has ended, which looks for our wish to close several times a second."""
        import time

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
