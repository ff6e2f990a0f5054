"""What is kept of one server: everything it said, as it said it, and how it was asked. Failures are records too.

One JSON file for each server below `records/` of a run, written whole or not at all. `Raw` members hold the server's own
bytes; nothing is dropped, filled in or put in order.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from earnest.core.canonical import canonical
from earnest.core.errors import EarnestError

FORMAT: Final = 1
Step = Literal["install", "contain", "start", "open", "list", "worker"]


class Failure(msgspec.Struct, frozen=True):
    """Why there is no answer: at which step, under which code, in which words (the server's last ones included, bounded)."""

    step: Step
    code: str
    message: str


class Leg(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a server, asked in one era. `modern`: what it spoke (a server may know only the other one).

    `pages` are the results of `tools/list`, raw, in order. `probe` is what it answered to `server/discover` where that opened
    nothing: an error object, raw. Seconds count from the start of the process.
    """

    asked: Literal["legacy", "modern"]
    modern: bool | None = None
    version: str = ""
    supported: tuple[str, ...] = ()
    hello: Raw = Raw(b"null")
    pages: tuple[Raw, ...] = ()
    probe: Raw = Raw(b"null")
    open_s: float | None = None
    list_s: float | None = None
    failure: Failure | None = None
    words: tuple[str, ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One server of a census."""

    format: int = FORMAT
    spec: str
    name: str
    cohort: str
    source: str
    recorded: str
    """When, ISO 8601 in UTC; of a recording the date that it says of itself."""
    package: str = ""
    version: str = ""
    """Of the installed package, as its metadata have it."""
    licence: str = ""
    provenance: str = ""
    """Where the definitions come from: package, address, or file with its digest."""
    sdk: tuple[str, ...] = ()
    transport: str = "stdio"
    containment: str = ""
    machine: str = ""
    install_s: float | None = None
    install_bytes: int | None = None
    legs: tuple[Leg, ...] = ()
    failure: Failure | None = None
    note: str = ""

    @property
    def main(self) -> Leg | None:
        """The leg that is counted: the legacy one where it answered, because every recording has that one; else the other."""
        answered = [leg for leg in self.legs if leg.failure is None and leg.modern is not None]
        return next((leg for leg in answered if not leg.modern), answered[0] if answered else None)

    @property
    def second(self) -> Leg | None:
        """Another answered leg than the main one."""
        main = self.main
        return next((leg for leg in self.legs if leg is not main and leg.failure is None and leg.pages), None)


class _Page(msgspec.Struct):
    tools: list[Raw] | None = None


def tools_of(leg: Leg) -> list[bytes]:
    """The raw tool objects of all pages of a leg."""
    found: list[bytes] = []
    for page in leg.pages:
        try:
            found += [bytes(one) for one in msgspec.json.decode(page, type=_Page).tools or ()]
        except (msgspec.MsgspecError, RecursionError):
            continue
    return found


def same_tools(one: Leg, other: Leg) -> bool | None:
    """Whether two legs list the same tools, up to order; None where one of them cannot be read in one way."""
    try:
        return sorted(map(canonical, tools_of(one))) == sorted(map(canonical, tools_of(other)))
    except EarnestError:
        return None


def info(leg: Leg) -> Mapping[str, Any]:
    """The server's `Implementation`, of either era; empty where it sent none."""
    hello = decoded(leg.hello)
    found = hello.get("serverInfo")
    if not isinstance(found, Mapping):
        meta = hello.get("_meta")
        found = meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def decoded(raw: Raw | bytes) -> dict[str, Any]:
    """A raw JSON object; empty for anything else."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def filename(cohort: str, name: str) -> str:
    """The file of a record. Names of recordings are anybody's: a digest tells apart what is cleaned."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80]
    exact = plain == name
    mark = "" if exact else "~" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', cohort)}+{plain}{mark}.json"


def save(folder: Path, record: Record, *, sync: bool = True) -> Path:
    """Write a record, whole or not at all, over an older one of the same server."""
    path = folder / filename(record.cohort, record.name)
    fresh = folder / f".{path.name}.{os.getpid()}"
    with fresh.open("wb") as out:
        out.write(msgspec.json.encode(record) + b"\n")
        if sync:
            out.flush()
            os.fsync(out.fileno())
    fresh.replace(path)
    return path


def load(path: Path) -> Record:
    """Read a record. Raises E1902 for a file that is none, or of another format."""
    try:
        record = msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        told = f"{path} is no record of a census: {error}"
        raise EarnestError("E1902", told, "Take it away; it will be made anew.") from None
    if record.format != FORMAT:
        raise EarnestError("E1902", f"{path} has format {record.format}, this earnest reads {FORMAT}")
    return record


def records(folder: Path) -> Iterator[Record]:
    """All records of a run, by cohort and name. Raises E1902."""
    for path in sorted(folder.glob("*.json")):
        yield load(path)
