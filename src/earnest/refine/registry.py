"""The refiners that a pack or an operator may order, by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from earnest.core.profile import NOTHING, Labels
from earnest.refine import address, enumeration, http, shell, sql
from earnest.refine.refinement import Refinement

RefineRule: TypeAlias = enumeration.EnumerationRule | http.HttpRule | address.AddressRule | sql.SqlRule | shell.ShellRule


def refine(rule: RefineRule, arguments: Mapping[str, Any]) -> Refinement | None:
    """What one rule says of one call; `None` if nothing. Never raises: what cannot be read is worst."""
    match rule:
        case enumeration.EnumerationRule():
            return enumeration.look(rule, arguments)
        case http.HttpRule():
            return http.look(rule, arguments)
        case address.AddressRule():
            return address.look(rule, arguments)
        case sql.SqlRule():
            return sql.look(rule, arguments)
        case shell.ShellRule():
            return shell.look(rule, arguments)


def rule(
    kind: str,
    argument: str,
    *,
    values: Sequence[str | bool | int] = (),
    labels: Labels = NOTHING,
    dialect: str = "",
    functions: Sequence[str] = (),
    default: str = "",
    source: str = "",
) -> RefineRule:
    """The rule of a kind (`enum`, `http`, `address`, `sql`, `shell`) from the parts that a configuration holds.

    Raises `ValueError` for any other kind: whoever reads a configuration checks that first.
    """
    match kind:
        case "enum":
            return enumeration.EnumerationRule(argument, tuple(enumeration.Case(value, labels) for value in values))
        case "http":
            return http.HttpRule(argument, default, source)
        case "address":
            return address.AddressRule(argument, source)
        case "sql":
            return sql.SqlRule(argument, dialect, tuple(functions), source)
        case "shell":
            return shell.ShellRule(argument, source)
    raise ValueError(f"no refiner reads {kind!r}")
