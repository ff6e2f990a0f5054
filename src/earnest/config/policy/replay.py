"""`policy replay`: what another policy would have said of calls that have receipts.

Reads the JSON Lines of `earnest receipts --json`. A receipt can be decided again as far as it says what the
decision rested on: `profile` (as in `explain --json`), `trust`, `client`, `method`, `labels_before`, and
`arguments` where the policy reads them and the payload was kept. What cannot be decided again is counted and
said, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from earnest.config.policy.situation import FLOW
from earnest.core.compile import Compiled
from earnest.core.decide import Endorsement, PinState, Subject, decide
from earnest.core.errors import EarnestError
from earnest.core.policy import Policy
from earnest.core.profile import NAMES, Basis, Profile, Trust, Value
from earnest.core.receipt import expand
from earnest.core.vocabulary import COMBINATIONS, Asks, ToolFacts


class Change(msgspec.Struct, frozen=True):
    """A call that the other policy would have answered differently."""

    id: str
    server: str
    tool: str
    was: str
    now: str
    rule: str
    text: str


class Report(msgspec.Struct, frozen=True):
    """What came of a replay. `skipped`: receipt id and why it cannot be decided again."""

    replayed: int
    changes: tuple[Change, ...]
    skipped: tuple[tuple[str, str], ...]


def replay(policy: Policy, lines: Iterable[str]) -> Report:
    """Decide receipts again. Raises `EarnestError` E1112 for a line that is no receipt."""
    compiled = Compiled(policy)
    changes: list[Change] = []
    skipped: list[tuple[str, str]] = []
    replayed = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        receipt = _receipt(line, number)
        try:
            change = _again(compiled, receipt)
        except _Cannot as why:
            skipped.append((str(receipt["id"]), str(why)))
            continue
        replayed += 1
        if change is not None:
            changes.append(change)
    return Report(replayed, tuple(changes), tuple(skipped))


class _Cannot(Exception):
    """Why a receipt cannot be decided again."""


def _receipt(line: str, number: int) -> Mapping[str, Any]:
    try:
        receipt = json.loads(line)
    except ValueError as error:
        raise EarnestError(
            "E1112", f"line {number} is not JSON: {error}", "give what `earnest receipts --json` prints"
        ) from None
    if not isinstance(receipt, dict) or not {"id", "server", "tool", "decision"} <= receipt.keys():
        raise EarnestError("E1112", f"line {number} is no receipt", "give what `earnest receipts --json` prints")
    return receipt


def _again(compiled: Compiled, receipt: Mapping[str, Any]) -> Change | None:
    bits = 0
    labels = receipt.get("labels_before") or ()
    if isinstance(labels, int):
        bits, labels = labels, ()
        if bits >= COMBINATIONS:
            raise _Cannot(f"it has labels that are not known here: {bits}")
    for label in labels:
        if label not in FLOW:
            raise _Cannot(f"it has a label that is not known here: {label!r}")
        bits |= FLOW[label]
    try:
        facts = ToolFacts(
            server=str(receipt["server"]),
            name=str(receipt["tool"]),
            profile=_profile(receipt.get("profile")),
            trust=Trust(receipt.get("trust") or Trust.UNTRUSTED),
            title=receipt.get("title"),
            method=str(receipt.get("method") or "tools/call"),
            client=str(receipt.get("client") or ""),
            client_asks=Asks(receipt.get("client_asks") or Asks.NOBODY),
        )
        gated = any(reason.get("rule") == "pin/gate" for reason in receipt.get("reasons") or ())
        pin = PinState.UNSEEN if gated else PinState.HOLDS
    except ValueError as error:
        raise _Cannot(f"it says something that is not known here: {error}") from None
    row = compiled.row(facts)
    said = row.known(bits)
    if said is None:
        if "arguments" not in receipt:
            raise _Cannot("a rule reads its arguments, which were not kept")
        said = row.at(bits, lambda: receipt["arguments"])
    yes = receipt.get("endorsement")
    decision = decide(
        said,
        bits,
        Subject(facts, pin=pin),
        mode=compiled.policy.mode,
        endorsement=Endorsement(str(yes)) if yes else None,
    )
    # A call that ran on a person's yes was an ask; that somebody said yes is no part of the policy.
    before = "ask" if receipt.get("approval") else str(receipt["decision"])
    if decision.verdict.word == before:
        return None
    first = decision.reasons[0]
    return Change(str(receipt["id"]), facts.server, facts.name, before, decision.verdict.word, first.rule, first.text)


def _profile(said: Any) -> Profile:
    if isinstance(said, str):
        said = expand(said)
    if not isinstance(said, dict) or not all(isinstance(said.get(name), dict) for name in NAMES):
        raise _Cannot("it does not hold the tool's profile")
    values = {name: Value(said[name].get("value") is True, Basis(said[name].get("basis"))) for name in NAMES}
    return msgspec.convert(values, Profile, from_attributes=True)
