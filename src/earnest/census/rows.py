"""Rows of the dataset from records: what a server said, what follows from it, and what lint finds. Columns: `schema`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.census.grade import Grade, grade
from earnest.census.record import Leg, Record, decoded, info, same_tools, tools_of
from earnest.census.risk import classes
from earnest.core.errors import EarnestError
from earnest.core.pin import pin
from earnest.lint.model import Finding, Server, Tool, tool_of
from earnest.lint.run import Selection, lint

_ALL: Final = Selection(persona="pedantic")


class Rows(msgspec.Struct, frozen=True):
    """The rows of one server."""

    server: dict[str, Any]
    tools: list[dict[str, Any]]
    findings: list[dict[str, Any]]


def subject(record: Record) -> Server | None:
    """What lint looks at; None for a server that did not answer."""
    main = record.main
    if main is None:
        return None
    second = record.second
    pair = second is not None and second.modern == main.modern
    return Server(
        record.name,
        _tools(main),
        info=info(main),
        protocol=main.version,
        package=record.package,
        instructions=_text(decoded(main.hello).get("instructions")),
        live=record.source != "file" or record.transport != "recorded" or record.package.startswith(("npm:", "pypi:")),
        earlier=_tools(second) if pair and second is not None else None,
        modern=any(bool(leg.modern) for leg in record.legs),
    )


def rows(record: Record) -> Rows:
    """The rows of one record."""
    server = subject(record)
    if server is None:
        return Rows(_server_row(record, None, None), [], [])
    findings = lint([server], _ALL)
    by_tool: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        if one.tool is not None:
            by_tool[one.tool].append(one)
    main = record.main
    raws = tools_of(main) if main is not None else []
    objects = [raw for raw in raws if isinstance(_value(raw), Mapping)]
    tools = [
        _tool_row(record, place, raw, tool, by_tool[tool.name])
        for place, (raw, tool) in enumerate(zip(objects, server.tools, strict=True), 1)
    ]
    claims = {tool.name: tool.raw for tool in server.tools}
    found = [_finding_row(record, one, claims) for one in findings]
    return Rows(_server_row(record, server, grade(server.tools, findings)), tools, found)


def _tools(leg: Leg) -> tuple[Tool, ...]:
    values = [_value(raw) for raw in tools_of(leg)]
    return tuple(tool_of(value) for value in values if isinstance(value, Mapping))


def _server_row(record: Record, server: Server | None, points: Grade | None) -> dict[str, Any]:
    main, second = record.main, record.second
    failure = record.failure
    hello = decoded(main.hello) if main is not None else {}
    answered = [leg for leg in record.legs if leg.failure is None]
    modern_leg = next((leg for leg in record.legs if leg.asked == "modern"), None)
    code = decoded(modern_leg.probe).get("code") if modern_leg is not None else None
    first = decoded(main.pages[0]) if main is not None and main.pages else {}
    extra = {name: value for name, value in first.items() if name != "tools"}
    same = same_tools(main, second) if main is not None and second is not None else None
    crossed = main is not None and second is not None and main.modern != second.modern
    return {
        "cohort": record.cohort,
        "server": record.name,
        "recorded": record.recorded or None,
        "source": record.source,
        "transport": record.transport,
        "package": record.package or None,
        "version": record.version or None,
        "licence": record.licence or "unknown",
        "provenance": record.provenance,
        "containment": record.containment or None,
        "machine": record.machine or None,
        "status": "failed" if server is None else "answered",
        "failed_at": failure.step if failure is not None and server is None else None,
        "failure_code": failure.code if failure is not None and server is None else None,
        "failure": failure.message if failure is not None and server is None else None,
        "protocol": main.version or None if main is not None else None,
        "legacy": any(leg.modern is False for leg in answered) if answered else None,
        "modern": any(bool(leg.modern) for leg in answered) if modern_leg is not None and answered else None,
        "supported": list(modern_leg.supported) if modern_leg is not None and modern_leg.modern else [],
        "refused_with": code if isinstance(code, int) else None,
        "same_both_eras": same if crossed else None,
        "stable": same if second is not None and not crossed else None,
        "server_name": _text(server.info.get("name")) or None if server is not None else None,
        "server_version": _text(server.info.get("version")) if server is not None and server.info else None,
        "sdk": list(record.sdk),
        "instructions": _text(hello.get("instructions")) or None,
        "capabilities": _json(hello["capabilities"]) if isinstance(hello.get("capabilities"), Mapping) else None,
        "list_extra": _json(extra) if extra else None,
        "pages": len(main.pages) if main is not None else None,
        "tools": len(server.tools) if server is not None else None,
        "open_s": main.open_s if main is not None else None,
        "list_s": main.list_s if main is not None else None,
        "install_s": record.install_s,
        "install_bytes": record.install_bytes,
        "grade": points.letter if points is not None else None,
        "score": points.score if points is not None else None,
        "coverage": points.coverage if points is not None else None,
        "honesty": points.honesty if points is not None else None,
        "care": points.care if points is not None else None,
        "taken_off": list(points.reasons) if points is not None else [],
        "note": record.note or None,
    }


def _tool_row(record: Record, place: int, raw: bytes, tool: Tool, findings: list[Finding]) -> dict[str, Any]:
    definition = tool.definition
    keys = [name for name, value in tool.annotations.items() if value is not None]
    untrusted, claimed, checked = classes(tool.raw, findings)
    try:
        made: str | None = pin(raw)
    except EarnestError:
        made = None
    return {
        "cohort": record.cohort,
        "server": record.name,
        "recorded": record.recorded or None,
        "licence": record.licence or "unknown",
        "provenance": record.provenance,
        "position": place,
        "name": tool.name,
        "title": definition.get("title") if isinstance(definition.get("title"), str) else None,
        "annotations_title": tool.annotations.get("title") if isinstance(tool.annotations.get("title"), str) else None,
        "description": tool.description,
        "annotated": bool(keys),
        "read_only": tool.raw.read_only,
        "destructive": tool.raw.destructive,
        "idempotent": tool.raw.idempotent,
        "open_world": tool.raw.open_world,
        "malformed": list(tool.raw.malformed),
        "annotation_keys": keys,
        "input_schema": _json(definition["inputSchema"]) if definition.get("inputSchema") is not None else None,
        "has_output_schema": definition.get("outputSchema") is not None,
        "has_icons": bool(definition.get("icons")),
        "execution": _json(definition["execution"]) if definition.get("execution") is not None else None,
        "meta_keys": list(tool.meta),
        "pin": made,
        "risk_untrusted": untrusted,
        "risk_claimed": claimed,
        "risk_checked": checked,
        "definition": raw.decode("utf-8", "replace"),
    }


def _finding_row(record: Record, one: Finding, claims: Mapping[str, Any]) -> dict[str, Any]:
    raw = claims.get(one.tool) if one.tool is not None else None
    return {
        "cohort": record.cohort,
        "server": record.name,
        "licence": record.licence or "unknown",
        "provenance": record.provenance,
        "tool": one.tool,
        "audit": one.audit,
        "hint": one.hint,
        "claimed": bool(raw is not None and one.hint is not None and raw.get(one.hint) is not None),
        "severity": one.severity,
        "confidence": one.confidence,
        "persona": one.persona,
        "message": one.message,
        "fix": one.fix or None,
    }


def _value(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
