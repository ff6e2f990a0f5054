"""The answer to a call, and the words that go with it."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Verdict(IntEnum):
    """Ordered by severity, so that the worst of several is their maximum."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        """`allow`, `ask` or `deny`."""
        return self.name.lower()


class Reason(msgspec.Struct, frozen=True):
    """Why: `rule` is a stable id (`preset/balanced: destructive writes ask`, `flow/confidentiality`, `pin/gate`,
    `floor/own-files`), `text` a sentence for a person, `verdict` what this rule alone said."""

    rule: str
    text: str
    verdict: Verdict


class Remedy(msgspec.Struct, frozen=True):
    """What a person can do so that this is not asked again: a sentence and, where there is one, a command."""

    text: str
    command: str = ""
