"""A policy as tables: what can be known before a call is known before the call.

For one tool, server and client the typed part of every condition has a value for each of the eight
combinations of the flow bits. `Compiled.row` works all of them out; where no condition on arguments is left,
the answer itself stands in the table, and `Row.at` is a look-up. Where some is left, its rest is a closure
and runs per call.
"""

from __future__ import annotations

from typing import Any, Final

from earnest.core.errors import EarnestError
from earnest.core.expr import Closure, ConditionError, Const, Expr, Fail, names_in
from earnest.core.fold import closure, fold
from earnest.core.policy import (
    Loader,
    Match,
    Policy,
    PolicyVerdict,
    Rule,
    Tier,
    combine,
    failed,
    matched,
    unreadable,
)
from earnest.core.verdict import Verdict
from earnest.core.vocabulary import COMBINATIONS, FLOW_BITS, ToolFacts, environment, flow_environment

_REMEMBERED: Final = 256


class _Open:
    """A rule whose match depends on the arguments."""

    __slots__ = ("match", "policy", "rule", "test", "tier")

    def __init__(self, policy: Policy, tier: Tier, rule: Rule, match: Match, test: Closure) -> None:
        self.policy, self.tier, self.rule, self.match, self.test = policy, tier, rule, match, test

    def settle(self, scope: dict[str, Any]) -> Match | None:
        try:
            value = self.test(scope)
            if value is True:
                return self.match
            if value is False:
                return None
            raise ConditionError("a condition is true or false")
        except ConditionError as error:
            if self.rule.then is Verdict.ALLOW:
                return None
            return failed(self.policy, self.tier, self.rule, error.message)


class _Cell:
    """One combination of flow bits under which some rule reads the arguments."""

    __slots__ = ("_said", "parts")

    def __init__(self, parts: tuple[Match | _Open, ...]) -> None:
        self.parts = parts
        # The answer by which rules matched; a rule that errs says why in its reason, so those are made anew.
        self._said: dict[tuple[bool, ...], PolicyVerdict] = {}

    def settle(self, load: Loader) -> PolicyVerdict:
        try:
            scope = {"args": load()}
        except EarnestError as error:
            return unreadable(error)
        found: list[Match | None] = []
        erred = False
        for part in self.parts:
            if isinstance(part, _Open):
                match = part.settle(scope)
                erred = erred or (match is not None and match is not part.match)
                found.append(match)
            else:
                found.append(part)
        matches = [match for match in found if match is not None]
        if erred:
            return combine(matches)
        key = tuple(match is not None for match in found)
        said = self._said.get(key)
        if said is None:
            if len(self._said) >= _REMEMBERED:
                self._said.clear()
            said = self._said[key] = combine(matches)
        return said


class Row:
    """The policy for one tool, server and client, by flow bits."""

    __slots__ = ("_cells", "facts")

    def __init__(self, facts: ToolFacts, cells: tuple[PolicyVerdict | _Cell, ...]) -> None:
        self.facts = facts
        self._cells = cells

    def at(self, bits: int, load: Loader) -> PolicyVerdict:
        """What the policy says under these flow bits. `load` is called only if a rule has to read the
        arguments."""
        cell = self._cells[bits]
        return cell if cell.__class__ is PolicyVerdict else cell.settle(load)  # type: ignore[union-attr]

    def known(self, bits: int) -> PolicyVerdict | None:
        """What the policy says whatever the arguments are, or None where they matter."""
        cell = self._cells[bits]
        return cell if isinstance(cell, PolicyVerdict) else None


class Compiled:
    """A policy ready to make rows. Rows are independent of each other; whoever holds them decides how
    long."""

    __slots__ = ("policy", "sha256")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.sha256 = policy.sha256

    def row(self, facts: ToolFacts) -> Row:
        """The row of one tool, server and client."""
        columns = [self._column(tier, rule, facts, environment(facts)) for tier, rules in self.policy.tiers() for rule in rules]
        cells: list[PolicyVerdict | _Cell] = []
        for bits in range(COMBINATIONS):
            parts = tuple(part for column in columns if (part := column[bits]) is not None)
            if any(isinstance(part, _Open) for part in parts):
                cells.append(_Cell(parts))
            else:
                cells.append(combine([part for part in parts if isinstance(part, Match)]))
        return Row(facts, tuple(cells))

    def _column(self, tier: Tier, rule: Rule, facts: ToolFacts, names: dict[str, Any]) -> list[Match | _Open | None]:
        """One rule under each combination of the flow bits."""
        settled = fold(rule.condition, names)
        if not names_in(settled) & FLOW_BITS.keys():
            if not names_in(rule.condition) & FLOW_BITS.keys():
                return [self._entry(tier, rule, facts, 0, settled)] * COMBINATIONS
            return [self._entry(tier, rule, facts, bits, settled) for bits in range(COMBINATIONS)]
        return [self._entry(tier, rule, facts, bits, fold(settled, flow_environment(bits))) for bits in range(COMBINATIONS)]

    def _entry(self, tier: Tier, rule: Rule, facts: ToolFacts, bits: int, node: Expr) -> Match | _Open | None:
        if isinstance(node, Const) and isinstance(node.value, bool):
            return matched(self.policy, tier, rule, facts, bits) if node.value else None
        if isinstance(node, Const | Fail):
            if rule.then is Verdict.ALLOW:
                return None
            message = node.message if isinstance(node, Fail) else "a condition is true or false"
            return failed(self.policy, tier, rule, message)
        return _Open(self.policy, tier, rule, matched(self.policy, tier, rule, facts, bits), closure(node))


def compile(policy: Policy) -> Compiled:
    """Make a policy ready. Cheap: the work is in `Compiled.row`."""
    return Compiled(policy)
