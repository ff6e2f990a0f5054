"""One imagined call: what `policy test` and `policy explain` ask about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.config.policy.findings import mean
from earnest.core.compile import Compiled
from earnest.core.decide import Decision, PinState, Subject, decide
from earnest.core.errors import EarnestError
from earnest.core.hints import HINTS, RawHints
from earnest.core.policy import Policy
from earnest.core.profile import NAMES, Labels, Standing, Trust, resolve
from earnest.core.vocabulary import FLOW_BITS, Asks, ToolFacts

FLOW: Final = {name.removeprefix("flow."): bit for name, bit in FLOW_BITS.items()}
KEYS: Final = ("tool", "title", "trust", "client", "asks", "method", "claims", "flow", "pin", "args", *NAMES)
"""What a situation may say. `tool` is `SERVER/TOOL`; the names of a profile are what the operator says,
`claims` what the server does; `flow` lists the labels set before the call."""


class Situation(msgspec.Struct, frozen=True):
    """The call, resolved. `arguments` are parsed."""

    subject: Subject
    bits: int = 0
    arguments: Any = None


def situation(given: Mapping[str, Any]) -> Situation:
    """The situation a table describes. What is not said is what earnest assumes of a stranger.

    Raises `EarnestError` E1111 for a key or value that does not belong.
    """
    for key in given:
        if key not in KEYS:
            raise _wrong(f"unknown key `{key}`", mean(key, KEYS, f"known are {', '.join(KEYS)}"))
    server, slash, tool = str(given.get("tool", "")).partition("/")
    if not (server and slash and tool):
        raise _wrong("`tool` is missing or is no `SERVER/TOOL`", 'write tool = "files/delete"')
    claims = given.get("claims", {})
    if not isinstance(claims, Mapping):
        raise _wrong("`claims` is not a table", "write claims = { read_only = true }")
    for name in claims:
        if name not in HINTS:
            raise _wrong(f"no hint is called `{name}`", mean(name, HINTS, f"known are {', '.join(HINTS)}"))
    said = {name: given[name] for name in NAMES if name in given}
    for name, value in {**claims, **said}.items():
        if not isinstance(value, bool):
            raise _wrong(f"`{name}` is neither true nor false")
    trust = Trust(_choice(given, "trust", tuple(Trust), Trust.UNTRUSTED))
    raw = RawHints(**claims)
    profile = resolve(Standing(trust=trust, claims=raw, operator=Labels(**said)))
    facts = ToolFacts(
        server=server,
        name=tool,
        profile=profile,
        trust=trust,
        title=None if given.get("title") is None else str(given["title"]),
        method=str(given.get("method", "tools/call")),
        client=str(given.get("client", "")),
        client_asks=Asks(_choice(given, "asks", tuple(Asks), Asks.NOBODY)),
    )
    pin = PinState(_choice(given, "pin", tuple(PinState), PinState.HOLDS))
    return Situation(Subject(facts, raw, pin), flow_bits(given.get("flow", [])), given.get("args", {}))


def flow_bits(labels: Any) -> int:
    """The bits of a list of labels. Raises `EarnestError` E1111 for one that is none."""
    if not isinstance(labels, list | tuple):
        raise _wrong("`flow` is not a list", 'write flow = ["private", "untrusted"]')
    bits = 0
    for label in labels:
        if label not in FLOW:
            raise _wrong(f"no flow label is called {label!r}", mean(str(label), FLOW, f"known are {', '.join(FLOW)}"))
        bits |= FLOW[label]
    return bits


def answer(policy: Policy, one: Situation) -> Decision:
    """The decision under a policy."""
    said = Compiled(policy).row(one.subject.facts).at(one.bits, lambda: one.arguments)
    return decide(said, one.bits, one.subject, mode=policy.mode)


def told(decision: Decision, subject: Subject) -> dict[str, Any]:
    """A decision as `explain --json` says it."""
    profile = subject.facts.profile
    return {
        "decision": decision.verdict.word,
        "observed": decision.observed.word,
        "reasons": [{"rule": r.rule, "text": r.text, "verdict": r.verdict.word} for r in decision.reasons],
        "remedies": [{"text": r.text, "command": r.command} for r in decision.remedies],
        "profile": {name: {"value": profile.get(name).value, "basis": str(profile.get(name).basis)} for name in NAMES},
    }


def _choice(given: Mapping[str, Any], key: str, known: tuple[str, ...], default: str) -> str:
    value = given.get(key, default)
    if value not in known:
        raise _wrong(f"`{key}` is {value!r}", mean(str(value), known, f"it is one of {', '.join(known)}"))
    return str(value)


def _wrong(message: str, remedy: str = "") -> EarnestError:
    return EarnestError("E1111", message, remedy)
