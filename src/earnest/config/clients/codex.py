"""Codex: `~/.codex/config.toml` (`CODEX_HOME` moves it) and a project's `.codex/config.toml`. It resolves
no variables; environment and headers can be taken over by name (`env_vars`, `env_http_headers`,
`bearer_token_env_var`)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from earnest.config.clients.dialect import Dialect


def places(home: str, env: Mapping[str, str], platform: str) -> list[str]:
    """Its one file."""
    return [os.path.join(env.get("CODEX_HOME") or os.path.join(home, ".codex"), "config.toml")]


DIALECT = Dialect(
    name="codex",
    title="Codex",
    places=places,
    project_files=(".codex/config.toml",),
    containers=(("mcp_servers",),),
    headers_key="http_headers",
    header_sources=("env_http_headers", "bearer_token_env_var"),
    oauth_keys=("oauth", "oauth_resource", "scopes"),
)
