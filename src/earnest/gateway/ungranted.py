"""What the command of a contained server names on this machine and no lane is shown: most likely it has to be granted.

Nothing is granted for being an argument: a client, or whoever wrote its configuration, would then decide what may be seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from earnest.gateway.served import Launch
from earnest.sandbox.box import within

_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/dev", "/proc",
)  # fmt: skip
_MOST: Final = 8


def ungranted(launch: Launch) -> tuple[str, ...]:
    """Files and folders of this machine that its arguments and settings name and its grants do not."""
    from earnest.sandbox.plans import account_home
    from earnest.sandbox.runtimes import needs

    grants = launch.grants
    if grants is None or not launch.argv:
        return ()
    cwd = launch.cwd or "/"
    shown = (*_SYSTEM, *grants.read, *grants.write, *needs(launch.argv, launch.env, cwd, account_home()).paths)
    found = [path for path in dict.fromkeys(_named(launch)) if not any(within(path, one) for one in shown)]
    return tuple(found[:_MOST])


def _named(launch: Launch) -> Iterator[str]:
    grants = launch.grants
    assert grants is not None
    home = launch.env.get("HOME", "")
    settings = [launch.env[name] for name in sorted(grants.env) if name in launch.env]
    for word in (*launch.argv[1:], *settings):
        value = word.partition("=")[2] if word.startswith("-") else word
        if value.startswith("~/") and home:
            value = home + value[1:]
        path = os.path.normpath(value)
        # A database or a log that is to be made lies in a folder that is there.
        if os.path.isabs(path) and path != "/" and (os.path.exists(path) or os.path.isdir(os.path.dirname(path))):
            yield path


def proposal(name: str, paths: tuple[str, ...]) -> str:
    """The line of a configuration that would grant them, to be looked at by a person; empty for none."""
    if not paths:
        return ""
    listed = ", ".join(f'"{path}"' for path in paths)
    table = f"[servers.{name}.contain] read = [{listed}], or write"
    return f"Its command names what it is not granted. Should it work there: {table}."
