"""An argument whose value says what the call does: `action = "list"`, `dry_run = true`.

Theory. Lowering wants the exact value of the exact type (`True` is not 1, `"LIST"` is not `"list"`), because
that is what was vouched for. Raising is generous: a server may fold case or trim where we do not, so a value
that is equal after that is taken at its riskier statements. A value that nobody listed says nothing, and the
tool's own profile stands.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from earnest.core.errors import EarnestError
from earnest.core.profile import NAMES, Labels, entailed, raising
from earnest.refine.refinement import Refinement

_CONDITION: Final = re.compile(r"\s*args\.([A-Za-z_][\w-]*)\s*(==|in)\s*(.+?)\s*->\s*(.+?)\s*")
_LITERAL: Final = re.compile(r"\s*(?:'([^'\\]*)'|\"([^\"\\]*)\"|(true|false)|(-?\d+))\s*")


class Case(msgspec.Struct, frozen=True):
    """One value of the argument, and what the call is then. The type of `value` counts."""

    value: str | bool | int
    labels: Labels


class EnumerationRule(msgspec.Struct, frozen=True):
    """A mapping from the values of one top-level argument to statements."""

    argument: str
    cases: tuple[Case, ...]


def look(rule: EnumerationRule, arguments: Mapping[str, Any]) -> Refinement | None:
    """What the argument's value says; `None` for a value that is not listed, or no value."""
    if rule.argument not in arguments:
        return None
    value = arguments[rule.argument]
    why = f"{rule.argument} is {value!r}"
    for case in rule.cases:
        if type(value) is type(case.value) and value == case.value:
            return Refinement(entailed(case.labels), why)
    near = [raising(case.labels) for case in rule.cases if _folded(case.value) == _folded(value)]
    raised = [labels for labels in near if labels != Labels(source=labels.source)]
    return Refinement(entailed(raised[0]), f"{why}, nearly {rule.argument} as listed") if raised else None


def parse(text: str, source: str = "") -> EnumerationRule:
    """Read `args.action == 'list' -> read_only` or `args.action in ['drop', 'purge'] -> destructive, !idempotent`.

    `!` or `not` before a label says false. Raises `EarnestError` E1005.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise _wrong(text, "write args.NAME == 'VALUE' -> LABEL, or args.NAME in ['A', 'B'] -> LABEL, !LABEL")
    argument, operator, operand, said = found.groups()
    if operator == "in":
        if not (operand.startswith("[") and operand.endswith("]")):
            raise _wrong(text, "write a list after in: ['A', 'B']")
        operands = operand[1:-1].split(",")
    else:
        operands = [operand]
    labels = _labels(text, said, source)
    return EnumerationRule(argument, tuple(Case(_value(text, one), labels) for one in operands))


def _value(text: str, literal: str) -> str | bool | int:
    found = _LITERAL.fullmatch(literal)
    if found is None:
        raise _wrong(text, f"{literal.strip()} is no text in quotes, whole number, true or false")
    single, double, flag, number = found.groups()
    if flag is not None:
        return bool(flag == "true")
    if number is not None:
        return int(number)
    return str(single if single is not None else double)


def _labels(text: str, said: str, source: str) -> Labels:
    stated: dict[str, bool] = {}
    for word in said.split(","):
        name = word.strip()
        negated = name.startswith("!") or name.startswith("not ")
        name = name.removeprefix("!").removeprefix("not ").strip()
        if name not in NAMES:
            raise _wrong(text, f"{name or 'nothing'} is no label; the labels are " + ", ".join(NAMES))
        if stated.get(name, not negated) is negated:
            raise _wrong(text, f"{name} is said both ways")
        stated[name] = not negated
    return entailed(msgspec.structs.replace(Labels(source=source), **stated))


def _wrong(text: str, remedy: str) -> EarnestError:
    return EarnestError("E1005", f"cannot read the condition {text!r}", remedy)


def _folded(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool):
        value = str(value)
    return unicodedata.normalize("NFKC", str(value)).casefold().strip()
