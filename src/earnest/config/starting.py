"""The two files that `init` may make: a first earnest.toml with its defaults in comments, and
`servers.toml` beside it.

earnest.toml is a person's: it is made where there is none and never written again. Remote servers found in
clients have to be configured somewhere, so they go to `servers.toml`, which the first earnest.toml
includes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from earnest.config import files
from earnest.config.settings import read
from earnest.core.errors import EarnestError

SERVERS = "servers.toml"

_FIRST = """\
# earnest: what stands between your MCP clients and servers.
# Everything here has a default; `earnest doctor` shows what is in force.

# observe | balanced | cautious | read-only
# preset = "balanced"

# A policy of your own: a file, or a table here. `earnest policy check` reads it.
# policy = "policy.toml"

# Servers that `earnest init` found behind addresses.
include = ["servers.toml"]

# [servers.files]
# command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/some/folder"]
# env = { TOKEN = "${env:FILES_TOKEN}" }    # also ${file:PATH}, ${keyring:SERVICE/USER}
# trust = "untrusted"                         # or "verified", "trusted"

# What you know better about a tool than its server says.
# [labels."files/read_file"]
# read_only = true

# [clients.cursor]
# asks = "person"        # a question through this client reaches a person
# conversation = "process"

# [asking]
# queue = true
# hold_s = 45
# valid_s = 600
# floor_s = 0.5

# [limits]
# body_bytes = 4194304
# call_timeout_s = 60
# call_hard_timeout_s = 600

# [listen]
# host = "127.0.0.1"
# port = 7573

# [receipts]
# strict = false
# payloads = true
# payload_days = 7
# undo_days = 7
# redact = []

# [flow]
# integrity = "words"
"""

_HEAD = "# Written by `earnest init`: servers your clients reach by an address. Yours to edit.\n"


def make_first(path: str) -> bool:
    """Make earnest.toml and the file it includes where there is none; returns whether it did. Raises E1013."""
    if os.path.exists(path):
        return False
    _make(os.path.join(os.path.dirname(path), SERVERS), _HEAD.encode())
    return _make(path, _FIRST.encode())


def add_servers(path: str, servers: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
    """Add remote servers (name to address and headers to forward) to the file at `path`, made where missing
    (0600)."""
    blocks = []
    for name, (url, forward) in servers.items():
        block = f"\n[servers.{name}]\nurl = {_text(url)}\n"
        if forward:
            block += f"forward_headers = [{', '.join(_text(header) for header in forward)}]\n"
        blocks.append(block)
    added = "".join(blocks).encode()
    if _make(path, _HEAD.encode() + added):
        return
    old = read(path, missing_is_error=True) or b""
    files.replace(path, old + (b"" if old.endswith(b"\n") else b"\n") + added, expected=old)


def _make(path: str, data: bytes) -> bool:
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        files.create(path, data)
    except FileExistsError:
        return False
    except OSError as error:
        raise EarnestError("E1013", f"{path} cannot be written: {error.strerror}", "check the folder") from None
    return True


def _text(value: str) -> str:
    # "$${" is how a template writes a plain "${"; an address is taken over as it is, never resolved here.
    return json.dumps(value.replace("${", "$${"), ensure_ascii=False).replace("\x7f", "\\u007f")
