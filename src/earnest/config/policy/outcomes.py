"""What a condition can come to, over every value of the typed names it mentions.

Names are settled one after the other, and only while the condition still depends on them, so that the usual
condition takes a handful of steps. Arguments are unknown: what depends on them can be true, false or an
error. A string takes the literals it is compared with, and one value that is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from earnest.core.expr import (
    And,
    Binary,
    Const,
    Expr,
    Fail,
    If,
    Name,
    Not,
    Or,
    Present,
    names_in,
    reads_arguments,
    walk,
)
from earnest.core.fold import fold
from earnest.core.vocabulary import WORDS

TRUE: Final = "true"
FALSE: Final = "false"
ERROR: Final = "error"
STEPS: Final = 1 << 14
"""How many assignments are tried for one condition before it counts as unknown."""


class Other:
    """The value of a string that is none of the literals it is compared with."""

    def __repr__(self) -> str:
        return "anything else"


OTHER: Final = Other()


def domain(name: str, conditions: tuple[Expr, ...]) -> tuple[Any, ...]:
    """The values of a name that these conditions can tell apart. None is an absent optional name."""
    word = WORDS[name]
    if word.kind == "bool":
        return (False, True)
    if word.kind == "enum":
        return tuple(str(value) for value in word.values)
    found: dict[Any, None] = {}
    for condition in conditions:
        for part in walk(condition):
            if isinstance(part, Binary) and part.op in ("==", "!=", "in"):
                sides = (part.left, part.right)
                if Name(name) in sides:
                    found.update(dict.fromkeys(_strings(sides[1] if sides[0] == Name(name) else sides[0])))
    return (*found, OTHER, *((None,) if word.optional else ()))


def _strings(node: Expr) -> list[str]:
    return [part.value for part in walk(node) if isinstance(part, Const) and isinstance(part.value, str)]


def possible(assignment: Mapping[str, Any]) -> bool:
    """Whether a state can be: a read-only tool is neither destructive nor not idempotent."""
    return not (
        assignment.get("tool.read_only") is True
        and (assignment.get("tool.destructive") is True or assignment.get("tool.idempotent") is False)
    )


def settle(node: Expr, name: str, value: Any) -> Expr:
    """The condition once a name has a value; `OTHER` differs from every literal."""
    if value is OTHER:
        return fold(_differ(node, name), {})
    return fold(node, {name: value})


def _differ(node: Expr, name: str) -> Expr:
    match node:
        case Present(found) if found == name:
            return Const(True)
        case Binary(op, left, right) if op in ("==", "!=", "in") and Name(name) in (left, right):
            other = right if left == Name(name) else left
            values = other.value if isinstance(other, Const) else None
            if op == "in":
                if left == Name(name) and not names_in(right) and not reads_arguments(right):
                    return Const(False)
            elif isinstance(values, str):
                return Const(op == "!=")
            return node
        case Not(of):
            return Not(_differ(of, name))
        case And(parts):
            return And(tuple(_differ(part, name) for part in parts))
        case Or(parts):
            return Or(tuple(_differ(part, name) for part in parts))
        case If(test, then, otherwise):
            return If(_differ(test, name), _differ(then, name), _differ(otherwise, name))
        case _:
            return node


def outcomes(node: Expr) -> frozenset[str] | None:
    """All that a condition can come to, or None where there are too many states to try."""
    budget = [STEPS]
    return _outcomes(fold(node, {}), {}, node, budget)


def _outcomes(node: Expr, given: dict[str, Any], whole: Expr, budget: list[int]) -> frozenset[str] | None:
    budget[0] -= 1
    if budget[0] < 0:
        return None
    left = sorted(names_in(node) - given.keys())
    if not left:
        return leaf(node)
    found: frozenset[str] = frozenset()
    name = left[0]
    for value in domain(name, (whole,)):
        assignment = {**given, name: value}
        if not possible(assignment):
            continue
        below = _outcomes(settle(node, name, value), assignment, whole, budget)
        if below is None:
            return None
        found |= below
    return found


def leaf(node: Expr) -> frozenset[str]:
    """What a condition can come to in which every typed name that can be settled is."""
    match node:
        case Const(value):
            return frozenset((TRUE if value else FALSE) if isinstance(value, bool) else ERROR for _ in (0,))
        case Fail():
            return frozenset((ERROR,))
        case Not(of):
            flipped = {TRUE: FALSE, FALSE: TRUE, ERROR: ERROR}
            return frozenset(flipped[one] for one in leaf(of))
        case And(parts) | Or(parts):
            winner, loser = (TRUE, FALSE) if isinstance(node, Or) else (FALSE, TRUE)
            sides = [leaf(part) for part in parts]
            found = set()
            if any(winner in side for side in sides):
                found.add(winner)
            if all(side - {winner} for side in sides):
                if all(loser in side for side in sides):
                    found.add(loser)
                if any(ERROR in side for side in sides):
                    found.add(ERROR)
            return frozenset(found)
        case If(test, then, otherwise):
            tests = leaf(test)
            found = set(tests & {ERROR})
            found |= leaf(then) if TRUE in tests else frozenset()
            found |= leaf(otherwise) if FALSE in tests else frozenset()
            return frozenset(found)
        case _:
            # A predicate on a string that is none of the literals has a value, only not one that is known
            # here.
            return frozenset((TRUE, FALSE, ERROR) if reads_arguments(node) else (TRUE, FALSE))
