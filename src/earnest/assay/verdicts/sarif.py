"""A report as SARIF 2.1.0 (OASIS), for code scanning: contradicted claims are errors, soft ones warnings, server findings and
over-declared hints notes."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from earnest import __version__
from earnest.assay.model import HintVerdict, Report
from earnest.core.hints import HINTS, WIRE_NAMES

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {"CONTRADICTED": "error", "SOFT": "warning", "OVER-DECLARED": "note"}
_WIRE: Final = {name: wire for wire, name in WIRE_NAMES.items()}
_RULES: Final = {
    "contradicted": "A tool did what its annotations say it does not do.",
    "soft": "A tool that claims to read only writes caches, logs or scratch, or sends requests.",
    "over-declared": "A tool is stricter than its annotations say.",
    "server": "Something about the server as a whole.",
}


def render(report: Report, source: str = "") -> str:
    """One run. `source`: a file that findings are shown at, where there is one."""
    results: list[dict[str, Any]] = []
    for tool in report.tools:
        for hint in HINTS:
            found = tool.hints[hint]
            if found.verdict in _LEVELS and (found.verdict != "OVER-DECLARED" or found.claimed is not None):
                results.append(_result(report, tool.name, hint, found, source))
    for finding in report.server_findings:
        results.append(
            {
                "ruleId": "server",
                "level": "note",
                "message": {"text": f"{report.server}: {finding.what}"},
                "locations": [_location(report.server, "module", source)],
                "partialFingerprints": {"earnestAssay/v1": _mark(report.server, finding.kind, finding.where)},
            }
        )
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    run = {
        "tool": {"driver": {"name": "earnest assay", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"tier": report.tier},
    }
    body = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(body), indent=1).decode() + "\n"


def _result(report: Report, tool: str, hint: str, found: HintVerdict, source: str) -> dict[str, Any]:
    claimed = "nothing" if found.claimed is None else str(found.claimed).lower()
    text = f"{report.server}/{tool} claims {_WIRE[hint]} {claimed}: {found.verdict}. {found.reason}"
    replays = [one.replay for one in found.evidence if one.replay]
    if replays:
        text += f". Replay: {replays[0]}"
    return {
        "ruleId": found.verdict.lower(),
        "level": _LEVELS[found.verdict],
        "message": {"text": text},
        "locations": [_location(f"{report.server}/{tool}", "function", source)],
        "partialFingerprints": {"earnestAssay/v1": _mark(report.server, tool, hint, found.verdict)},
        "properties": {"hint": hint, "claimed": found.claimed},
    }


def _location(name: str, kind: str, source: str) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": kind}]}
    if source:
        location["physicalLocation"] = {"artifactLocation": {"uri": source}}
    return location


def _mark(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
