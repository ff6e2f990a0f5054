"""A box: a command that runs where it can harm nobody, and what was seen of it.

The one seam between `sandbox` and who uses it (the assay, the census, the lanes of a gateway). A `Plan` says what runs and
what is there for it; a tier turns it into a `Box`; a box is started by starting `box.argv` with `box.env` instead of the
plan's own (which goes to the command), with the same three standard streams, so that whoever starts processes
(`upstream.stdio`) starts a boxed one the same way. The process that was started is the box: when it ends, all that ran
inside has ended, however it tried to stay.

What a tier cannot see is said (`Sight`), never taken for nothing seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

Access = Literal["read", "copy", "write"]
"""`read`: writes fail. `copy`: writes stay in the box. `write`: writes reach the machine (what an operator granted)."""
Reach = Literal["none", "pretend", "hosts"]
"""`none`: no network but an empty loopback. `pretend`: a fake internet inside the box that answers and records. `hosts`: the
named hosts alone, through a proxy that earnest runs."""
Kind = Literal["created", "overwritten", "deleted", "touched", "opened"]
"""`touched`: metadata alone changed. `opened`: written or opened for writing, and found as it was."""
Doing = Literal["name", "connect", "request", "datagram", "socket", "start", "refused"]
"""`name`: a name was looked up. `connect`: a connection was made or tried. `request`: an HTTP request or a mail, or, with an
empty method, what was first said in another protocol. `socket`: a UNIX socket. `start`: a program. `refused`: something the
box stops (a write outside, ptrace, mount, a limit)."""


class Folder(msgspec.Struct, frozen=True):
    """A folder inside the box. `source` is a path of this machine, or None for an empty one; a single file, too.

    Not every tier can show a folder at another place. So that each can follow a plan, let `target` of a `copy` be a path that
    does not exist on this machine and that its user may make (below a fresh temporary folder), and of `read` and `write` be
    `source` itself. A `copy` at its own path is there to be read alone where a tier cannot copy on write."""

    target: str
    source: str | None = None
    access: Access = "copy"


class Limits(msgspec.Struct, frozen=True):
    """What ends a box, or makes an act of it fail. Seconds, bytes, counts."""

    wall_s: float = 600.0
    cpu_s: int = 300
    memory: int = 2 << 30
    processes: int = 256
    disk: int = 512 << 20


class Answer(msgspec.Struct, frozen=True):
    """What the fake internet answers to some requests (`pretend`). `host` and `path` are globs: `*` is anything within a label
    or segment, `**` anything; an empty `method` is any. The first of a plan that fits is given; where several have the same
    host, method and path they are given in turn, the last again and again."""

    host: str
    path: str
    method: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Plan(msgspec.Struct, frozen=True):
    """What runs in a box. `env` is the whole environment; `home` and `cwd` are paths inside. The person's home, keys, cloud and
    SSH folders are not there unless a folder of the plan is one. Later `folders` lie over earlier ones."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    home: str
    folders: tuple[Folder, ...] = ()
    reach: Reach = "none"
    hosts: tuple[str, ...] = ()
    """`name`, `*.name` or an address, with `:port` where it is neither 80 nor 443."""
    answers: tuple[Answer, ...] = ()
    limits: Limits = Limits()
    user: int = 0
    """The number that the command finds its user to have where that is root's, 0: root's. Databases do not run as root."""
    watch: bool = False
    """Whether `look` and `events` are wanted; without, a box costs less."""
    strict: bool = False
    """Whether a change outside of home, temporary folders and those of the plan that may be changed fails, and is told, where a
    tier could as well keep it in the box (A); in others it always fails."""


class Sight(msgspec.Struct, frozen=True):
    """What the boxes of a tier can see and hold; what is False there is INCONCLUSIVE to an assay."""

    files: Literal["everywhere", "granted", "none"]
    network: bool
    processes: bool
    sockets: bool
    holds_writes: bool
    """Whether a write outside what was granted cannot reach the machine."""
    holds_network: bool
    copies_in_place: bool = False
    """Whether a `copy` can stand at its own path and be written to."""


class File(msgspec.Struct, frozen=True):
    """What stands at one path: `kind` is file, folder, link or other; `digest` is SHA-256 of a file's bytes in hex (empty for
    what is no file); the rest as the box's file system gives it, but for folders: their size and time are 0, since these
    change with what lies in them, which is told by itself."""

    kind: Literal["file", "folder", "link", "other"]
    size: int
    mode: int
    mtime_ns: int
    digest: str = ""
    target: str = ""
    """Of a link."""
    attributes: tuple[tuple[str, str], ...] = ()
    """Its `user.*` attributes and access lists: names, and SHA-256 of values in hex."""


class Entry(msgspec.Struct, frozen=True):
    """One path that was written to: what stood there when the box began, and what stands there at the look; None: nothing."""

    base: File | None
    now: File | None


class Look(msgspec.Struct, frozen=True):
    """Every path of a box that was written to or opened for writing since it began, at one moment. Not what lies in folders of
    the plan with `write`: those are the machine's."""

    entries: Mapping[str, Entry]


class Change(msgspec.Struct, frozen=True):
    """How one path differs between two looks of one box."""

    path: str
    kind: Kind
    before: File | None
    after: File | None


class Event(msgspec.Struct, frozen=True):
    """Something a process of the box did, `at` seconds since the box began. `subject` is a host name, address, path or program
    line, by `doing`; `detail` is for persons; `method`, `target` and `body` (bounded) are of an HTTP request. A refused change
    of a file has a `method`, too: `change`, or `open` where it was opened both ways, which may have been for reading alone; so
    has, `datagram`, an address that a socket for datagrams was given, by which nothing is sent yet."""

    at: float
    doing: Doing
    subject: str
    port: int = 0
    method: str = ""
    target: str = ""
    body: bytes = b""
    detail: str = ""


class Ended(msgspec.Struct, frozen=True):
    """How a box ended: the status of its command where it ended by itself (negative: by a signal), and which limit stopped it:
    wall, cpu, memory, processes, disk; `failed`: it could not be made, as its standard error says; empty: none."""

    status: int | None
    limit: str = ""


class Box(Protocol):
    """One command in its box. Not started by itself: start `argv` with `env`, in any folder; it may be
    started again after it ended."""

    tier: str
    sight: Sight
    argv: tuple[str, ...]
    env: Mapping[str, str]

    def look(self) -> Look:
        """What was written until now. Cheap where little changed; may be asked while the command runs, and after it ended."""
        ...

    def bytes_of(self, path: str, look: Look | None = None) -> bytes | None:
        """Content of a file inside the box: as it was at `look`, or, with None, as it was when the box began. None where there
        was none, or where it is past the bound of what is kept (8 MiB a file)."""
        ...

    def events(self, since: int = 0) -> tuple[Event, ...]:
        """What was done, from the `since`-th event on."""
        ...

    def close(self) -> Ended:
        """End all that runs and take the box's own folders away. May be called twice."""
        ...


class Tier(Protocol):
    """A way to make boxes on this machine."""

    name: str
    sight: Sight

    def box(self, plan: Plan) -> Box:
        """A box for a plan; raises EarnestError (E18xx) where this machine cannot make it."""
        ...


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder's, or in it; both as a plan has them."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def changes(before: Look, after: Look) -> tuple[Change, ...]:
    """How two looks of one box differ, by path."""
    found = []
    for path in sorted(before.entries.keys() | after.entries.keys()):
        entry, earlier = after.entries.get(path), before.entries.get(path)
        old = earlier.now if earlier else entry.base if entry else None
        new = entry.now if entry else earlier.base if earlier else None
        if entry != earlier:
            found.append(Change(path, _kind(old, new), old, new))
    return tuple(found)


def _kind(old: File | None, new: File | None) -> Kind:
    if new is None:
        return "deleted"
    if old is None:
        return "created"
    if (old.kind, old.digest, old.target) != (new.kind, new.digest, new.target):
        return "overwritten"
    return "opened" if old == new else "touched"
