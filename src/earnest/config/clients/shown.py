"""A change as a person is shown it: every value that could be a secret hidden, every command in full.

Client configurations hold tokens, in the very lines around a change and often in one line with it. So what
is shown is the file with all text replaced by `…`, except what init is about: commands, arguments,
addresses and transports. Commands stay exact, because whoever approves a command has to see it (SEP-1024).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from earnest.config.clients.changes import Change
from earnest.config.clients.dialect import ClientFile, Dialect, Entry, entries, parsed
from earnest.config.document import Edit, Node, apply

_SHOWN = ("command", "args", "type", "transport")
_LONG = 1000


def diff_texts(dialect: Dialect, change: Change) -> tuple[str, str]:
    """Before and after, masked, ready for a diff. Of files whose lines are too long to read, only the
    changed entries."""
    before = change.file
    after = parsed(dialect, before.path, change.after, before.project)
    texts = (_masked(dialect, before), _masked(dialect, after))
    if max(len(line) for text in texts for line in text.splitlines() or [""]) <= _LONG:
        return texts
    old = {entry.where: entry for entry in entries(dialect, before)}
    pairs = [(old.get(new.where), new) for new in entries(dialect, after)]
    changed = [(a, b) for a, b in pairs if a is not None and _slice(a) != _slice(b)]
    return (
        "\n".join(_fragment(dialect, before, a) for a, _ in changed),
        "\n".join(_fragment(dialect, after, b) for _, b in changed),
    )


def _slice(entry: Entry) -> bytes:
    return entry.file.data[entry.node.start : entry.node.end]


def _fragment(dialect: Dialect, file: ClientFile, entry: Entry) -> str:
    """One entry, masked, as `name: {…}`; a scattered TOML table by the range of its members."""
    end = max([entry.node.end, *(member.node.end for member in entry.node.members)])
    inside = [e for e in _masks(dialect, file) if entry.node.start <= e.start and e.end <= end]
    moved = [Edit(e.start - entry.node.start, e.end - entry.node.start, e.new) for e in inside]
    text = apply(file.data[entry.node.start : end], moved).decode("utf-8", "replace")
    return f"{'.'.join(entry.where)}: {text}"


def _masked(dialect: Dialect, file: ClientFile) -> str:
    return apply(file.data, _masks(dialect, file)).decode("utf-8", "replace").removeprefix("\ufeff")


def _masks(dialect: Dialect, file: ClientFile) -> list[Edit]:
    shown: set[int] = set()
    edits: list[Edit] = []
    for entry in entries(dialect, file):
        for key in _SHOWN:
            node = entry.node.get(key)
            if node is not None:
                shown |= {found.start for found in _strings(node)}
        for key, _ in dialect.url_keys:
            node = entry.node.get(key)
            if node is not None and isinstance(node.value, str):
                shown.add(node.start)
                address, query, _ = node.value.partition("?")
                if query:  # keys travel in queries
                    edits.append(Edit(node.start, node.end, json.dumps(f"{address}?…", ensure_ascii=False).encode()))
    edits += [
        Edit(node.start, node.end, '"…"'.encode()) for node in _strings(file.root) if node.value and node.start not in shown
    ]
    return edits


def _strings(node: Node) -> Iterator[Node]:
    if node.kind == "string":
        yield node
    for member in node.members:
        yield from _strings(member.node)
    for item in node.items:
        yield from _strings(item)
