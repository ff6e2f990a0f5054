"""earnest holds MCP tools to their word: claims are resolved, calls are decided, what happened is recorded."""

__version__ = "0.1.0"
