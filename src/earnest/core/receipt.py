"""Receipts: what was decided and what came of it, in a chain that shows when somebody has been at it.

Theory. A call leaves two records: the *decision*, before the call goes out, and the *outcome*, which names
the decision it belongs to. What else must be on record (a person lowered a label, a pin was accepted, a
torn file was mended) is an *event* or a *repair*. Each record stands in one line:

    {"seq":12,"id":"WRITER.12","prev":"HASH","record":{"kind":"decision",…}}

`prev` is the SHA-256 of the line before, of its bytes without the line feed; the first line of a writer has
`genesis(writer)` there, so that a chain cannot pass for another's. A writer is one process that appends to
one chain.

What shows, and by what: a changed line by the hash that its successor carries; a lost one by a gap in
`seq`; a moved one by a `seq` that stands too late; a cut tail and a chain written anew from end to end by
checkpoints, which are pairs of `seq` and hash that were signed, or noted elsewhere, at the time. So the
newest records, those after the last checkpoint, are protected only once the next one is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from earnest.core.profile import NAMES, Profile
from earnest.core.verdict import Reason


class Decision(msgspec.Struct, frozen=True, tag_field="kind", tag="decision"):
    """What was decided of one call, and on what ground. Written before the call goes out.

    `time` is seconds since the epoch. `conversation` is the key, from principal to handle.
    `arguments_sha256` is over the canonical form, `policy_sha256` over the policy in force; both empty
    where there is none. `labels_before` are flow bits. `profile` is what `compact` makes. `approval` and
    `endorsement` name the yes that was used.
    """

    time: float
    client: str
    conversation: tuple[str, ...]
    server: str
    identity: str
    method: str
    tool: str
    decision: Literal["allow", "ask", "deny"]
    reasons: tuple[Reason, ...] = ()
    arguments_sha256: str = ""
    pin: str = ""
    policy_sha256: str = ""
    labels_before: int = 0
    profile: str = ""
    approval: str = ""
    endorsement: str = ""
    trust: str = ""
    title: str | None = None
    client_asks: str = ""


class Outcome(msgspec.Struct, frozen=True, tag_field="kind", tag="outcome"):
    """What came of a call. `decision` is the id of its decision; `outcome` a word (`ok`, `error`,
    `cancelled`, `timeout`, `lost`, `not-sent`, …); `duration_ms` from dispatch to result; `labels_after`
    flow bits."""

    time: float
    decision: str
    outcome: str
    labels_after: int = 0
    duration_ms: float = 0.0
    result_sha256: str = ""
    result_bytes: int = 0
    detail: str = ""


class Event(msgspec.Struct, frozen=True, tag_field="kind", tag="event", omit_defaults=True):
    """Something other than a call that must be on record: trust given, a pin accepted, a label lowered, an
    endorsement. `what` is a stable word, `text` a sentence, `facts` names and values."""

    time: float
    what: str
    text: str
    principal: str = ""
    server: str = ""
    tool: str = ""
    conversation: tuple[str, ...] = ()
    facts: dict[str, str] = {}


class Repair(msgspec.Struct, frozen=True, tag_field="kind", tag="repair"):
    """The log was mended when it was opened: `lost_bytes` of a torn tail were set aside in the file `kept`,
    or records `first` to `last` were gone. Zero and empty where it does not apply."""

    time: float
    text: str
    lost_bytes: int = 0
    lost_sha256: str = ""
    kept: str = ""
    first: int = 0
    last: int = 0


Record = Decision | Outcome | Event | Repair


class Line(msgspec.Struct, frozen=True):
    """One line of a log, as read."""

    seq: int
    id: str
    prev: str
    record: Record


class Checkpoint(msgspec.Struct, frozen=True):
    """That record `seq` of `writer` had the hash `head` at `time` (seconds since the epoch)."""

    writer: str
    seq: int
    head: str
    time: float


class Finding(msgspec.Struct, frozen=True):
    """What is wrong with a chain, and where: records `first` to `last` by number, `line` counted from 1
    over all lines of the chain (0 where there is none)."""

    kind: Literal["change", "loss", "reordering", "truncation"]
    first: int
    last: int
    line: int
    text: str


class Report(msgspec.Struct, frozen=True):
    """What `verify` found in the chain of one writer. `head` is the hash of its last record, number `seq`;
    `covered` the highest record that a checkpoint vouches for."""

    writer: str
    records: int
    seq: int
    head: str
    covered: int
    findings: tuple[Finding, ...]
    repairs: tuple[Repair, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong. A repair is told, and is nothing wrong."""
        return not self.findings


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Line).decode
_sha256: Final = hashlib.sha256


def genesis(writer: str) -> str:
    """What the first record of a writer has for `prev`: 64 hexadecimal digits."""
    return _sha256(b"earnest receipts 1 " + writer.encode()).hexdigest()


def line(writer: str, seq: int, prev: str, record: Record) -> bytes:
    """The bytes of one line, without line feed. A writer is ASCII letters, digits and hyphens."""
    return b'{"seq":%d,"id":"%s.%d","prev":"%s","record":%s}' % (
        seq,
        writer.encode(),
        seq,
        prev.encode(),
        _encode(record),
    )


def chain(data: bytes) -> str:
    """The hash of a line, which the next one carries."""
    return _sha256(data).hexdigest()


def encode(record: Record) -> bytes:
    """A record as it stands in its line."""
    return _encode(record)


class Chain:
    """The end of one writer's chain: `seq` and `head` (its hash) of the last record, and in `held` the lines that nobody has
    written yet."""

    __slots__ = ("head", "held", "held_bytes", "name", "seq")

    def __init__(self, writer: str) -> None:
        """A writer is ASCII letters, digits and hyphens."""
        self.name = writer.encode()
        self.seq = 0
        self.head = genesis(writer).encode()
        self.held: list[bytes] = []
        self.held_bytes = 0

    def append(self, record: bytes) -> int:
        """Put an encoded record into the chain; returns its number."""
        seq = self.seq + 1
        data = b'{"seq":%d,"id":"%b.%d","prev":"%b","record":%b}' % (seq, self.name, seq, self.head, record)
        self.head = _sha256(data).hexdigest().encode()
        self.seq = seq
        self.held.append(data)
        self.held_bytes += len(data)
        return seq


def read_line(data: bytes) -> Line:
    """A line as data. Raises `msgspec.DecodeError` (or its `ValidationError`) for what is none."""
    return _decode(data)


def compact(profile: Profile) -> str:
    """A profile in one line: `read_only=false/default destructive=true/claimed …`."""
    return " ".join(f"{name}={str(value.value).lower()}/{value.basis}" for name, value in ((n, profile.get(n)) for n in NAMES))


def expand(text: str) -> dict[str, dict[str, bool | str]]:
    """`compact` undone: name to `value` and `basis`."""
    found: dict[str, dict[str, bool | str]] = {}
    for word in text.split():
        name, _, rest = word.partition("=")
        value, _, basis = rest.partition("/")
        found[name] = {"value": value == "true", "basis": basis}
    return found


def verify(
    writer: str, lines: Iterable[bytes], checkpoints: Iterable[Checkpoint] = (), *, every_s: float = 0.0, every: int = 0
) -> Report:
    """Walk one chain from its first line and say what is wrong with it. Memory does not grow with its length.

    `checkpoints` are believed: whoever hands them in has checked their signatures. Those of other writers
    are passed over. `every_s`, `every`: a writer that runs signs at least that often, in seconds and in records (0: it is not
    known how often), so records that went on for longer without a checkpoint had one that is gone.
    """
    known: dict[int, set[str]] = {}
    for checkpoint in checkpoints:
        if checkpoint.writer == writer:
            known.setdefault(checkpoint.seq, set()).add(checkpoint.head)
    findings: list[Finding] = []
    repairs: list[Repair] = []
    gaps: list[tuple[int, int, int]] = []
    expected, last, count, number, covered = 1, genesis(writer), 0, 0, 0
    since, newest = 0.0, 0.0
    """Times of the first and the last record after the last checkpoint."""
    for number, data in enumerate(lines, 1):
        try:
            found = _decode(data)
        except msgspec.DecodeError:
            findings.append(Finding("change", expected, expected, number, f"line {number} is no receipt (record {expected}?)"))
            # Its place is taken, whatever stands there; the successor cannot be checked against it.
            expected, last = expected + 1, ""
            continue
        seq, head = found.seq, chain(data)
        count += 1
        if found.id != f"{writer}.{seq}":
            findings.append(Finding("change", seq, seq, number, f"record {seq} calls itself {found.id[:80]!a}"))
        if isinstance(found.record, Repair):
            repairs.append(found.record)
        if seq in known and known[seq] != {head}:
            findings.append(Finding("change", seq, seq, number, f"record {seq} is not the one its checkpoint was made of"))
        elif seq in known:
            covered = max(covered, seq)
            since = 0.0
        if seq > covered:
            newest = found.record.time
            since = since or newest
        if seq < expected:
            late = next((gap for gap in gaps if gap[0] <= seq <= gap[1]), None)
            if late is None:
                text = f"record {seq} stands again in line {number}"
                findings.append(Finding("change", seq, seq, number, text))
                continue
            gaps.remove(late)
            gaps += [gap for gap in ((late[0], seq - 1, late[2]), (seq + 1, late[1], late[2])) if gap[0] <= gap[1]]
            text = f"record {seq} stands in line {number}, after record {expected - 1}"
            findings.append(Finding("reordering", seq, seq, number, text))
            continue
        if seq > expected:
            gaps.append((expected, seq - 1, number))
        elif last and found.prev != last:
            text = f"record {seq - 1} is not the one that record {seq} was chained to"
            if seq == 1:
                text = "record 1 does not start this chain"
            findings.append(Finding("change", max(seq - 1, 1), max(seq - 1, 1), max(number - 1, 1), text))
        expected, last = seq + 1, head
    for first, end, where in gaps:
        span = f"record {first} is" if first == end else f"records {first} to {end} are"
        findings.append(Finding("loss", first, end, where, f"{span} missing before line {where}"))
    bare = expected - 1 - covered
    if (every_s and since and newest - since > every_s) or (every and bare > every):
        text = f"records {covered + 1} to {expected - 1} have no checkpoint, and were long enough written for one"
        findings.append(Finding("loss", covered + 1, expected - 1, number, text))
    top = max(known, default=0)
    if top >= expected:
        text = f"the chain ends with record {expected - 1}; a checkpoint knows of record {top}"
        findings.append(Finding("truncation", expected, top, number, text))
    findings.sort(key=lambda finding: (finding.first, finding.line))
    return Report(writer, count, expected - 1, last, covered, tuple(findings), tuple(repairs))
