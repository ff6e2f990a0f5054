"""A change set as a person reads it: lines of text, bounded, with nothing in them that hides or reorders."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final

from earnest.core.visible import visible
from earnest.sandbox.changeset import ChangeSet, Item, State

FILE_LINES: Final = 60
"""Lines of one file that are shown."""
LINES: Final = 240
"""Lines of all."""
_LINE: Final = 240
_COMPARED: Final = 2000
"""Lines of a file that are compared; a longer one is told by its size."""
_JSON_CHARS: Final = 256 << 10
"""Characters of all differences together."""
_JSON_ITEMS: Final = 200


def told(changes: ChangeSet) -> list[str]:
    """What changes, a path a line, with the lines that differ indented below it."""
    found: list[str] = []
    stood = {item.shown: item.before for item in changes.items}
    for number, item in enumerate(changes.items):
        if len(found) >= LINES:
            found.append(f"… [folded: {len(changes.items) - number} more paths]")
            break
        found.append(_headline(item, stood.get(item.moved_from)))
        found += [f"    {line}" for line in _bounded(difference(item, changes), FILE_LINES)]
    found += [f"cannot be done: {visible(one.path)}: {visible(one.why)}" for one in changes.refused[:20]]
    if changes.attempted:
        found.append(f"tried to reach: {', '.join(visible(one) for one in changes.attempted[:20])}")
    if changes.started:
        found.append(f"started: {'; '.join(visible(one)[:_LINE] for one in changes.started[:5])}")
    if changes.scratch:
        found.append(f"wrote {changes.scratch} temporary files of its own, which are thrown away")
    return found


def _headline(item: Item, source: State | None) -> str:
    """What happens to one path. `source`: what stood where it was moved from."""
    path, before, after = visible(item.shown), item.before, item.after
    folder = "folder " if "folder" in (getattr(after, "kind", ""), getattr(before, "kind", "")) else ""
    if after is None:
        return f"delete {folder}{path}{_size(before)}"
    if before is None:
        if item.word == "moved":
            return f"move {visible(item.moved_from)} → {path}{_mode(source, after)}"
        return f"create {folder}{path}{_size(after)}{_mode(None, after)}"
    if before.kind != after.kind:
        return f"replace {before.kind} {path} by a {after.kind}{_size(after)}{_mode(None, after)}"
    what = f"change {folder}{path}{_mode(before, after)}"
    if item.word == "touched":
        return what if before.mode != after.mode else f"{what}, its time alone"
    return f"{what} ({before.size} → {after.size} bytes)"


def _size(state: State | None) -> str:
    return f" ({state.size} bytes)" if state is not None and state.kind == "file" else ""


def _mode(before: State | None, after: State) -> str:
    """The mode, where it becomes another one, or where what is new can be run as a program."""
    if before is not None:
        return f", mode {before.mode:o} → {after.mode:o}" if before.mode != after.mode else ""
    return f", mode {after.mode:o}" if after.kind == "file" and after.mode & 0o111 else ""


def difference(item: Item, changes: ChangeSet) -> Iterator[str]:
    """The lines of a file that differ, in the style of `diff -u`; for what is no text, digests."""
    after = item.after
    if after is None or after.kind != "file" or item.word in ("moved", "touched"):
        return
    before = item.before if item.before is not None and item.before.kind == "file" else None
    old, new = (_text(state, changes) for state in (before, after))
    if old is None or new is None:
        if before is not None:
            yield f"- sha256 {before.digest[:16]}"
        yield f"+ sha256 {after.digest[:16]}, no text"
        return
    if len(old) > _COMPARED or len(new) > _COMPARED:
        yield f"- {len(old)} lines, sha256 {before.digest[:16] if before else ''}"
        yield f"+ {len(new)} lines, sha256 {after.digest[:16]}"
        return
    for line in list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]:
        yield visible(line)


def _text(state: State | None, changes: ChangeSet) -> list[str] | None:
    """A file's lines; None where it is no text."""
    if state is None:
        return []
    data = changes.contents.get(state.digest, b"")
    if b"\0" in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += " [no line feed at the end]"
    return lines


def _bounded(lines: Iterator[str], most: int) -> list[str]:
    found = list(lines)
    kept = [line if len(line) <= _LINE else f"{line[:_LINE]} … [folded: {len(line)} characters]" for line in found[:most]]
    if len(found) > most:
        kept.append(f"… [folded: {len(found) - most} more lines]")
    return kept


def as_json(changes: ChangeSet) -> dict[str, Any]:
    """The same for programs, with longer differences."""
    rows, room = [], _JSON_CHARS
    for item in changes.items[:_JSON_ITEMS]:
        diff = "\n".join(difference(item, changes)) if room > 0 else ""
        rows.append(
            {
                "path": item.shown,
                "change": item.word,
                "from": item.moved_from,
                "before": _state(item.before),
                "after": _state(item.after),
                "diff": diff[:room],
            }
        )
        room -= min(room, len(diff))
    return {
        "digest": changes.digest,
        "whole": changes.whole,
        "changes": rows,
        "more": max(0, len(changes.items) - _JSON_ITEMS),
        "refused": [{"path": one.path, "why": one.why} for one in changes.refused[:_JSON_ITEMS]],
        "network": list(changes.attempted[:_JSON_ITEMS]),
        "programs": list(changes.started[:_JSON_ITEMS]),
        "temporary_files": changes.scratch,
    }


def _state(state: State | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {"kind": state.kind, "mode": f"{state.mode:o}", "size": state.size, "sha256": state.digest}
