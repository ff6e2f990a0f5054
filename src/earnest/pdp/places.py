"""Protected places as sets of words: what lies in one, what lies above one, what a pattern or two joined words make of one.

Theory. A place is known by its whole path and, since a server's folder and a relative path's root are not always known, by the
last parts that nothing else has (`.local/state/earnest`). What lies above a place is no secret, but it can be moved or removed,
and a second argument can lead from it into the place. Everything is compared without case: on some file systems two spellings
are one file, and nowhere does refusing the other one hurt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

OWN_TAILS: Final = (".local/state/earnest", ".config/earnest")
"""Where earnest keeps its things under a home, whosever and however reached."""

SETTINGS_FOLDERS: Final = frozenset((".claude", ".cursor", ".vscode", ".codex", ".gemini"))
"""Folders of a project that hold settings: a bare file name in them can be one, and so can a folder moved to such a name."""

_INSTANCE: Final = re.compile(r"c-[0-9a-f]{16}")
_WILD: Final = re.compile(r"[*?\[]")
_FIXED: Final = 3
"""Letters of a pattern that must be fixed before it says anything where its root is not known."""


class Places:
    """The protected places of one daemon, taken apart once."""

    def __init__(self, *, home: str, own: Sequence[str], settings: Sequence[str], tails: Sequence[str]) -> None:
        """`own`: earnest's folders and files, `settings`: hosts' files, both absolute; `tails`: files of any folder."""
        whole = {p for place in (*own, *settings) for p in (os.path.normpath(place), os.path.realpath(place))}
        self.places: tuple[str, ...] = tuple(sorted(whole))
        self._exact = frozenset(place.casefold() for place in whole)
        self._beneath = tuple(place + "/" for place in self._exact)
        self._above = frozenset(above for place in self._exact for above in _parents(place))
        self._tails = tuple("/" + tail for tail in tails)
        under = [p[len(home) + 1 :].casefold() for p in whole if p.startswith(home + os.sep)]
        instances = {os.path.basename(p) for p in own if _INSTANCE.fullmatch(os.path.basename(p))}
        self._within = tuple(f"/{part}/" for part in (*OWN_TAILS, *sorted(instances)))
        # A place under the home by its parts from there, for a path whose root is not known; one word alone says too little.
        own_under = [p[len(home) + 1 :].casefold() for p in map(os.path.normpath, own) if p.startswith(home + os.sep)]
        self._own_within = tuple(f"/{part}/" for part in own_under if "/" in part)
        trails = [part.split("/") for part in sorted({*under, *tails, *OWN_TAILS})]
        self._trails = trails
        self._folders = tuple(sorted({"/" + "/".join(trail[:n]) for trail in trails for n in range(1, len(trail))}))
        self._whole = [place.split("/") for place in self._exact]
        self._own_trails = [part.split("/") for part in {*OWN_TAILS, *own_under} if "earnest" in part.rpartition("/")[2]]
        self._instances = tuple(instances)
        self.words = frozenset(word for trail in trails for word in trail) | instances
        """Parts of protected paths below a home: a joined word that leads into one holds one of them."""

    def within(self, path: str, *, rooted: bool = True) -> bool:
        """Whether an absolute path lies at or beneath a place. `rooted`: whether its first parts are known to be right."""
        folded = path.casefold()
        if folded in self._exact or folded.startswith(self._beneath):
            return True
        if folded.endswith(self._tails):
            return True
        closed = folded + "/"
        for part in self._within:
            if part in closed:
                return True
        if "/.claude/hooks/" in closed:
            return True
        return not rooted and any(part in closed for part in self._own_within)

    def above(self, path: str) -> bool:
        """Whether a path lies above a place, or is a folder in which a project keeps settings."""
        folded = path.casefold()
        return folded in self._above or folded.rpartition("/")[2] in SETTINGS_FOLDERS

    def leads_on(self, path: str) -> bool:
        """Whether a path whose root is not known ends like a folder above a place (`../.local/state`)."""
        return ("/" + path.rstrip("/").casefold()).endswith(self._folders)

    def fits(self, pattern: str, *, rooted: bool) -> bool:
        """Whether a shell's pattern can name a place or something in one. `rooted`: whether it is an absolute path."""
        if _WILD.search(pattern) is None:
            return False
        parts = [part for part in pattern.casefold().split("/") if part not in ("", ".")]
        if rooted and any(_matches(parts, whole[1:]) for whole in self._whole):
            return True
        while parts and parts[0] == "..":
            del parts[0]
        starts = range(len(parts)) if rooted else (0,)
        for start in starts:
            rest = parts[start:]
            for trail in self._trails:
                if _matches(rest, trail) and _fixed(rest[: len(trail)]) >= _FIXED:
                    return True
        if not rooted:
            for trail in self._own_trails:
                for start in range(1, len(trail)):
                    part = trail[start:]
                    if len(parts) > len(part) and _matches(parts, part) and _fixed(parts[: len(part)]) >= _FIXED:
                        return True
        return False


def _parents(path: str) -> Iterable[str]:
    while path not in ("/", ""):
        path = os.path.dirname(path)
        yield path


def _fixed(parts: Sequence[str]) -> int:
    """Letters and digits that a pattern fixes, endings like `.toml` aside."""
    return sum(len(re.sub(r"\[[^\]]*\]|(?<=.)\.[a-z]+$|[^a-z0-9]", "", part)) for part in parts)


def _matches(pattern: Sequence[str], place: Sequence[str]) -> bool:
    """Whether a pattern names a place or what lies beneath it: as a shell does, `*` takes no name that begins with a dot."""
    for index, part in enumerate(place):
        if index >= len(pattern):
            return False
        wild = pattern[index]
        if wild == "**":
            return index > 0 and pattern[index - 1] == place[index - 1] and not any(p.startswith(".") for p in place[index:])
        hidden = part.startswith(".") and wild[:1] in ("*", "?", "[")
        if wild != part and (hidden or not fnmatchcase(part, wild)):
            return False
    return True
