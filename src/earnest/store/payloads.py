"""Payloads: arguments and results, kept apart from receipts, by digest, for as long as the operator says.

Receipts carry digests and never text, so that they can be kept for years and shown to auditors; what was
said stands here, in one file a day and writer, and a day's file goes whole when its time is over. Before
anything is written, the secrets that earnest itself hands to servers are taken out, the values of members
that the operator named, and what the operator's patterns find. A text that was changed so says that it was:
its digest is that of the original.

Nothing here may stop a call: a failure is kept in `problem`, told by `earnest doctor`, and the payload is
lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from earnest.core.canonical import build, members
from earnest.core.errors import EarnestError
from earnest.core.scrub import REDACTED, Scrubber

KEEP_DAYS: Final = 7
LIMIT_BYTES: Final = 256 << 10
_DAY_S: Final = 86400

PATTERNS: Final = (
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b",
    r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,255}\b",
    r"\bsk-[A-Za-z0-9_-]{20,255}\b",
    r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}",
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,10000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
)
"""What is taken out of every payload: forms of keys and tokens that are known by their look."""

_MEMBERS: Final = re.compile(
    r'("[\w-]{0,40}(?:password|passwd|secret|api[_-]?key|token|authorization|cookie)"\s*:\s*")(?:[^"\\]|\\.)+',
    re.IGNORECASE,
)
"""Members whose name says that their value is a secret. The first group stays."""

_PLAIN: Final = re.compile(r"[\w-]+")
"""What is the name of a member, and no pattern."""
_NAME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})\.[A-Za-z0-9-]{1,64}\.jsonl")


class Payload(msgspec.Struct, frozen=True):
    """One payload. `sha256` is the digest that a receipt names it by; `text` is empty where `left_out` says
    why."""

    sha256: str
    kind: Literal["arguments", "result"]
    size: int
    text: str
    redacted: int = 0
    left_out: str = ""


class Payloads:
    """Keeps payloads of one writer. `enabled` false keeps nothing at all."""

    def __init__(
        self,
        folder: str,
        writer: str,
        clock: Callable[[], float],
        *,
        enabled: bool = True,
        days: int = KEEP_DAYS,
        redact: Sequence[str] = (),
        secrets: Scrubber | None = None,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        """`days`: how long a payload is kept. `redact`: names of members whose values are not kept, or
        regular expressions beside `PATTERNS`. `secrets`: values that must never be written; what is added to it
        later counts too. Raises E1414 for a pattern that is none."""
        self.folder, self.writer, self.enabled, self.days = folder, writer, enabled, days
        self._clock, self._limit = clock, limit_bytes
        self._held: list[bytes] = []
        self.seen: set[str] = set()
        """Digests kept today."""
        self._day, self._until = "", 0.0
        self.problem: EarnestError | None = None
        self._patterns = [_compile(text) for text in (*PATTERNS, *(one for one in redact if not _PLAIN.fullmatch(one)))]
        self._named = frozenset(one.casefold() for one in redact if _PLAIN.fullmatch(one))
        self._secrets = secrets or Scrubber()

    def keep(self, kind: Literal["arguments", "result"], sha256: str, data: bytes) -> None:
        """Keep `data` under the digest that the receipt carries. The same digest is kept once a day."""
        if not self.enabled:
            return
        self._turn()
        if sha256 in self.seen:
            return
        self.seen.add(sha256)
        if len(data) > self._limit:
            payload = Payload(sha256, kind, len(data), "", left_out=f"longer than {self._limit} bytes")
        else:
            text, count = self.redact(data.decode("utf-8", "replace"))
            payload = Payload(sha256, kind, len(data), text, count)
        self._held.append(msgspec.json.encode(payload))

    def redact(self, text: str) -> tuple[str, int]:
        """`text` without secrets and what patterns find, and how many places were taken out."""
        count = 0
        if self._named:
            text, count = self._unnamed(text)
        text, found = self._secrets.counted(text)
        count += found
        for pattern in self._patterns:
            text, found = pattern.subn(REDACTED, text)
            count += found
        text, found = _MEMBERS.subn(rf"\1{REDACTED}", text)
        count += found
        return text, count

    def _unnamed(self, text: str) -> tuple[str, int]:
        """JSON text without the values of members that the operator named, the rest as it stood."""
        try:
            raw, count = _without(text.encode("utf-8"), self._named)
        except (EarnestError, msgspec.MsgspecError, UnicodeEncodeError):
            return text, 0  # no JSON, so it has no members
        return (raw.decode("utf-8"), count) if count else (text, 0)

    def flush(self) -> None:
        """Write what was kept, in one write."""
        self._turn()
        self._write()

    def _write(self) -> None:
        if not self._held:
            return
        data = b"\n".join([*self._held, b""])
        self._held.clear()
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            path = os.path.join(self.folder, f"{self._day}.{self.writer}.jsonl")
            fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                start = os.fstat(fd).st_size
                if os.write(fd, data) < len(data):
                    os.ftruncate(fd, start)
                    raise OSError(28, "No space left on device")
            finally:
                os.close(fd)
        except OSError as error:
            self.seen.clear()
            text = f"payloads cannot be written in {self.folder}: {error.strerror}"
            self.problem = EarnestError(
                "E1415", text, "Calls go on; their arguments and results are not kept."
            )
        else:
            self.problem = None

    def prune(self) -> list[str]:
        """Remove the files whose days are over, of every writer; their names."""
        first = (datetime.fromtimestamp(self._clock(), UTC) - timedelta(days=self.days)).date().isoformat()
        gone = []
        for name, day in _files(self.folder):
            if day < first or not self.days:
                os.unlink(os.path.join(self.folder, name))
                gone.append(name)
        if gone:
            self.seen.clear()
        return gone

    def _turn(self) -> None:
        now = self._clock()
        if self._until - _DAY_S <= now < self._until:
            return
        self._until = (now // _DAY_S + 1) * _DAY_S
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        if day != self._day:
            self._write()
            self._day = day
            self.seen.clear()


def find(folder: str, sha256: str) -> Payload | None:
    """The payload that a receipt names, the newest one; None where it was not kept, or is no longer."""
    mark = sha256.encode()
    for name, _ in reversed(_files(folder)):
        for data in _lines(os.path.join(folder, name)):
            if mark in data:
                try:
                    found = msgspec.json.decode(data, type=Payload)
                except msgspec.DecodeError:
                    continue
                if found.sha256 == sha256:
                    return found
    return None


def _lines(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from file


def _files(folder: str) -> list[tuple[str, str]]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted((name, found[1]) for name in names if (found := _NAME.fullmatch(name)))


def _without(raw: bytes, names: frozenset[str]) -> tuple[bytes, int]:
    count = 0
    if raw[:1] == b"{":
        seen = members(raw)
        for name, value in seen.items():
            if name.casefold() in names:
                seen[name], found = b'"%b"' % REDACTED.encode(), 1
            else:
                seen[name], found = _without(value, names)
            count += found
        return build(seen) if count else raw, count
    if raw[:1] == b"[":
        items = [_without(bytes(item), names) for item in msgspec.json.decode(raw, type=list[msgspec.Raw])]
        count = sum(found for _, found in items)
        return b"[%b]" % b",".join(item for item, _ in items) if count else raw, count
    return raw, 0


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        raise EarnestError("E1414", f"redaction pattern {pattern!r}: {error.msg}{where}") from None
