"""What a guard says of one call: the decision, the question that goes to a person, the refusal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.verdict import Reason, Remedy, Verdict


class Word(StrEnum):
    """The answer, as a word."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Decided(msgspec.Struct, frozen=True):
    """The decision on one call. `id` stands for its receipt: later decisions name it as where a value came from. `endorsed`:
    all that steers the call comes from the user's words or a trusted source. `observed`: what would have been decided
    without observe mode."""

    verdict: Word
    reasons: tuple[Reason, ...]
    remedies: tuple[Remedy, ...]
    id: str
    endorsed: bool
    observed: Word

    @property
    def allowed(self) -> bool:
        """Whether the call may run unasked."""
        return self.verdict is Word.ALLOW


class Ask(msgspec.Struct, frozen=True):
    """What a person is asked: one call with exactly these arguments, once. `str` is text to show them:
    the call, and what speaks against it."""

    tool: str
    arguments: Mapping[str, Any]
    decision: Decided

    def __str__(self) -> str:
        said = [f"May {self.tool} be called with {dict(self.arguments)!r}?"]
        said += [f"- {reason.text}" for reason in self.decision.reasons if reason.verdict is not Verdict.ALLOW]
        return "\n".join(said)


Approve = Callable[[Ask], "bool | Awaitable[bool]"]
"""Asks a person. Only `True` is a yes; it may be a coroutine function."""


class Refused(EarnestError):
    """A call that was not made: denied, or asked about and not agreed to (E1618). `decision` has the reasons, which are for
    people; `for_model` is all that a model is to hear."""

    exit_code = 1

    def __init__(self, tool: str, decision: Decided, why: str) -> None:
        super().__init__("E1618", f"{tool} was not called: {why}", "\n  ".join(remedy.text for remedy in decision.remedies))
        self.tool = tool
        self.decision = decision

    @property
    def for_model(self) -> str:
        """The refusal without anything of the policy."""
        return (
            f"The call of {self.tool} was not made (decision {self.decision.id}): it needs a person's yes and did not get it. "
            "Do not try to reach the same effect another way; tell the user what you wanted to do, and go on with the rest."
        )
