"""A version that identifies nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from earnest.lint.audit import Audit, Note
from earnest.lint.evidence import Seen


def _check(seen: Seen) -> Iterator[Note]:
    info = seen.server.info
    if not seen.server.live or not info:
        return
    said = str(info.get("version") or "").strip()
    found = re.search(r"(?:==|(?<=.)@)v?([^@=]+)\Z", seen.server.package)
    package = found.group(1) if found else ""
    if not said:
        yield Note("serverInfo.version is empty", fix="report the version of the package")
    elif package and said.removeprefix("v") != package:
        yield Note(
            f"serverInfo.version is {said}, the package is {package}: the version cannot tell one release from another",
            fix="read it from the package's metadata",
        )


AUDIT = Audit(
    id="version-identity",
    severity="note",
    confidence="high",
    what="`serverInfo.version` is empty, or is not the version of the package it came from.",
    why="Reports, pins and advisories name versions. One that is frozen, or is the SDK's, makes every release look alike.",
    how="Read the version from the package's own metadata at start.",
    example="28 of 64 servers started on 2026-11-30, among them the Notion server (1.0.0 from package 2.5.2).",
    check=_check,
)
