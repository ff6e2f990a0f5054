"""Hooks in a host's settings, as edits of byte ranges: put in, found again, taken out.

Such settings hold `hooks`: for each event a list. In Claude Code's, Codex's and Gemini CLI's an item is a group with a matcher
of tools and a list of commands; in Cursor's it is a command itself. What earnest puts in is an item of its own at the end of
each event's list, so that nobody else's is touched, and is known by its command: `… hook [--config PATH] HOST EVENT`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from earnest.config import jsonc
from earnest.config.document import Edit, Node, apply
from earnest.core.errors import EarnestError

HOOKS = "hooks"


def install(path: str, data: bytes, host: str, items: Mapping[str, object], version: int = 0) -> bytes:
    """The settings with earnest's item for each event, each once. `items`: by event, as JSON values; `version`: what the file
    has to say of its own format, 0 for nothing. Raises E1010 where the file, or its `hooks`, is not what the host takes."""
    data = remove(path, data, host) if data.strip() else b"{}\n"
    root = _root(path, data)
    if version and root.get("version") is None:
        data = _added(data, root, f'"version": {version}', "  ")
    for event, item in items.items():
        text = json.dumps(item, ensure_ascii=False)
        root = _root(path, data)
        hooks = root.get(HOOKS)
        if hooks is None:
            data = _added(data, root, f'"{HOOKS}": {{\n    {json.dumps(event)}: [{text}]\n  }}', "  ")
            continue
        if hooks.kind != "object":
            raise _odd(path, HOOKS)
        listed = hooks.get(event)
        if listed is None:
            data = _added(data, hooks, f"{json.dumps(event)}: [{text}]", "    ")
        elif listed.kind != "array":
            raise _odd(path, f"{HOOKS}.{event}")
        else:
            data = _added(data, listed, text, "      ")
    return data


def remove(path: str, data: bytes, host: str) -> bytes:
    """The settings without earnest's hooks; an event's list, and `hooks` itself, go with the last that was in them."""
    own = _own(host)
    while True:
        root = _root(path, data)
        edit = _next(root, own)
        if edit is None:
            return data
        data = apply(data, [edit])


def count(path: str, data: bytes, host: str) -> int:
    """How many hooks of earnest's are in the settings."""
    return len(installed(path, data, host))


def installed(path: str, data: bytes, host: str) -> list[tuple[str, str]]:
    """The hooks of earnest's in the settings: event and command of each, as they stand there. Raises E1010."""
    own = _own(host)
    hooks = _root(path, data).get(HOOKS) if data.strip() else None
    lists = [(member.key, member.node) for member in hooks.members] if hooks is not None else []
    return [(event, _commands(item)[0]) for event, listed in lists for item in listed.items if _is_own(item, own)]


def _own(host: str) -> re.Pattern[str]:
    word = r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+"
    return re.compile(rf"(?:^|[/\s'\"])earnest['\"]?\s+hook\s+(?:--config\s+{word}\s+)?{re.escape(host)}\s+\w+\s*$")


def _root(path: str, data: bytes) -> Node:
    root = jsonc.scan(path, data)
    if root.kind != "object" or root.start == root.end:
        raise EarnestError("E1010", f"{path}: the document is no object", "correct the file by hand; nothing was changed in it")
    return root


def _odd(path: str, what: str) -> EarnestError:
    return EarnestError("E1010", f"{path}: {what} is not what the host takes", "correct the file by hand; nothing was changed")


def _added(data: bytes, node: Node, text: str, indent: str) -> bytes:
    """A member or item at the end of an object or list."""
    parts = [(member.start, member.node.end) for member in node.members] or [(item.start, item.end) for item in node.items]
    if parts:
        return apply(data, [Edit(parts[-1][1], parts[-1][1], f",\n{indent}{text}".encode())])
    return apply(data, [Edit(node.start + 1, node.start + 1, f"\n{indent}{text}\n".encode())])


def _is_own(item: Node, own: re.Pattern[str]) -> bool:
    texts = _commands(item)
    return bool(texts) and all(own.search(text) is not None for text in texts)


def _commands(item: Node) -> list[str]:
    """The commands of one item; one that is no text is there as an empty one."""
    listed = item.get("hooks")
    found = [inner.get("command") for inner in listed.items] if listed is not None else [item.get("command")]
    return [node.value if isinstance(node.value, str) else "" for node in found if node is not None]


def _next(root: Node, own: re.Pattern[str]) -> Edit | None:
    """The edit that takes the first of earnest's items out, with whatever holds nothing else."""
    hooks = root.get(HOOKS)
    for member in hooks.members if hooks is not None and hooks.kind == "object" else ():
        for number, item in enumerate(member.node.items):
            if not _is_own(item, own):
                continue
            if len(member.node.items) > 1:
                return _without([(one.start, one.end) for one in member.node.items], number)
            assert hooks is not None
            if len(hooks.members) > 1:
                at = [one.key for one in hooks.members].index(member.key)
                return _without([(one.start, one.node.end) for one in hooks.members], at)
            if len(root.members) > 1:
                at = [one.key for one in root.members].index(HOOKS)
                return _without([(one.start, one.node.end) for one in root.members], at)
            return Edit(root.start, root.end, b"{}")
    return None


def _without(parts: list[tuple[int, int]], at: int) -> Edit:
    """One of several parts, with the comma that joins it to the one before, or to the one behind."""
    if at:
        return Edit(parts[at - 1][1], parts[at][1], b"")
    return Edit(parts[0][0], parts[1][0], b"")
