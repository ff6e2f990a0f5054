"""What a policy is and what it says of one call.

Theory. Rules stand in three tiers: floor (the organisation's; never allows), rules (the user's), preset. A
floor verdict always counts. Below it the first tier in which any rule matches decides; within a tier deny
beats ask beats allow. Where nothing matches anywhere the answer is ask. A condition that errs counts as
matched in ask and deny rules, as unmatched in allow rules (law 6). A rule with `accept` lowers the verdict
of the flow rules; it counts only where it matched without an error and its tier decides.

`judge` says all this directly and is the reference. `compile` reaches the same by table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.expr import ConditionError, Expr, evaluate, names_in
from earnest.core.profile import Basis, Profile
from earnest.core.verdict import Reason, Verdict
from earnest.core.vocabulary import ToolFacts, environment, flow_environment

Loader: TypeAlias = Callable[[], Any]
"""Gives the parsed arguments (see `arguments.load`); may raise `EarnestError`."""


class Mode(StrEnum):
    """`enforce`, or `observe`: the floor alone is enforced, the rest is recorded."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class Tier(StrEnum):
    """Where a rule stands."""

    FLOOR = "floor"
    RULES = "rule"
    PRESET = "preset"


class Rule(msgspec.Struct, frozen=True):
    """One rule. `when` is the condition as written, `condition` its tree. `line` is 1-based, 0 where there
    is none."""

    name: str
    condition: Expr
    then: Verdict
    when: str = "true"
    accept: bool = False
    because: str = ""
    source: str = ""
    line: int = 0


class Policy(msgspec.Struct, frozen=True):
    """The three tiers. `preset_name` is what the preset is called; `mode` comes from it."""

    floor: tuple[Rule, ...] = ()
    rules: tuple[Rule, ...] = ()
    preset: tuple[Rule, ...] = ()
    preset_name: str = "balanced"
    mode: Mode = Mode.ENFORCE

    def tiers(self) -> tuple[tuple[Tier, tuple[Rule, ...]], ...]:
        """Tier by tier, the floor first."""
        return ((Tier.FLOOR, self.floor), (Tier.RULES, self.rules), (Tier.PRESET, self.preset))

    @property
    def sha256(self) -> str:
        """64 hex digits that change with everything that could change a decision or its words.

        Where a rule stands in which file does not count.
        """
        told = [
            [tier, [[r.name, r.when, repr(r.condition), r.then, r.accept, r.because] for r in rules]]
            for tier, rules in self.tiers()
        ]
        return hashlib.sha256(msgspec.json.encode([1, self.preset_name, self.mode, told])).hexdigest()


def tightened(policy: Policy, by: Policy) -> Policy:
    """`policy`, and on its floor every ask and deny of `by`: for a policy that may only tighten (a folder's
    own).

    Nothing of `by` that allows or accepts survives: on the floor, `accept` counts for nothing.
    """
    added = tuple(rule for _, rules in by.tiers() for rule in rules if rule.then is not Verdict.ALLOW)
    return msgspec.structs.replace(policy, floor=policy.floor + added)


class PolicyVerdict(msgspec.Struct, frozen=True):
    """What the policy says of a call. `reasons`: the rules that matched on the floor and in the deciding
    tier, worst first. `accept`: a matched rule lowers the flow verdict. `floor`: what the floor alone says,
    `ALLOW` if nothing. `mattered`: the names that the conditions of the severest of these rules mention,
    sorted."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    accept: bool = False
    floor: Verdict = Verdict.ALLOW
    mattered: tuple[str, ...] = ()


class Match(msgspec.Struct, frozen=True):
    """One rule that matched: its reason, and whether it accepts the flow."""

    tier: Tier
    reason: Reason
    accept: bool = False
    names: frozenset[str] = frozenset()


UNMATCHED: Final = Reason("policy/unmatched", "no rule and no preset says anything about this call", Verdict.ASK)


def combine(matches: Sequence[Match]) -> PolicyVerdict:
    """From the rules that matched to the verdict."""
    floor = [match for match in matches if match.tier is Tier.FLOOR]
    deciding = next((found for tier in (Tier.RULES, Tier.PRESET) if (found := [m for m in matches if m.tier is tier])), [])
    floored = max((match.reason.verdict for match in floor), default=Verdict.ALLOW)
    below = max((match.reason.verdict for match in deciding), default=Verdict.ASK)
    reasons = [match.reason for match in floor + deciding]
    if not deciding:
        reasons.append(UNMATCHED)
    reasons.sort(key=lambda reason: -reason.verdict)
    verdict = max(floored, below)
    severest = (match.names for match in floor + deciding if match.reason.verdict is verdict)
    return PolicyVerdict(
        verdict=verdict,
        reasons=tuple(reasons),
        accept=any(match.accept for match in deciding),
        floor=floored,
        mattered=tuple(sorted(frozenset().union(*severest))),
    )


def unreadable(error: EarnestError) -> PolicyVerdict:
    """What is said of a call whose arguments a rule has to read and cannot: refused, in every mode."""
    reason = Reason("arguments/unreadable", f"a rule reads the arguments and cannot: {error.message}", Verdict.DENY)
    return PolicyVerdict(Verdict.DENY, (reason,), False, Verdict.DENY)


def judge(policy: Policy, facts: ToolFacts, bits: int, arguments: Any) -> PolicyVerdict:
    """What the policy says of one call, straight from its rules. `arguments` are parsed."""
    names = {**environment(facts), **flow_environment(bits)}
    matches: list[Match] = []
    for tier, rules in policy.tiers():
        for rule in rules:
            try:
                value = evaluate(rule.condition, names, {"args": arguments})
                if value is not True and value is not False:
                    raise ConditionError("a condition is true or false")
            except ConditionError as error:
                if rule.then is not Verdict.ALLOW:
                    matches.append(failed(policy, tier, rule, error.message))
                continue
            if value:
                matches.append(matched(policy, tier, rule, facts, bits))
    return combine(matches)


def rule_id(policy: Policy, tier: Tier, rule: Rule) -> str:
    """The stable id of a rule in reasons and receipts."""
    if tier is Tier.PRESET:
        return f"preset/{policy.preset_name}: {rule.name}"
    return f"{tier}/{rule.name}"


def matched(policy: Policy, tier: Tier, rule: Rule, facts: ToolFacts, bits: int) -> Match:
    """The match of a rule whose condition held."""
    text = rule.because or f"the {_TIER_WORDS[tier]} “{rule.name}” says {rule.then.word}"
    grounds = _grounds(names_in(rule.condition), facts, bits)
    return Match(
        tier,
        Reason(rule_id(policy, tier, rule), f"{text} ({grounds})" if grounds else text, rule.then),
        rule.accept and tier is not Tier.FLOOR,
        names_in(rule.condition),
    )


def failed(policy: Policy, tier: Tier, rule: Rule, message: str) -> Match:
    """The match of an ask or deny rule whose condition erred."""
    text = f"the {_TIER_WORDS[tier]} “{rule.name}” could not be evaluated ({message}), which counts as a match"
    reason = Reason(rule_id(policy, tier, rule), text, rule.then)
    return Match(tier, reason, names=names_in(rule.condition))


_TIER_WORDS: Final = {Tier.FLOOR: "floor rule", Tier.RULES: "rule", Tier.PRESET: "preset rule"}

BASIS_WORDS: Final[Mapping[Basis, str]] = {
    Basis.DEFAULT: "by default, nothing that counts says otherwise",
    Basis.CLAIMED: "claimed by the server",
    Basis.PACK: "from a pack",
    Basis.OBSERVED: "observed in a test",
    Basis.ENFORCED: "enforced by containment",
    Basis.OPERATOR: "set by the operator",
}
"""How a basis is said to a person."""


def grounds_of(profile: Profile, names: Iterable[str]) -> str:
    """Values with their bases, for a person: `destructive: yes, by default, …; open_world: no, claimed by
    the server`."""
    return "; ".join(
        f"{name}: {'yes' if (value := profile.get(name)).value else 'no'}, {BASIS_WORDS[value.basis]}"
        + (f" ({value.source})" if value.source else "")
        for name in names
    )


_FLOW_WORDS: Final = {
    "flow.private": ("private data was read", "no private data was read"),
    "flow.untrusted": ("untrusted content was seen", "no untrusted content was seen"),
    "flow.endorsed": ("the user's own words ask for this", "no known words of the user ask for this"),
}


def _grounds(names: frozenset[str], facts: ToolFacts, bits: int) -> str:
    mentioned = dict.fromkeys(
        name.rpartition(".")[2] for name in sorted(names) if name.startswith("tool.") and name not in _PLAIN
    )
    parts = [grounds_of(facts.profile, mentioned)] if mentioned else []
    if "server.trust" in names:
        parts.append(f"server {facts.server}: {facts.trust}")
    flow = flow_environment(bits)
    parts += [words[not flow[name]] for name, words in _FLOW_WORDS.items() if name in names]
    return "; ".join(parts)


_PLAIN: Final = frozenset(("tool.name", "tool.title"))
