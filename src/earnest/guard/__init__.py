"""The engine inside a program: `earnest.Guard`, and what puts it around the tools of a framework, each in a module here that
needs that framework: `mcp`, `fastmcp`, `langchain`, `pydantic_ai`, `openai_agents`."""

from earnest.guard.decided import Ask, Decided, Refused, Word
from earnest.guard.engine import Guard

__all__ = ["Ask", "Decided", "Guard", "Refused", "Word"]
