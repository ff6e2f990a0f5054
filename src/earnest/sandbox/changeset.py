"""What a box changed in the folders that an operator granted, as a change that can be made for real.

The box had copies of them (`Folder.access` "copy"). A change set holds each path that differs, with what stood there and what
is to stand there, and says of what can never be made for real why not. `commit.py` makes it, `difference.py` shows it.

What stood there must be what the command began with: `Start` marks a moment before the box was made, and a file whose status
changed after it is told as moved. A path that the command only read is not looked at.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from earnest.sandbox import beneath
from earnest.sandbox.box import Event, File, Look, Plan, within
from earnest.sandbox.overlay import KEPT

MOST_PATHS: Final = 5000
MOST_BYTES: Final = 64 << 20
"""Bytes of all files together, before and after."""
USUAL_UMASK: Final = 0o022
_MASK: Final = 0o777
_INSIDE, _SERVICE = "inside the box", "UNIX socket outside"
"""How `launch` words a connection within the box, and one to a socket that is not the box's."""


class Root(msgspec.Struct, frozen=True):
    """A granted folder: `target` in the box, `source` on this machine, and which folder that is."""

    target: str
    source: str
    device: int
    inode: int


class Start(msgspec.Struct, frozen=True):
    """The granted folders before a box over them was made, and when that was (`beneath.now_ns`)."""

    at_ns: int
    roots: tuple[Root, ...]


class State(msgspec.Struct, frozen=True):
    """What stands at a path. `mtime_ns` 0: whatever it comes to, as for folders, whose time is that of what lies in them."""

    kind: Literal["file", "folder"]
    mode: int
    mtime_ns: int = 0
    size: int = 0
    digest: str = ""
    attributes: dict[str, bytes] = {}


class Seen(msgspec.Struct, frozen=True):
    """By which a file of this machine is known to be as it was."""

    device: int
    inode: int
    changed_ns: int


class Item(msgspec.Struct, frozen=True):
    """One path and how it changes. `root` counts in `Start.roots`, `path` is relative to it, `shown` the whole one on this
    machine. `moved_from`: the one path that was taken away and held the same bytes, where there is just one."""

    root: int
    path: str
    shown: str
    before: State | None
    after: State | None
    seen: Seen | None = None
    moved_from: str = ""

    @property
    def word(self) -> str:
        if self.after is None:
            return "deleted"
        if self.before is None:
            return "moved" if self.moved_from else "created"
        return "changed" if (self.before.kind, self.before.digest) != (self.after.kind, self.after.digest) else "touched"


class Refused(msgspec.Struct, frozen=True):
    """A path whose change cannot be made for real, and why. `moved`: because it was changed meanwhile."""

    path: str
    why: str
    moved: bool = False


class ChangeSet(msgspec.Struct, frozen=True):
    """All that one box changed. `contents`: bytes by digest, of what is to stand there and what stood there. `scratch`: how
    many files it wrote in its own home and temporary folders, which go with it. `attempted`: names and addresses it tried to
    reach, `stopped`: what else the box did not let it do, as it would not have been let for real, `started`: programs."""

    items: tuple[Item, ...] = ()
    refused: tuple[Refused, ...] = ()
    attempted: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    scratch: int = 0
    contents: dict[str, bytes] = {}

    @property
    def whole(self) -> bool:
        """Whether making `items` real is all that the command did."""
        return not self.refused and not self.attempted

    @property
    def digest(self) -> str:
        """SHA-256 over what changes, in hex: paths, kinds, modes, bytes. Times differ from run to run and are not in it."""
        rows = [[item.shown, _essence(item.before), _essence(item.after)] for item in self.items]
        return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()


def _essence(state: State | None) -> list[object] | None:
    return [state.kind, state.mode, state.digest] if state is not None else None


def start(plan: Plan) -> Start:
    """The folders of a plan whose changes may be made for real: copies of folders of this machine, at their own paths or
    others. To be called before the box is made. Raises OSError for a folder that is not there."""
    roots = []
    for folder in plan.folders:
        if folder.access == "copy" and folder.source is not None and os.path.isdir(folder.source):
            source = os.path.realpath(folder.source)
            status = os.stat(source)
            roots.append(Root(folder.target, source, status.st_dev, status.st_ino))
    return Start(beneath.now_ns(), tuple(roots))


def change_set(
    look: Look,
    bytes_of: Callable[[str, Look | None], bytes | None],
    begun: Start,
    events: Sequence[Event] = (),
    scratch: Sequence[str] = (),
    umask: int = USUAL_UMASK,
) -> ChangeSet:
    """What a box did, by a look at its end. `bytes_of` is the box's; `scratch` are its own folders (home, temporary ones);
    `umask` is that of whoever the change is made for: what is new gets none of its bits."""
    made = _Making(look, bytes_of, begun, scratch)
    items = _permitted(made.items(), umask)
    return ChangeSet(
        items=with_moves(items),
        refused=tuple(made.refused),
        attempted=_subjects(event for event in events if _leaves(event)),
        stopped=_subjects(event for event in events if event.doing == "refused" and not _leaves(event)),
        started=_subjects(event for event in events if event.doing == "start"),
        scratch=made.scratch_count,
        contents=made.contents,
    )


class _Making:
    def __init__(
        self, look: Look, bytes_of: Callable[[str, Look | None], bytes | None], begun: Start, scratch: Sequence[str]
    ) -> None:
        self._look, self._bytes_of, self._begun, self._scratch = look, bytes_of, begun, scratch
        self.refused: list[Refused] = []
        self.contents: dict[str, bytes] = {}
        self.scratch_count = 0
        self._room = MOST_BYTES
        self._taken: dict[str, set[tuple[str, str]]] = {}
        for entry in look.entries.values():
            if entry.base is not None and entry.now is None:
                self._taken.setdefault(entry.base.digest or entry.base.kind, set()).update(entry.base.attributes)
        self._open: dict[int, int] = {}

    def items(self) -> list[Item]:
        try:
            return list(self._items())
        finally:
            for number in self._open.values():
                os.close(number)

    def _items(self) -> Iterator[Item]:
        count = 0
        for path, entry in sorted(self._look.entries.items()):
            if entry.base == entry.now:
                continue  # opened, and left as it was
            if not _is_text(path):
                self._refuse(path.encode("utf-8", "backslashreplace").decode(), "its name is no text")
                continue
            index = self._root_of(path)
            if index is None:
                if any(within(path, folder) for folder in self._scratch):
                    self.scratch_count += 1
                else:
                    self._refuse(path, "it does not lie in a folder that the server may write to")
                continue
            count += 1
            if count > MOST_PATHS:
                self._refuse(path, f"more than {MOST_PATHS} paths change")
                return
            root = self._begun.roots[index]
            rest = os.path.relpath(path, root.target)
            shown = os.path.join(root.source, rest)
            why = self._unfit(path, entry.base, entry.now) or self._relabelled(entry.base, entry.now) or self._shut(index)
            if why:
                self._refuse(shown, why)
                continue
            standing, moved, why = self._standing(index, rest, entry.base)
            if why:
                self._refuse(shown, why, moved)
                continue
            yield Item(index, rest, shown, _state(entry.base), _state(entry.now), standing)

    def _refuse(self, path: str, why: str, moved: bool = False) -> None:
        self.refused.append(Refused(path, why, moved))

    def _root_of(self, path: str) -> int | None:
        fits = [index for index, root in enumerate(self._begun.roots) if within(path, root.target) and path != root.target]
        return max(fits, key=lambda index: len(self._begun.roots[index].target), default=None)

    def _unfit(self, path: str, base: File | None, now: File | None) -> str:
        """Why this change is none that can be made for real; keeps the bytes of what can."""
        for file, look in ((base, None), (now, self._look)):
            if file is None or file.kind == "folder":
                continue
            if file.kind != "file":
                return "it is a link" if file.kind == "link" else "it is neither a file nor a folder"
            if not file.digest:
                return "it cannot be read"
            if file.digest in self.contents:
                continue
            held = self._bytes_of(path, look) if file.size <= KEPT else None
            if held is None or hashlib.sha256(held).hexdigest() != file.digest:
                return f"it is larger than {KEPT >> 20} MiB" if file.size > KEPT else "its bytes were not kept"
            self._room -= len(held)
            if self._room < 0:
                return f"more than {MOST_BYTES >> 20} MiB change"
            self.contents[file.digest] = held
        if base is not None and base.kind == "file" and base.mode & ~_MASK:
            return "it is a set-id file"
        return ""

    def _relabelled(self, base: File | None, now: File | None) -> str:
        """Why attributes or access lists cannot be as the box has them: only those that stood there, or with the same bytes
        elsewhere, go on."""
        if now is None:
            return ""
        known = {*(base.attributes if base is not None else ()), *self._taken.get(now.digest or now.kind, ())}
        # An access list of other users is in no box, so that it is missing there says nothing.
        kept = {one for one in (base.attributes if base is not None else ()) if one[0].startswith("user.")}
        same = base is not None and (base.kind, base.digest) == (now.kind, now.digest)
        if set(now.attributes) <= known and not (same and kept - set(now.attributes)):
            return ""
        return "its extended attributes or its access list change"

    def _shut(self, index: int) -> str:
        """Why nothing can be staged in a granted folder."""
        source = self._begun.roots[index].source
        return "" if os.access(source, os.W_OK | os.X_OK) else f"{source} itself cannot be written to"

    def _standing(self, index: int, rest: str, base: File | None) -> tuple[Seen | None, bool, str]:
        """What stands there on this machine, if that is what the box began with; else why not."""
        try:
            parent = beneath.open_below(self._folder(index), os.path.dirname(rest), beneath.FOLDER)
        except (FileNotFoundError, NotADirectoryError):  # it is to be made, perhaps in place of a file
            return (None, False, "") if base is None else (None, True, "its folder is gone")
        except OSError as error:
            return None, False, f"its folder cannot be used: {os.strerror(error.errno or 0)}"
        try:
            status = beneath.status_of(parent, os.path.basename(rest))
            if status is None:
                return (None, False, "") if base is None else (None, True, "it is gone")
            if base is None:
                return None, True, "something stands there now"
            kind = "file" if stat.S_ISREG(status.st_mode) else "folder" if stat.S_ISDIR(status.st_mode) else "other"
            if kind == "folder":
                same = base.kind == kind and stat.S_IMODE(status.st_mode) == base.mode
            else:
                same = base.kind == kind and status.st_ctime_ns < self._begun.at_ns and status.st_size == base.size
            if not same:
                return None, True, "it was changed meanwhile"
            if kind == "file" and status.st_nlink > 1:
                return None, False, "it has several names (hard links)"
            if status.st_uid != os.geteuid():
                return None, False, "it belongs to another user"
            if kind == "file" and beneath.is_written_to(parent, os.path.basename(rest)):
                return None, False, "a program has it open for writing"
            return Seen(status.st_dev, status.st_ino, status.st_ctime_ns), False, ""
        finally:
            os.close(parent)

    def _folder(self, index: int) -> int:
        if index not in self._open:
            root = self._begun.roots[index]
            number = os.open(root.source, beneath.FOLDER | os.O_NOFOLLOW)
            status = os.fstat(number)
            if (status.st_dev, status.st_ino) != (root.device, root.inode):
                os.close(number)
                raise FileNotFoundError(2, f"{root.source} is another folder now")
            self._open[index] = number
        return self._open[index]


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _state(file: File | None) -> State | None:
    if file is None:
        return None
    kind: Literal["file", "folder"] = "folder" if file.kind == "folder" else "file"
    return State(kind, file.mode, file.mtime_ns, file.size, file.digest)


def _permitted(items: Sequence[Item], umask: int) -> list[Item]:
    """Items with modes as they may be given: bits that the umask leaves, those that stood at the path, and those that what
    was taken away elsewhere had, if it is the same: a file of the same bytes, a folder with the same in it. What then changes
    nothing is left out."""
    going, coming = {}, {}
    for item in items:
        key, before, after = (item.root, item.path), item.before, item.after
        if before is not None and _kind(after) != before.kind:
            going[key] = before
        if after is not None and (after.kind == "file" or _kind(before) != "folder"):
            coming[key] = after
    known: dict[object, int] = {}
    had: dict[int, int] = {}
    for key, number in _alike(going, known).items():
        had[number] = had.get(number, 0) | going[key].mode
    numbers = _alike(coming, known)
    found = []
    for item in items:
        before, after = item.before, item.after
        if after is not None:
            bits = (_MASK & ~umask) | had.get(numbers.get((item.root, item.path), -1), 0)
            if before is not None and before.kind == after.kind:
                bits |= before.mode
            after = msgspec.structs.replace(after, mode=after.mode & bits)
        if before != after:
            found.append(msgspec.structs.replace(item, after=after))
    return found


def _kind(state: State | None) -> str:
    return state.kind if state is not None else ""


def _alike(states: dict[tuple[int, str], State], known: dict[object, int]) -> dict[tuple[int, str], int]:
    """A number for each path, the same where a file has the same bytes, or a folder the same in it."""
    numbers: dict[tuple[int, str], int] = {}
    inside: dict[tuple[int, str], list[tuple[str, int]]] = {}
    for key in sorted(states, reverse=True):  # what lies in a folder comes before it
        root, path = key
        essence = (states[key].kind, states[key].digest, tuple(sorted(inside.get(key, ()))))
        number = numbers[key] = known.setdefault(essence, len(known))
        inside.setdefault((root, os.path.dirname(path)), []).append((os.path.basename(path), number))
    return numbers


def with_moves(items: Sequence[Item]) -> tuple[Item, ...]:
    """Items with what was moved found: one file gone and one made, of the same bytes, and no others of these."""
    gone: dict[str, list[Item]] = {}
    made: dict[str, list[Item]] = {}
    for item in items:
        if item.after is None and item.before is not None and item.before.size:
            gone.setdefault(item.before.digest, []).append(item)
        elif item.before is None and item.after is not None and item.after.size:
            made.setdefault(item.after.digest, []).append(item)
    pairs = {made[digest][0].shown: gone[digest][0].shown for digest in gone.keys() & made.keys()
             if len(gone[digest]) == len(made[digest]) == 1}  # fmt: skip
    return tuple(msgspec.structs.replace(item, moved_from=pairs.get(item.shown, "")) for item in items)


def _leaves(event: Event) -> bool:
    """Whether it would have reached beyond the box: the network, or a socket of some service."""
    if event.doing == "connect":
        return event.detail != _INSIDE
    if event.doing == "refused":
        return event.port > 0 or event.detail.startswith(_SERVICE)
    return event.doing in ("name", "datagram", "request")


def _subjects(events: Iterable[Event]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{event.subject}:{event.port}" if event.port else event.subject for event in events))
