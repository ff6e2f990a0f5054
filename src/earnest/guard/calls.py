"""A call from beginning to end: decided, asked about where it has to be, run, observed.

Whatever happens to the call, the guard sees what came of it: a result, the words of an error, or that it was cut short, which
counts as a result of the worst kind. A call that needs a yes and has nobody to ask is not run.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from earnest.core.errors import EarnestError
from earnest.guard.decided import Approve, Ask, Decided, Refused, Word

if TYPE_CHECKING:
    from earnest.guard.engine import Guard

Tool = str | Callable[..., Any]
"""A tool by name, or a function, which is a tool of its own name and is called with the arguments as keywords."""


def named(tool: Tool) -> str:
    """The name of a tool."""
    if isinstance(tool, str):
        return tool
    name = getattr(tool, "__name__", "")
    if not name or name == "<lambda>":
        raise EarnestError("E1004", "a function without a name is no tool", "Give its name, and the function as `run`.")
    return str(name)


async def call(
    guard: Guard, tool: Tool, arguments: Mapping[str, Any], run: Callable[[], Any] | None, approve: Approve | None
) -> Any:
    """Run one call if it may run; returns what it returned. Raises `Refused`, and whatever the call raises."""
    name, decision, run = _decided(guard, tool, arguments, run)
    if decision.verdict is Word.ASK:
        said = approve(Ask(name, arguments, decision)) if approve is not None else False
        _settle(guard, name, decision, approve, await said if inspect.isawaitable(said) else said)
    try:
        result = run()
        if inspect.isawaitable(result):
            result = await result
    except BaseException as error:
        _failed(guard, name, decision, error)
        raise
    guard.observe(name, result, decision=decision)
    return result


def call_sync(
    guard: Guard, tool: Tool, arguments: Mapping[str, Any], run: Callable[[], Any] | None, approve: Approve | None
) -> Any:
    """The same where nothing can be awaited. Raises E1004 for what wants to be."""
    name, decision, run = _decided(guard, tool, arguments, run)
    if decision.verdict is Word.ASK:
        said = approve(Ask(name, arguments, decision)) if approve is not None else False
        if inspect.isawaitable(said):
            _close(said)
            guard.forget(decision)
            raise EarnestError("E1004", "approve is a coroutine function, and nothing can wait for it here", "Use guard.call.")
        _settle(guard, name, decision, approve, said)
    try:
        result = run()
        if inspect.isawaitable(result):
            _close(result)
            raise EarnestError("E1004", f"{name} is a coroutine function, and nothing can wait for it here", "Use guard.call.")
    except BaseException as error:
        _failed(guard, name, decision, error)
        raise
    guard.observe(name, result, decision=decision)
    return result


def _decided(
    guard: Guard, tool: Tool, arguments: Mapping[str, Any], run: Callable[[], Any] | None
) -> tuple[str, Decided, Callable[[], Any]]:
    name = named(tool)
    if run is None:
        if isinstance(tool, str):
            raise EarnestError("E1004", f"nothing says how {name} is called", f'guard.call("{name}", arguments, run=...)')
        function = tool
        # What was judged is what is passed: the mapping may be changed by who still has it.
        given = {key: _held(value) for key, value in arguments.items()}
        run = lambda: function(**given)  # noqa: E731
    decision = guard.decide(name, arguments)
    if decision.verdict is Word.DENY:
        guard.forget(decision)
        raise Refused(name, decision, "it is denied")
    return name, decision, run


def _held(value: Any, depth: int = 64) -> Any:
    """A copy of the lists and mappings of a value; what is in them stays itself."""
    if depth and type(value) is dict:
        return {key: _held(item, depth - 1) for key, item in value.items()}
    return [_held(item, depth - 1) for item in value] if depth and type(value) is list else value


def _settle(guard: Guard, name: str, decision: Decided, approve: Approve | None, yes: object) -> None:
    if yes is not True:
        guard.forget(decision)
        why = "it needs a yes, and there is nobody to ask" if approve is None else "nobody agreed to it"
        raise Refused(name, decision, why)
    guard.agreed(decision)


def _failed(guard: Guard, name: str, decision: Decided, error: BaseException) -> None:
    guard.observe(name, {"isError": True, "error": f"{type(error).__name__}: {error}"}, decision=decision)


def _close(awaitable: Awaitable[Any]) -> None:
    close = getattr(awaitable, "close", None)
    if callable(close):
        close()
