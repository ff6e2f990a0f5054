"""A change set as a person reads it: lines of text, bounded, with nothing in them that hides or reorders."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from earnest.core.visible import visible
from earnest.sandbox.changeset import ChangeSet, Item, State

FILE_LINES: Final = 60
"""Lines of one file that are shown."""
LINES: Final = 240
"""Lines of all."""
PATHS: Final = 1000
"""Paths that are named, each with its line, whatever the lines within files take."""
_LINE: Final = 240
_COMPARED: Final = 2000
"""Lines that are compared one by one, past what is the same at both ends; of more, only the new ones are shown."""
_COMPARED_TOGETHER: Final = 100_000
_JSON_CHARS: Final = 256 << 10
"""Characters of all differences together."""
_JSON_OTHERS: Final = 200
"""Of what is no change of a path."""
_NO_TEXT: Final = bytes({*range(32)} - {9, 10, 12, 13, 27})
"""Control characters that texts do not have."""
_ODD_SHARE: Final = 0.25
"""Of its characters, that may be none of a text in what is still shown as one."""


def told(changes: ChangeSet, first: Callable[[str], bool] = lambda path: False) -> list[str]:
    """What changes, a path a line, with the lines that differ indented below it. What can be run, and the paths that `first`
    picks, come first; lines within files fold before paths do."""
    found: list[str] = []
    stood = {item.shown: item.before for item in changes.items}
    items = _ordered(changes.items, first)
    room = max(LINES - len(items), 0)
    for number, item in enumerate(items):
        if number >= PATHS:
            found.append(f"… [folded: {len(items) - number} more paths]")
            break
        found.append(_headline(item, stood.get(item.moved_from)))
        # One file leaves to each that follows as much as it could take itself, and at least a line.
        most = min(FILE_LINES, max(room // (len(items) - number), min(room, 3)))
        lines = _bounded(difference(item, changes), most) if room or number < LINES else []
        room -= min(room, len(lines))
        found += [f"    {line}" for line in lines]
    found += [f"cannot be done: {visible(one.path)}: {visible(one.why)}" for one in changes.refused[:20]]
    if changes.attempted:
        found.append(f"tried to reach: {', '.join(visible(one) for one in changes.attempted[:20])}")
    if changes.started:
        found.append(f"started: {'; '.join(visible(one)[:_LINE] for one in changes.started[:5])}")
    if changes.scratch:
        found.append(f"wrote {changes.scratch} temporary files of its own, which are thrown away")
    return found


def _ordered(items: Sequence[Item], first: Callable[[str], bool]) -> list[Item]:
    def later(item: Item) -> bool:
        after = item.after
        runs = after is not None and after.kind == "file" and after.mode & 0o111
        return not (runs or first(item.shown))

    return sorted(items, key=later)


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
    if new is None or old is None:
        if before is not None:
            yield f"- sha256 {before.digest[:16]}"
        yield f"+ sha256 {after.digest[:16]}, no text"
        return
    start = _same(old, new)
    end = _same(old[start:][::-1], new[start:][::-1])
    was, now = len(old) - start - end, len(new) - start - end
    if (was and now) and max(was, now) > min(_COMPARED, _COMPARED_TOGETHER // len(changes.items)):
        yield f"@@ -{start + 1},{was} +{start + 1},{now} @@ much changes: what will stand there"
        yield from (f"+{visible(line)}" for line in new[start : start + now])
        return
    above, below = max(start - 2, 0), max(end - 2, 0)  # what is around it, to be read with it
    for line in list(difflib.unified_diff(old[above : len(old) - below], new[above : len(new) - below], n=2, lineterm=""))[2:]:
        yield visible(_moved(line, above))


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _moved(line: str, by: int) -> str:
    """The head of a group of lines, counted from the file's own start."""
    if not by or not line.startswith("@@ "):
        return line

    def counted(word: str) -> str:
        start, comma, count = word[1:].partition(",")
        return f"{word[0]}{int(start) + by}{comma}{count}"

    _, old, new, _ = line.split(" ")
    return f"@@ {counted(old)} {counted(new)} @@"


def _text(state: State | None, changes: ChangeSet) -> list[str] | None:
    """A file's lines, with bytes that are no text spelled out; None where there are too many of these. What a program may run
    is text to that program, whatever else is in it."""
    if state is None:
        return []
    data = changes.contents.get(state.digest, b"")
    text = data.decode("utf-8", "surrogateescape")
    odd = sum(data.count(bytes((byte,))) for byte in _NO_TEXT) + sum(0xDC80 <= ord(char) <= 0xDCFF for char in text)
    if odd > _ODD_SHARE * len(text) and not data.startswith(b"#!"):
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


def as_json(changes: ChangeSet, first: Callable[[str], bool] = lambda path: False) -> dict[str, Any]:
    """The same for programs, with longer differences: `cut` characters of one are left out where all together are too long."""
    rows, room = [], _JSON_CHARS
    items = _ordered(changes.items, first)[:PATHS]
    for number, item in enumerate(items):
        diff = "\n".join(difference(item, changes))
        share = room // (len(items) - number)
        rows.append(
            {
                "path": item.shown,
                "change": item.word,
                "from": item.moved_from,
                "before": _state(item.before),
                "after": _state(item.after),
                "diff": diff[:share],
                "cut": max(0, len(diff) - share),
            }
        )
        room -= min(share, len(diff))
    return {
        "digest": changes.digest,
        "whole": changes.whole,
        "changes": rows,
        "more": max(0, len(changes.items) - PATHS),
        "refused": [{"path": one.path, "why": one.why} for one in changes.refused[:_JSON_OTHERS]],
        "network": list(changes.attempted[:_JSON_OTHERS]),
        "programs": list(changes.started[:_JSON_OTHERS]),
        "temporary_files": changes.scratch,
    }


def _state(state: State | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {"kind": state.kind, "mode": f"{state.mode:o}", "size": state.size, "sha256": state.digest}
