"""Recorded answers as records: whatever `earnest lint` reads, with the cohort and licence that the list gives.

The tools stay as bytes. What a recording says of its server (package, protocol, SDK, instructions, a second era) is taken
over; what it does not say stays empty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from earnest.census.record import Leg, Record
from earnest.census.spec import Recording
from earnest.core.canonical import DEPTH, depth
from earnest.core.errors import EarnestError
from earnest.lint.reading import SUFFIXES


class _File(msgspec.Struct):
    tools: list[Raw]
    server: str = ""
    package: str | None = None
    recordedDate: str | None = None
    protocolVersion: str | None = None
    serverInfo: dict[str, Any] | None = None
    capabilities: dict[str, Any] | None = None
    instructions: str | None = None
    sdk: list[str] | None = None
    modern: dict[str, Any] | None = None
    note: str | None = None


class _Result(msgspec.Struct):
    result: _File


def recorded(recording: Recording) -> Iterator[Record]:
    """The records of a file or a folder. Raises E1019 for what is not there, E1020 for what holds no tools."""
    root = Path(recording.path)
    if root.is_dir():
        files = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    else:
        files = [root]
    found = 0
    for path in files:
        for record in _of_file(path, recording):
            found += 1
            yield record
    if not found:
        remedy = f"Files that count end in {', '.join(SUFFIXES)}."
        raise EarnestError("E1020", f"{root} holds no recorded list of tools", remedy)


def _of_file(path: Path, recording: Recording) -> Iterator[Record]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EarnestError("E1019", f"{path}: {error.strerror}") from None
    whole = _decoded(data)
    digest = hashlib.sha256(data).hexdigest()
    if whole is not None:
        yield _record(whole, path, digest, recording)
        return
    lines = [(number, _decoded(line)) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    found = [one for _, one in lines if one is not None]
    if found and (bad := next((number for number, one in lines if one is None), 0)):
        raise EarnestError("E1020", f"{path}: line {bad} holds no list of tools, as the others do")
    for one in found:
        yield _record(one, path, digest, recording)


def _decoded(data: bytes) -> _File | None:
    for kind in (_File, _Result, list[Raw]):
        try:
            value: Any = msgspec.json.decode(data, type=kind)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if isinstance(value, list):
            return _File(value) if value and all(_is_tool(one) for one in value) else None
        return value.result if isinstance(value, _Result) else value
    return None


def _is_tool(raw: Raw) -> bool:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)


def _record(file: _File, path: Path, digest: str, recording: Recording) -> Record:
    if any(depth(bytes(one)) > DEPTH for one in file.tools):
        raise EarnestError("E1020", f"{path}: a tool of {file.server or path.stem} nests deeper than {DEPTH} levels")
    name = file.server or path.stem
    info = file.serverInfo or {}
    modern = file.modern or {}
    supports = bool(modern.get("discover_ok"))
    page = Raw(b'{"tools":[%b]}' % b",".join(bytes(one) for one in file.tools))
    hello = {"serverInfo": info, "capabilities": file.capabilities or {}, "instructions": file.instructions or ""}
    legs = [
        Leg(
            asked="legacy",
            modern=False,
            version=file.protocolVersion or "",
            hello=Raw(msgspec.json.encode(hello)),
            pages=(page,),
            supported=(file.protocolVersion,) if file.protocolVersion else (),
        )
    ]
    if "discover" in modern:
        answer = modern["discover"]
        versions = answer.get("supportedVersions") if isinstance(answer, Mapping) and supports else None
        legs.append(
            Leg(
                asked="modern",
                modern=supports,
                version="2026-07-28" if supports else file.protocolVersion or "",
                hello=Raw(msgspec.json.encode(answer)) if supports else Raw(b"null"),
                probe=Raw(b"null") if supports else Raw(msgspec.json.encode(answer)),
                supported=tuple(str(one) for one in versions) if isinstance(versions, list) else (),
                pages=(page,) if modern.get("same_tools") is True else (),
            )
        )
    return Record(
        spec=digest,
        name=name,
        cohort=recording.cohort,
        source="file",
        recorded=file.recordedDate or "",
        package=file.package or "",
        licence=recording.licence,
        provenance=f"{path.name} sha256:{digest[:16]}",
        sdk=tuple(file.sdk or ()),
        transport="recorded",
        legs=tuple(legs),
        note=file.note or recording.note,
    )
