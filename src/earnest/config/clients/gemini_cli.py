"""Gemini CLI: `~/.gemini/settings.json` and a project's. `httpUrl` is Streamable HTTP, `url` the older
HTTP+SSE."""

from __future__ import annotations

import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """Its file in the home folder."""
    return [os.path.join(home, ".gemini", "settings.json")]


DIALECT = Dialect(
    name="gemini-cli",
    title="Gemini CLI",
    places=places,
    project_files=(".gemini/settings.json",),
    url_keys=(("httpUrl", "http"), ("url", "sse")),
    streamable_key="httpUrl",
    oauth_keys=("oauth", "authProviderType"),
    variable=r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}|\$[A-Za-z_][A-Za-z0-9_]*",
)
