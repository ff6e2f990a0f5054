"""Windsurf: `~/.codeium/windsurf/mcp_config.json`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """Its file, and the one of its preview edition."""
    return [os.path.join(home, ".codeium", name, "mcp_config.json") for name in ("windsurf", "windsurf-next")]


DIALECT = Dialect(
    name="windsurf",
    title="Windsurf",
    places=places,
    url_keys=(("serverUrl", "auto"), ("url", "auto")),
    streamable_key="serverUrl",
    variable=r"\$\{(?:env|file):[^}]+\}",
)
