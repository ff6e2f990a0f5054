"""Cursor: `~/.cursor/mcp.json` and a project's `.cursor/mcp.json`. It offers its model at most 40 tools."""

from __future__ import annotations

import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """Its file in the home folder, the same on every system."""
    return [os.path.join(home, ".cursor", "mcp.json")]


DIALECT = Dialect(
    name="cursor",
    title="Cursor",
    places=places,
    project_files=(".cursor/mcp.json",),
    variable=r"\$\{(?:env:[^}]+|userHome|workspaceFolder|workspaceFolderBasename|pathSeparator|/)\}",
    tool_limit=40,
)
