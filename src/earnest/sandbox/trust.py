"""What a box's own files and variables say of its network: names, and whose certificates to believe."""
from __future__ import annotations

from earnest.sandbox.box import Plan


def files_and_env(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    files = {
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "/etc/hostname": "localhost\n",
        "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
    }
    return files, {}

def command() -> list[str]:
    return []
