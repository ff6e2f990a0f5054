"""Hints that follow an HTTP method, not the effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen
from earnest.lint.language import words_of
from earnest.lint.model import Tool

_STATED: Final = re.compile(r"(?<![A-Za-z])(GET|HEAD|POST|PUT|PATCH|DELETE) (?:/|https?:)")
_READS: Final = frozenset(("get", "head"))
_LEAST: Final = 5


def _check(seen: Seen) -> Iterator[Note]:
    methods = [_method(tool) for tool in seen.server.tools]
    for (tool, evidence), method in zip(seen.tools, methods, strict=True):
        if method == "get" and _stated(tool) and tool.raw.read_only is False and evidence.reads:
            yield Note("uses GET, but claims not to be read-only", tool, "read_only", "readOnlyHint: true", confidence="medium")
        elif method == "delete" and _stated(tool) and tool.raw.read_only is True:
            yield Note(
                "uses DELETE, but claims to be read-only",
                tool,
                "read_only",
                "readOnlyHint: false",
                severity="error",
                confidence="high",
            )
        elif method == "delete" and _stated(tool) and tool.raw.destructive is False:
            yield Note(
                "uses DELETE, but claims to destroy nothing", tool, "destructive", "destructiveHint: true", confidence="high"
            )
    known = [(tool, method) for tool, method in zip(seen.server.tools, methods, strict=True) if method and tool.annotations]
    if len(known) < _LEAST:
        return
    reads = [tool for tool, method in known if method in _READS]
    rest = [tool for tool, method in known if method not in _READS]
    if (
        reads
        and rest
        and all(t.raw.read_only is True for t in reads)
        and all(t.raw.destructive is True and not t.raw.read_only for t in rest)
    ):
        adds = [
            tool.name
            for tool, e in seen.tools
            if tool in rest and not e.destroys and (e.reads or all(a.kind == "create" for a in e.text.first))
        ]
        if adds:
            yield Note(
                f"the hints follow the HTTP method: GET is read-only, all else destructive, also "
                f"{', '.join(adds[:3])}{' …' if len(adds) > 3 else ''}",
                fix="decide by what a call does: a search is a read whatever its method, a create adds",
                confidence="high",
            )


def _stated(tool: Tool) -> bool:
    return _STATED.search(tool.description) is not None


def _method(tool: Tool) -> str:
    """The HTTP method of a tool: stated in its description, or in its name behind `API`."""
    found = _STATED.search(tool.description)
    if found:
        return found.group(1).lower()
    words = words_of(tool.name)
    if words[:1] == ["api"] and len(words) > 2:
        verb = words[1]
        return {
            "get": "get",
            "retrieve": "get",
            "list": "get",
            "post": "post",
            "patch": "patch",
            "put": "put",
            "delete": "delete",
        }.get(verb, "post")
    return ""


AUDIT = Audit(
    id="http-method",
    severity="warning",
    confidence="high",
    what="Hints that were made from the HTTP method of the API behind a tool: every GET read-only, everything else "
    "destructive; or that contradict a method which the description states.",
    why="POST is also how APIs search, and how they create. Such hints mark searches and additions as destructive, and "
    "nobody reads them any more.",
    how="Decide by the effect. Generate from the method only what it can tell: GET reads, DELETE destroys.",
    example="The Notion server: `API-post-search`, `API-query-data-source` and `API-create-a-comment` are destructive "
    "because they are not GET.",
    check=_check,
)
