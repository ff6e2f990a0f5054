"""VS Code and its kin: `mcp.json` of the user and of each profile, `mcp` in `settings.json`, a workspace's
`.vscode/mcp.json`.

References to `inputs` are asked for and resolved by VS Code before it starts anything, so they stay as they
are. It offers its model at most 128 tools.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect

EDITIONS = ("Code", "Code - Insiders", "VSCodium")


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """User and profile files of each edition."""
    if platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    found = []
    for edition in EDITIONS:
        user = os.path.join(glob.escape(base), edition, "User")
        for folder in (user, os.path.join(user, "profiles", "*")):
            found += [os.path.join(folder, "mcp.json"), os.path.join(folder, "settings.json")]
    # Windows keeps its files elsewhere; these are what a remote window (WSL, SSH, container) reads on this side.
    found.append(os.path.join(glob.escape(home), ".vscode-server", "data", "User", "mcp.json"))
    return found


DIALECT = Dialect(
    name="vscode",
    title="VS Code",
    places=places,
    project_files=(".vscode/mcp.json", ".vscode/settings.json"),
    containers=(("servers",), ("mcp", "servers"), ("mcp.servers",)),
    variable=r"\$\{[A-Za-z]+(?::[^}]+)?\}|\$\{/\}",
    tool_limit=128,
)
