"""What happened to files between two looks, weighed: hard or soft, lossy or not, by records and not by bytes.

Which differences count as what, in order:

- metadata alone is soft, but for the permissions: who may read a file is state.
- written and found as it was is soft (`restored`).
- caches, logs, scratch and companions are soft (`places`); SQLite's `-wal` counts with its database.
- in a repository `git.meaning` speaks; a file of the working tree whose old content is an object is not lost.
- only moments, durations and random names differ: soft.
- a file gone from one path whose content stands at a new one was moved: not lossy.
- else hard, and lossy if a record that stood there is gone. Bytes that cannot be read as records: unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import msgspec

from earnest.assay.model import Effect, Nature, Place
from earnest.assay.observe import git
from earnest.assay.observe.masks import masked_path
from earnest.assay.observe.places import Lay
from earnest.assay.observe.records import Difference, difference
from earnest.sandbox.box import Change, Look, changes

SOFT_PLACES = frozenset({"cache", "log", "temp", "side"})


class Reading(Protocol):
    """What is needed of a box."""

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None: ...


class Noise(msgspec.Struct, frozen=True):
    """What is no tool's: what happens without any call (`kinds`: masked path and kind; `contacts`: names), and what every call
    does, whatever is called (`areas`: shown, masked path and general area)."""

    kinds: frozenset[tuple[str, str]] = frozenset()
    areas: frozenset[tuple[str, str]] = frozenset()
    contacts: frozenset[str] = frozenset()

    def left(self, effect: Effect) -> Effect | None:
        """An effect without what every call does; None where nothing is left of it."""
        if self.areas and all(any(known in self.areas for known in (mark, *around(mark))) for mark in marks_of(effect)):
            return None
        return effect


QUIET: Final = Noise()


def marks_of(effect: Effect) -> frozenset[tuple[str, str]]:
    """Masked subject and general areas of an effect: what it has in common with that of another call."""
    subject = masked_path(effect.subject)
    return frozenset((subject, general(area)) for area in (effect.areas or (effect.area,)))


def within(mark: tuple[str, str]) -> tuple[str, str]:
    """The mark of all that stands beside an area: a count for each tool is one kind of thing, whatever the tool is called."""
    subject, area = mark
    parent, dot, _ = area.rpartition(".")
    return (subject, f"{parent}.*") if dot and parent else mark


def around(mark: tuple[str, str]) -> list[tuple[str, str]]:
    """The marks of all that an area lies in, from near to far."""
    subject, area = mark
    steps = area.split(".")
    return [(subject, ".".join([*steps[:n], "*"])) for n in range(len(steps) - 1, 0, -1) if any(steps[:n])]


def general(area: str) -> str:
    """An area without the names of elements in it."""
    return re.sub(r"\[[^\]]*\]", "[]", area)


class Files:
    """Reads the files of a box at two looks and says what changed."""

    def __init__(self, box: Reading, lay: Lay, before: Look, after: Look) -> None:
        self._box, self._lay, self._before, self._after = box, lay, before, after
        self._bare: frozenset[str] = frozenset()

    def old(self, path: str) -> bytes | None:
        """Content before."""
        entry = self._before.entries.get(path)
        if entry is None:
            return self._box.bytes_of(path, None)
        return self._box.bytes_of(path, self._before) if entry.now is not None else None

    def new(self, path: str) -> bytes | None:
        """Content after."""
        entry = self._after.entries.get(path)
        if entry is None:
            return self._box.bytes_of(path, None)
        return self._box.bytes_of(path, self._after) if entry.now is not None else None

    def effects(self, noise: Noise = QUIET) -> list[Effect]:
        """All effects between the looks, without noise."""
        found = []
        every = [change for change in changes(self._before, self._after) if not change.path.startswith(self._lay.apart)]
        self._bare = _bare_folders(every)
        moving = _moving(_without_parents(every))
        for change in moving.changes:
            if (masked_path(change.path), change.kind) in noise.kinds:
                continue
            effect = self._effect(change, moving.moved)
            if effect is not None and (left := noise.left(effect)) is not None:
                found.append(left)
        for effect in self.journals():
            if (left := noise.left(effect)) is not None:
                found.append(left)
        return found

    def _effect(self, change: Change, moved: Mapping[str, str]) -> Effect | None:
        shown = self._lay.shown(change.path)
        existed = (entry := self._after.entries.get(change.path)) is not None and entry.base is not None
        place = self._lay.place(change.path, existed)
        soft = place in SOFT_PLACES
        if change.kind == "opened":
            return Effect("restored", place, shown, "", f"{shown} was written and is as it was", False)
        if change.kind == "touched":
            return self._touched(change, shown, place, soft)
        file = change.after or change.before
        if file is not None and file.kind == "folder":
            if change.kind == "overwritten":
                return None
            nature: Nature = "created" if change.kind == "created" else "deleted"
            lossy = change.kind == "deleted" and change.path in self._bare
            return Effect(nature, place, shown, "", f"folder {shown} {nature}", not soft, lossy)
        if place == "repository":
            return self._in_repository(change, shown)
        if change.kind == "created":
            return self._created(change, shown, place, soft, moved)
        if change.kind == "deleted":
            return self._deleted(change, shown, place, soft, moved)
        return self._overwritten(change, shown, place, soft)

    def _touched(self, change: Change, shown: str, place: Place, soft: bool) -> Effect:
        before, after = change.before, change.after
        if before is not None and after is not None and before.mode != after.mode:
            what = f"permissions of {shown} went from {before.mode & 0o7777:o} to {after.mode & 0o7777:o}"
            return Effect("overwritten", place, shown, "mode", what, not soft, False)
        return Effect("touched", place, shown, "", f"{shown} was touched; its content is the same", False)

    def _in_repository(self, change: Change, shown: str) -> Effect:
        means = git.meaning(change.path, self.old(change.path), self.new(change.path), self.new)
        what = {
            "housekeeping": f"{shown} {change.kind}, which is git's housekeeping",
            "added": f"{shown} {change.kind}",
            "changed": f"{shown} changed; nothing is lost by it",
            "lost": f"{shown} changed, and what it stood for cannot be reached any more",
        }[means]
        nature = change.kind if change.kind in ("created", "overwritten", "deleted") else "touched"
        return Effect(nature, "repository", shown, "", what, means != "housekeeping", means == "lost")

    def _created(self, change: Change, shown: str, place: Place, soft: bool, moved: Mapping[str, str]) -> Effect:
        source = moved.get(change.path)
        if source is not None:
            what = f"{self._lay.shown(source)} was moved to {shown}"
            return Effect("moved", place, shown, "", what, not soft)
        size = change.after.size if change.after is not None else 0
        return Effect("created", place, shown, "", f"{shown} created ({size} bytes)", not soft)

    def _deleted(self, change: Change, shown: str, place: Place, soft: bool, moved: Mapping[str, str]) -> Effect:
        if change.path in moved.values():
            return Effect("moved", place, shown, "", f"{shown} was moved away", not soft)
        content = self.old(change.path)
        lossy = content is None or not git.kept_as_object(change.path, content, self.new)
        what = f"{shown} deleted" + ("" if lossy else "; the repository still has it")
        return Effect("deleted", place, shown, "", what, not soft, lossy and not soft)

    def _overwritten(self, change: Change, shown: str, place: Place, soft: bool) -> Effect | None:
        before, after = self.old(change.path), self.new(change.path)
        kinds = (change.before, change.after)
        if any(file is not None and file.kind != "file" for file in kinds):
            return Effect("overwritten", place, shown, "", f"{shown} is another thing now", not soft, True)
        if before is None or after is None:
            what = f"{shown} changed; it is too large to compare"
            return Effect("overwritten", place, shown, "", what, not soft, None)
        wal = (self.old(change.path + "-wal") or b"", self.new(change.path + "-wal") or b"")
        return self._compared(change.path, shown, place, soft, difference(before, after, wal_before=wal[0], wal_after=wal[1]))

    def _compared(self, path: str, shown: str, place: Place, soft: bool, found: Difference) -> Effect | None:
        if not found.gone and not found.new:
            what = "only moments and random names in it changed" if found.volatile else "written anew, with the same records"
            return Effect("touched", place, shown, "", f"{shown}: {what}", False)
        area = ",".join(found.areas[:4])
        binary = found.areas == ("bytes",)
        if not found.gone or (binary and found.prefix):
            what = f"{shown}: {_counted(found)}"
            return Effect("appended", place, shown, area, what, not soft, areas=found.areas)
        before = self.old(path)
        kept = before is not None and git.kept_as_object(path, before, self.new)
        lossy: bool | None = None if binary else found.lost and not kept
        what = f"{shown}: {_counted(found)}" + ("; the repository still has the old content" if kept else "")
        lossy = False if soft else lossy
        return Effect("overwritten", place, shown, area, what, not soft, lossy, areas=found.areas)

    def journals(self) -> list[Effect]:
        """Databases of which only the write-ahead log changed."""
        found = []
        for change in changes(self._before, self._after):
            path = change.path.removesuffix("-wal")
            if path == change.path or change.kind in ("opened", "touched"):
                continue
            entry = self._after.entries.get(path)
            earlier = self._before.entries.get(path)
            if entry is not None and entry != earlier and (entry.now != (earlier.now if earlier else entry.base)):
                continue  # the database changed too, and was compared with its log
            before, after = self.old(path), self.new(path)
            if before is None and after is None:
                continue
            logs = (self.old(change.path) or b"", self.new(change.path) or b"")
            seen = difference(before or b"", after or b"", wal_before=logs[0], wal_after=logs[1])
            if seen.gone or seen.new:
                place = self._lay.place(path, True)
                effect = self._compared(path, self._lay.shown(path), place, place in SOFT_PLACES, seen)
                if effect is not None:
                    found.append(effect)
        return found


def _without_parents(found: Iterable[Change]) -> list[Change]:
    """Changes without new folders that are there only for what was made inside them."""
    every = tuple(found)
    parents = {change.path.rpartition("/")[0] for change in every if change.kind == "created"}
    return [
        change
        for change in every
        if not (
            change.kind == "created" and change.after is not None and change.after.kind == "folder" and change.path in parents
        )
    ]


def _bare_folders(found: Iterable[Change]) -> frozenset[str]:
    """Folders that are gone and were empty. What a folder held tells by itself whether it is lost; one that came to stand
    elsewhere was moved."""
    every = tuple(found)
    if any(change.kind == "created" and change.after is not None and change.after.kind == "folder" for change in every):
        return frozenset()
    gone = [change.path for change in every if change.kind == "deleted"]
    return frozenset(path for path in gone if not any(other.startswith(path + "/") for other in gone))


class _Moves(msgspec.Struct, frozen=True):
    changes: tuple[Change, ...]
    moved: Mapping[str, str]
    """New path to old path."""


def _moving(found: Iterable[Change]) -> _Moves:
    """Files that are gone from one path and stand at a new one, whole folders too, since each file of them is a change."""
    every = tuple(found)
    gone = {c.before.digest: c.path for c in every if c.kind == "deleted" and c.before is not None and c.before.size}
    moved = {
        c.path: gone[c.after.digest]
        for c in every
        if c.kind == "created" and c.after is not None and c.after.digest and c.after.digest in gone
    }
    return _Moves(every, moved)


def _counted(found: Difference) -> str:
    parts = []
    for area in found.areas[:4]:
        gone = sum(1 for r in found.gone if r[0] == area)
        new = sum(1 for r in found.new if r[0] == area)
        words = [f"{gone} gone" if gone else "", f"{new} new" if new else ""]
        parts.append(f"{area or 'value'} ({', '.join(filter(None, words))})")
    more = len(found.areas) - 4
    return "records changed in " + "; ".join(parts) + (f" and {more} more" if more > 0 else "")
