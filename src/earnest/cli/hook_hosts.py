"""Where each host keeps its hooks, and how earnest's are written there: what `earnest hook install` needs to know of a host."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from earnest.hook import claude_code, codex, cursor, gemini_cli
from earnest.hook.wire import Wire

WAIT_S: Final = 15
"""What a host waits for a hook; earnest's own limits are shorter."""


class HookHost(msgspec.Struct, frozen=True):
    """One host. `settings(env, home)` is a person's file; `of_project` that in a project; `shared`: others have the latter too.
    `item(command, event)`: what is written for an event. `version`: what the file says of its format. `notes`: what the
    person still has to do or to know."""

    wire: Wire
    settings: Callable[[Mapping[str, str], str], str]
    of_project: str
    item: Callable[[str, str], object]
    shared: bool = True
    version: int = 0
    notes: tuple[str, ...] = ()


def command(program: str, host: str, event: str, config: str) -> str:
    """The line a host's shell runs."""
    named = f" --config {shlex.quote(config)}" if config else ""
    return f"{program} hook{named} {host} {event}"


def _matched(line: str, event: str) -> object:
    group = {"matcher": "*"} if event in claude_code.OF_TOOLS else {}
    return {**group, "hooks": [{"type": "command", "command": line, "timeout": WAIT_S}]}


def _in_seconds(line: str, event: str) -> object:
    return {"hooks": [{"type": "command", "command": line, "timeout": WAIT_S}]}


def _in_milliseconds(line: str, event: str) -> object:
    return {"hooks": [{"type": "command", "name": "earnest", "command": line, "timeout": WAIT_S * 1000}]}


def _flat(line: str, event: str) -> object:
    # Without it a hook that fails lets the call run.
    closed = {"failClosed": True} if event in cursor.DECIDING else {}
    return {"command": line, "timeout": WAIT_S, **closed}


HOSTS: Final[dict[str, HookHost]] = {
    claude_code.NAME: HookHost(
        claude_code.WIRE,
        lambda env, home: os.path.join(env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "settings.json"),
        ".claude/settings.local.json",
        _matched,
        shared=False,
    ),
    codex.NAME: HookHost(
        codex.WIRE,
        lambda env, home: os.path.join(env.get("CODEX_HOME") or os.path.join(home, ".codex"), "hooks.json"),
        ".codex/hooks.json",
        _in_seconds,
        notes=(
            "Codex runs a hook only once you have trusted it: type /hooks in Codex, read the lines, trust them.",
            "Codex cannot ask you from a hook: what has to be asked waits in `earnest approvals`, and is refused until then.",
        ),
    ),
    gemini_cli.NAME: HookHost(
        gemini_cli.WIRE,
        lambda env, home: os.path.join(home, ".gemini", "settings.json"),
        ".gemini/settings.json",
        _in_milliseconds,
        notes=("What has to be asked waits in `earnest approvals`, and is refused until then (docs/hook.md says why).",),
    ),
    cursor.NAME: HookHost(
        cursor.WIRE,
        lambda env, home: os.path.join(home, ".cursor", "hooks.json"),
        ".cursor/hooks.json",
        _flat,
        version=1,
        notes=("What has to be asked waits in `earnest approvals`, and is refused until then (docs/hook.md says why).",),
    ),
}
