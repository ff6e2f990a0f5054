"""`policy test`: the `[[test]]` tables that stand beside a policy.

[[test]]
name = "a delete asks"
given = { tool = "files/delete", trust = "trusted", claims = { destructive = true } }
expect = "ask"
rule = "rule/deletes need a yes"     # optional: this rule is among the reasons
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from earnest.config.policy.findings import mean
from earnest.config.policy.load import Document
from earnest.config.policy.situation import answer, situation
from earnest.core.errors import EarnestError

_KEYS: Final = ("name", "given", "expect", "rule")
_EXPECTED: Final = ("allow", "ask", "deny")


class Result(msgspec.Struct, frozen=True):
    """How one test went. `got` is what the policy says, of a policy that observes what it would say."""

    name: str
    line: int
    passed: bool
    expected: str
    got: str
    rules: tuple[str, ...] = ()
    message: str = ""


def run(document: Document) -> tuple[Result, ...]:
    """Run the tests of a policy, in order. Raises `EarnestError` E1111 for a test that is not one."""
    return tuple(_one(document, dict(table), line, number) for number, (table, line) in enumerate(document.tests))


def _one(document: Document, table: dict[str, Any], line: int, number: int) -> Result:
    name = str(table.get("name", f"test {number + 1}"))
    try:
        for key in table:
            if key not in _KEYS:
                raise EarnestError("E1111", f"unknown key `{key}`", mean(key, _KEYS, f"known are {', '.join(_KEYS)}"))
        expected = table.get("expect")
        if expected not in _EXPECTED:
            raise EarnestError("E1111", f"`expect` is {expected!r}", "it is one of allow, ask, deny")
        if not isinstance(table.get("given"), dict):
            raise EarnestError("E1111", "`given` is not a table", 'write given = { tool = "files/delete" }')
        decision = answer(document.policy, situation(table["given"]))
    except EarnestError as error:
        raise EarnestError("E1111", f"line {line}, test “{name}”: {error.message}", error.remedy) from None
    rules = tuple(reason.rule for reason in decision.reasons)
    got = decision.observed.word
    wanted = table.get("rule")
    if got != expected:
        message = f"expected {expected}, got {got}: {decision.reasons[0].text}"
    elif wanted is not None and wanted not in rules:
        message = f"{got}, but not by {wanted}: {', '.join(rules)}"
    else:
        message = ""
    return Result(name, line, not message, str(expected), got, rules, message)
