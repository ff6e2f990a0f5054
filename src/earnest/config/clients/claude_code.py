"""Claude Code: `~/.claude.json` (a person's servers, and those of each project) and a project's
`.mcp.json`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """`CLAUDE_CONFIG_DIR` moves the file into that folder."""
    moved = env.get("CLAUDE_CONFIG_DIR")
    return [os.path.join(moved or home, ".claude.json")]


DIALECT = Dialect(
    name="claude-code",
    title="Claude Code",
    places=places,
    project_files=(".mcp.json",),
    containers=(("mcpServers",), ("projects", "*", "mcpServers")),
    helper_keys=("headersHelper",),
    variable=r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}",
    note="Close its sessions first, since it rewrites the file itself. "
    "It will ask once more whether to use a project's servers, because their commands changed.",
)
