"""The engine inside a program: `earnest.Guard`."""

from earnest.guard.engine import Decided, Guard, Word

__all__ = ["Decided", "Guard", "Word"]
