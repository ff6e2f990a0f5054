"""Approvals: a person's yes to one ask, and what keeps it from meaning anything else (law 7).

An approval fits one lock: principal, server identity, conversation, method, tool, pin, arguments, flow labels and policy
version. It is asked once however often the call is retried, decided once, used once, and runs out. Asks are in the store
before anyone is asked, so that they survive a restart; a call that waits hears of the decision by a callback, and then takes
it from the store like any other: the store alone decides who was first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol

import msgspec

State = Literal["pending", "approved", "denied", "withdrawn", "expired", "used"]

PENDING_S: Final = 3600.0
"""Seconds an unanswered ask stays answerable."""


class Lock(msgspec.Struct, frozen=True):
    """What an approval is bound to. All of it must be equal when it is used."""

    principal: str
    server_identity: str
    conversation: str
    method: str
    subject: str
    pin: str
    arguments_sha256: str
    labels: int
    policy_sha256: str

    def digest(self) -> str:
        """64 hex digits that stand for the lock."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class Approval(msgspec.Struct, frozen=True):
    """One ask as it is kept. Times are seconds since the epoch. `prompt` is the JSON of what the person is shown."""

    id: str
    lock: Lock
    lock_digest: str
    state: State
    created: float
    expires: float
    prompt: bytes
    receipt: str
    decided: float = 0.0
    channel: str = ""
    """Which way the answer came: `in-band`, `terminal`, `console`."""


class ApprovalStore(Protocol):
    """Where approvals are kept. Each method is one transaction."""

    def add_approval(self, approval: Approval) -> None:
        """Keep a new ask."""

    def approval(self, id: str) -> Approval | None:
        """One by its id."""

    def approvals(self, states: Iterable[State]) -> list[Approval]:
        """All in these states, oldest first."""

    def find_approval(self, lock_digest: str, states: Iterable[State], now: float) -> Approval | None:
        """The newest one for a lock in these states that has not run out."""

    def move_approval(self, id: str, source: State, target: State, *, now: float, expires: float, channel: str) -> bool:
        """Change the state if it still is `source` and has not run out; whether this call did it."""

    def expire_approvals(self, now: float) -> list[str]:
        """Move what has run out to `expired`; returns the ids."""


class Approvals:
    """All asks of one daemon."""

    def __init__(self, store: ApprovalStore, clock: Callable[[], float], new_id: Callable[[], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._waiting: dict[str, list[Callable[[State], None]]] = {}

    def ask(self, lock: Lock, prompt: bytes, receipt: str) -> Approval:
        """The pending ask for a lock: the one there is, else a new one."""
        now = self._clock()
        digest = lock.digest()
        known = self._store.find_approval(digest, ("pending",), now)
        if known is not None:
            return known
        approval = Approval(self._new_id(), lock, digest, "pending", now, now + PENDING_S, prompt, receipt)
        self._store.add_approval(approval)
        return approval

    def take(self, lock: Lock) -> Approval | None:
        """Use the approved one for a lock, if there is one: at most one caller gets it."""
        now = self._clock()
        found = self._store.find_approval(lock.digest(), ("approved",), now)
        if found is None:
            return None
        if not self._store.move_approval(found.id, "approved", "used", now=now, expires=found.expires, channel=found.channel):
            return None
        return found

    def denied(self, lock: Lock) -> Approval | None:
        """A person's standing no to exactly this call, while it lasts."""
        return self._store.find_approval(lock.digest(), ("denied",), self._clock())

    def decide(self, id: str, yes: bool, *, channel: str, valid_s: float) -> bool:
        """A person answered. Whether the answer counted: the ask may have been withdrawn, answered or run out before."""
        now = self._clock()
        moved = self._store.move_approval(
            id, "pending", "approved" if yes else "denied", now=now, expires=now + valid_s, channel=channel
        )
        if moved:
            self._tell(id, "approved" if yes else "denied")
        return moved

    def withdraw(self, id: str) -> None:
        """The caller no longer wants the call: a later yes runs nothing."""
        now = self._clock()
        if self._store.move_approval(id, "pending", "withdrawn", now=now, expires=now, channel=""):
            self._tell(id, "withdrawn")

    def on_decision(self, id: str, callback: Callable[[State], None]) -> Callable[[], None]:
        """Hear of the decision of a pending ask. Returns what stops listening."""
        waiting = self._waiting.setdefault(id, [])
        waiting.append(callback)

        def stop() -> None:
            if callback in waiting:
                waiting.remove(callback)
            if not waiting and self._waiting.get(id) is waiting:
                del self._waiting[id]

        return stop

    def pending(self) -> list[Approval]:
        """What waits for a person."""
        self.expire()
        return self._store.approvals(("pending",))

    def recent(self) -> list[Approval]:
        """All that is kept, for a person who looks back."""
        self.expire()
        return self._store.approvals(("pending", "approved", "denied", "withdrawn", "expired", "used"))

    def expire(self) -> None:
        """Move what has run out."""
        for id in self._store.expire_approvals(self._clock()):
            self._tell(id, "expired")

    def _tell(self, id: str, state: State) -> None:
        for callback in self._waiting.pop(id, []):
            callback(state)
