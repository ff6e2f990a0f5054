"""Dispatchers: tools that run other tools, and so are judged as what they run.

Theory. A call of a dispatcher names its target in one argument and carries the target's arguments in another.
Hints of the dispatcher itself say nothing of the call. If the target is a dispatcher too (often the same
one), it is followed by the same reading, so that a target is never hidden by wrapping it twice; beyond
`BOUND` steps, and wherever the name or the arguments cannot be read in exactly one way, the target is
unresolvable, which is worst.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

BOUND: Final = 4
"""How many dispatchers are followed, the first one counted."""

T = TypeVar("T")


class DispatchSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a dispatcher is called. Without `arguments_argument` the target gets all other arguments."""

    tool: str
    name_argument: str
    arguments_argument: str | None = None


class _Unreadable(Exception):
    """The arguments of the target cannot be read in exactly one way."""


def dispatch(
    spec: DispatchSpec,
    arguments: Mapping[str, Any],
    lookup: Callable[[str], T | None],
    others: Mapping[str, DispatchSpec] | None = None,
) -> tuple[str, dict[str, Any], T | None]:
    """Follow a call of `spec.tool` to its target: its name, its arguments, and what `lookup` knows of it.

    `others` are the other dispatchers that a target may be, by tool name. The last item is `None` if the
    target is unknown or unresolvable; name and arguments then say how far the reading came.
    """
    specs = {**(others or {}), spec.tool: spec}
    name, given = spec.tool, dict(arguments)
    for _ in range(BOUND):
        current = specs[name]
        target = given.get(current.name_argument)
        if not isinstance(target, str):
            return name, given, None
        try:
            given = _target_arguments(current, given)
        except _Unreadable:
            return target, {}, None
        name = target
        if name not in specs:
            return name, given, lookup(name)
    return name, given, None


def _target_arguments(spec: DispatchSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if spec.arguments_argument is None:
        return {key: value for key, value in arguments.items() if key != spec.name_argument}
    value = arguments.get(spec.arguments_argument)
    if value is None:
        return {}
    if isinstance(value, str):
        value = _parsed(value)
    if not isinstance(value, dict):
        raise _Unreadable
    return value


def _parsed(text: str) -> object:
    """Arguments given as JSON text, as many dispatchers take them."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _Unreadable from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Unreadable  # two parsers would read two different calls
    return found


def _no_constant(_: str) -> object:
    raise _Unreadable
