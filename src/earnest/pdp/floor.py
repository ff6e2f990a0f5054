"""The built-in floor: no call reaches earnest's own files, socket or command, or a host's hook and server settings.

Theory (law 9). Whatever a model can do with its tools, it must not raise trust, write a label, accept a pin or answer an
ask. Two things would let it: a tool that writes (or reads, there are tokens) the files in which that is kept, and a tool
that runs earnest's command line. Arguments are therefore looked at as text, in whatever field they stand:

- every string that can be a path is made absolute (home, the server's folder, `file:` URLs, percent escapes), its symbolic
  links are resolved, and it is refused if it lies at or beneath a protected place, or, for a tool that may change things,
  above one; two strings that make such a path together are refused as the path is;
- every string in which a protected place or a trust-raising command of earnest is mentioned is refused, because shells and
  interpreters take paths inside longer texts, unless the tool is known to do nothing but take text (its content role).

This is a net, not a wall: a program that runs with the person's own rights can compute a path. It stops what a model does
with ordinary tools; containment stops the rest.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from earnest.core.verdict import Reason, Verdict
from earnest.net.tracks import compiled
from earnest.pdp.leads import PATH_ONLY, Led, led, still_lead
from earnest.pdp.own_command import argv_runs_own_command, reaches_own_modules, runs_own_command
from earnest.pdp.places import OWN_TAILS, SETTINGS_FOLDERS, Places
from earnest.pdp.spellings import (
    command_words,
    is_command,
    paths,
    squeezed,
    strings,
)

MAX_STRINGS: Final = 5000
"""Strings looked at in one call; a call with more is judged as one that touches a protected place."""
MAX_JOINS: Final = 500
"""Pairs of strings that are put together in one call; a call with more is judged as one that touches a protected place."""
KEPT: Final = 512
KEPT_BYTES: Final = 4096
"""Arguments that are remembered as harmless, and how long each may be."""
MAX_FILES: Final = 2000
"""Files of protected places that a hard link is compared with."""

_REACHES: Final = re.compile(
    rb"""[/\\~%$*]|hooks|\.(?:json|toml|claude|cursor|vscode|codex|gemini|local|config|codeium)|"\.\.?"|e\W*a\W*r\W*n\W*e\W*s\W*t""",
)
_SHORT: Final = frozenset(("~", ".."))

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


_HOME_NAMES: Final = frozenset(name.casefold() for name in HOST_SETTINGS if "/" not in name)


def _real(path: str) -> str:
    """`os.path.realpath`."""
    return _opened(path) or os.path.realpath(path)


def _opened(path: str) -> str | None:
    """`os.path.realpath` where all of the path exists; `None` if it does not, empty if that cannot be told.

    The kernel is asked at once what it opened, in place of each part being looked at in turn: cheaper, and nothing can be
    exchanged between two parts.
    """
    if not PATH_ONLY:
        return ""
    try:
        fd = os.open(path, PATH_ONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return ""
    try:
        found = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""
    finally:
        os.close(fd)
    return found if found.startswith("/") and not found.endswith(" (deleted)") else ""


def _has_several_names(path: str) -> bool:
    """Whether a file has hard links; yes where that cannot be told."""
    try:
        about = os.stat(path, follow_symlinks=False)
    except (OSError, ValueError):
        return True
    return about.st_nlink > 1 and stat.S_ISREG(about.st_mode)


def _worth_a_look(arguments: bytes) -> bool:
    """Whether arguments can reach a protected place at all: without a slash, an escape, a tilde, a pattern or one of these
    words none does (unless the server itself runs in one)."""
    return _REACHES.search(arguments.lower()) is not None


class Floor:
    """The protected places of one daemon."""

    def __init__(self, *, home: str, own: Sequence[str]) -> None:
        """`home`: the person's home folder. `own`: earnest's instance folder, its home, its configuration and policy files."""
        self._home = home
        settings = [os.path.join(home, part) for part in HOST_SETTINGS]
        self._known = Places(home=home, own=own, settings=settings, tails=PROJECT_SETTINGS)
        self._places = self._known.places
        self._folders: dict[str | None, bool] = {}
        self._harmless: dict[tuple[bytes, str | None, bool, frozenset[str]], Led] = {}
        """Arguments that were found harmless, and where the paths in them led."""
        self._led: dict[str, str] = {}
        """Where the paths of the arguments that are looked at lead; empty for one that leads to no file, or one of several
        names."""
        self._tails = tuple("/" + tail for tail in PROJECT_SETTINGS)
        self._variables = {
            "HOME": home,
            "XDG_STATE_HOME": f"{home}/.local/state",
            "XDG_CONFIG_HOME": f"{home}/.config",
            "EARNEST_HOME": own[0] if own else f"{home}/.local/state/earnest",
            "EARNEST_CONFIG": f"{home}/.config/earnest",
        }
        words = {*OWN_TAILS, "$earnest_home", "${earnest_home"}
        words |= {place.casefold() for place in self._places}
        variables = ("$xdg_state_home", "${xdg_state_home}", "$xdg_config_home", "${xdg_config_home}")
        words |= {variable + "/earnest" for variable in variables}
        for place in self._places:
            if place.startswith(home + os.sep):
                rest = place[len(home) :]
                words |= {("~" + rest).casefold(), ("$home" + rest).casefold(), ("${home}" + rest).casefold()}
        # A word that holds another one says nothing more.
        self._mentions = tuple(sorted(word for word in words if not any(one in word for one in words if one != word)))

    def check(
        self, arguments: bytes, *, cwd: str | None, changes: bool, takes_text: frozenset[str] = frozenset()
    ) -> Reason | None:
        """Why the call must not run, or None.

        `arguments` is valid JSON, `cwd` the server's folder, `changes` whether the tool may change anything, `takes_text` the
        names of top-level arguments whose role is content.
        """
        # What was found harmless and leads to the same files still is; only where paths lead can change.
        key = (arguments, cwd, changes, takes_text)
        known = self._harmless.get(key)
        if known is not None and still_lead(known):
            return None
        reaches = (compiled is None or compiled.reaches(arguments)) and _worth_a_look(arguments)
        if not reaches and not self._inside(cwd):
            return None
        self._led.clear()
        found = self._look(arguments, cwd, changes, takes_text)
        if found is None and len(arguments) <= KEPT_BYTES and all(self._led.values()):
            if len(self._harmless) >= KEPT:
                self._harmless.clear()
            self._harmless[key] = led(self._led)
        return found

    def _look(self, arguments: bytes, cwd: str | None, changes: bool, takes_text: frozenset[str]) -> Reason | None:
        """As `check`, anew."""
        try:
            value = msgspec.json.decode(arguments)
        except msgspec.MsgspecError:
            value = json.loads(arguments)
        count = 0
        pool: list[str] = []
        above: list[str] = []
        for top, near, text in strings(value):
            count += 1
            if count > MAX_STRINGS:
                return _TOO_MANY
            short = len(text) < 4 and "/" not in text and text not in _SHORT
            if not text or (short and not self._inside(cwd)):
                continue
            if self._is_protected(text, cwd, changes, above):
                return _OWN_FILES
            if top in takes_text:
                continue
            pool.append(text)
            if len(text) >= 12 and self._mentions_place(text):
                return _OWN_FILES
            if runs_own_command(text, near):
                return _OWN_COMMAND_REASON
            if not is_command(near):
                continue
            if reaches_own_modules(text):
                return _OWN_COMMAND_REASON
            words = command_words(text)
            if words is None:
                # Too long to be taken apart: then a mention of a settings file by its last parts is enough.
                if any(tail in squeezed(text.casefold()) for tail in PROJECT_SETTINGS):
                    return _OWN_FILES
                continue
            for word in words:
                if word != text:
                    pool.append(word)
                    if self._is_protected(word, cwd, changes, above):
                        return _OWN_FILES
                if self._fits(word, cwd):
                    return _OWN_FILES
        if above and len(pool) > 1 and self._joined(pool, above, cwd):
            return _OWN_FILES
        return None if not argv_runs_own_command(value) else _OWN_COMMAND_REASON

    def _is_protected(self, text: str, cwd: str | None, changes: bool, above: list[str]) -> bool:
        """Whether a string is a path to a protected place. Folders above one are added to `above`."""
        for path in paths(text, self._home, self._variables):
            rooted = path.startswith("/")
            if not rooted:
                if "/" not in path and not self._may_matter(path) and not self._inside(cwd):
                    continue
                if self._known.leads_on(path):
                    above.append(path)
                path = os.path.join(cwd or self._home, path)
            if self._lies_in_place(path, changes, above, rooted):
                return True
        return False

    def _lies_in_place(self, text: str, changes: bool, above: list[str], rooted: bool = True) -> bool:
        opened = _opened(text)
        real = opened or os.path.realpath(text)
        plain = os.path.normpath(text)
        for path in (real,) if plain == real else (plain, real):
            if self._known.within(path, rooted=rooted):
                return True
            if self._known.above(path):
                if changes:
                    return True
                above.append(path)
        # What is not there is no file, so no other name of one.
        several = opened is not None and _has_several_names(real)
        self._led[text] = "" if several or opened is None else opened
        return several and self._is_hard_link(real)

    def _fits(self, word: str, cwd: str | None) -> bool:
        """Whether a word of a command line is a pattern that can name something in a place."""
        if "*" not in word and "?" not in word and "[" not in word:
            return False
        for path in paths(word, self._home, self._variables):
            if path.startswith("/"):
                if self._known.fits(os.path.normpath(path), rooted=True):
                    return True
                continue
            whole = os.path.normpath(os.path.join(cwd or self._home, path))
            if self._known.fits(path, rooted=False) or self._known.fits(whole, rooted=True):
                return True
        return False

    def _joined(self, pool: list[str], above: list[str], cwd: str | None) -> bool:
        """Whether strings put together reach a place: a folder above one in one argument, the rest of the way in others."""
        names = []
        for text in dict.fromkeys(pool):
            for path in paths(text, self._home, self._variables):
                parts = path.casefold().split("/")
                if "*" in path or "?" in path or not self._known.words.isdisjoint(parts):
                    names.append(path.strip("/"))
        seen: set[str] = set()
        while above:
            folder = above.pop()
            for name in names:
                path = f"{folder}/{name}"
                if path in seen or folder.endswith("/" + name):
                    continue
                seen.add(path)
                if len(seen) > MAX_JOINS:
                    return True
                rooted = path.startswith("/")
                if self._known.leads_on(path) and not rooted:
                    above.append(path)
                whole = path if rooted else os.path.join(cwd or self._home, path)
                if self._lies_in_place(whole, False, above, rooted) or self._known.fits(os.path.normpath(whole), rooted=True):
                    return True
        return False

    def _is_hard_link(self, path: str) -> bool:
        """Whether a file of several names is another name of a protected one."""
        try:
            about = os.stat(path, follow_symlinks=False)
        except (OSError, ValueError):
            return False
        return any(os.path.samestat(about, other) for other in self._protected_files())

    def _protected_files(self) -> Iterator[os.stat_result]:
        stack = list(self._places)
        count = 0
        while stack and count < MAX_FILES:
            path = stack.pop()
            count += 1
            try:
                about = os.stat(path, follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode):
                    stack += [entry.path for entry in os.scandir(path)]
                elif about.st_nlink > 1:
                    yield about
            except OSError:
                continue

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
            known = known or os.path.basename(real).casefold() in SETTINGS_FOLDERS or "/.claude/hooks/" in real + "/"
            self._folders[cwd] = known
        return known

    def _may_matter(self, text: str) -> bool:
        """Whether a bare name can be part of a protected path."""
        folded = text.casefold()
        # A word without a dot (`Library`) is a word more often than a folder of the home.
        if folded in _SHORT or (folded[:1] == "." and folded in self._known.words):
            return True
        return "/" + folded in self._tails or folded in SETTINGS_FOLDERS or folded in _HOME_NAMES

    def _mentions_place(self, text: str) -> bool:
        folded = squeezed(text.casefold())
        for word in self._mentions:  # noqa: SIM110 (half the time of any() over a generator)
            # `…/earnest-notes` is another name.
            if word in folded and re.search(re.escape(word) + r"(?![\w-])", folded):
                return True
        return False
