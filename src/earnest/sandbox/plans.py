"""What every tier asks of a plan."""

from __future__ import annotations

import os
import pwd

from earnest.core.errors import EarnestError
from earnest.sandbox.box import Plan
from earnest.sandbox.internet.hosts import Hosts


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
    try:
        Hosts(plan.hosts)
    except ValueError as error:
        raise EarnestError("E1801", f"a box may reach no such host: {error}", "Give `name`, `*.name` or `name:port`.") from None


def account(plan: Plan) -> dict[str, str]:
    """The list of accounts with the plan's user in it, where the command is to be another one than root."""
    if not plan.user or os.geteuid() != 0:
        return {}
    try:
        pwd.getpwuid(plan.user)
    except KeyError:
        with open("/etc/passwd") as file:
            return {"/etc/passwd": f"{file.read().rstrip()}\nuser:x:{plan.user}:{plan.user}::{plan.home}:/bin/sh\n"}
    return {}


def account_home() -> str:
    """The home that the system has for this user, whatever HOME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.environ.get("HOME", "/nonexistent")
