"""Receipts of the gateway's calls: the decision before a call goes out, the outcome after it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal, Protocol

from earnest.core import receipt
from earnest.pdp.facts import Judgement


def decision_of(
    judgement: Judgement, decision: Literal["allow", "ask", "deny"], time: float, arguments_sha256: str
) -> receipt.Decision:
    """The decision record of a judgement, of this time and for these arguments."""
    question = judgement.question
    tool = question.tool
    return receipt.Decision(
        time=time,
        client=question.client,
        conversation=question.key,
        server=question.server.name,
        identity=question.server.identity,
        method=question.method,
        tool=question.subject,
        decision=decision,
        reasons=judgement.reasons,
        arguments_sha256=arguments_sha256,
        pin=tool.pin,
        policy_sha256=judgement.policy_sha256,
        labels_before=judgement.labels_before,
        profile=tool.compact if judgement.profile is tool.profile else receipt.compact(judgement.profile),
        approval=judgement.approval,
        endorsement=judgement.endorsement,
        trust=question.server.trust.value,
        title=tool.title,
        client_asks="person" if question.client_asks else "nobody",
    )


class Log(Protocol):
    """Where records go. `append` gives the record's id and buffers; `flush` hands all to the operating system (E14xx)."""

    def append(self, record: receipt.Record) -> str: ...

    def flush(self) -> None: ...


class Payloads(Protocol):
    """Where payloads stand apart, by digest."""

    def keep(self, kind: Literal["arguments", "result"], sha256: str, data: bytes) -> None: ...


class Records:
    """Writes what `Judgement` and answers say into the log."""

    def __init__(
        self, log: Log, payloads: Payloads | None, clock: Callable[[], float], scrub: Callable[[str], str] = lambda text: text
    ) -> None:
        """`scrub` takes secrets out of what is told in words."""
        self._scrub = scrub
        self._log = log
        self._payloads = payloads
        self._clock = clock

    def decided(self, judgement: Judgement, decision: Literal["allow", "ask", "deny"]) -> str:
        """Append the decision record; its id becomes the judgement's."""
        question = judgement.question
        record = decision_of(judgement, decision, judgement.time, judgement.arguments_sha256)
        judgement.id = self._log.append(record)
        if self._payloads is not None and question.arguments:
            self._payloads.keep("arguments", judgement.arguments_sha256, question.arguments)
        return judgement.id

    def finished(self, judgement: Judgement, outcome: str, detail: str = "", result: bytes = b"") -> None:
        """Append the outcome record of a decided call."""
        now = self._clock()
        digest = ""
        if result:
            digest = hashlib.sha256(result).hexdigest()
            if self._payloads is not None:
                self._payloads.keep("result", digest, result)
        self._log.append(
            receipt.Outcome(
                time=now,
                decision=judgement.id,
                outcome=outcome,
                labels_after=judgement.labels_after,
                duration_ms=round((now - judgement.time) * 1000, 3),
                result_sha256=digest,
                result_bytes=len(result),
                detail=self._scrub(detail) if detail else "",
            )
        )

    def event(self, what: str, text: str, **facts: object) -> str:
        """As `note`, and flushed at once: for what must not happen without its record. Raises E14xx."""
        id = self.note(what, text, **facts)
        self._log.flush()
        return id

    def note(self, what: str, text: str, **facts: object) -> str:
        """Append something other than a call: trust given, a pin accepted, a label lowered."""
        known = {name: facts.pop(name) for name in ("principal", "server", "tool", "conversation") if name in facts}
        record = receipt.Event(
            time=self._clock(),
            what=what,
            text=self._scrub(text),
            facts={k: self._scrub(str(v)) for k, v in facts.items()},
            **known,  # type: ignore[arg-type]
        )
        return self._log.append(record)

    def flush(self) -> None:
        """Hand what is buffered to the operating system. Raises E14xx: then nothing that was decided may go out."""
        self._log.flush()
