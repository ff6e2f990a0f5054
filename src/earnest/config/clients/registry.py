"""All clients, and what of them earnest does not stand in front of."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from earnest.config.clients import (
    claude_code,
    claude_desktop,
    codex,
    cursor,
    gemini_cli,
    vscode,
    windsurf,
)
from earnest.config.clients.dialect import Dialect
from earnest.config.document import nearest
from earnest.config.files import contents
from earnest.core.errors import EarnestError

CLIENTS: Final = (
    claude_desktop.DIALECT,
    claude_code.DIALECT,
    cursor.DIALECT,
    vscode.DIALECT,
    windsurf.DIALECT,
    codex.DIALECT,
    gemini_cli.DIALECT,
)


class Uncovered(msgspec.Struct, frozen=True):
    """A server that reaches a client by another way than its configuration file, so that earnest does not
    see its calls."""

    client: str
    name: str
    path: str
    why: str


def client(name: str) -> Dialect:
    """The client of that name. Raises E1031 with the nearest."""
    for dialect in CLIENTS:
        if dialect.name == name:
            return dialect
    names = [dialect.name for dialect in CLIENTS]
    raise EarnestError("E1031", f'"{name}" is no client that earnest knows', nearest(name, names))


def over_limit(dialect: Dialect, tools: int) -> str:
    """A sentence where a client would not offer all of so many tools to its model; empty otherwise."""
    if not dialect.tool_limit or tools <= dialect.tool_limit:
        return ""
    return (
        f"{dialect.title} offers its model at most {dialect.tool_limit} tools, and its servers have {tools}: "
        f"{tools - dialect.tool_limit} would be missing. A view ([views.NAME]) can choose which."
    )


def uncovered(home: str, env: Mapping[str, str], platform: str) -> tuple[Uncovered, ...]:
    """Servers in extensions and plugins, as far as files tell. Accounts' connectors are in no file at all."""
    found: list[Uncovered] = []

    def look(client_name: str, pattern: str, key: str, why: str) -> None:
        for path in sorted(glob.glob(pattern, include_hidden=True)):
            manifest = _manifest(path)
            if _holds(manifest, key):
                name = manifest.get("name")
                shown = name if isinstance(name, str) else os.path.basename(os.path.dirname(path))
                found.append(Uncovered(client=client_name, name=shown, path=path, why=why))

    desktop = glob.escape(claude_desktop.folder(home, env, platform))
    home = glob.escape(home)
    extension = "the client starts an extension by itself"
    look(
        "claude-desktop",
        os.path.join(desktop, "Claude Extensions", "*", "manifest.json"),
        "server",
        extension,
    )
    plugins = os.path.join(home, ".claude", "plugins", "**")
    for pattern in (".mcp.json", os.path.join(".claude-plugin", "plugin.json")):
        for path in sorted(glob.glob(os.path.join(plugins, pattern), recursive=True, include_hidden=True)):
            manifest = _manifest(path)
            if pattern == ".mcp.json" or "mcpServers" in manifest:
                folder = os.path.dirname(path).removesuffix("/.claude-plugin")
                found.append(
                    Uncovered(
                        "claude-code",
                        os.path.basename(folder),
                        path,
                        "the client starts a plugin's servers by itself",
                    )
                )
    look(
        "gemini-cli",
        os.path.join(home, ".gemini", "extensions", "*", "gemini-extension.json"),
        "mcpServers",
        extension,
    )
    for editor in (".vscode", ".vscode-insiders", ".vscode-oss"):
        pattern = os.path.join(home, editor, "extensions", "*", "package.json")
        look(
            "vscode",
            pattern,
            "contributes.mcpServerDefinitionProviders",
            "an extension of the editor offers servers",
        )
    return tuple(found)


def _holds(manifest: dict[str, object], key: str) -> bool:
    value: object = manifest
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return bool(value)


def _manifest(path: str) -> dict[str, object]:
    try:
        found = json.loads(contents(path, 16 * 1024 * 1024).data)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
