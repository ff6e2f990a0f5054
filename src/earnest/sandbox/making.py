"""What all boxes share on this side: a folder with a plan in it, a process of their own that reads it, events, an end."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from earnest.sandbox import trust
from earnest.sandbox.box import Ended, Event, Look, Plan, Sight
from earnest.sandbox.copies import Copies
from earnest.sandbox.journal import Journal
from earnest.sandbox.line import ENV, ended
from earnest.sandbox.places import Place
from earnest.sandbox.plans import account_home, check
from earnest.sandbox.runtimes import needs


class MadeBox:
    """A box made of a folder and a process. See `earnest.sandbox.box.Box`; a tier says what its plan is and how it ends."""

    tier: str
    sight: Sight
    launch: str
    """The file that its process runs."""

    def __init__(self, plan: Plan) -> None:
        check(plan)
        self._place = Place()
        self._state = self._place.path
        os.mkdir(f"{self._state}/kept", 0o700)
        self._kept: Ended | None = None
        self._journal = Journal(f"{self._state}/events")
        try:
            beside = self._told(plan)
            told = {
                **msgspec.to_builtins(plan),
                "state": self._state,
                "root": os.geteuid() == 0,
                "niceness": os.getpriority(os.PRIO_PROCESS, 0),
                "authority": trust.command(),
                "certificates": trust.authority().folder if plan.reach == "pretend" else "",
                **beside,
            }
            with open(f"{self._state}/plan", "w") as file:
                json.dump(told, file)
        except BaseException:
            self._remove()
            raise
        launch = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch", self.launch)
        self.argv: tuple[str, ...] = (sys.executable, "-I", "-S", launch, f"{self._state}/plan")
        self.env: Mapping[str, str] = ENV

    def events(self, since: int = 0) -> tuple[Event, ...]:
        return self._journal.events(since)

    def close(self) -> Ended:
        if self._kept is None:
            self._journal.events()
            with contextlib.suppress(OSError):
                open(f"{self._state}/closing", "w").close()
            self._end()
            self._journal.events()
            self._kept = ended(self._state)
            self._remove()
        return self._kept

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _told(self, plan: Plan) -> dict[str, Any]:
        """What the tier's process is told besides the plan."""
        raise NotImplementedError

    def _end(self) -> None:
        """End the process, and wait until it has ended."""
        raise NotImplementedError

    def _remove(self) -> None:
        """Take away what was made."""
        self._place.remove()


class CopiedBox(MadeBox):
    """A box whose folders are copies at their own paths, and looked at there."""

    _copies: Copies | None = None

    def look(self) -> Look:
        return self._copies.look() if self._copies is not None else Look({})

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None:
        return self._copies.bytes_of(path, look) if self._copies is not None else None

    def _told(self, plan: Plan) -> dict[str, Any]:
        self._copies = copies = Copies(plan, self._state)
        readable = [*copies.readable]
        more = {"TMPDIR": copies.temporary}
        if plan.reach == "pretend":
            folder, variables = trust.folder_and_env(plan, self._state)
            readable.append(folder)
            more |= variables
        env = {"HOME": plan.home, **plan.env, **more, **self._env()}
        readable += needs(plan.argv, env, plan.cwd, account_home()).paths
        return {"env": env, "readable": readable, "writable": copies.writable, "counted": copies.own, "made": copies.made}

    def _env(self) -> Mapping[str, str]:
        """Variables that the tier gives the command."""
        return {}

    def _remove(self) -> None:
        if self._copies is not None:
            self._copies.remove()
        super()._remove()
