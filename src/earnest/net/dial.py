"""Opening connections to servers: name, socket, TLS, each failure with its own error."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from earnest.core.errors import EarnestError
from earnest.net.url import Origin

Factory = Callable[[], asyncio.Protocol]


class TlsSettings(msgspec.Struct, frozen=True):
    """Files of PEM: `ca_file` in place of the system's authorities, `cert_file` and `key_file` to identify
    ourselves."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """A TLS context of version 1.2 or later that verifies name and chain. Raises E1222 if a file cannot be
    used."""
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if settings.cert_file:
            # A password prompt would hang the daemon, so an encrypted key is an error instead.
            context.load_cert_chain(settings.cert_file, settings.key_file or None, password=lambda: b"")
    except (OSError, ssl.SSLError, ValueError) as error:
        raise EarnestError(
            "E1222",
            f"the TLS files of this server cannot be used: {error}",
            "Check that ca, cert and key are PEM files that exist, and that the key has no passphrase.",
        ) from error
    return context


class Dialer(Protocol):
    """How a pool opens a connection; the SSRF rules are another one."""

    async def __call__(self, origin: Origin, factory: Factory, context: ssl.SSLContext | None) -> tuple[Any, Any]: ...


class Direct:
    """Dial whatever the name resolves to: for addresses that the operator configured."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def __call__(self, origin: Origin, factory: Factory, context: ssl.SSLContext | None) -> tuple[Any, Any]:
        return await self._loop.create_connection(
            factory,
            origin.host,
            origin.port,
            ssl=context,
            server_hostname=origin.host if context is not None else None,
        )


def explain(origin: Origin, error: BaseException, timeout_s: float) -> EarnestError:
    """The E12xx error for a failure to connect."""
    where = str(origin)
    if isinstance(error, EarnestError):
        return error
    if isinstance(error, TimeoutError):
        return _failed("E1223", f"{where} did not accept a connection within {timeout_s:g} s", "Is it reachable?")
    if isinstance(error, socket.gaierror):
        return _failed(
            "E1220",
            f"the name {origin.host} cannot be resolved: {error.strerror}",
            "Check the URL and the network.",
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return _failed(
            "E1222",
            f"the certificate of {where} is not valid: {error.verify_message}",
            "If the server has a private authority, name its certificate with `ca`.",
        )
    if isinstance(error, ssl.SSLError):
        return _failed("E1222", f"TLS with {where} failed: {error.reason or error}", "TLS 1.2 or later is required.")
    if origin.scheme == "https" and isinstance(error, (ConnectionResetError, ConnectionAbortedError)):
        return _failed("E1222", f"{where} closed the connection during TLS", "TLS 1.2 or later is required.")
    if isinstance(error, ConnectionRefusedError):
        return _failed("E1221", f"{where} refused the connection", "Is the server running on that port?")
    if isinstance(error, OSError):
        return _failed("E1221", f"cannot connect to {where}: {error.strerror or error}", "Is the server running?")
    return _failed("E1221", f"cannot connect to {where}: {error!r}", "")


def _failed(code: str, message: str, remedy: str) -> EarnestError:
    return EarnestError(code, message, remedy, exit_code=3)
