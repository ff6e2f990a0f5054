"""Approvals: a person's yes to one ask, and what keeps it from meaning anything else (law 7).

An approval fits one lock: principal, server identity, conversation, tool, pin, arguments, flow labels, policy version, and what
the call changes where that was previewed. It is asked once however often the call is retried, decided once, used once, and runs
out. Asks are in the store before anyone is asked, so that they survive a restart; a call that waits hears of the decision by a
callback and then takes the approval from the store like any other: the store alone says who was first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from earnest.pdp.facts import Judgement
from earnest.store.base import Approval, ApprovalState, Lock, Store, lock_text

PENDING_S: Final = 3600.0
"""Seconds an unanswered ask stays answerable."""


def lock_of(judgement: Judgement) -> Lock:
    """What an approval of this call is bound to."""
    question = judgement.question
    return Lock(
        principal=question.principal,
        identity=question.server.identity,
        conversation=question.key,
        tool=question.subject if question.method == "tools/call" else f"{question.method}\n{question.subject}",
        pin=question.tool.approval_pin,
        arguments_sha256=judgement.arguments_sha256,
        labels=judgement.labels_before,
        policy_sha256=judgement.policy_sha256,
        change=judgement.change,
    )


class Approvals:
    """All asks of one daemon."""

    def __init__(self, store: Store, clock: Callable[[], float], new_id: Callable[[str], str]) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._waiting: dict[str, list[Callable[[ApprovalState], None]]] = {}

    def ask(self, lock: Lock, prompt: str, channel: str = "") -> Approval:
        """The pending ask for a lock: the one there is, else a new one, kept before this returns."""
        now = self._clock()
        text = lock_text(lock)
        for known in self._store.approvals("pending"):
            if known.lock == text and known.expires > now:
                return known
        row = Approval(self._new_id("a"), "pending", text, prompt, channel, now, 0.0, now + PENDING_S)
        self._store.ask(row)
        return row

    def take(self, lock: Lock) -> Approval | None:
        """Use the approval that fits, if there is one: at most one caller gets it."""
        return self._store.take_for(lock, self._clock())

    def decide(self, id: str, yes: bool, *, channel: str, valid_s: float, by: str = "") -> bool:
        """A person answered. Whether it counted: the ask may have been withdrawn, answered or run out before."""
        now = self._clock()
        state: ApprovalState = "approved" if yes else "denied"
        counted = self._store.settle(id, state, now, expires=now + valid_s, channel=channel, by=by)  # type: ignore[arg-type]
        if counted:
            self._tell(id, state)
        return counted

    def withdraw(self, id: str) -> None:
        """The caller no longer wants the call: a later yes runs nothing."""
        if self._store.settle(id, "withdrawn", self._clock()):
            self._tell(id, "withdrawn")

    def get(self, id: str) -> Approval | None:
        """One ask by its id."""
        return self._store.approval(id)

    def on_decision(self, id: str, callback: Callable[[ApprovalState], None]) -> Callable[[], None]:
        """Hear of the decision of a pending ask. Returns what stops listening."""
        waiting = self._waiting.setdefault(id, [])
        waiting.append(callback)

        def stop() -> None:
            if callback in waiting:
                waiting.remove(callback)
            if not waiting and self._waiting.get(id) is waiting:
                del self._waiting[id]

        return stop

    def waited_for(self, id: str) -> bool:
        """Whether some call still hangs on this ask."""
        return bool(self._waiting.get(id))

    @property
    def held(self) -> int:
        """How many asks a call hangs on right now."""
        return len(self._waiting)

    def listed(self, everything: bool = False) -> list[Approval]:
        """What waits for a person, or all that is kept; oldest first."""
        self.expire()
        return self._store.approvals(None if everything else "pending")

    def expire(self) -> None:
        """Move what has run out."""
        for id in self._store.expire_approvals(self._clock()):
            self._tell(id, "expired")

    def _tell(self, id: str, state: ApprovalState) -> None:
        for callback in self._waiting.pop(id, []):
            callback(state)
