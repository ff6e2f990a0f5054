"""Claude Desktop. It resolves no variables; servers installed as extensions (.mcpb) are not in this file.

A packaged edition (Flatpak, Snap; MSIX on Windows) keeps a file of its own where a plain one would not look, and leaves the
other lying: where both are there, nothing tells which one is read, so `init` writes neither.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect


def folder(home: str, env: Mapping[str, str], platform: str) -> str:
    """Where Claude Desktop keeps its configuration and extensions."""
    if platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "Claude")
    return os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "Claude")


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """Its one file, wherever it may be."""
    folders = [folder(home, env, platform)]
    if platform != "darwin":
        base = glob.escape(home)
        folders = [glob.escape(folders[0]), os.path.join(base, ".config", "Claude")]
        folders.append(os.path.join(base, ".var", "app", "*", "config", "Claude"))
        folders.append(os.path.join(base, "snap", "*", "current", ".config", "Claude"))
    return [os.path.join(each, "claude_desktop_config.json") for each in dict.fromkeys(folders)]


DIALECT = Dialect(name="claude-desktop", title="Claude Desktop", places=places, note="Quit and start it again.", single=True)
