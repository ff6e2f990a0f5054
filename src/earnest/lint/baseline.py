"""A baseline: findings that were there already, so that only new ones fail a build.

A finding is known by audit, server, tool and hint, never by its words or its place, so that neither a new wording nor a moved
line brings it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.lint.model import Finding

VERSION: Final = 1


class Known(msgspec.Struct, frozen=True, order=True):
    """One finding of a baseline."""

    audit: str
    server: str
    tool: str | None = None
    hint: str | None = None


class _File(msgspec.Struct, frozen=True):
    version: int
    findings: tuple[Known, ...]


def known(finding: Finding) -> Known:
    """What a finding is known by."""
    return Known(finding.audit, finding.server, finding.tool, finding.hint)


def load(path: Path) -> frozenset[Known]:
    """The findings of a baseline file. Raises E1021."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise EarnestError("E1021", f"{path}: {error.strerror}", f"earnest lint … --write-baseline {path}") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EarnestError("E1021", f"{path} is no baseline: {error}", f"earnest lint … --write-baseline {path}") from None
    if file.version != VERSION:
        raise EarnestError("E1021", f"{path} is a baseline of version {file.version}, this earnest reads {VERSION}")
    return frozenset(file.findings)


def write(path: Path, findings: Iterable[Finding]) -> int:
    """Writes a baseline, one finding a line, sorted, so that a version control system shows what came and went; returns how
    many."""
    rows = sorted({known(f) for f in findings}, key=lambda k: (k.server, k.tool or "", k.audit, k.hint or ""))
    body = ",\n".join("  " + msgspec.json.encode(row).decode() for row in rows)
    path.write_text(f'{{"version": {VERSION}, "findings": [\n{body}\n]}}\n', "utf-8")
    return len(rows)
