"""What a configuration and a pack say of one tool in the same words: labels, roles of arguments, a dispatcher, refinements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from earnest.config.reading import Table
from earnest.core.dispatch import DispatchSpec
from earnest.core.profile import NAMES, Labels
from earnest.refine import registry
from earnest.refine.registry import RefineRule

ROLES: Final = ("destination", "selector", "amount", "content", "verb", "object")
"""What an argument steers; an argument without a role counts as destination, selector and amount."""

_KINDS: Final = ("", "sql", "http", "address", "shell")

Condition = TypeVar("Condition")


def labels(table: Table, source: str) -> Labels:
    """The seven statements of a table; keys asked for here count as known.

    Raises E1005 where they contradict each other: nothing both only reads and destroys.
    """
    found = Labels(**{name: table.maybe(name) for name in NAMES}, source=source)
    if found.read_only and found.destructive:
        table.fail(
            "destructive",
            "E1005",
            f"{table.name} is read_only and destructive at once",
            "remove one of the two; `destructive = true` alone says that it is not read-only",
        )
    return found


def roles(table: Table) -> dict[str, str]:
    """`arg_roles`: what an argument steers, by its name or path."""
    inner = table.table("arg_roles")
    if inner is None:
        return {}
    return {member.key: inner.choice(member.key, ROLES, "") for member in inner.node.members}


def dispatcher(tool: str, table: Table) -> DispatchSpec | None:
    """`dispatcher`: which arguments hold the target's name and the target's arguments. Raises E1005 without the name."""
    inner = table.table("dispatcher")
    if inner is None:
        return None
    found = DispatchSpec(tool, inner.text("name"), inner.text("arguments") or None)
    inner.finish()
    if not found.name_argument:
        inner.fail("name", "E1005", f"{inner.name} needs the argument that names the tool", 'name = "tool"')
    return found


def refinement(
    table: Table, said: Labels, source: str, condition: Callable[[str], Condition], *, condition_speaks: bool
) -> RefineRule | Condition:
    """One `[[….refine]]` whose labels are `said`. `condition` makes the rule of a `when`; `condition_speaks`: it says of itself
    what holds then, so that the table must not. Raises E1003 to E1005."""
    when, argument = table.text("when"), table.text("argument")
    kind, values = table.choice("as", _KINDS, ""), _values(table)
    dialect, functions, default = table.text("dialect"), table.texts("functions"), table.text("default")
    table.finish()
    if bool(when) == bool(argument):
        table.source.fail(table.node, "E1005", f"{table.name} needs either when or argument")
    if when and (values or kind):
        table.source.fail(table.node, "E1005", f"{table.name}: values and as go with argument, not with when")
    if argument and bool(values) == bool(kind):
        table.source.fail(table.node, "E1005", f'{table.name} needs either values or as = "sql", "http", "address" or "shell"')
    if (dialect or functions) and kind != "sql":
        table.source.fail(table.node, "E1005", f'{table.name}: dialect and functions go with as = "sql"')
    if default and kind != "http":
        table.fail("default", "E1005", f'{table.name}: default goes with as = "http"')
    says = any(said.get(name) is not None for name in NAMES)
    speaks_itself = bool(kind) or (bool(when) and condition_speaks)
    if says == speaks_itself:
        by = "the condition" if when else "the argument"
        what = f"nothing of its own: {by} says it" if speaks_itself else "at least one hint or facet"
        table.source.fail(table.node, "E1005", f"{table.name} must say {what}")
    if when:
        return condition(when)
    return registry.rule(
        kind or "enum",
        argument,
        values=values,
        labels=said,
        dialect=dialect,
        functions=functions,
        default=default,
        source=source,
    )


def _values(table: Table) -> tuple[str | bool | int, ...]:
    """The values of an enumeration: text, whole numbers, true and false, each of its own type."""
    node = table.take("values")
    if node is None:
        return ()
    wanted = f"{table.path('values')} must be a list of text, whole numbers, true or false"
    if node.kind != "array" or not node.items:
        table.fail("values", "E1004", wanted)
    found: list[str | bool | int] = []
    for item in node.items:
        if not isinstance(item.value, str | bool | int):
            table.source.fail(item, "E1004", wanted)
        found.append(item.value)
    return tuple(found)
