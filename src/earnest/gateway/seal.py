"""Sealing what a client has to carry for earnest: encrypted and authenticated, so that it can be neither read nor changed.

The seal is JWE (`dir`, A256GCM, RFC 7516) under a key that lives beside the store (0600), so that a question asked before a
restart can be answered after it.
"""

from __future__ import annotations

import os
import secrets
from typing import Any


def load_key(path: str) -> bytes:
    """The 32-byte key in a file; made, with mode 0600, where there is none."""
    try:
        with open(path, "rb") as file:
            key = file.read()
        if len(key) == 32:
            return key
    except FileNotFoundError:
        pass
    key = secrets.token_bytes(32)
    fresh = f"{path}.{secrets.token_hex(4)}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, key)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(fresh, path)
    return key


class Seal:
    """Seals and opens. The library behind it is loaded at the first use: most daemons never ask in band."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._key: Any = None

    def _loaded(self) -> Any:
        if self._key is None:
            from joserfc.jwk import OctKey

            self._key = OctKey.import_key(load_key(self._path))
        return self._key

    def seal(self, plain: bytes) -> str:
        """Bytes as opaque text."""
        from joserfc import jwe

        return jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, plain, self._loaded())

    def open(self, text: str) -> bytes | None:
        """The bytes, or None for anything that was not sealed here."""
        from joserfc import jwe
        from joserfc.errors import JoseError

        try:
            plain: bytes | None = jwe.decrypt_compact(text, self._loaded(), algorithms=["dir", "A256GCM"]).plaintext
            return plain
        except (JoseError, ValueError, KeyError, TypeError):
            return None
