"""Refinements of a tool by its arguments, as functions: conditions (the operator's alone), enumerations, SQL, HTTP methods,
addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from earnest.config.policy.lower import condition
from earnest.config.sections import Condition, ToolLabels
from earnest.core.expr import ConditionError, evaluate
from earnest.core.profile import Labels, entailed
from earnest.pdp.catalog import Refined, Refiner
from earnest.refine import registry
from earnest.refine.refinement import WORST_LABELS
from earnest.refine.registry import RefineRule


def refiners_of(labels: ToolLabels) -> list[Refiner]:
    """One function for each rule of the operator's. Raises E11xx for a condition that is none."""
    rules = labels.refine
    return [_condition(rule) if isinstance(rule, Condition) else looking(rule, from_operator=True) for rule in rules]


def looking(rule: RefineRule, *, from_operator: bool) -> Refiner:
    """A rule of the operator's or of a pack's as a function."""

    def look(arguments: Mapping[str, object]) -> Refined | None:
        found = registry.refine(rule, arguments)
        return Refined(found.labels, found.why, from_operator) if found is not None else None

    return look


def _condition(rule: Condition) -> Refiner:
    tree = condition(rule.when)
    labels = entailed(rule.labels)

    def look(arguments: Mapping[str, object]) -> Refined | None:
        scope: dict[str, Any] = {"args": arguments}
        try:
            matched = evaluate(tree, {}, scope)
        except ConditionError as error:
            # What a rule was asked to look at and cannot is taken at its worst, as with every refiner.
            return Refined(_raising(labels), f"{rule.when} could not be evaluated: {error.message}", True)
        return Refined(labels, f"{rule.when} ({rule.source})", True) if matched is True else None

    return look


def _raising(labels: Labels) -> Labels:
    return WORST_LABELS if labels.read_only is False or labels.destructive is True else Labels(source=labels.source)
