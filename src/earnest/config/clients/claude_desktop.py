"""Claude Desktop. It resolves no variables; servers installed as extensions (.mcpb) are not in this file."""

from __future__ import annotations

import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect


def folder(home: str, env: Mapping[str, str], platform: str) -> str:
    """Where Claude Desktop keeps its configuration and extensions."""
    if platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "Claude")
    return os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "Claude")


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """Its one file."""
    return [os.path.join(folder(home, env, platform), "claude_desktop_config.json")]


DIALECT = Dialect(name="claude-desktop", title="Claude Desktop", places=places, note="Quit and start it again.")
