"""Demo servers: small MCP servers on the standard library that `earnest run` and `earnest demo` put behind the gateway.

This folder imports nothing of earnest: the servers are strangers to it, like any others.
"""

import sys
from collections.abc import Mapping
from typing import Final

SERVERS: Final = ("file_ops", "mailbox", "fetcher", "liar")
"""Modules of this folder that are servers."""


def commands(folder: str, python: str = sys.executable) -> Mapping[str, tuple[str, ...]]:
    """The command of each demo server by name, working below `folder`; each makes its own subfolder there."""
    return {
        name.replace("_", "-"): (python, "-m", f"{__name__}.{name}", f"{folder}/{name.replace('_', '-')}") for name in SERVERS
    }
