"""TLS contexts of the fake internet, one a name, made when a client greets with it (RFC 6066, section 3)."""

from __future__ import annotations

import hashlib
import os
import ssl
import subprocess
import threading
from typing import Final

_MOST: Final = 500
"""Names that certificates are made for, in one box."""


class Certificates:
    """`folder` holds them, `command` starts what makes more (`authority.py`)."""

    def __init__(self, folder: str, command: list[str]) -> None:
        self._folder = folder
        self._command = command
        self._lock = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._maker: subprocess.Popen[str] | None = None

    def context(self, name: str) -> ssl.SSLContext:
        """A server's context for a name; another one is put in its place if the client greets with another."""
        context = self._context(name)
        context.sni_callback = self._greeted
        return context

    def _greeted(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        if name:
            try:
                connection.context = self._context(name.lower())
            except (OSError, ValueError):
                return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        return None

    def prepare(self) -> None:
        """Start what makes certificates, as one will be wanted soon."""
        with self._lock:
            self._start()

    def _start(self) -> subprocess.Popen[str]:
        if self._maker is None:
            self._maker = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self._maker

    def _context(self, name: str) -> ssl.SSLContext:
        with self._lock:
            known = self._contexts.get(name)
            if known is not None:
                return known
            if len(self._contexts) >= _MOST:
                raise OSError("too many names")
            path = os.path.join(self._folder, hashlib.sha256(name.encode()).hexdigest()[:32] + ".pem")
            if not os.path.exists(path):
                maker = self._start()
                assert maker.stdin is not None and maker.stdout is not None
                maker.stdin.write(name.replace("\n", "") + "\n")
                maker.stdin.flush()
                path = maker.stdout.readline().strip()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path)
            context.set_alpn_protocols(["http/1.1"])
            self._contexts[name] = context
            return context
