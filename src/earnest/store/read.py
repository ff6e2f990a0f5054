"""Reading receipts: decision and outcome joined for a person or a program, and whether the chains are
whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from earnest.core.flow import LABEL_NAMES
from earnest.core.receipt import (
    Checkpoint,
    Decision,
    Event,
    Finding,
    Outcome,
    Repair,
    Report,
    expand,
    read_line,
    verify,
)
from earnest.store import segments
from earnest.store.receipts import CHECKPOINT_RECORDS
from earnest.store.signing import check

CHECKPOINT_S: Final = 600.0
"""Seconds without a checkpoint that no writer lets pass while it writes: ten times what it keeps to, since it may be killed,
and started again, before it has signed."""
CHECKPOINT_MOST: Final = 10 * CHECKPOINT_RECORDS

_checkpoint: Final = msgspec.json.Decoder(Checkpoint).decode


class Receipt(msgspec.Struct, frozen=True):
    """Both records of one call, as `earnest receipts --json` prints them. `time` is RFC 3339 in UTC;
    `outcome` and what belongs to it is null where there is none (yet): a call that was refused, is in
    flight, or was lost."""

    id: str
    time: str
    server: str
    tool: str
    decision: str
    reasons: list[dict[str, str]]
    arguments_sha256: str
    pin: str
    policy_sha256: str
    labels_before: list[str]
    labels_after: list[str] | None
    outcome: str | None
    method: str
    client: str
    conversation: list[str]
    identity: str
    profile: dict[str, dict[str, bool | str]]
    approval: str
    endorsement: str
    trust: str = ""
    title: str | None = None
    client_asks: str = ""
    outcome_time: str | None = None
    duration_ms: float | None = None
    result_sha256: str = ""
    result_bytes: int = 0
    detail: str = ""


def labels(bits: int) -> list[str]:
    """The names of flow bits; a bit without a name by its number."""
    return [LABEL_NAMES.get(1 << at, str(1 << at)) for at in range(bits.bit_length()) if bits >> at & 1]


def stamp(time: float) -> str:
    """A time as RFC 3339 in UTC, to the millisecond."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def receipts(
    folder: str, *, server: str = "", tool: str = "", decision: str = "", since: float = 0.0, id: str = ""
) -> Iterator[Receipt]:
    """The receipts of all writers, oldest first. `server` and `tool` may be globs; `since` is seconds since
    the epoch. Lines that are no receipts are passed over here; `verify_all` names them."""
    wanted: dict[str, Decision] = {}
    outcomes: dict[str, Outcome] = {}
    for writer in segments.writers(folder):
        for data in segments.lines(folder, writer):
            try:
                found = read_line(data)
            except msgspec.DecodeError:
                continue
            record = found.record
            if isinstance(record, Outcome):
                if record.decision in wanted:
                    outcomes[record.decision] = record
            elif (
                isinstance(record, Decision)
                and record.time >= since
                and (not id or found.id == id)
                and (not decision or record.decision == decision)
                and (not server or fnmatchcase(record.server, server))
                and (not tool or fnmatchcase(record.tool, tool))
            ):
                wanted[found.id] = record
    for key in sorted(wanted, key=lambda key: wanted[key].time):
        yield _join(key, wanted[key], outcomes.get(key))


def events(folder: str, *, since: float = 0.0) -> Iterator[tuple[str, Event | Repair]]:
    """What was put on record apart from calls: id and record, writer by writer."""
    for writer in segments.writers(folder):
        for data in segments.lines(folder, writer):
            try:
                found = read_line(data)
            except msgspec.DecodeError:
                continue
            if isinstance(found.record, Event | Repair) and found.record.time >= since:
                yield found.id, found.record


def verify_all(
    folder: str, heads: Iterable[Checkpoint] = (), keys: Iterable[Mapping[str, str]] = ()
) -> list[Report]:
    """Verify every chain in `folder`, and those that only `heads` know of. `heads` come from the store, and from the file that
    holds it (`anchor`), and are believed; the checkpoints in the folder count if one of the public `keys` signed them."""
    noted = list(heads)
    public = list(keys)
    reports = []
    for writer in sorted({*segments.writers(folder), *(head.writer for head in noted)}):
        signed, findings = _signed(folder, writer, public)
        try:
            lines = segments.lines(folder, writer)
            report = verify(writer, lines, [*noted, *signed], every_s=CHECKPOINT_S, every=CHECKPOINT_MOST)
            if nuls := segments.rest(folder, writer).count(0):
                after = f"{nuls} NUL bytes stand after record {report.seq}, which nothing wrote that writes receipts"
                findings.append(Finding("change", report.seq + 1, report.seq + 1, 0, after))
        except FileNotFoundError:
            report = verify(writer, [], noted)
        reports.append(msgspec.structs.replace(report, findings=(*report.findings, *findings)))
    return reports


def _signed(
    folder: str, writer: str, keys: list[Mapping[str, str]]
) -> tuple[list[Checkpoint], list[Finding]]:
    found: list[Checkpoint] = []
    wrong: list[Finding] = []
    try:
        with open(segments.checkpoints(folder, writer), encoding="ascii", errors="replace") as file:
            texts = file.read().splitlines()
    except FileNotFoundError:
        return found, wrong
    for number, text in enumerate(texts, 1):
        payload = check(text, keys)
        try:
            if payload is not None:
                made = _checkpoint(payload)
                if made.writer == writer:
                    found.append(made)
                    continue
        except msgspec.DecodeError:
            pass
        said = f"checkpoint {number} of {writer} is not signed by a key of this store"
        wrong.append(Finding("change", 0, 0, 0, said))
    return found, wrong


def _join(id: str, decision: Decision, outcome: Outcome | None) -> Receipt:
    return Receipt(
        id=id,
        time=stamp(decision.time),
        server=decision.server,
        tool=decision.tool,
        decision=decision.decision,
        reasons=[{"rule": reason.rule, "text": reason.text} for reason in decision.reasons],
        arguments_sha256=decision.arguments_sha256,
        pin=decision.pin,
        policy_sha256=decision.policy_sha256,
        labels_before=labels(decision.labels_before),
        labels_after=labels(outcome.labels_after) if outcome else None,
        outcome=outcome.outcome if outcome else None,
        method=decision.method,
        client=decision.client,
        conversation=list(decision.conversation),
        identity=decision.identity,
        profile=expand(decision.profile),
        approval=decision.approval,
        endorsement=decision.endorsement,
        trust=decision.trust,
        title=decision.title,
        client_asks=decision.client_asks,
        outcome_time=stamp(outcome.time) if outcome else None,
        duration_ms=outcome.duration_ms if outcome else None,
        result_sha256=outcome.result_sha256 if outcome else "",
        result_bytes=outcome.result_bytes if outcome else 0,
        detail=outcome.detail if outcome else "",
    )
