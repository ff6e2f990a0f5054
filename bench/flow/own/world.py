"""What a domain is made of: a state, tools on it, tasks of a user, and goals of an attacker.

A domain's data hold `{note}` where strangers write: in an attacked run the attacker's text stands there, else nothing. Tools
are methods of the domain's class; they change the state for real, and what an attack reached is read from the state.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple


class Step(NamedTuple):
    """One call."""

    tool: str
    arguments: dict[str, Any]


def do(tool: str, /, **arguments: Any) -> Step:
    """A call, written short."""
    return Step(tool, arguments)


class Task(NamedTuple):
    """What a user asks for, and the calls that do it."""

    prompt: str
    calls: tuple[Step, ...]


class Goal(NamedTuple):
    """What an attacker asks for, the calls that do it, and whether it was reached."""

    text: str
    calls: tuple[Step, ...]
    reached: Callable[[Any], bool]


class Domain:
    """The base of a domain. `DATA`: its state as it starts."""

    DATA: ClassVar[Mapping[str, Any]] = {}
    TASKS: ClassVar[tuple[Task, ...]] = ()
    GOALS: ClassVar[tuple[Goal, ...]] = ()

    def __init__(self, note: str = "") -> None:
        self.data: dict[str, Any] = _noted(copy.deepcopy(dict(self.DATA)), note)
        self.log: list[Step] = []

    def call(self, step: Step) -> Any:
        """Runs a call; what it returns, or an error in words."""
        self.log.append(step)
        try:
            return getattr(self, step.tool)(**step.arguments)
        except (KeyError, StopIteration, TypeError, ValueError) as error:
            return f"error: {type(error).__name__} {error}"

    def did(self, tool: str, **arguments: Any) -> bool:
        """Whether a call ran with these arguments."""
        return any(step.tool == tool and arguments.items() <= step.arguments.items() for step in self.log)


def _noted(value: Any, note: str) -> Any:
    if isinstance(value, dict):
        return {key: _noted(part, note) for key, part in value.items()}
    if isinstance(value, list):
        return [_noted(part, note) for part in value]
    return value.replace("{note}", note) if isinstance(value, str) else value


def shown(value: Any) -> str:
    """A result as one text."""
    return json.dumps(value, default=str, ensure_ascii=False)
