"""earnest holds MCP tools to their word: claims are resolved, calls are decided, what happened is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earnest.guard import Guard as Guard

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Most who import the package want its version or one room of it: the engine is loaded by who asks for it.
    if name == "Guard":
        from earnest.guard import Guard

        return Guard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
