"""Findings as SARIF 2.1.0 (OASIS), for code scanning."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from earnest import __version__
from earnest.core.visible import visible
from earnest.lint.model import Finding
from earnest.lint.outputs.json import lines
from earnest.lint.registry import AUDITS

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(findings: Sequence[Finding]) -> str:
    """One run. A finding without a file has only a logical location, `SERVER/TOOL`."""
    used = {finding.audit for finding in findings}
    known = [audit for audit in AUDITS if audit.id in used]
    others = sorted(used - {audit.id for audit in known})
    index = {name: number for number, name in enumerate([*(audit.id for audit in known), *others])}
    rules: list[dict[str, Any]] = [
        {
            "id": audit.id,
            "shortDescription": {"text": audit.what},
            "fullDescription": {"text": audit.why},
            "help": {"text": audit.how},
            "defaultConfiguration": {"level": audit.severity},
        }
        for audit in known
    ]
    rules += [{"id": name, "shortDescription": {"text": name}} for name in others]
    run = {
        "tool": {"driver": {"name": "earnest lint", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, index[finding.audit]) for finding in findings],
    }
    body = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return lines(body)


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    name = visible(finding.server if finding.tool is None else f"{finding.server}/{finding.tool}")
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": name, "kind": "function" if finding.tool else "module"}]
    }
    if finding.place is not None:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.place.path)}}
        if finding.place.line:
            physical["region"] = {"startLine": finding.place.line}
        location["physicalLocation"] = physical
    mark = "\0".join((finding.audit, finding.server, finding.tool or "", finding.hint or ""))
    text = f"{name} {visible(finding.message)}" + (f". Fix: {visible(finding.fix)}" if finding.fix else "")
    return {
        "ruleId": finding.audit,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": _plain(text)},
        "locations": [location],
        "partialFingerprints": {"earnestLint/v1": hashlib.sha256(mark.encode()).hexdigest()[:32]},
        "properties": {"confidence": finding.confidence, "hint": finding.hint},
    }


def _plain(text: str) -> str:
    """A message without links: `[text](target)` is one in a plain message too (SARIF 2.1.0, 3.11.6), here a server's."""
    return text.replace("](", "] (")


def _uri(path: str) -> str:
    from urllib.parse import quote

    return ("file://" if path.startswith("/") else "") + quote(path.removeprefix("./"))
