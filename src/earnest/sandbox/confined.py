"""Tier B: no namespaces (Ubuntu's default, most containers). Landlock says which files may be opened, a seccomp listener does
or refuses what Landlock does not hold, folders of the plan are copies at their own paths (`copies.py`).

It sees less than tier A: changes in the box's own folders, not those it tried elsewhere (these are refused, and reported). What
runs in it can tell that it is confined, not that it is watched: it has the machine's own paths and process numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from earnest.sandbox.box import Plan, Sight, within
from earnest.sandbox.launch.layers import SECRETS, SYSTEM
from earnest.sandbox.line import Line
from earnest.sandbox.making import CopiedBox

NAME: Final = "confined"
SIGHT: Final = Sight("granted", network=True, processes=True, sockets=True, holds_writes=True, holds_network=True)


class Confined:
    """Makes boxes of tier B. See `earnest.sandbox.box.Tier`."""

    name = NAME
    sight = SIGHT

    def box(self, plan: Plan) -> ConfinedBox:
        return ConfinedBox(plan)


class ConfinedBox(CopiedBox):
    """See `earnest.sandbox.box.Box`."""

    tier = NAME
    sight = SIGHT
    launch = "confined.py"
    _line: Line | None = None

    def _told(self, plan: Plan) -> dict[str, Any]:
        told = super()._told(plan)
        self._line = Line(self._state)
        told["readable"] += [*_system(), "/proc", os.path.realpath("/etc/resolv.conf")]
        return told

    def _env(self) -> Mapping[str, str]:
        return {"RES_OPTIONS": "use-vc timeout:2"}

    def _end(self) -> None:
        if self._line is not None:
            self._line.close()


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
