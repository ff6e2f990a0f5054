"""Proposals as changes: a patch to Python source (LibCST, which keeps every space and comment), JSON for everything else."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.lint.model import WIRE, Server
from earnest.lint.propose import Proposal

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
"""Lines as patches count them: a form feed or U+2028 ends none."""


class Change(msgspec.Struct, frozen=True):
    """One file before and after."""

    path: str
    before: str
    after: str

    def patch(self) -> str:
        """As a unified diff that `git apply` and `patch -p1` take."""
        name = self.path.removeprefix("./").lstrip("/")
        lines = difflib.unified_diff(_LINE.findall(self.before), _LINE.findall(self.after), f"a/{name}", f"b/{name}")
        return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def changes(server: Server, proposals: Sequence[Proposal]) -> tuple[list[Change], list[Proposal]]:
    """The changed files, and the proposals that no file took (defined elsewhere, or not literally). Raises E1023 without
    LibCST."""
    places = {tool.name: tool.place.path for tool in server.tools if tool.place is not None and tool.place.path.endswith(".py")}
    lines: dict[str, dict[int, str]] = {}
    for tool in server.tools:
        if tool.place is not None:
            lines.setdefault(tool.place.path, {})[tool.place.line] = tool.name
    by_file: dict[str, list[Proposal]] = {}
    left: list[Proposal] = []
    for one in proposals:
        path = places.get(one.tool)
        if path is None:
            left.append(one)
        else:
            by_file.setdefault(path, []).append(one)
    made: list[Change] = []
    for path, ones in by_file.items():
        try:
            from earnest.lint.fix_python import rewrite
        except ImportError:
            raise EarnestError("E1023", "changing Python source needs LibCST", "pip install 'earnest[lint]'") from None
        try:
            before = Path(path).read_bytes().decode()  # with the ends of its lines
            after, taken = rewrite(before, ones, lines.get(path))
        except (UnicodeDecodeError, RecursionError):  # in another encoding, or nested too deeply: no patch can be made
            left += ones
            continue
        left += [one for one in ones if one.tool not in taken]
        if after != before:
            made.append(Change(path, before, after))
    return made, left


def as_json(server: str, proposals: Sequence[Proposal]) -> list[dict[str, Any]]:
    """For servers in other languages: the annotations to set, tool by tool, with the basis of each."""
    tools: dict[str, dict[str, Any]] = {}
    for one in proposals:
        row = tools.setdefault(one.tool, {"server": server, "tool": one.tool, "annotations": {}, "basis": {}})
        row["annotations"][WIRE[one.hint]] = one.value
        row["basis"][WIRE[one.hint]] = {"basis": one.basis, "why": one.why, "was": one.now, "lowers": one.lowers}
    return list(tools.values())
