"""The tokens of HTTP clients: one for each, in files that only their owner may read."""

from __future__ import annotations

import json
import os
import re
import secrets
from typing import Final

from earnest.core.errors import EarnestError
from earnest.net.checks import token_digest

LOCAL: Final = "local"
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43,128}")


class Tokens:
    """Tokens of one instance: `token` is that of the client `local`, `tokens.json` holds those of clients that `init` named."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._digests: dict[bytes, str] = {}
        self._load()

    def _load(self) -> None:
        self._digests.clear()
        self._digests[token_digest(self.local())] = LOCAL
        for token, client in self._named().items():
            self._digests[token_digest(token)] = client

    def digests(self) -> dict[bytes, str]:
        """Digest of each token to its client. The same object stays current."""
        return self._digests

    def local(self) -> str:
        """The token of the client `local`, made where there is none."""
        path = f"{self._instance}/token"
        try:
            with open(path, encoding="ascii") as file:
                token = file.read().strip()
            if len(token) >= 32:
                return token
        except FileNotFoundError:
            pass
        token = secrets.token_urlsafe(32)
        _write(path, token.encode() + b"\n")
        return token

    def make(self, client: str, wanted: str = "") -> str:
        """The token of a named client, made where it has none. `wanted`: what a new one shall be, so that it can be shown or
        written before it counts. Raises E1031 for one that is short or no token."""
        named = self._named()
        for token, name in named.items():
            if name == client:
                return token
        if wanted and (not _TOKEN.fullmatch(wanted) or wanted in named):
            raise EarnestError("E1031", "this is no token for an HTTP client", "Leave it out; one is made.")
        token = wanted or secrets.token_urlsafe(32)
        named[token] = client
        _write(f"{self._instance}/tokens.json", json.dumps(named, indent=1).encode())
        self._load()
        return token

    def _named(self) -> dict[str, str]:
        return named_tokens(self._instance)


def named_tokens(instance: str) -> dict[str, str]:
    """The tokens of an instance's named clients, `{token: client}`; empty where there are none. Raises E1030 for a damaged
    file."""
    path = f"{instance}/tokens.json"
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise EarnestError("E1030", f"{path} is damaged", "Move it away; clients get new tokens by `earnest init`.")
    return found


def _write(path: str, data: bytes) -> None:
    fresh = f"{path}.{secrets.token_hex(4)}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
    os.replace(fresh, path)
