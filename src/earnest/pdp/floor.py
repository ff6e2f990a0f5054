"""The built-in floor: no call reaches earnest's own files, socket or command, or a host's hook and server settings.

Theory (law 9). Whatever a model can do with its tools, it must not raise trust, write a label, accept a pin or answer an
ask. Two things would let it: a tool that writes (or reads, there are tokens) the files in which that is kept, and a tool
that runs earnest's command line. Arguments are therefore looked at as text, in whatever field they stand:

- every string that can be a path is made absolute (home, the server's folder, `file:` URLs, percent escapes), its symbolic
  links are resolved, and it is refused if it lies at or beneath a protected place, or, for a tool that may destroy, above one;
- every string in which a protected place or a trust-raising command of earnest is mentioned is refused, because shells and
  interpreters take paths inside longer texts, unless the tool is known to do nothing but take text (its content role).

This is a net, not a wall: a program that runs with the person's own rights can compute a path. It stops what a model does
with ordinary tools; containment stops the rest.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from earnest.core.verdict import Reason, Verdict

MAX_STRINGS: Final = 5000
"""Strings looked at in one call; a call with more is judged as one that touches a protected place."""

_COMMANDS: Final = "trust|labels|pins|approvals|conversation|init|policy|stop|serve|run"
_OWN_COMMAND: Final = re.compile(
    rf"(?:^|[\s;&|`$(/'\"]|-m\s)earnest(?:['\"\s,]|\\t)+[^;&|\n]*?\b(?:{_COMMANDS})\b", re.IGNORECASE
)

_WORTH_A_LOOK: Final = re.compile(rb"[/\\~%]|earnest|\.mcp\.json", re.IGNORECASE)
"""Without a slash, an escape, a tilde or one of these words, no argument reaches a protected place (unless the server itself
runs in one)."""

HOST_SETTINGS: Final = (
    ".claude.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".codeium/windsurf/mcp_config.json",
    ".config/Code/User/mcp.json",
    ".config/Code/User/settings.json",
    "Library/Application Support/Code/User/mcp.json",
    "Library/Application Support/Code/User/settings.json",
)
"""Under a person's home: where hosts keep which servers and hooks they start."""

PROJECT_SETTINGS: Final = (
    ".mcp.json",
    "earnest.toml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
)
"""In any folder: the same, by project. Compared by their last parts, since the folder is not known."""

_OWN_FILES: Final = Reason(
    "floor/own-files", "the arguments reach earnest's own files or a host's hook and server settings", Verdict.DENY
)
_OWN_COMMAND_REASON: Final = Reason(
    "floor/own-command", "the arguments run earnest's own command line, which is a person's to use", Verdict.DENY
)
_TOO_MANY: Final = Reason("floor/own-files", f"the arguments hold more than {MAX_STRINGS} strings", Verdict.DENY)


class Floor:
    """The protected places of one daemon."""

    def __init__(self, *, home: str, own: Sequence[str]) -> None:
        """`home`: the person's home folder. `own`: earnest's instance folder, its home, its configuration and policy files."""
        places = [*own, *(os.path.join(home, part) for part in HOST_SETTINGS)]
        self._home = home
        self._places = tuple(sorted({p for place in places for p in (os.path.normpath(place), os.path.realpath(place))}))
        self._folders: dict[str | None, bool] = {}
        self._tails = tuple("/" + tail for tail in PROJECT_SETTINGS)
        words = {*(p.casefold() for p in self._places)}
        for place in self._places:
            if place.startswith(home + os.sep):
                rest = place[len(home) :]
                words |= {("~" + rest).casefold(), ("$home" + rest).casefold(), ("${home}" + rest).casefold()}
        self._mentions = tuple(sorted(words))

    def check(
        self, arguments: bytes, *, cwd: str | None, destructive: bool, takes_text: frozenset[str] = frozenset()
    ) -> Reason | None:
        """Why the call must not run, or None.

        `arguments` is valid JSON, `cwd` the server's folder, `destructive` whether the tool may destroy, `takes_text` the names
        of top-level arguments whose role is content.
        """
        if not _WORTH_A_LOOK.search(arguments) and not self._inside(cwd):
            return None
        try:
            value = msgspec.json.decode(arguments)
        except msgspec.MsgspecError:
            value = json.loads(arguments)
        count = 0
        for name, text in _strings(value, ""):
            count += 1
            if count > MAX_STRINGS:
                return _TOO_MANY
            if not text or (len(text) < 4 and "/" not in text and text != "~"):
                continue
            if self._is_protected_path(text, cwd, destructive):
                return _OWN_FILES
            if name not in takes_text:
                if len(text) >= 12 and self._mentions_place(text):
                    return _OWN_FILES
                if "earnest" in text.casefold() and _OWN_COMMAND.search(text):
                    return _OWN_COMMAND_REASON
        return None if not _argv_runs_own_command(value) else _OWN_COMMAND_REASON

    def _is_protected_path(self, text: str, cwd: str | None, destructive: bool) -> bool:
        if len(text) > 4096 or "\0" in text or "\n" in text:
            return False
        if text.startswith("file:"):
            text = unquote(urlsplit(text).path)
        elif "%2f" in text.casefold() or "%2e" in text.casefold():
            text = unquote(text)
        if text.startswith("~/") or text == "~":
            text = self._home + text[1:]
        if not text.startswith("/"):
            if "/" not in text and not self._is_settings_name(text) and not self._inside(cwd):
                return False
            text = os.path.join(cwd or self._home, text)
        for path in {os.path.normpath(text), os.path.realpath(text)}:
            folded = path.casefold()
            if folded.endswith(self._tails):
                return True
            for place in self._places:
                if path == place or path.startswith(place + "/"):
                    return True
                if destructive and (place.startswith(path.rstrip("/") + "/")):
                    return True
        return False

    def _inside(self, cwd: str | None) -> bool:
        """Whether a server's folder is a protected place, so that a bare file name can be one."""
        known = self._folders.get(cwd)
        if known is None:
            real = os.path.realpath(cwd or self._home)
            known = any(
                place == real or os.path.dirname(place) == real or real.startswith(place + "/") for place in self._places
            )
            # The person's home holds protected files by name; those names are checked by themselves.
            known = known and real != os.path.realpath(self._home)
            self._folders[cwd] = known
        return known

    def _is_settings_name(self, text: str) -> bool:
        return "/" + text.casefold() in self._tails

    def _mentions_place(self, text: str) -> bool:
        folded = text.casefold()
        return any(word in folded for word in self._mentions)


def _strings(value: object, name: str) -> Iterator[tuple[str, str]]:
    """All strings in a JSON value, keys too, with the top-level argument they stand in. No recursion: depth is the client's."""
    stack: list[tuple[str, object]] = [(name, value)]
    top = True
    while stack:
        where, item = stack.pop()
        if isinstance(item, str):
            yield where, item
        elif isinstance(item, dict):
            for key, inner in item.items():
                if not top:
                    yield where, key
                stack.append((key if top else where, inner))
        elif isinstance(item, list):
            stack.extend((where, inner) for inner in item)
        top = False


def _argv_runs_own_command(value: object) -> bool:
    """Whether an argument is a list of words that runs earnest: `["earnest", "trust", …]`, or command and args apart."""
    if not isinstance(value, dict):
        return False
    words: list[str] = []
    for inner in value.values():
        if isinstance(inner, str):
            words.append(inner)
        elif isinstance(inner, list) and all(isinstance(w, str) for w in inner):
            words.extend(inner)
    runs = any(os.path.basename(w.strip()) == "earnest" or w.strip() == "earnest" for w in words)
    return runs and any(w in _COMMANDS.split("|") for w in words)
