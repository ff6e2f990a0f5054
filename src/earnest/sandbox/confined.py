"""Tier B: no namespaces (Ubuntu's default, most containers). Landlock says which files may be opened, a seccomp listener does
or refuses what Landlock does not hold, folders of the plan are copies at their own paths (`copies.py`).

It sees less than tier A: changes in the box's own folders, not those it tried elsewhere (these are refused, and reported). What
runs in it can tell that it is confined, not that it is watched: it has the machine's own paths and process numbers.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from earnest.sandbox import trust
from earnest.sandbox.box import Ended, Event, Look, Plan, Sight
from earnest.sandbox.copies import Copies
from earnest.sandbox.journal import Journal
from earnest.sandbox.launch.layers import SECRETS, SYSTEM
from earnest.sandbox.line import ENV, Line, ended
from earnest.sandbox.places import Place
from earnest.sandbox.plans import account_home, check, within
from earnest.sandbox.runtimes import needs

NAME: Final = "confined"
SIGHT: Final = Sight("granted", network=True, processes=True, sockets=True, holds_writes=True, holds_network=True)
_LAUNCH: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch", "confined.py")


class Confined:
    """Makes boxes of tier B. See `earnest.sandbox.box.Tier`."""

    name = NAME
    sight = SIGHT

    def box(self, plan: Plan) -> ConfinedBox:
        return ConfinedBox(plan)


class ConfinedBox:
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
        try:
            self._copies = Copies(plan, self._state)
            self._line = Line(self._state)
            more = {"TMPDIR": self._copies.temporary, "RES_OPTIONS": "use-vc timeout:2"}
            readable = [*self._copies.readable, *_system(), "/proc", os.path.realpath("/etc/resolv.conf")]
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
                "readable": readable,
                "writable": self._copies.writable,
                "counted": self._copies.own,
                "made": self._copies.made,
                "authority": trust.command(),
                "certificates": trust.authority().folder if plan.reach == "pretend" else "",
            }
            with open(f"{self._state}/plan", "w") as file:
                json.dump(told, file)
        except BaseException:
            if hasattr(self, "_copies"):
                self._copies.remove()
            self._place.remove()
            raise
        self.argv: tuple[str, ...] = (sys.executable, "-I", "-S", _LAUNCH, f"{self._state}/plan")
        self.env: Mapping[str, str] = ENV

    def look(self) -> Look:
        return self._copies.look()

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None:
        return self._copies.bytes_of(path, look)

    def events(self, since: int = 0) -> tuple[Event, ...]:
        return self._journal.events(since)

    def close(self) -> Ended:
        if self._kept is not None:
            return self._kept
        with contextlib.suppress(OSError):
            open(f"{self._state}/closing", "w").close()
        self._line.close()
        self._journal.events()
        self._kept = ended(self._state)
        self._copies.remove()
        self._place.remove()
        return self._kept

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _system() -> list[str]:
    """The folders of the system, in parts where one of them holds a secret."""
    found: list[str] = []
    waiting = [f"/{name}" for name in SYSTEM if os.path.isdir(f"/{name}")]
    while waiting:
        path = waiting.pop()
        if any(within(path, secret) for secret in SECRETS):
            continue
        if any(within(secret, path) for secret in SECRETS) and not os.path.islink(path):
            waiting += _entries(path)
        else:
            found.append(path)
    return found


def _entries(folder: str) -> Iterable[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []
