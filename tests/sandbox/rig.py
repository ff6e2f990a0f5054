"""Running things in boxes, from tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from earnest.sandbox.box import Ended, Event, Look, Plan

HERE = Path(__file__).parent
TIERS = ("namespaces", "confined")
USERS = ("me", "ordinary") if os.geteuid() == 0 else ("me",)
PATH = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}


class Outcome(msgspec.Struct):
    """What came of a plan."""

    status: int
    out: str
    err: str
    look: Look
    contents: dict[str, tuple[bytes | None, bytes | None]]
    events: list[Event]
    ended: Ended

    def did(self, doing: str) -> list[Event]:
        return [event for event in self.events if event.doing == doing]

    def refused(self) -> set[str]:
        return {event.subject for event in self.did("refused")}

    def changed(self) -> dict[str, str]:
        """What happened to each path, in one word."""
        words = {}
        for path, entry in self.look.entries.items():
            base, now = entry.base, entry.now
            if now is None:
                words[path] = "deleted"
            elif base is None:
                words[path] = "created"
            elif (base.kind, base.digest, base.target) != (now.kind, now.digest, now.target):
                words[path] = "overwritten"
            else:
                words[path] = "opened" if base == now else "touched"
        return words


class Rig:
    """Boxes of one tier, as one user, in a short folder of their own that this user may write to."""

    def __init__(self, tier: str, user: str) -> None:
        self.tier, self.user = tier, user
        self.folder = Path(tempfile.mkdtemp(prefix="eb-", dir="/tmp"))
        self.home = str(self.folder / "inside" / "home")
        self.mark = f"EARNEST_TEST_MARK={self.folder.name}"
        self.through: list[str] = []
        """What the driver is started through."""
        if user == "ordinary":
            os.chmod(self.folder, 0o755)

    def env(self) -> dict[str, str]:
        name, _, value = self.mark.partition("=")
        return {**PATH, name: value}

    def plan(self, *argv: str, **more: Any) -> Plan:
        more.setdefault("cwd", self.home)
        more.setdefault("watch", True)
        return Plan(argv=argv, env=more.pop("env", self.env()), home=self.home, **more)

    def start(self, plan: Plan) -> subprocess.Popen[bytes]:
        """The driver, with the plan said to it."""
        command = [sys.executable, str(HERE / "driver.py"), self.tier]
        if self.user == "ordinary":
            command = [sys.executable, str(HERE / "ordinary.py"), str(self.folder), *command]
        process = subprocess.Popen(
            [*self.through, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(plan))
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, *argv: str, **more: Any) -> Outcome:
        process = self.start(self.plan(*argv, **more))
        out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err.decode()
        return msgspec.json.decode(out, type=Outcome)

    def sh(self, script: str, **more: Any) -> Outcome:
        return self.run("/bin/sh", "-c", script, **more)

    def python(self, script: str, **more: Any) -> Outcome:
        return self.run(sys.executable, "-I", "-c", script, **more)

    def left(self) -> list[int]:
        """Processes that carry this rig's mark."""
        return list(marked(self.mark.encode()))

    def gone(self, within_s: float = 20.0) -> bool:
        """Whether no process of this rig is left, now or soon."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if not self.left():
                return True
            time.sleep(0.05)
        return False


def marked(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes():
                    yield int(entry.name)
            except OSError:
                continue
