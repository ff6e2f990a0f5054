"""What changes inside a repository mean: housekeeping, work added, or work lost.

Objects are only ever added; references move. A reference that moved to a commit from which the old one can be reached lost
nothing, and so does a file of the working tree whose old content the repository holds as an object. The index is compared by
what it lists (path, mode, object), not by the file times it keeps beside (git-index, format version 2 to 4).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import Final, Literal

Meaning = Literal["housekeeping", "added", "lost", "changed"]
"""`changed`: the state moved, nothing is gone (another branch checked out, something staged)."""

Reader = Callable[[str], bytes | None]
"""The content of a path, at one moment."""

_HOUSE: Final = (
    "COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "MERGE_MSG", "gc.log", "gc.pid", "description", "AUTO_MERGE", "SQUASH_MSG",
    "MERGE_MODE", "index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "maintenance.lock", "REBASE_HEAD",
)  # fmt: skip
_DEEP: Final = 200


def repository(path: str) -> tuple[str, str]:
    """The repository's folder (ending in `/.git`) and the path inside it."""
    root, _, inside = path.partition("/.git/")
    return f"{root}/.git", inside


def meaning(path: str, before: bytes | None, after: bytes | None, now: Reader) -> Meaning:
    """What a change of one file below `.git` means. `now` reads files after it."""
    root, inside = repository(path)
    if inside in _HOUSE or inside.startswith(("logs/", "info/", "objects/info/", "objects/pack/tmp", "branches")):
        return "housekeeping"
    if inside.startswith("hooks/") and inside.endswith(".sample"):
        return "housekeeping"  # what any other hook says, git runs
    if inside.startswith("objects/"):
        return "added" if after is not None else "housekeeping"
    if inside == "index":
        return "housekeeping" if listed(before) == listed(after) else "changed"
    if inside == "HEAD" or inside.startswith("refs/"):
        return _moved(root, before, after, now)
    if inside == "packed-refs":
        return "changed"
    return "added" if before is None else "lost" if after is None else "changed"


def listed(index: bytes | None) -> frozenset[tuple[str, str, int]] | None:
    """What an index lists: path, object, mode. None where it cannot be read."""
    if index is None:
        return frozenset()
    if index[:4] != b"DIRC" or len(index) < 12:
        return None
    version, count = struct.unpack(">LL", index[4:12])
    if version not in (2, 3):
        return None
    found, at = set(), 12
    for _ in range(count):
        if at + 62 > len(index):
            return None
        mode = struct.unpack(">L", index[at + 24 : at + 28])[0]
        object_id = index[at + 40 : at + 60].hex()
        flags = struct.unpack(">H", index[at + 60 : at + 62])[0]
        start = at + (64 if version == 3 and flags & 0x4000 else 62)
        end = index.find(b"\0", start)
        found.add((index[start:end].decode("utf-8", "replace"), object_id, mode))
        at += ((end - at) // 8 + 1) * 8
    return frozenset(found)


def _moved(root: str, before: bytes | None, after: bytes | None, now: Reader) -> Meaning:
    if before is None:
        return "added"
    old = _commit(root, before, now)
    if after is None:
        return "lost" if old and not _reached_from_heads(root, old, now) else "changed"
    new = _commit(root, after, now)
    if before.startswith(b"ref:") or after.startswith(b"ref:"):
        return "changed"  # another branch is checked out; the one left stays where it was
    if not old or old == new:
        return "changed"
    return "changed" if new and (_reaches(root, new, old, now) or _reached_from_heads(root, old, now)) else "lost"


def _commit(root: str, content: bytes, now: Reader) -> str:
    text = content.strip().decode("ascii", "replace")
    if text.startswith("ref:"):
        target = now(f"{root}/{text[4:].strip()}")
        return target.strip().decode("ascii", "replace") if target else ""
    return text if len(text) in (40, 64) else ""


def _reached_from_heads(root: str, old: str, now: Reader) -> bool:
    """Whether a usual branch still leads to a commit."""
    for name in ("HEAD", "refs/heads/main", "refs/heads/master", "refs/heads/develop"):
        content = now(f"{root}/{name}")
        start = _commit(root, content, now) if content else ""
        if start and _reaches(root, start, old, now):
            return True
    return False


def _reaches(root: str, start: str, goal: str, now: Reader) -> bool:
    """Whether `goal` is `start` or an ancestor of it, as far as commits are there as loose objects."""
    waiting = [start]
    seen: set[str] = set()
    while waiting and len(seen) < _DEEP:
        commit = waiting.pop()
        if commit == goal:
            return True
        if commit in seen:
            continue
        seen.add(commit)
        raw = now(f"{root}/objects/{commit[:2]}/{commit[2:]}")
        if raw:
            try:
                text = zlib.decompress(raw)
            except zlib.error:
                continue
            head = text.partition(b"\n\n")[0]
            waiting += [line[7:].decode() for line in head.split(b"\n") if line.startswith(b"parent ")]
    return False


def kept_as_object(path: str, content: bytes, now: Reader) -> bool:
    """Whether some repository above a path holds this content, so that nothing is lost when the file is overwritten."""
    name = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    folder = path.rpartition("/")[0]
    for _ in range(24):
        if now(f"{folder}/.git/objects/{name[:2]}/{name[2:]}") is not None:
            return True
        if not folder:
            return False
        folder = folder.rpartition("/")[0]
    return False
