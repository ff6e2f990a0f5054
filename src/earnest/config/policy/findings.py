"""What is wrong with a policy, and where."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from earnest.core.errors import EarnestError


class Severity(StrEnum):
    """An error keeps a policy from being used; a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing about a policy. `line` and `column` are 1-based; 0 where the whole file is meant.

    Codes: E1101 not TOML; E1102 a key or value that does not belong; E1103 condition syntax; E1104 unknown
    name; E1105 type; E1106 never true; E1107 always true; E1108 glob; E1109 pattern; E1113 unknown preset or
    unreadable file. Warnings and notes of `check`: W1101 shadowed rule, W1102 uncovered state, W1103 a
    riskier tool is allowed more, N1101 sampled.
    """

    code: str
    severity: Severity
    message: str
    suggestion: str = ""
    source: str = ""
    line: int = 0
    column: int = 0
    rule: str = ""

    def __str__(self) -> str:
        place = f"{self.source or 'policy'}:{self.line}:{self.column}: " if self.line else self.source and f"{self.source}: "
        return f"{place}{self.code}: {self.message}" + (f"\n  {self.suggestion}" if self.suggestion else "")


class PolicyError(EarnestError):
    """A policy that cannot be used; all that is wrong with it is in `findings`, in the order of the text."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        first = findings[0]
        super().__init__(first.code, "\n".join(map(str, findings)), first.suggestion)
        self.findings = tuple(findings)

    def __str__(self) -> str:
        return self.message


class Wrong(EarnestError):
    """Something wrong in a condition or list entry, `at` a character of it. A policy file makes it a `Finding`."""

    def __init__(self, code: str, message: str, at: int = 0, suggestion: str = "") -> None:
        super().__init__(code, message, suggestion)
        self.at, self.suggestion = at, suggestion


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was most likely meant, or an empty string."""
    choices = list(known)

    def plain(text: str) -> str:
        return text.lower().replace("_", "").replace("-", "").removesuffix("hint")

    for choice in choices:
        if plain(choice) == plain(word):
            return choice
    close = difflib.get_close_matches(word, choices, 1, 0.6)
    return close[0] if close else ""


def mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean …?`, or `otherwise`."""
    close = nearest(word, known)
    return f"did you mean `{close}`?" if close else otherwise
