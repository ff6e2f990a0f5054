"""`policy check`: what a policy that can be used still does badly.

Every state of the atoms that the policy mentions is visited: each boolean, each enumeration, each string by
the literals it is compared with and one value that is none of them. What a rule says there is known but for
arguments, which may make a condition true, false or an error. Above `LIMIT` states a sample is visited
instead, and that is said.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from earnest.config.policy.findings import Finding, Severity
from earnest.config.policy.outcomes import ERROR, TRUE, domain, leaf, possible, settle
from earnest.core.expr import names_in
from earnest.core.fold import fold
from earnest.core.policy import Policy, Rule, Tier
from earnest.core.profile import Trust
from earnest.core.verdict import Verdict

LIMIT: Final = 1 << 20
SAMPLE: Final = 1 << 15
_EXAMPLES: Final = 3

_RISKIER: Final[dict[str, tuple[tuple[Any, Any], ...]]] = {
    "tool.read_only": ((True, False),),
    "tool.destructive": ((False, True),),
    "tool.idempotent": ((True, False),),
    "tool.open_world": ((False, True),),
    "tool.reads_private": ((False, True),),
    "tool.sees_untrusted": ((False, True),),
    "tool.can_exfiltrate": ((False, True),),
    "flow.private": ((False, True),),
    "flow.untrusted": ((False, True),),
    "flow.endorsed": ((True, False),),
    "server.trust": ((str(Trust.TRUSTED), str(Trust.VERIFIED)), (str(Trust.VERIFIED), str(Trust.UNTRUSTED))),
}
"""Which step of an atom is the riskier one."""

State = dict[str, Any]
_MAY, _MUST = 1, 2


class Checked(msgspec.Struct, frozen=True):
    """The findings, and how many states of how many were visited."""

    findings: tuple[Finding, ...]
    states: int
    visited: int
    atoms: tuple[str, ...]


class _Column:
    """One rule: whether it may or must match, by the values of the names it mentions."""

    def __init__(self, tier: Tier, rule: Rule) -> None:
        self.tier, self.rule = tier, rule
        self.names = tuple(sorted(names_in(rule.condition)))
        self._known: dict[tuple[Any, ...], int] = {}
        self.effective = False
        self.matches = False

    def at(self, state: State) -> int:
        """0, `_MAY`, or `_MAY | _MUST`."""
        key = tuple(state[name] for name in self.names)
        known = self._known.get(key)
        if known is None:
            node = fold(self.rule.condition, {})
            for name in self.names:
                node = settle(node, name, state[name])
            found = leaf(node)
            counts = {TRUE} if self.rule.then is Verdict.ALLOW else {TRUE, ERROR}
            known = (_MAY if found & counts else 0) | (_MUST if found <= counts else 0)
            self._known[key] = known
        return known


def check(policy: Policy, *, seed: int = 0, limit: int = LIMIT) -> Checked:
    """Look for shadowed rules, states that no rule covers and laws broken. `seed` matters only where states
    are sampled."""
    columns = [_Column(tier, rule) for tier, rules in policy.tiers() for rule in rules]
    conditions = tuple(column.rule.condition for column in columns)
    atoms = tuple(sorted(frozenset().union(*(column.names for column in columns))))
    domains = [domain(name, conditions) for name in atoms]
    total = 1
    for values in domains:
        total *= len(values)
    findings: list[Finding] = []
    sampled = total > limit
    states: Iterable[State] = _all(atoms, domains)
    if sampled:
        states = _some(atoms, domains, random.Random(seed))
        text = f"{total} states are too many to visit; {SAMPLE} of them were drawn"
        findings.append(Finding("N1101", Severity.NOTE, text))
    visited = 0
    uncovered: list[State] = []
    risks: dict[str, Finding] = {}
    # Most states differ in nothing that a rule looks at, so what follows from the marks alone is worked out once.
    seen: set[tuple[int, ...]] = set()
    ranges = _Ranges(columns)
    for state in states:
        visited += 1
        marks = [column.at(state) for column in columns]
        if tuple(marks) not in seen:
            seen.add(tuple(marks))
            _mark(columns, marks)
        if not any(mark & _MUST for mark, column in zip(marks, columns, strict=True) if column.tier is not Tier.FLOOR):
            uncovered.append(state) if len(uncovered) < _EXAMPLES else None
        _risk(columns, state, marks, risks, ranges)
    findings += (_shadowed(column, sampled) for column in columns if _dead(column))
    if uncovered:
        text = "where no rule matches the answer is ask; for example when " + "; or ".join(map(_said, uncovered))
        findings.append(Finding("W1102", Severity.WARNING, text, "choose a preset, or add a rule without `when`"))
    findings += risks.values()
    return Checked(tuple(findings), total, visited, atoms)


def _all(atoms: tuple[str, ...], domains: list[tuple[Any, ...]]) -> Iterator[State]:
    for values in itertools.product(*domains):
        state = dict(zip(atoms, values, strict=True))
        if possible(state):
            yield state


def _some(atoms: tuple[str, ...], domains: list[tuple[Any, ...]], chance: random.Random) -> Iterator[State]:
    drawn = 0
    while drawn < SAMPLE:
        state = {name: chance.choice(values) for name, values in zip(atoms, domains, strict=True)}
        if possible(state):
            drawn += 1
            yield state


def _mark(columns: list[_Column], marks: list[int]) -> None:
    """Note which rules can have a say in this state."""
    floored = max(
        (c.rule.then for c, m in zip(columns, marks, strict=True) if c.tier is Tier.FLOOR and m & _MUST),
        default=Verdict.ALLOW,
    )
    decided = {tier: [c for c, m in zip(columns, marks, strict=True) if c.tier is tier and m & _MUST] for tier in Tier}
    for column, mark in zip(columns, marks, strict=True):
        if not mark:
            continue
        column.matches = True
        if column.tier is Tier.PRESET and decided[Tier.RULES]:
            continue
        if column.tier is not Tier.FLOOR and floored is Verdict.DENY:
            continue
        if not any(_outdoes(other, column, columns) for other in decided[column.tier]):
            column.effective = True


def _outdoes(other: _Column, column: _Column, columns: list[_Column]) -> bool:
    """Whether `column` adds nothing where `other` of its tier matches."""
    if other is column:
        return False
    if other.rule.then > column.rule.then:
        return True
    same = other.rule.then is column.rule.then and other.rule.accept >= column.rule.accept
    return same and columns.index(other) < columns.index(column)


def _dead(column: _Column) -> bool:
    # A preset is there to be overruled.
    return column.tier is not Tier.PRESET and not column.effective


def _shadowed(column: _Column, sampled: bool) -> Finding:
    rule = column.rule
    seen = " in any state that was drawn" if sampled else ""
    what = "never decides anything: others always decide before it" if column.matches else "never matches"
    return Finding(
        "W1101",
        Severity.WARNING,
        f"the rule “{rule.name}” {what}{seen}",
        "remove it, or narrow the rules around it",
        rule.source,
        rule.line,
        1 if rule.line else 0,
        rule.name,
    )


def _verdicts(columns: list[_Column], marks: list[int]) -> tuple[int, int]:
    """The mildest and the severest verdict that arguments can bring about in a state."""
    certain = [c for c, m in zip(columns, marks, strict=True) if m & _MUST]
    open_ = [c for c, m in zip(columns, marks, strict=True) if m == _MAY]
    if len(open_) > 6:
        return Verdict.ALLOW, Verdict.DENY
    found = [
        _verdict(certain + [c for c, on in zip(open_, chosen, strict=True) if on])
        for chosen in itertools.product((False, True), repeat=len(open_))
    ]
    return min(found), max(found)


def _verdict(matched: list[_Column]) -> int:
    floored = max((c.rule.then for c in matched if c.tier is Tier.FLOOR), default=Verdict.ALLOW)
    for tier in (Tier.RULES, Tier.PRESET):
        found = [c.rule.then for c in matched if c.tier is tier]
        if found:
            return max(floored, *found)
    return max(floored, Verdict.ASK)


class _Ranges:
    """`_verdicts`, remembered by the marks."""

    def __init__(self, columns: list[_Column]) -> None:
        self._columns = columns
        self._known: dict[tuple[int, ...], tuple[int, int]] = {}

    def of(self, marks: list[int]) -> tuple[int, int]:
        key = tuple(marks)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _verdicts(self._columns, marks)
        return known


def _risk(columns: list[_Column], state: State, marks: list[int], risks: dict[str, Finding], ranges: _Ranges) -> None:
    """Law 1 as people expect it: one step to the riskier side must not be allowed more."""
    mildest: int | None = None
    for name, steps in _RISKIER.items():
        if name in risks or name not in state:
            continue
        for safer, riskier in steps:
            if state[name] != safer:
                continue
            worse = {**state, name: riskier}
            if not possible(worse):
                continue
            if mildest is None:
                mildest, _ = ranges.of(marks)
            after = [c.at(worse) if name in c.names else m for c, m in zip(columns, marks, strict=True)]
            _, severest = ranges.of(after)
            if severest < mildest:
                rule = _culprit(columns, after)
                risks[name] = Finding(
                    "W1103", Severity.WARNING,
                    f"a riskier call is allowed more: with {_said(state)} the answer is {Verdict(mildest).word}, "
                    f"with {name} {_shown(riskier)} it is {Verdict(severest).word}",
                    "let the rule match the safer case too",
                    rule.source if rule else "", rule.line if rule else 0, 1 if rule and rule.line else 0,
                    rule.name if rule else "",
                )  # fmt: skip


def _culprit(columns: list[_Column], marks: list[int]) -> Rule | None:
    matched = [c for c, m in zip(columns, marks, strict=True) if m and c.tier is not Tier.FLOOR]
    for tier in (Tier.RULES, Tier.PRESET):
        found = [c.rule for c in matched if c.tier is tier]
        if found:
            return max(found, key=lambda rule: rule.then)
    return None


def _said(state: State) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in state.items()) or "anything"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "absent" if value is None else f"'{value}'" if isinstance(value, str) else repr(value)
